//! Documents in archival memory: their passages, each with its page.

use super::{failed, shown};
use crate::tool::Tools;
use crate::tool::builtin;
use kiso_base::clock::now_ms;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::{CallerScope, Task, TaskKind};
use kiso_plan::report::{TaskReport, TaskStatus};
use kiso_sandbox::skill::Caller;
use kiso_store::memory;
use serde::Deserialize;

/// `$1` is the file, `$2` the number of characters.
const READ_PARTS: &str = r#"document --json --max "$2" "$1""#;

/// Maximum number of characters of a document that are saved.
const MAX_TEXT: usize = 2_000_000;

/// Maximum length in bytes of a file name in a source.
const MAX_NAME: usize = 80;

/// The used members of the output of `document --json`.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    cut: bool,
    pages: Option<u64>,
    slides: Option<u64>,
    sheets: Option<u64>,
    chapters: Option<u64>,
    messages: Option<u64>,
}

#[derive(Deserialize)]
struct Part {
    number: u64,
    text: String,
}

impl Document {
    /// Returns the name for parts in citations; `None` if there is only one part.
    fn unit(&self) -> Option<&'static str> {
        let units = [
            (self.pages, "p."),
            (self.slides, "slide"),
            (self.sheets, "sheet"),
            (self.chapters, "chapter"),
            (self.messages, "message"),
        ];
        units.into_iter().find_map(|(count, unit)| count.map(|_| unit))
    }
}

impl Tools {
    /// Saves a document of the workspace as one or more passages per page.
    pub(super) async fn remember(&self, path: &str, role: CallerScope, caller: &Caller<'_>) -> TaskReport {
        let task = Task::new(TaskKind::Exec, builtin::MEMORY_SAVE);
        let args = vec![path.to_owned(), MAX_TEXT.to_string()];
        let ran = match self.run_fixed(READ_PARTS, args, b"", role, caller).await {
            Ok(ran) => ran,
            Err(error) => return TaskReport::failed(task, error),
        };
        if let Some(report) = ran.failure(&task, path, caller) {
            return report;
        }
        let refused = |code, why: String| {
            let report = failed(task.clone(), code, format!("{}: {why}", shown(path)));
            TaskReport { label: ran.label.clone(), ..report }
        };
        let document: Document = match serde_json::from_slice(&ran.output) {
            Ok(document) => document,
            Err(error) => return refused(ErrorCode::Failed, format!("it could not be read: {error}")),
        };
        let (name, unit, mut new) = (shown(path), document.unit(), 0);
        let name = &name[name.ceil_char_boundary(name.len().saturating_sub(MAX_NAME))..];
        let texts = document.parts.iter().filter(|part| !part.text.trim().is_empty());
        for Part { number, text } in texts {
            let source = unit.map_or_else(|| name.to_owned(), |unit| format!("{name} {unit} {number}"));
            let text = caller.secrets.redact(text);
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(rest.floor_char_boundary(memory::MAX_TEXT));
                match memory::save(&self.store, piece, &source, None, &ran.label, now_ms()).await {
                    Ok(saved) => new += saved.new,
                    Err(error) => {
                        return refused(ErrorCode::Failed, format!("{new} passages are remembered, then: {error}"));
                    }
                }
                rest = more;
            }
        }
        let mut text = match new {
            0 if document.parts.is_empty() => "There is no text to remember in it.".to_owned(),
            0 => "This is already remembered.".to_owned(),
            new => format!("Remembered, in {new} passages; a search cites them by their source, such as {name:?}."),
        };
        if document.cut {
            text.push_str(&format!(" Only the first {MAX_TEXT} characters were taken."));
        }
        TaskReport { label: ran.label, ..TaskReport::new(task, TaskStatus::Done, text) }
    }
}
