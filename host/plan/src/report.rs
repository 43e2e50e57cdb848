//! Results of tasks, and the planner's information about a failed plan.

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
    /// It finished and reported success.
    Done,
    /// It ran and failed, or was refused.
    Failed,
    /// The host stopped while it ran, so it may or may not have taken effect.
    Interrupted,
}

/// The result of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    pub task: Task,
    pub status: TaskStatus,
    /// The text for people and models; its length was limited by the host.
    pub text: String,
    /// If `text` is the preview of an archived text for the user (`notify`): the whole text. Never in a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
    /// The parts of a message, if it contains more than Markdown. For people, never in a prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// The same as data for programs, if the skill provides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileNote>,
    /// Number of files that it created in `/work/pub` beyond [`MAX_DELIVERED`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u64,
    /// Files that it created, changed or deleted, if that is recorded for undo; at most [`MAX_CHANGED`]. For people, never in a
    /// prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedFile>,
    /// Number of those beyond [`MAX_CHANGED`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_changed: u64,
    /// Whether it read text of another person or of anybody. For people, never in a prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Pictures that models see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TaskError>,
    /// For commands; skills of the kiso world have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// For command lines: standard error; `text` is standard output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// For command lines that failed: the command that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_command: Option<FailedCommand>,
    /// Wall-clock time in milliseconds.
    #[serde(default)]
    pub millis: u64,
    /// Usage compared with its limits; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<LimitUse>,
    /// Log lines of the skill; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
    /// SHA-256 of the component that ran, so that a trace identifies the exact code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_digest: Option<String>,
    /// The component's grant at that time: docs/json.md. For the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Value>,
    /// The limits of the values in `used`; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Allowance>,
    /// The label of the whole report: of everything that was read to create it.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    pub label: Label,
    /// Decisions about data that left the sandbox; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<SinkDecision>,
}

impl TaskReport {
    /// Creates a report of `task` with this status; the caller fills in the rest.
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

    /// Creates the report of a task that failed with `error`.
    pub fn failed(task: Task, error: TaskError) -> Self {
        let mut report = Self::new(task, TaskStatus::Failed, "");
        report.error = Some(error);
        report
    }

    /// Returns the text for the user.
    pub fn for_user(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.text).trim()
    }

    /// Returns in one line why the task did not succeed. `None` if it is done and its exit code is 0 or absent, or if its exit
    /// code is an answer.
    pub fn trouble(&self) -> Option<String> {
        // The exit code counts by itself: a command that ended with 1 has failed, whatever the status says.
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

    /// Returns the last lines of a command line's standard error, at most `most`.
    pub fn error_lines(&self, most: usize) -> String {
        let lines: Vec<&str> = self.stderr.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(most)..].join("\n")
    }

    /// Whether the command line answered no, and the task has no expectation to judge it by.
    pub fn is_negative_answer(&self) -> bool {
        let ended = self.error.is_none() && self.status != TaskStatus::Interrupted && self.exit_code == Some(1);
        let answers = |failed: &FailedCommand| failed.is_negative_answer(&self.task.detail);
        ended && self.task.expect.is_none() && self.failed_command.as_ref().is_some_and(answers)
    }
}

/// Commands for which exit code 1 means no.
const ANSWERING: [&str; 9] = ["grep", "egrep", "fgrep", "rg", "diff", "cmp", "test", "[", "[["];

/// Maximum characters of a line of standard error in a sentence.
const MAX_LINE: usize = 200;

/// Whether exit code 1 of the command (without assignments before it) is an answer.
pub fn answers_with_1(command: &str) -> bool {
    let is_assignment = |word: &&str| {
        word.split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    };
    command.split_whitespace().find(|word| !is_assignment(word)).is_some_and(|word| ANSWERING.contains(&word))
}

/// Whether the line contains `set -e` in any of its forms.
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
    /// Counted from 1.
    pub line: u32,
    pub code: u8,
}

impl FailedCommand {
    /// Whether `line` ended with 1 because its last command found nothing, or a difference: for `grep`, `diff`, `cmp` and `test`
    /// that is an answer. Not for a line with `set -e`, which stops at the first command that does not end with 0.
    pub fn is_negative_answer(&self, line: &str) -> bool {
        self.code == 1 && answers_with_1(&self.command) && !stops_early(line)
    }
}

/// Usage of a call, compared with its limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitUse {
    pub millis: u64,
    /// Peak size of its memories in bytes.
    pub memory_bytes: u64,
    pub written_bytes: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_calls: u64,
    /// For exec tasks: number of started processes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processes: u64,
    /// For exec tasks: maximum number of processes at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processes_at_once: u64,
    /// For exec tasks: bytes of standard output and standard error, including omitted parts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_bytes: u64,
}

/// Limits of a call for the values of [`LimitUse`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    pub millis: u64,
    pub memory_bytes: u64,
    pub written_bytes: u64,
    /// For skills.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_calls: u64,
    /// For exec tasks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processes_at_once: u64,
    /// Bytes of standard output and of standard error, each.
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

/// The error of a task that was interrupted by a stop of the host.
pub const INTERRUPTED: &str = "the host stopped while the task ran, so it may or may not have taken effect";

/// The same for a task whose files have been restored.
pub const INTERRUPTED_OUTSIDE: &str = "the host stopped while the task ran; its changes to files were undone, and what it did beyond them may or may not have taken effect";

/// Maximum files that one task, and one reply, list. Further ones are counted.
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
    /// `/pub/ID` if it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Maximum changed files in a report.
pub const MAX_CHANGED: usize = 50;

/// Maximum characters of a changed file's path in a report.
const MAX_PATH: usize = 240;

/// A file that a task or a call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Its path below the workspace, or in an open folder as tasks see it.
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

/// The media type of a file whose name does not reveal one.
pub const UNKNOWN_TYPE: &str = "application/octet-stream";

impl FileNote {
    /// Returns the media type with a comma, if it is known.
    pub fn kind(&self) -> String {
        if self.media_type == UNKNOWN_TYPE { String::new() } else { format!("{}, ", self.media_type) }
    }

    /// Adds it to a list in which each path is unique; the latest note counts, but the title and the link of an earlier note stay
    /// unless this one has others. Returns false if it is not in the list and the list has `most` files.
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

/// Why a task failed, in a form that programs can check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    pub code: ErrorCode,
    pub message: String,
    /// The limit that ended the task, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Whether the same call may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// Whether it was refused because of an administrator's rules.
    #[serde(default)]
    pub policy: bool,
}

impl TaskError {
    /// The error of a task that this machine could not run.
    pub fn of_host(message: String) -> Self {
        Self { code: ErrorCode::Unavailable, message, limit: None, retryable: false, policy: false }
    }
}

/// The task that made a plan fail, and why a new plan is needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureNote {
    pub report: TaskReport,
    pub reason: String,
}

/// An abandoned plan, so that the planner does not try it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub goal: String,
    pub reason: String,
    /// One line per executed task, with its result.
    pub tried: Vec<String>,
}

/// An invalid answer and its errors, which are sent back to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// The model's answer, without secrets.
    pub broken: String,
    /// One error per line, with the path of the field.
    pub violations: Vec<String>,
}

/// Formats how often something happened, for a person.
pub fn often(times: u32) -> String {
    match times {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{times} times"),
    }
}

/// Formats a number with its noun: "1 attempt", "2 attempts".
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Formats a number of bytes: "812 B", "3.4 kB", "2.1 MB", "72.2 GB".
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
