//! Packages: commands that are too large for the binary. Each is known by the digest of its component, so it does not matter
//! where the bytes come from: `kiso package add` takes them from the publisher, another address, or a file.
//!
//! What is fetched is installed as a skill of the command shape, with the grants and limits that any skill has. What a package
//! adds to that is here: further names in command lines, files that the command sees beside the workspace, and how it is started.
//!
//! A package is one file below this one ([`python`] is the first) and a line in [`PACKAGES`].

mod archive;
mod download;
mod python;
mod stack;
mod support;

pub use self::archive::PackageError;
pub use self::download::{DownloadError, download};

use crate::home::Home;
use std::path::PathBuf;

/// Every package that this version knows.
pub const PACKAGES: &[&Package] = &[&python::PYTHON];

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
    /// Its names in command lines. The first is the name of the skill.
    pub commands: &'static [&'static str],
    /// Bytes of stack that it is given instead of its own.
    stack: u64,
    /// `kiso.toml` of the skill.
    pub manifest: &'static str,
    /// Where the command sees its [`support`] files, read-only.
    mount: &'static str,
    files: fn() -> &'static support::SupportFiles,
    launch: Launch,
}

/// Makes words and environment fit for a command that was started in a directory.
type Launch = fn(argv: &mut Vec<String>, env: &mut Vec<(String, String)>, cwd: &str);

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

    /// The component, from its own bytes or from an archive that contains it. Nothing else than what the digest says comes out.
    pub fn component(&self, bytes: Vec<u8>) -> Result<Vec<u8>, PackageError> {
        let published = archive::component(self, bytes)?;
        stack::enlarge(&published, self.stack).map_err(PackageError::Stack)
    }

    /// Makes words and environment fit for the command, started in `cwd`.
    pub fn launch(&self, argv: &mut Vec<String>, env: &mut Vec<(String, String)>, cwd: &str) {
        (self.launch)(argv, env, cwd);
    }

    /// The directory with its support files, written if it is not there, and where the command sees it.
    pub fn support(&self, home: &Home) -> std::io::Result<(PathBuf, &'static str)> {
        Ok((support::directory(self, home)?, self.mount))
    }
}

/// A package by its name, or one of its commands.
pub fn find(name: &str) -> Option<&'static Package> {
    PACKAGES.iter().copied().find(|package| package.name == name || package.commands.contains(&name))
}

/// The package that a skill of this source is.
pub fn of_source(source: Option<&str>) -> Option<&'static Package> {
    let name = source?.strip_prefix(SOURCE)?;
    PACKAGES.iter().copied().find(|package| package.name == name)
}
