//! The prompt of a role: the built-in one, or the administrator's override.

use std::fs;
use std::path::PathBuf;

use super::guidance::of_home;
use crate::context;
use kiso_base::home::{Home, TextError, read_text};
use kiso_base::role::Role;
use kiso_graph::reflection::CHART;
use kiso_llm::{Request, Turn};
use kiso_plan::prompt::Piece;
use kiso_store::scratchpad;

/// Maximum size of an override in bytes: about sixteen thousand tokens, which is more than most contexts have and is part of
/// every call of the role.
pub const MAX_PROMPT: u64 = 64 << 10;

/// Why an override cannot be used. This is never ignored, because an administrator relies on the override.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    #[error("{} is empty: write the prompt of the role into it, or run kiso role reset {role}", path.display())]
    Empty { role: Role, path: PathBuf },
    #[error("{error}, or run kiso role reset {role}")]
    Override { role: Role, error: TextError },
    #[error(transparent)]
    Guidance(#[from] TextError),
}

/// Returns the built-in prompt of `role`; `roles/NAME.md` in the home overrides it.
pub fn built_in_prompt(role: Role) -> &'static str {
    role.declaration().prompt
}

/// Returns the path of the override of `role`, whether it exists or not.
pub fn override_path(home: &Home, role: Role) -> PathBuf {
    home.roles_dir().join(format!("{role}.md"))
}

/// Returns the current prompt of `role`: the override, or else the built-in one.
pub fn prompt_of(home: &Home, role: Role) -> Result<String, RoleError> {
    Ok(override_of(home, role)?.unwrap_or_else(|| built_in_prompt(role).to_owned()))
}

/// Lines of a prompt with these prefixes apply to one form of the answer: a text, or JSON alone if its schema is sent.
const TEXT_LINE: &str = "[text] ";
const JSON_LINE: &str = "[json] ";

/// Returns a prompt for answers as text, or as JSON with a schema.
pub fn in_form(prompt: &str, json: bool) -> String {
    let (wanted, other) = if json { (JSON_LINE, TEXT_LINE) } else { (TEXT_LINE, JSON_LINE) };
    let lines = prompt.split_inclusive('\n').filter(|line| !line.starts_with(other));
    lines.map(|line| line.strip_prefix(wanted).unwrap_or(line)).collect()
}

/// Lines of a prompt with these prefixes apply to requests that contain something, or do not contain it: a piece, by its name
/// (`[with Brief]`), a tool (`[with tool exec]`), or one of [`MARKS`], [`REFS`] and [`CHARTS`]. Such a line may be empty.
const WITH: &str = "[with ";
const WITHOUT: &str = "[without ";
const TOOL: &str = "tool ";

/// Text between data marks.
pub const MARKS: &str = "marks";

/// Texts of the scratchpad.
pub const REFS: &str = "refs";

/// Charts as data.
pub const CHARTS: &str = "charts";

/// Parses the condition of a line: the name, whether it must be present, and the rest of the line.
fn condition(line: &str) -> Option<(&str, bool, &str)> {
    let (rest, wanted) = match (line.strip_prefix(WITH), line.strip_prefix(WITHOUT)) {
        (Some(rest), _) => (rest, true),
        (None, Some(rest)) => (rest, false),
        (None, None) => return None,
    };
    let (name, line) = rest.split_once(']')?;
    let line = line.strip_prefix(' ').unwrap_or(line);
    let is_known = name.starts_with(TOOL) || [MARKS, REFS, CHARTS].contains(&name) || Piece::named(name).is_some();
    is_known.then_some((name, wanted, line))
}

/// Returns a prompt without the lines whose condition is false.
pub fn select_lines(prompt: &str, has: impl Fn(&str) -> bool) -> String {
    let line = |line| match condition(line) {
        Some((name, wanted, line)) => (has(name) == wanted).then_some(line),
        None => Some(line),
    };
    prompt.split_inclusive('\n').filter_map(line).collect()
}

/// Returns `request` with only the applicable lines of its prompt. Later turns may only be results of tools, which contain their
/// own explanation, because a request of a loop begins like the previous one.
pub fn resolve(mut request: Request, boundary: &str) -> Request {
    if !request.system.contains(WITH) && !request.system.contains(WITHOUT) {
        return request;
    }
    let fence = context::opening(boundary);
    let system = select_lines(&request.system, |name| match (name, Piece::named(name)) {
        (_, Some(piece)) => context::has(piece, &request.pieces),
        (MARKS, None) => says(&request, &fence),
        (REFS, None) => says(&request, scratchpad::REF),
        (CHARTS, None) => says(&request, CHART),
        (name, None) => name.strip_prefix(TOOL).is_some_and(|tool| request.tools.iter().any(|spec| spec.name == tool)),
    });
    request.system = system;
    request
}

/// Returns whether the request contains `text`.
fn says(request: &Request, text: &str) -> bool {
    let in_turn = |turn: &Turn| match turn {
        Turn::User(said) | Turn::Note(said) | Turn::Assistant { text: said, .. } | Turn::Tool { text: said, .. } => {
            said.contains(text)
        }
        Turn::Pictures(_) => false,
    };
    request.user.contains(text) || request.turns.iter().any(in_turn)
}

/// Returns the system prompt of `role`: its prompt for the form of its answer, and the owner's guidance files.
pub fn system_prompt(home: &Home, role: Role, json: bool) -> Result<String, RoleError> {
    let mut prompt = in_form(&prompt_of(home, role)?, json);
    if role.declaration().guided
        && let Some(guidance) = of_home(home)?
    {
        prompt.truncate(prompt.trim_end().len());
        prompt.push_str(&guidance);
        prompt.push('\n');
    }
    Ok(prompt)
}

/// Returns the administrator's prompt for `role`; `None` if there is none.
pub fn override_of(home: &Home, role: Role) -> Result<Option<String>, RoleError> {
    let path = override_path(home, role);
    match read_text(&path, MAX_PROMPT) {
        Ok(Some(text)) if text.trim().is_empty() => Err(RoleError::Empty { role, path }),
        read => read.map_err(|error| RoleError::Override { role, error }),
    }
}

/// Reads every override and the guidance files, so that an unusable one is detected before a run.
pub fn check_prompts(home: &Home) -> Result<(), RoleError> {
    of_home(home)?;
    Role::ALL.into_iter().try_for_each(|role| override_of(home, role).map(drop))
}

/// Returns files among the overrides that have no effect, because no role has their name; sorted.
pub fn strays(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.roles_dir()).into_iter().flatten().flatten();
    let is_stray = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        path.extension().is_some_and(|ending| ending == "md") && stem.and_then(Role::named).is_none()
    };
    let mut strays: Vec<_> = entries.map(|entry| entry.path()).filter(is_stray).collect();
    strays.sort();
    strays
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        (dir, home)
    }

    #[test]
    fn an_override_takes_the_place_of_what_is_built_in() {
        let (_dir, home) = home();
        assert_eq!(prompt_of(&home, Role::Titler).unwrap(), built_in_prompt(Role::Titler));
        assert_eq!(override_of(&home, Role::Titler).unwrap(), None);
        fs::write(override_path(&home, Role::Titler), "Name it.\n").unwrap();
        assert_eq!(prompt_of(&home, Role::Titler).unwrap(), "Name it.\n");
        assert_eq!(prompt_of(&home, Role::Actor).unwrap(), built_in_prompt(Role::Actor));
        check_prompts(&home).unwrap();
    }

    #[test]
    fn a_prompt_has_one_form_of_the_answer() {
        let planner = built_in_prompt(Role::Planner);
        let (text, json) = (in_form(planner, false), in_form(planner, true));
        assert!(text.contains("<FINAL_PRD>") && !text.contains("\"say\"") && !text.contains("\"reply\""), "{text}");
        assert!(json.contains("\"say\"") && json.contains("\"reply\"") && !json.contains("FINAL_PRD"), "{json}");
        let json = select_lines(&json, |_| true);
        for told in [&text, &json] {
            assert!(!told.contains(TEXT_LINE) && !told.contains(JSON_LINE), "{told}");
        }
        let example = &json[json.rfind("{\"say\"").unwrap()..];
        let example: serde_json::Value = serde_json::from_str(example).unwrap();
        assert_eq!(example["tasks"].as_array().map(Vec::len), Some(2));
        for role in Role::ALL.into_iter().filter(|role| *role != Role::Planner) {
            assert_eq!(in_form(built_in_prompt(role), true), built_in_prompt(role), "{role}");
        }
    }

    #[test]
    fn a_line_is_told_where_it_has_something_to_be_about() {
        let prompt = "a\n[with Brief] b\n[without Brief] c\n[with tool exec] d\n[with refs]\n[with Moon] e\n[with] f\n";
        let told = |has: &[&str]| select_lines(prompt, |name| has.contains(&name));
        assert_eq!(told(&[]), "a\nc\n[with Moon] e\n[with] f\n");
        assert_eq!(told(&["Brief", "tool exec", "refs"]), "a\nb\nd\n\n[with Moon] e\n[with] f\n");
        // A misspelled condition would be sent to the model.
        for role in Role::ALL {
            let whole = select_lines(built_in_prompt(role), |_| true);
            assert!(!whole.contains(WITH) && !whole.contains(WITHOUT), "{role}: {whole}");
        }
    }

    #[test]
    fn an_override_that_cannot_be_used_is_an_error_that_names_it() {
        let (_dir, home) = home();
        let path = override_path(&home, Role::Worker);
        for (bytes, why) in [
            (Vec::new(), "is empty"),
            (b" \n\t\n".to_vec(), "is empty"),
            (b"abc\xff".to_vec(), "not UTF-8 text (at byte 3)"),
            (vec![b'x'; 65_537], "more than 65536 bytes"),
            (vec![0xff; 1 << 20], "more than 65536 bytes"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = prompt_of(&home, Role::Worker).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("roles/worker.md"), "{error}");
            assert!(error.contains("kiso role reset worker"), "{error}");
            assert!(check_prompts(&home).is_err());
        }
        fs::write(&path, vec![b'x'; 65_536]).unwrap();
        assert_eq!(prompt_of(&home, Role::Worker).unwrap().len(), 65_536);
    }

    #[test]
    fn what_is_no_file_is_not_taken_for_absence() {
        let (_dir, home) = home();
        let path = override_path(&home, Role::Router);
        fs::create_dir(&path).unwrap();
        assert!(matches!(
            prompt_of(&home, Role::Router),
            Err(RoleError::Override { error: TextError::NotAFile { .. }, .. })
        ));
        fs::remove_dir(&path).unwrap();
        symlink("/nowhere/at/all.md", &path).unwrap();
        assert!(matches!(prompt_of(&home, Role::Router), Err(RoleError::Override { error: TextError::Io { .. }, .. })));
    }

    #[test]
    fn files_that_override_nothing_are_found() {
        let (_dir, home) = home();
        for name in ["planer.md", "planner.md", "planner.md.old", "actor.txt"] {
            fs::write(home.roles_dir().join(name), "x").unwrap();
        }
        assert_eq!(strays(&home), [home.roles_dir().join("planer.md")]);
    }
}
