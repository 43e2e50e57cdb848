//! What a task left behind, and what the planner is told when a plan broke.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::block::Block;
use crate::clip::clip;
use crate::code::ErrorCode;
use crate::label::Label;
use crate::picture::Picture;
use crate::plan::Task;
use crate::sink::SinkDecision;

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It ran to its end and reported success.
    Done,
    /// It ran and failed, or was refused.
    Failed,
    /// The host stopped while it ran; whether it took effect is not known.
    Interrupted,
}

/// Everything that is known about one task after it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    pub task: Task,
    pub status: TaskStatus,
    /// What a person or a model reads; capped by the host before it gets here.
    pub text: String,
    /// Where `text` is the preview of a text that was archived and goes to the user (`notify`): all of it. For no prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
    /// What a message says, in parts, where they are more than Markdown. For people, and no prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// The same for programs, where the skill gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileNote>,
    /// Files that it made in `/work/pub` beyond [`MAX_DELIVERED`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u64,
    /// Files that it created, changed or deleted, where that is kept for an undo; at most [`MAX_CHANGED`]. For people, and no prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedFile>,
    /// Those beyond [`MAX_CHANGED`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_changed: u64,
    /// Whether it read text of another person or of anybody. For people, and no prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Pictures that it shows to models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TaskError>,
    /// Of a command; a skill of the kiso world has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Of a command line: what it wrote to standard error; `text` is standard output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// Of a command line that failed: the command in it that is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_command: Option<FailedCommand>,
    /// Wall-clock time in milliseconds.
    #[serde(default)]
    pub millis: u64,
    /// What it used of its limits; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<LimitUse>,
    /// What the skill logged; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
    /// SHA-256 of the component that ran, so that a trace names the exact code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_digest: Option<String>,
    /// What the component was granted when it ran: docs/json.md. For the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Value>,
    /// What it was allowed of what `used` counts; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Allowance>,
    /// Of all that it says: of what was read to make it.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    pub label: Label,
    /// What was decided where it left the sandbox; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<SinkDecision>,
}

impl TaskReport {
    /// An empty report of `task` with this status, for the caller to fill in.
    pub fn new(task: Task, status: TaskStatus, text: impl Into<String>) -> Self {
        Self {
            task,
            status,
            text: text.into(),
            whole: None,
            blocks: Vec::new(),
            data: None,
            files: Vec::new(),
            more_files: 0,
            changed: Vec::new(),
            more_changed: 0,
            outside: false,
            pictures: Vec::new(),
            error: None,
            exit_code: None,
            stderr: String::new(),
            failed_command: None,
            millis: 0,
            used: None,
            log: Vec::new(),
            skill_digest: None,
            grant: None,
            limits: None,
            label: Label::default(),
            sinks: Vec::new(),
        }
    }

    /// A report of a task that failed with `error`.
    pub fn failed(task: Task, error: TaskError) -> Self {
        let mut report = Self::new(task, TaskStatus::Failed, "");
        report.error = Some(error);
        report
    }

    /// What the user reads of it.
    pub fn for_user(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.text).trim()
    }

    /// Why the task did not succeed, in one line; `None` for a task that is done and ended with 0, if with anything, and for
    /// one whose exit code is its answer.
    pub fn trouble(&self) -> Option<String> {
        // The exit code counts by itself: a command that ended with 1 has not succeeded, whoever filled in the status.
        if (self.status == TaskStatus::Done && self.exit_code.unwrap_or(0) == 0) || self.is_negative_answer() {
            return None;
        }
        let why = self.error_lines(1);
        let why = if why.is_empty() { why } else { format!(": {}", clip(&why, MAX_LINE)) };
        Some(match (&self.error, self.exit_code, self.status) {
            (Some(error), _, _) => error.message.clone(),
            (None, _, TaskStatus::Interrupted) => INTERRUPTED.to_owned(),
            (None, Some(code), _) => match &self.failed_command {
                Some(failed) if failed.command != self.task.detail.trim() => {
                    format!("`{}` in line {} ended with exit code {code}{why}", failed.command, failed.line)
                }
                _ => format!("it ended with exit code {code}{why}"),
            },
            (None, None, _) => "it failed without saying why".to_owned(),
        })
    }

    /// The last lines that a command line wrote to standard error, at most `most`.
    pub fn error_lines(&self, most: usize) -> String {
        let lines: Vec<&str> = self.stderr.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(most)..].join("\n")
    }

    /// Whether the command line answered no, and the task expects nothing by which it is to be judged.
    pub fn is_negative_answer(&self) -> bool {
        let ended = self.error.is_none() && self.status != TaskStatus::Interrupted && self.exit_code == Some(1);
        let answers = |failed: &FailedCommand| failed.is_negative_answer(&self.task.detail);
        ended && self.task.expect.is_none() && self.failed_command.as_ref().is_some_and(answers)
    }
}

/// Commands that say no with exit code 1.
const ANSWERING: [&str; 9] = ["grep", "egrep", "fgrep", "rg", "diff", "cmp", "test", "[", "[["];

/// Characters of a line of standard error in a sentence.
const MAX_LINE: usize = 200;

/// Whether the command, without assignments before it, is one whose exit code 1 is an answer.
pub fn answers_with_1(command: &str) -> bool {
    let is_assignment = |word: &&str| {
        word.split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    };
    command.split_whitespace().find(|word| !is_assignment(word)).is_some_and(|word| ANSWERING.contains(&word))
}

/// Whether the line has `set -e` in any of its forms.
fn stops_early(line: &str) -> bool {
    let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || ";(){}".contains(c)).collect();
    let asks = |option: &str| option == "errexit" || (option.starts_with('-') && option.contains('e'));
    words.iter().enumerate().any(|(at, word)| {
        *word == "set" && words[at + 1..].iter().take_while(|word| !word.is_empty()).any(|word| asks(word))
    })
}

/// A command of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCommand {
    /// Source text, at most 200 bytes.
    pub command: String,
    /// From 1.
    pub line: u32,
    pub code: u8,
}

impl FailedCommand {
    /// Whether `line` ended with 1 because its last command found nothing, or a difference: of `grep`, `diff`, `cmp` and
    /// `test` that is an answer. A line that is to stop at the first command that does not end with 0 (`set -e`) was stopped.
    pub fn is_negative_answer(&self, line: &str) -> bool {
        self.code == 1 && answers_with_1(&self.command) && !stops_early(line)
    }
}

/// What a call used of its limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitUse {
    pub millis: u64,
    /// The most bytes that its memories held at once.
    pub memory_bytes: u64,
    pub written_bytes: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_calls: u64,
    /// Of an exec task: processes that it started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processes: u64,
    /// Of an exec task: the most of them that ran at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processes_at_once: u64,
    /// Of an exec task: bytes written to standard output and standard error, those left out included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_bytes: u64,
}

/// What a call may use, of what [`LimitUse`] counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    pub millis: u64,
    pub memory_bytes: u64,
    pub written_bytes: u64,
    /// Of a skill.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_calls: u64,
    /// Of an exec task.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processes_at_once: u64,
    /// Bytes of standard output, and of standard error.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_bytes: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A line that a skill logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// "error", "warn", "info" or "debug".
    pub level: String,
    pub message: String,
}

/// Said of a task whose end the host did not see.
pub const INTERRUPTED: &str = "the host stopped while the task ran, so it may or may not have taken effect";

/// Said of such a task whose files are as they were before it.
pub const INTERRUPTED_OUTSIDE: &str = "the host stopped while the task ran; its changes to files were undone, and what it did beyond them may or may not have taken effect";

/// Files that one task, and one reply, name. Beyond that they are counted.
pub const MAX_DELIVERED: usize = 100;

/// A file that a task produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "File")]
pub struct FileNote {
    /// Relative to `/work`, such as `pub/rain.svg`.
    pub path: String,
    pub media_type: String,
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `/pub/ID` when it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Changed files that a report lists.
pub const MAX_CHANGED: usize = 50;

/// Characters of a changed file's path that a report has.
const MAX_PATH: usize = 240;

/// A file that a task or a call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Below the workspace, or in an opened folder as tasks see it.
    pub path: String,
    pub change: ChangeKind,
}

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Created,
    Changed,
    Deleted,
}

impl ChangedFile {
    pub fn new(path: &str, change: ChangeKind) -> Self {
        let mut short: String = path.chars().take(MAX_PATH).collect();
        if short.len() < path.len() {
            short.push('…');
        }
        Self { path: short, change }
    }
}

/// The media type of a file whose name does not tell another.
pub const UNKNOWN_TYPE: &str = "application/octet-stream";

impl FileNote {
    /// The media type with a comma, where it says something.
    pub fn kind(&self) -> String {
        if self.media_type == UNKNOWN_TYPE { String::new() } else { format!("{}, ", self.media_type) }
    }

    /// Adds it to a list in which each path stands once, as it was last. The title and the link of an earlier note of the same file stay
    /// unless this one has others. False if it is not in the list and `most` files are.
    pub fn add_to(&self, files: &mut Vec<FileNote>, most: usize) -> bool {
        if let Some(known) = files.iter_mut().find(|known| known.path == self.path) {
            let (title, link) = (known.title.take(), known.link.take());
            *known = self.clone();
            known.title = known.title.take().or(title);
            known.link = known.link.take().or(link);
            return true;
        }
        let has_room = files.len() < most;
        if has_room {
            files.push(self.clone());
        }
        has_room
    }
}

/// Why a task failed, in a form that a program can branch on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    pub code: ErrorCode,
    pub message: String,
    /// The limit that ended the task, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Whether the same call may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// Whether it was refused because of what an administrator allowed.
    #[serde(default)]
    pub policy: bool,
}

impl TaskError {
    /// Of a task that this machine could not run.
    pub fn of_host(message: String) -> Self {
        Self { code: ErrorCode::Unavailable, message, limit: None, retryable: false, policy: false }
    }
}

/// The task that broke a plan, and why that calls for a new one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureNote {
    pub report: TaskReport,
    pub reason: String,
}

/// A plan that was given up, so that the planner does not try it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub goal: String,
    pub reason: String,
    /// One line per task that ran, with how it ended.
    pub tried: Vec<String>,
}

/// An answer that could not be used, handed back with what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// What the model answered, without secrets.
    pub broken: String,
    /// One line each, with the path of the field.
    pub violations: Vec<String>,
}

/// How often something was, as a person says it.
pub fn often(times: u32) -> String {
    match times {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{times} times"),
    }
}

/// A number with its noun: "1 attempt", "2 attempts".
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Bytes as a person reads them: "812 B", "3.4 kB", "2.1 MB", "72.2 GB".
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::TaskKind;

    fn ended(line: &str, failed: &str, code: u8) -> TaskReport {
        let mut report = TaskReport::new(Task::new(TaskKind::Exec, line), TaskStatus::Failed, "");
        report.exit_code = Some(code.into());
        report.failed_command = Some(FailedCommand { command: failed.to_owned(), line: 1, code });
        report
    }

    #[test]
    fn a_search_that_finds_nothing_has_not_failed() {
        for (line, failed) in [
            ("grep -q x notes.txt", "grep -q x notes.txt"),
            ("ls | grep csv", "grep csv"),
            ("LC_ALL=C diff a b", "LC_ALL=C diff a b"),
            ("echo a; test -f missing", "test -f missing"),
            ("[ -f missing ]", "[ -f missing ]"),
        ] {
            assert_eq!(ended(line, failed, 1).trouble(), None, "{line}");
        }
        for (line, failed, code) in [
            ("grep x missing", "grep x missing", 2),
            ("false", "false", 1),
            ("set -euo pipefail; grep x notes.txt; echo yes", "grep x notes.txt", 1),
            ("set -o errexit\ngrep x notes.txt", "grep x notes.txt", 1),
        ] {
            assert!(ended(line, failed, code).trouble().is_some(), "{line}");
        }
        let mut expecting = ended("grep x notes.txt", "grep x notes.txt", 1);
        expecting.task.expect = Some("exit code 0".to_owned());
        assert!(expecting.trouble().is_some());
    }

    #[test]
    fn a_failed_command_says_why() {
        let mut report = ended("df", "df", 127);
        report.stderr = "one\nsh: df: command not found\n\n".to_owned();
        assert_eq!(report.trouble().unwrap(), "it ended with exit code 127: sh: df: command not found");
        assert_eq!(report.error_lines(5), "one\nsh: df: command not found");
        report.task.detail = "cd /tmp\ndf".to_owned();
        assert_eq!(report.trouble().unwrap(), "`df` in line 1 ended with exit code 127: sh: df: command not found");
    }
}
