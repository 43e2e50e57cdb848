//! SOUL.md, IDENTITY.md and AGENTS.md: kiso's character, tone and standing instructions.
//!
//! The files of the home belong to its owner, and nothing in the sandbox can reach them, so they are in the system prompt of the
//! roles that work and write. Files of a session's workspace may come from anybody, such as a skill or a web page; they are data,
//! and fenced in prompts.

use kiso_base::home::{GUIDANCE, Home, TextError, read_text};

/// Maximum size in bytes of one file of the home: about two thousand tokens, which are part of every call.
pub const MAX_GUIDANCE: u64 = 8 << 10;

/// Headings for each of [`GUIDANCE`] in a system prompt.
const HEADINGS: [&str; GUIDANCE.len()] = ["Your character", "Your name and tone", "Instructions of your owner"];

/// Returns the text of the home's files for a system prompt; `None` if there are none, or all are empty.
pub fn of_home(home: &Home) -> Result<Option<String>, TextError> {
    let mut guidance = String::new();
    for (name, heading) in GUIDANCE.iter().zip(HEADINGS) {
        let Some(text) = read_text(&home.path().join(name), MAX_GUIDANCE)? else { continue };
        if !text.trim().is_empty() {
            guidance.push_str(&format!("\n\n{heading} ({name}):\n{}", text.trim()));
        }
    }
    Ok((!guidance.is_empty()).then_some(guidance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
            [(b"a\xff".to_vec(), "not UTF-8 text (at byte 1)"), (vec![b'x'; 8_193], "more than 8192 bytes")]
        {
            fs::write(&path, bytes).unwrap();
            let error = of_home(&home).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("SOUL.md"), "{error}");
        }
        fs::write(&path, vec![b'x'; 8_192]).unwrap();
        assert!(of_home(&home).unwrap().unwrap().len() > 8_192);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(of_home(&home), Err(TextError::NotAFile { .. })));
    }
}
