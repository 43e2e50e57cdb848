//! One attempt: what is there before, what is tried, and what must hold afterwards.

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

/// A row. In its texts, `{{…}}` is filled in: [`super::target::Target::fill`] says with what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub name: String,
    /// One sentence for those who read the report.
    pub attempts: String,
    /// What lies in the session's workspace before.
    #[serde(default)]
    pub file: Vec<Upload>,
    /// Command lines that prepare it; each must end with 0.
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
    /// Two digits for each byte.
    pub hex: Option<String>,
    pub tar: Option<Vec<Entry>>,
    pub zip: Option<Vec<Entry>>,
    /// Whether the bytes are compressed as gzip does.
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

/// What is tried.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Input {
    /// A command line that the daemon runs, in a session of the case's own.
    Line(String),
    /// A message to that session.
    Message(String),
    /// A call of a skill or of a function of one.
    Call { tool: String, args: Value },
    /// A request.
    Request { method: String, path: String, body: Option<String> },
    /// Bytes to the port, until it is closed from there; the status is that of the first answer.
    Bytes(String),
    /// Lines to the unix socket, one answer each.
    Socket(Vec<String>),
    /// A component to install; what was installed is removed again.
    Component(Component),
    /// The binary with these arguments, on the daemon's home.
    Kiso(Vec<String>),
    /// The same with a terminal as its standard input, output and error, and what is typed there.
    Terminal { args: Vec<String>, keys: String },
}

/// A file that is to become a skill.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Component {
    /// In the text format.
    pub wat: Option<String>,
    /// One of `tests/guests/wat`, without its ending.
    pub wat_file: Option<String>,
    /// Two digits for each byte.
    pub hex: Option<String>,
    /// One of `tests/guests`.
    pub guest: Option<String>,
    /// The manifest that is packed into it.
    pub manifest: Option<String>,
    /// A file of the repository with it.
    pub manifest_file: Option<String>,
    /// The name to install it under.
    pub name: Option<String>,
    /// Whether it gets "all" or "none" of what it asks for.
    pub grant: Option<String>,
    /// Arguments that it is called with where it was installed; what must hold is then said of the call.
    pub call: Option<Value>,
}

/// What must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Holds {
    /// Of an answer over HTTP.
    pub status: Option<u16>,
    /// The code in its error, or in a skill's.
    pub code: Option<String>,
    /// Of a command line or of the binary.
    pub exit: Option<i32>,
    /// Name of the limit that ended it, such as "call-writes"; what is said then names the setting.
    pub limit: Option<String>,
    /// Whether an error with a code of its own came back.
    #[serde(default)]
    pub refused: bool,
    /// What stands in all that came back, in any order.
    #[serde(default)]
    pub says: Vec<String>,
    /// At least one of these does.
    #[serde(default)]
    pub says_one_of: Vec<String>,
    /// What stands nowhere in it.
    #[serde(default)]
    pub never: Vec<String>,
    /// No character in it steers a terminal or turns the direction of text.
    #[serde(default)]
    pub clean: bool,
}

/// What came of it.
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

    /// Why it does not hold. `fill` fills in the texts of the row.
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
        // A limit that does not say where it is set leaves the user with nothing to do.
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

/// Whether a character does something to a terminal, or to the order of the text around it, beyond standing there.
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
