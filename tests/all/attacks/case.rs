//! One attempt: its preparation, its input, and the conditions that must hold afterwards.

use super::archive::Entry;
use crate::harness::root;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

/// A file of `tests/attacks`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    #[serde(default)]
    case: Vec<Case>,
}

/// A row. `{{…}}` in its texts is replaced; see [`super::target::Target::fill`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub name: String,
    /// One sentence for readers of the report.
    pub attempts: String,
    /// Files in the session's workspace before the attempt.
    #[serde(default)]
    pub file: Vec<Upload>,
    /// Command lines that prepare the workspace; each must exit with 0.
    #[serde(default)]
    pub before: Vec<String>,
    pub grant: Option<Grant>,
    pub input: Input,
    pub holds: Holds,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Upload {
    pub path: String,
    pub text: Option<String>,
    /// Hexadecimal digits, two for each byte.
    pub hex: Option<String>,
    pub tar: Option<Vec<Entry>>,
    pub zip: Option<Vec<Entry>>,
    /// Whether to compress the bytes with gzip.
    #[serde(default)]
    pub gzip: bool,
}

/// Hosts that a skill may reach during the case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grant {
    pub skill: String,
    pub hosts: Vec<String>,
    #[serde(default)]
    pub private: bool,
}

/// The input of an attempt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Input {
    /// A command line that the daemon runs in the case's own session.
    Line(String),
    /// A message to the case's session.
    Message(String),
    /// A call of a skill or of one of its functions.
    Call { tool: String, args: Value },
    /// A request.
    Request { method: String, path: String, body: Option<String> },
    /// Bytes sent to the port until the daemon closes it; the status is that of the first response.
    Bytes(String),
    /// Lines to the Unix socket, with one answer each.
    Socket(Vec<String>),
    /// A component to install; it is removed afterwards.
    Component(Component),
    /// Arguments for the binary, run on the daemon's home.
    Kiso(Vec<String>),
    /// Arguments for the binary in a terminal, and the keys typed there.
    Terminal { args: Vec<String>, keys: String },
}

/// A file to install as a skill.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Component {
    /// In the text format of WebAssembly.
    pub wat: Option<String>,
    /// The name of a file in `tests/guests/wat`, without its extension.
    pub wat_file: Option<String>,
    /// Hexadecimal digits, two for each byte.
    pub hex: Option<String>,
    /// The name of a guest in `tests/guests`.
    pub guest: Option<String>,
    /// The manifest to pack into the component.
    pub manifest: Option<String>,
    /// A file of the repository to use as its manifest.
    pub manifest_file: Option<String>,
    /// The name to install it under.
    pub name: Option<String>,
    /// "all" or "none" of the requested permissions.
    pub grant: Option<String>,
    /// Arguments of a call after the installation; the conditions then apply to the call.
    pub call: Option<Value>,
}

/// Conditions that must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Holds {
    /// Status of an HTTP response.
    pub status: Option<u16>,
    /// Code of the error, or of a skill's error.
    pub code: Option<String>,
    /// Exit code of a command line or of the binary.
    pub exit: Option<i32>,
    /// Name of the limit that was reached, such as "call-writes"; the message must name the setting.
    pub limit: Option<String>,
    /// Whether an error with a code was returned.
    #[serde(default)]
    pub refused: bool,
    /// Texts that the output contains, in any order.
    #[serde(default)]
    pub says: Vec<String>,
    /// Texts of which the output contains at least one.
    #[serde(default)]
    pub says_one_of: Vec<String>,
    /// Texts that the output does not contain.
    #[serde(default)]
    pub never: Vec<String>,
    /// Whether no character of the output controls a terminal or changes the direction of text.
    #[serde(default)]
    pub clean: bool,
}

/// The outcome of an attempt.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub status: Option<u16>,
    pub code: Option<String>,
    pub exit: Option<i32>,
    pub limit: Option<String>,
    pub text: String,
}

/// The cases of a category.
pub(super) fn load(category: &str) -> Vec<Case> {
    let path = root().join("tests/attacks").join(format!("{category}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cases: Cases = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    cases.case
}

impl Holds {
    /// Returns whether the case must reach a limit other than the deadline.
    pub(super) fn meets_a_limit_in_time(&self) -> bool {
        self.limit.as_ref().is_some_and(|limit| limit != "time")
    }

    /// Returns the condition that does not hold. `fill` replaces the placeholders in the row's texts.
    pub(super) fn broken(&self, outcome: &Outcome, fill: &dyn Fn(&str) -> String) -> Option<String> {
        let Outcome { status, code, exit, limit, text } = outcome;
        if self.status.is_some() && self.status != *status {
            return Some(format!("status {status:?}, not {:?}", self.status));
        }
        if self.code.is_some() && self.code != *code {
            return Some(format!("code {code:?}, not {:?}", self.code));
        }
        if self.exit.is_some() && self.exit != *exit {
            return Some(format!("exit code {exit:?}, not {:?}", self.exit));
        }
        if self.limit.is_some() && self.limit != *limit {
            return Some(format!("limit {limit:?}, not {:?}", self.limit));
        }
        if self.refused && code.is_none() {
            return Some("no error came back".to_owned());
        }
        // A message about a limit must say where to set it.
        if self.limit.is_some() && !text.contains("the setting is") && !text.contains("grant") {
            return Some("the limit names no setting".to_owned());
        }
        if let Some(part) = self.says.iter().map(|part| fill(part)).find(|part| !text.contains(part)) {
            return Some(format!("it does not say {part:?}"));
        }
        if !self.says_one_of.is_empty() && !self.says_one_of.iter().any(|part| text.contains(&fill(part))) {
            return Some(format!("it says none of {:?}", self.says_one_of));
        }
        if let Some(part) = self.never.iter().map(|part| fill(part)).find(|part| text.contains(part)) {
            return Some(format!("it says {part:?}"));
        }
        let steering = text.chars().find(|c| self.clean && steers(*c));
        steering.map(|c| format!("it has the character U+{:04X}", u32::from(c)))
    }
}

/// Whether a character controls a terminal or changes the order of the text around it.
fn steers(c: char) -> bool {
    let turning = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || turning
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { status, code, exit, limit, text } = self;
        let short: String = text.chars().take(1_500).collect();
        write!(f, "status {status:?}, code {code:?}, exit code {exit:?}, limit {limit:?}:\n{short:?}")
    }
}
