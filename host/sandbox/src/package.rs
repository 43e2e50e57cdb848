//! Packages: commands that are too large for the binary. Each is known by the digest of its component, so it does not matter
//! where the bytes come from: `kiso package add` takes them from the publisher, another address, or a file.
//!
//! What is fetched is installed as a skill of the command shape, with the grants and limits that any skill has. What a package
//! adds to that is here: further names in command lines, files that the command sees beside the workspace, and how it is started.
//!
//! A package is one file below this one ([`python`] is the first) and a line in [`PACKAGES`].

mod archive;
mod download;
mod git;
mod module_index;
mod parts;
mod python;
mod python_sci;
mod reactor;
mod started;
mod support;

pub use self::archive::PackageError;
pub use self::download::{DownloadError, download};
pub use self::parts::PackagePart;
pub use self::started::{MARK, StartedInterpreter};

use kiso_base::home::Home;
use std::path::PathBuf;

/// Every package that this version knows. Where two have a command of the same name, the last that is installed is meant.
pub const PACKAGES: &[&Package] = &[&python::PYTHON, &python_sci::PYTHON_SCI, &git::GIT];

/// A command that is fetched when somebody asks for it.
#[derive(Debug)]
pub struct Package {
    pub name: &'static str,
    /// The program's, and behind a plus sign which of the ways it is that kiso has packed it in: what is installed of another one is
    /// replaced by `kiso package add`.
    pub version: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    pub licence: &'static str,
    /// Where the publisher has the component.
    pub url: &'static str,
    /// What else contains it: an archive that a package manager fetches.
    pub also: &'static str,
    /// SHA-256 of the component, in hexadecimal.
    pub sha256: &'static str,
    /// Bytes of the component.
    pub size: u64,
    /// Most bytes of what is fetched, the component or an archive with it and its parts.
    pub fetched: u64,
    /// What else it needs, out of the same archive or from elsewhere.
    parts: &'static [PackagePart],
    /// Its commands as models are told of them: each name, and the text behind it.
    pub told: &'static [(&'static str, &'static str)],
    /// Its names in command lines. The first is the name of the skill.
    pub commands: &'static [&'static str],
    /// What compiling it takes, where that is more than is allowed by default.
    pub compiling: Option<CompileNeeds>,
    /// Makes what the publisher has fit to be a command.
    fit: Fit,
    /// The interpreter that it is, if that is started once and kept so.
    pub interpreter: Option<StartedInterpreter>,
    /// `kiso.toml` of the skill.
    pub manifest: &'static str,
    /// Where the command sees its [`support`] files, read-only.
    mount: &'static str,
    files: fn() -> &'static support::SupportFiles,
    launch: Launch,
}

type Fit = fn(module: &[u8]) -> Result<Vec<u8>, String>;

/// What a compiler must be allowed, as `[engine]` in the configuration has it.
#[derive(Debug, Clone, Copy)]
pub struct CompileNeeds {
    pub memory_mib: u64,
    pub timeout_s: u64,
}

/// What was fetched, checked and unpacked.
#[derive(Debug)]
pub struct PackageContent {
    /// The component, fit to be installed.
    pub component: Vec<u8>,
    /// The bytes of each of [`Package::parts`].
    parts: Vec<Vec<u8>>,
}

/// Makes words and environment fit for a command that was started in a directory. Whether it goes on where its interpreter was kept.
type Launch = fn(argv: &mut Vec<String>, env: &mut Vec<(String, String)>, cwd: &str) -> bool;

/// The name of a file among those that a command sees beside the workspace: what it asks for in it, the host answers in it.
pub const CONTROL_FILE: &str = "kiso-commands";

/// What an installed skill that is a package has as its source.
const SOURCE: &str = "package:";

impl Package {
    /// The source that its skill is known by.
    pub fn source(&self) -> String {
        format!("{SOURCE}{}", self.name)
    }

    /// The name of its skill.
    pub fn skill(&self) -> &'static str {
        self.commands[0]
    }

    /// Where the publishers have the component and its parts, and how many bytes each address sends.
    pub fn addresses(&self) -> Vec<(&'static str, u64)> {
        let elsewhere = self.parts.iter().filter_map(|part| Some((part.url?, part.size)));
        std::iter::once((self.url, self.size)).chain(elsewhere).collect()
    }

    /// The component and what belongs to it, each from its own bytes or from an archive among these. Nothing else than what the
    /// digests say comes out.
    #[expect(clippy::expect_used, reason = "the component is the first of them")]
    pub fn unpack(&self, sources: &[Vec<u8>]) -> Result<PackageContent, PackageError> {
        let mut files = archive::files(self, sources)?.into_iter();
        let published = files.next().expect("the component is the first of them");
        let component = (self.fit)(&published).map_err(PackageError::Unfit)?;
        Ok(PackageContent { component, parts: files.collect() })
    }

    /// Writes what belongs to the component into the home.
    pub fn keep_parts(&self, home: &Home, unpacked: &PackageContent) -> std::io::Result<()> {
        parts::keep(self, home, &unpacked.parts)
    }

    /// Whether what belongs to the component is missing in the home.
    pub fn lacks_parts(&self, home: &Home) -> bool {
        parts::directories(self, home).is_err()
    }

    /// The program that starts the interpreter and prints it, instead of the component.
    pub fn recorder(&self, unpacked: &PackageContent) -> Result<Vec<u8>, PackageError> {
        started::recorder(&unpacked.component).map_err(PackageError::Unfit)
    }

    /// The component with the interpreter as it was printed.
    pub fn started(
        &self,
        unpacked: &PackageContent,
        interpreter: &StartedInterpreter,
        printed: &[u8],
    ) -> Result<Vec<u8>, PackageError> {
        started::started(&unpacked.component, printed, interpreter).map_err(PackageError::Unfit)
    }

    /// Makes words and environment fit for the command, started in `cwd`. Whether it goes on where its interpreter was kept; then it
    /// knows its directories by number, and must see the same ones.
    pub fn launch(&self, argv: &mut Vec<String>, env: &mut Vec<(String, String)>, cwd: &str) -> bool {
        (self.launch)(argv, env, cwd)
    }

    /// An empty directory, which a kept interpreter sees in the place of one that its line does not see.
    pub fn empty_dir(&self, home: &Home) -> std::io::Result<PathBuf> {
        let dir = home.package_dir(self.name).join("empty");
        std::fs::create_dir_all(&dir).map(|()| dir)
    }

    /// The directories with its support files, which are written if they are not there, and with its parts; and where the command
    /// sees each.
    pub fn support(&self, home: &Home) -> std::io::Result<Vec<(PathBuf, &'static str)>> {
        let mut seen = vec![(support::directory(self, home)?, self.mount)];
        seen.extend(parts::directories(self, home)?);
        Ok(seen)
    }
}

/// A package by its name.
pub fn find(name: &str) -> Option<&'static Package> {
    PACKAGES.iter().copied().find(|package| package.name == name)
}

/// The packages that have a command of this name, the one to be preferred first.
pub fn with_command(name: &str) -> impl Iterator<Item = &'static Package> {
    PACKAGES.iter().copied().rev().filter(move |package| package.commands.contains(&name))
}

/// The package that a skill of this source is.
pub fn of_source(source: Option<&str>) -> Option<&'static Package> {
    let name = source?.strip_prefix(SOURCE)?;
    PACKAGES.iter().copied().find(|package| package.name == name)
}
