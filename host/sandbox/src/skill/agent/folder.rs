//! The files of an Agent Skill, from a directory or an archive, before anything in them is trusted.

use super::super::digest::Digest;
use kiso_plan::code::ErrorCode;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Files and directories of one skill. Published skills have some dozens.
pub(super) const MAX_FILES: usize = 1_000;

/// Bytes of all its files, unpacked.
pub(super) const MAX_BYTES: u64 = 32 << 20;

/// Bytes of its `SKILL.md`, which models read: the specification recommends some 20 KiB.
pub(super) const MAX_INSTRUCTIONS: u64 = 256 << 10;

/// Levels of directories, and bytes of a path.
const MAX_DEPTH: usize = 8;
const MAX_PATH: usize = 255;

/// The file that makes a folder a skill.
pub(super) const SKILL_MD: &str = "SKILL.md";

/// Directories and files that belong to other programs and are left out.
const LEFT_OUT: [&str; 4] = [".git", "__MACOSX", ".DS_Store", "__pycache__"];

/// The reason why a folder or an archive is not a skill.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot read {path}: {why}")]
    NotFound { path: String, why: String },
    #[error("there is no {SKILL_MD} in it, which an Agent Skill is known by")]
    NoInstructions,
    #[error("this is not a file, and there is no {SKILL_MD} in it, which an Agent Skill is known by")]
    OtherDirectory,
    #[error("{SKILL_MD} cannot be used: {why}")]
    Frontmatter { why: String },
    #[error("{path} has {bytes} bytes, and at most {max} are taken")]
    TooLarge { path: String, bytes: u64, max: u64 },
    #[error("its files have more than {} MiB in all", MAX_BYTES >> 20)]
    TooMuch,
    #[error("it has more than {MAX_FILES} files and directories")]
    TooMany,
    #[error("{path} is a link or a special file; a skill has files and directories only, so put a copy in its place")]
    Link { path: String },
    #[error("{path:?} is not a path inside the skill: {why}")]
    Path { path: String, why: &'static str },
    #[error("two of its files are {path}; upper and lower case count as the same")]
    Twice { path: String },
    #[error("the archive cannot be read: {why}")]
    Archive { why: String },
}

impl FolderError {
    /// The error's code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::NoInstructions | Self::OtherDirectory | Self::Frontmatter { .. } => ErrorCode::BadAgentSkill,
            Self::TooLarge { .. } | Self::TooMuch => ErrorCode::TooLarge,
            Self::TooMany => ErrorCode::TooManyFiles,
            Self::Link { .. } => ErrorCode::Link,
            Self::Path { .. } => ErrorCode::UnsafePath,
            Self::Twice { .. } | Self::Archive { .. } => ErrorCode::BadArchive,
        }
    }
}

/// The files of a skill by their paths, sorted.
#[derive(Debug, Default)]
pub(super) struct Folder {
    pub files: Vec<(String, Vec<u8>)>,
    /// The name of the folder, if it has one.
    pub name: Option<String>,
    entries: usize,
    bytes: u64,
}

impl Folder {
    /// Reads a directory.
    pub(super) fn of_dir(path: &Path) -> Result<Self, FolderError> {
        // This comes first: the path could be any directory, with many files.
        if fs::symlink_metadata(path.join(SKILL_MD)).is_err() {
            return Err(FolderError::OtherDirectory);
        }
        let mut folder = Self::default();
        folder.read_dir(path, "", 0)?;
        let real = path.canonicalize().map_err(|error| not_found(path, error))?;
        folder.name = real.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(folder)
    }

    /// Checks that it is a skill, and sorts its files.
    pub(super) fn complete(mut self) -> Result<Self, FolderError> {
        self.files.sort();
        if self.find(SKILL_MD).is_some() { Ok(self) } else { Err(FolderError::NoInstructions) }
    }

    /// The bytes of a file.
    pub(super) fn find(&self, path: &str) -> Option<&[u8]> {
        self.files.iter().find(|(name, _)| name == path).map(|(_, bytes)| bytes.as_slice())
    }

    /// The digest that identifies the folder: SHA-256 over a line for each file, as `sha256sum` writes them, sorted by path.
    pub(super) fn digest(&self) -> Digest {
        let lines: String =
            self.files.iter().map(|(path, bytes)| format!("{}  {path}\n", Digest::compute(bytes))).collect();
        Digest::compute(lines.as_bytes())
    }

    /// Counts one more file or directory.
    pub(super) fn count(&mut self) -> Result<(), FolderError> {
        self.entries += 1;
        if self.entries > MAX_FILES { Err(FolderError::TooMany) } else { Ok(()) }
    }

    /// Adds a file. Reads only as many bytes as there is room for.
    pub(super) fn add(&mut self, path: String, from: impl Read) -> Result<(), FolderError> {
        let max = if path == SKILL_MD { MAX_INSTRUCTIONS } else { MAX_BYTES };
        let left = MAX_BYTES - self.bytes;
        let mut bytes = Vec::new();
        let read = from.take(max.min(left) + 1).read_to_end(&mut bytes);
        read.map_err(|error| FolderError::NotFound { path: path.clone(), why: error.to_string() })?;
        let size = bytes.len() as u64;
        if size > max {
            return Err(FolderError::TooLarge { path, bytes: size, max });
        }
        if size > left {
            return Err(FolderError::TooMuch);
        }
        self.bytes += size;
        self.files.push((path, bytes));
        Ok(())
    }

    fn read_dir(&mut self, dir: &Path, below: &str, depth: usize) -> Result<(), FolderError> {
        for entry in fs::read_dir(dir).map_err(|error| not_found(dir, error))? {
            let entry = entry.map_err(|error| not_found(dir, error))?;
            let (place, file_name) = (entry.path(), entry.file_name());
            if file_name.to_str().is_some_and(is_left_out) {
                continue;
            }
            let path = format!("{below}{}", file_name.to_string_lossy());
            check_path(&path)?;
            if file_name.to_str().is_none() {
                return Err(FolderError::Path { path, why: "it is not UTF-8" });
            }
            self.count()?;
            // The type of the entry itself: links are not followed, so they cannot form a circle.
            let kind = entry.file_type().map_err(|error| not_found(&place, error))?;
            if kind.is_dir() {
                if depth == MAX_DEPTH {
                    return Err(FolderError::Path { path, why: "it lies too deep" });
                }
                self.read_dir(&place, &format!("{path}/"), depth + 1)?;
            } else if kind.is_file() {
                let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
                let file = fs::OpenOptions::new().read(true).custom_flags(no_follow).open(&place);
                let file = file.map_err(|error| not_found(&place, error))?;
                let size = file.metadata().map_err(|error| not_found(&place, error))?.len();
                if path == SKILL_MD && size > MAX_INSTRUCTIONS {
                    return Err(FolderError::TooLarge { path, bytes: size, max: MAX_INSTRUCTIONS });
                }
                self.add(path, file)?;
            } else {
                return Err(FolderError::Link { path });
            }
        }
        Ok(())
    }
}

fn not_found(path: &Path, error: io::Error) -> FolderError {
    FolderError::NotFound { path: path.display().to_string(), why: error.to_string() }
}

/// Whether a file or directory of this name does not belong to the skill.
fn is_left_out(name: &str) -> bool {
    LEFT_OUT.contains(&name)
}

/// A path of an archive, without the slash of a directory. `None` if it is left out.
pub(super) fn archived_path(name: &str) -> Result<Option<&str>, FolderError> {
    let path = name.strip_suffix('/').unwrap_or(name);
    if path.split('/').any(is_left_out) {
        return Ok(None);
    }
    // An archive has one level more than a directory: that of the folder itself.
    match path.split_once('/') {
        Some((first, rest)) => check_path(first).and_then(|()| check_path(rest)).map_err(|error| match error {
            FolderError::Path { why, .. } => FolderError::Path { path: path.chars().take(100).collect(), why },
            other => other,
        })?,
        None => check_path(path)?,
    }
    Ok(Some(path))
}

/// Checks that a path stays inside the folder: ordinary names between slashes.
fn check_path(path: &str) -> Result<(), FolderError> {
    let refuse = |why| Err(FolderError::Path { path: path.chars().take(100).collect(), why });
    if path.len() > MAX_PATH {
        return refuse("it is too long");
    }
    if path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return refuse("it leads out of it, or nowhere");
    }
    if path.split('/').count() > MAX_DEPTH + 1 {
        return refuse("it lies too deep");
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return refuse("it has a control character or a backslash");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_inside() {
        for good in ["SKILL.md", "scripts/a b.sh", "a/b/c.txt", "ä.md", ".hidden"] {
            assert!(check_path(good).is_ok(), "{good}");
        }
        let deep = ["a"; 11].join("/");
        for bad in
            ["../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a\\..\\b", "a\0b", "a\nb", "", &deep, &"x".repeat(300)]
        {
            assert!(matches!(check_path(bad), Err(FolderError::Path { .. })), "{bad:?}");
        }
    }
}
