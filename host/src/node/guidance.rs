//! SOUL.md, IDENTITY.md and AGENTS.md: who kiso is, how it speaks, and what it is to heed (seed 002, "My identity").
//!
//! Those of the home are their owner's: nothing that runs in the sandbox reaches them, so they stand in the system prompt of the
//! roles that work and write. Those of a session's workspace may be anybody's, a skill's or a web page's; they are data, and
//! reach a prompt within its fence.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use crate::home::{GUIDANCE, Home};
use crate::llm::Role;

/// Bytes that one file of the home may have: about two thousand tokens, which stand in every call.
pub const MAX_GUIDANCE: u64 = 8 << 10;

/// What stands above each of [`GUIDANCE`] in a system prompt.
const HEADINGS: [&str; GUIDANCE.len()] = ["Your character", "Your name and tone", "Instructions of your owner"];

/// Why a file of the home cannot be used. It is never passed over in silence: an owner who wrote one relies on it.
#[derive(Debug, thiserror::Error)]
pub enum GuidanceError {
    #[error("{} is no UTF-8 text (at byte {at}): save it as UTF-8, or remove it", path.display())]
    NotText { path: PathBuf, at: usize },
    #[error("{} has more than {MAX_GUIDANCE} bytes, the most that it may have: shorten it", path.display())]
    TooLarge { path: PathBuf },
    #[error("{} is no file: it is to be a Markdown file", path.display())]
    NotAFile { path: PathBuf },
    #[error("failed to read {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// Whether the role works or writes for the user, and so is told who it is.
pub fn is_guided(role: Role) -> bool {
    matches!(role, Role::Planner | Role::Reasoner | Role::Actor | Role::Worker)
}

/// What the files of the home add to a system prompt; `None` where there are none, or all are empty.
pub fn of_home(home: &Home) -> Result<Option<String>, GuidanceError> {
    let mut guidance = String::new();
    for (name, heading) in GUIDANCE.iter().zip(HEADINGS) {
        let Some(text) = read(home.path().join(name))? else { continue };
        if !text.trim().is_empty() {
            guidance.push_str(&format!("\n\n{heading} ({name}):\n{}", text.trim()));
        }
    }
    Ok((!guidance.is_empty()).then_some(guidance))
}

/// At most one byte more than a file may have is read.
fn read(path: PathBuf) -> Result<Option<String>, GuidanceError> {
    // Before it is opened: a named pipe would be waited for.
    match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => return Ok(None),
        Err(error) => return Err(GuidanceError::Io { path, error }),
        Ok(found) if !found.is_file() => return Err(GuidanceError::NotAFile { path }),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(MAX_GUIDANCE + 1).read_to_end(&mut bytes));
    match read {
        Err(error) => Err(GuidanceError::Io { path, error }),
        Ok(_) if bytes.len() as u64 > MAX_GUIDANCE => Err(GuidanceError::TooLarge { path }),
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(GuidanceError::NotText { path, at: error.utf8_error().valid_up_to() }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        (dir, home)
    }

    #[test]
    fn each_file_stands_under_its_heading_in_their_order() {
        let (_dir, home) = home();
        assert_eq!(of_home(&home).unwrap(), None);
        fs::write(home.path().join("AGENTS.md"), "Prefer metric units.\n").unwrap();
        fs::write(home.path().join("SOUL.md"), "Patient and curious.").unwrap();
        fs::write(home.path().join("IDENTITY.md"), " \n").unwrap();
        let guidance = of_home(&home).unwrap().unwrap();
        let wanted = "\n\nYour character (SOUL.md):\nPatient and curious.\n\n\
                      Instructions of your owner (AGENTS.md):\nPrefer metric units.";
        assert_eq!(guidance, wanted);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error_that_names_it() {
        let (_dir, home) = home();
        let path = home.path().join("SOUL.md");
        for (bytes, why) in
            [(b"a\xff".to_vec(), "no UTF-8 text (at byte 1)"), (vec![b'x'; 8_193], "more than 8192 bytes")]
        {
            fs::write(&path, bytes).unwrap();
            let error = of_home(&home).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("SOUL.md"), "{error}");
        }
        fs::write(&path, vec![b'x'; 8_192]).unwrap();
        assert!(of_home(&home).unwrap().unwrap().len() > 8_192);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(of_home(&home), Err(GuidanceError::NotAFile { .. })));
    }
}
