//! Packages: commands that are too large for the binary. Each is known by the digest of its component, so it does not matter
//! where the bytes come from: `kiso skill add` takes them from the publisher, another address, or a file.
//!
//! A package is one file, a `kiso.toml` with a table `[kiso.package]` ([`spec`]), and the files beside it that its commands see. Those
//! of kiso are in `packages/`. It is installed as a skill of the command shape, with the grants and limits that any skill has.

mod archive;
mod download;
mod files;
mod folder;
mod module_index;
mod packed;
mod program;
mod spec;
mod start;
mod started;

pub use self::archive::PackageError;
pub use self::download::{DownloadError, download};
pub use self::folder::{PackageContent, PackageFolder, bundled, find, find_source};
pub use self::spec::{CompileNeeds, PackageBuild, PackagePart, PackageSpec, StartedInterpreter};
pub use self::started::MARK;

use self::spec::first_word;
use kiso_base::home::Home;
use std::io::Result;
use std::path::PathBuf;

/// The name of a file beside the workspace through which a command sends requests to the host and reads the replies.
pub const CONTROL_FILE: &str = "kiso-commands";

/// The beginning of the source of an installed skill that is a package.
const SOURCE: &str = "package:";

/// A command that is fetched when somebody asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The name of its skill.
    pub name: String,
    /// The program's version, and behind a plus sign the revision of kiso's packing. `kiso skill add` replaces an installed package of
    /// another version.
    pub version: String,
    pub spec: PackageSpec,
}

impl Package {
    /// Checks a table of a manifest. The version becomes the name of a directory.
    pub(crate) fn new(name: &str, version: &str, spec: PackageSpec) -> std::result::Result<Self, String> {
        spec.check()?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
        if !version.chars().all(is_plain) || !version.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err("the `version` of a package consists of a-z, A-Z, 0-9, `.`, `_`, `+` and `-`".to_owned());
        }
        Ok(Self { name: name.to_owned(), version: version.to_owned(), spec })
    }

    /// The source that identifies its skill.
    pub fn source(&self) -> String {
        format!("{SOURCE}{}", self.name)
    }

    /// Whether this is the source of a package of kiso.
    pub(crate) fn is_source_of_kiso(source: &str) -> bool {
        source.starts_with(SOURCE)
    }

    /// Whether it has a command of this name.
    pub fn has_command(&self, name: &str) -> bool {
        self.spec.commands.iter().any(|command| command == name)
    }

    /// The lines that name its commands to models, each with its command.
    pub fn model_lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.spec.models.iter().map(|line| (first_word(line), line.as_str()))
    }

    /// The addresses of the component and its parts, each with the number of bytes that it sends.
    pub fn addresses(&self) -> Vec<(&str, u64)> {
        let elsewhere = self.spec.parts.iter().filter_map(|part| Some((part.url.as_deref()?, part.size)));
        std::iter::once((self.spec.component.url.as_str(), self.spec.component.size)).chain(elsewhere).collect()
    }

    /// The number of bytes that all addresses send together.
    pub fn fetched_bytes(&self) -> u64 {
        self.addresses().iter().map(|(_, size)| size).sum()
    }

    /// Most bytes of a download.
    pub fn most_fetched(&self) -> u64 {
        self.spec.component.download_mib << 20
    }

    /// Whether its files are missing in the home.
    pub fn lacks_files(&self, home: &Home) -> bool {
        files::mounts(self, home).is_err()
    }

    /// Whether its commands can ask for other commands.
    pub fn asks_for_commands(&self) -> bool {
        self.spec.files.iter().any(|pattern| pattern.rsplit('/').next() == Some(CONTROL_FILE))
    }

    /// Changes arguments and environment of a command that was started in `cwd`. If it continues in the kept interpreter, which knows its
    /// directories by number and so must see the same ones, returns the arguments that start a new interpreter.
    pub fn start(&self, argv: &mut Vec<String>, env: &mut Vec<(String, String)>, cwd: &str) -> Option<Vec<String>> {
        start::start(&self.spec, argv, env, cwd)
    }

    /// An empty directory, which a kept interpreter sees in the place of one that its line does not see.
    pub fn empty_dir(&self, home: &Home) -> Result<PathBuf> {
        files::empty(self, home)
    }

    /// The directories with its files and its parts, and where the command sees each.
    pub fn mounts(&self, home: &Home) -> Result<Vec<(PathBuf, String)>> {
        files::mounts(self, home)
    }
}
