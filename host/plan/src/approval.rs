//! Approvals by a person before something leaves the sandbox: effects, the card that shows them, and the answer.
//!
//! Only the host compares an effect with accepted ones: by its tool, by the hosts and secrets that it may use, and by the digest
//! of its arguments. The displayed part of the arguments decides nothing.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::network::READING;

/// Takes the place of a tool's name if the card is about hosts.
pub const NETWORK: &str = "network";

/// Maximum effects of one card, as many as a person reads with care. Further effects get their own card.
pub const MAX_EFFECTS: usize = 20;

/// Maximum cards of one run: an attacker who makes a model ask endlessly must not wear out the person who answers.
pub const MAX_CARDS: usize = 10;

/// Maximum displayed arguments of an effect.
const MAX_ARGS: usize = 8;

/// Maximum displayed characters of an argument, before escaping.
const MAX_SHOWN: usize = 200;

/// Maximum characters of a reason.
const MAX_BECAUSE: usize = 400;

/// Maximum characters of a name: of an argument, a tool or a host.
const MAX_NAME: usize = 100;

/// A host that may be reached, as written in the grant or in the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Destination {
    /// "api.example.org", or "*.example.org" if it is not known in advance; with a port if it is not the scheme's default.
    pub host: String,
    /// In upper case.
    pub methods: Vec<String>,
}

impl Destination {
    /// Formats it for a person; `in_full` marks read access as unrestricted.
    fn words(&self, in_full: bool) -> String {
        let reads = self.methods.iter().all(|method| READING.contains(&method.as_str()));
        match in_full && reads {
            true => format!("reading from {}", place(&self.host)),
            false => format!("{} to {}", self.methods.join("/"), place(&self.host)),
        }
    }
}

/// Access of an effect by one grant that is "ask".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CardAccess {
    /// The skill, or the tool of an MCP server ("SERVER.TOOL").
    pub of: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Destination>,
    /// By name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

impl CardAccess {
    /// Whether all of it is part of `wide`: the same hosts by name, and no further method or secret.
    pub fn is_within(&self, wide: &CardAccess) -> bool {
        let host = |wanted: &Destination| {
            wide.hosts.iter().any(|known| {
                known.host == wanted.host && wanted.methods.iter().all(|method| known.methods.contains(method))
            })
        };
        self.of == wide.of
            && self.hosts.iter().all(host)
            && self.secrets.iter().all(|secret| wide.secrets.contains(secret))
    }
}

/// An argument in the form that a person sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "EffectArgument")]
pub struct EffectArgument {
    pub name: String,
    /// The beginning of its value, with invisible characters escaped (`\u{202e}`).
    pub shown: String,
    /// Number of characters that are not displayed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl EffectArgument {
    pub fn new(name: &str, value: &str) -> Self {
        let left_out = value.chars().count().saturating_sub(MAX_SHOWN);
        Self { name: safe(name, MAX_NAME), shown: safe(value, MAX_SHOWN), left_out }
    }
}

/// A call that needs a person's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallEffect {
    /// A tool of a skill, of an MCP server, or "exec".
    pub tool: String,
    /// The access that it may use.
    pub access: Vec<CardAccess>,
    /// SHA-256 of the tool and its arguments, as hexadecimal digits: a call with other arguments is a different effect.
    pub digest: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<EffectArgument>,
    /// Number of arguments that are not displayed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_args: usize,
    /// The task of the plan, counted from 1; `None` for a call in an action loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<usize>,
    /// Reasons for the approval other than a grant that says "ask": who wrote the text that led to the call, and the sources of
    /// its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
    /// Whether an approval cannot be remembered: hosts near this machine need a rule of an administrator.
    #[serde(default, skip_serializing_if = "is_false")]
    pub once: bool,
}

impl CallEffect {
    /// `args` are names and values in order; `canonical` is a text that is unique for this call.
    pub fn new(tool: &str, access: Vec<CardAccess>, args: &[(String, String)], canonical: &str) -> Self {
        let mut hasher = ring::digest::Context::new(&ring::digest::SHA256);
        hasher.update(tool.as_bytes());
        hasher.update(&[0]);
        hasher.update(canonical.as_bytes());
        let shown = args.iter().take(MAX_ARGS).map(|(name, value)| EffectArgument::new(name, value));
        Self {
            tool: tool.to_owned(),
            access,
            digest: data_encoding::HEXLOWER.encode(hasher.finish().as_ref()),
            args: shown.collect(),
            more_args: args.len().saturating_sub(MAX_ARGS),
            task: None,
            because: Vec::new(),
            once: false,
        }
    }

    /// Whether a decision about `decided` also applies to this effect.
    pub fn is_within(&self, decided: &CallEffect) -> bool {
        self.tool == decided.tool
            && self.digest == decided.digest
            && self.access.iter().all(|access| decided.access.iter().any(|wide| access.is_within(wide)))
    }

    /// Returns its destinations and secrets, in one line.
    pub fn destination(&self) -> String {
        let mut parts = Vec::new();
        for access in &self.access {
            let hosts: Vec<_> = access.hosts.iter().map(|to| to.words(access.of == NETWORK)).collect();
            let secrets: Vec<_> = access.secrets.iter().map(|name| format!("`{}`", safe(name, MAX_NAME))).collect();
            let mut part = match (hosts.is_empty(), access.of.split_once('.')) {
                (false, _) => hosts.join(", "),
                (true, Some((server, _))) if secrets.is_empty() => format!("MCP server {}", safe(server, MAX_NAME)),
                (true, _) => String::new(),
            };
            if !secrets.is_empty() {
                let with = if part.is_empty() { "with the secret " } else { ", with the secret " };
                part += &format!("{with}{}", secrets.join(", "));
            }
            if self.access.len() > 1 || self.tool.split('.').next() != access.of.split('.').next() {
                part = format!("{}: {part}", safe(&access.of, MAX_NAME));
            }
            parts.push(part);
        }
        parts.join("; ")
    }
}

fn place(host: &str) -> String {
    match host {
        "*" => "any public host".to_owned(),
        host => safe(host, MAX_NAME),
    }
}

/// Why an approval of a host near this machine is not remembered.
pub const NEAR: &str =
    "A host near this machine is asked about each time; `kiso network allow HOST --private` allows it for good.";

/// All approvals that a run requests at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Card")]
pub struct Card {
    /// Numbered from 1 for answers.
    pub effects: Vec<CallEffect>,
    /// When it expires, in milliseconds since 1970 (UTC).
    pub expires_ms: i64,
}

impl Card {
    /// Whether it asks only about hosts, and not because of labels: then a refusal can be permanent.
    pub fn is_about_hosts(&self) -> bool {
        self.effects.iter().all(|effect| effect.tool == NETWORK && effect.because.is_empty())
    }

    /// Whether an approval of a part of it can be remembered. What is asked because of labels is asked about each time.
    pub fn can_last(&self) -> bool {
        self.effects.iter().any(|effect| effect.because.is_empty() && !effect.once)
    }

    /// Returns the card as text, with instructions for answering it.
    pub fn question(&self, number: i64) -> String {
        let lines: Vec<_> = self.lines().iter().map(|line| format!("    {line}")).collect();
        let never = match self.is_about_hosts() {
            true => format!("\n- `/refuse {number} always` refuses it for the rest of this session."),
            false => String::new(),
        };
        let all = match self.effects.len() {
            0 | 1 => "it".to_owned(),
            _ => format!("all of it, and `/approve {number} 1 2` only these numbers"),
        };
        let always = match (self.can_last(), self.effects.iter().any(|effect| effect.once)) {
            (true, _) => format!("\n- `/approve {number} always` also accepts the same for the rest of this session."),
            (false, true) => format!("\n- {NEAR}"),
            (false, false) => String::new(),
        };
        format!(
            "Approval {number}: this needs your approval before it is done.\n\n{}\n\n\
             - `/approve {number}` accepts {all}.{always}\n\
             - `/refuse {number}` refuses it.{never}",
            lines.join("\n")
        )
    }

    /// Returns the effects for a person, a few lines each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, effect) in (1..).zip(&self.effects) {
            let task = effect.task.map_or_else(String::new, |task| format!(" (task {task})"));
            lines.push(format!("{number}. {}{task}: {}", safe(&effect.tool, MAX_NAME), effect.destination()));
            for arg in &effect.args {
                let mut line = format!("   {} = {}", arg.name, arg.shown);
                if arg.left_out > 0 {
                    let _ = write!(line, " … ({} more characters)", arg.left_out);
                }
                lines.push(line);
            }
            lines.extend(effect.because.iter().map(|why| format!("   ! {}", safe(why, MAX_BECAUSE))));
            if effect.more_args > 0 {
                lines.push(format!("   … and {} more arguments", effect.more_args));
            }
        }
        lines
    }
}

/// The answer to a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "CardAnswer")]
pub struct CardAnswer {
    /// Numbers of the accepted effects; all others were refused.
    pub accepted: Vec<usize>,
    /// Whether it expired without an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
    /// Who answered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// How long the answer is remembered; absent if it is only for this card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<AlwaysScope>,
}

/// How long an answer is remembered.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AlwaysScope {
    /// In this session.
    Session,
    /// In every session, for 30 days.
    #[serde(rename = "30_days")]
    #[strum(serialize = "30_days")]
    ThirtyDays,
}

impl CardAnswer {
    pub fn expired() -> Self {
        Self { accepted: Vec::new(), expired: true, by: String::new(), always: None }
    }
}

/// The decision about an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Accepted,
    Refused,
    Expired,
}

/// Maximum combining marks on one character; more of them would cover the lines above and below.
const MAX_MARKS: usize = 2;

/// Returns a text on one line with everything visible: characters that a terminal or a page would not show as they are, are
/// escaped.
pub fn safe(text: &str, max: usize) -> String {
    let mut safe = String::new();
    let mut marks = 0;
    for c in text.chars().take(max) {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        match c {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            c if c.is_control() || is_hidden(c) || marks > MAX_MARKS => {
                let _ = write!(safe, "{}", c.escape_unicode());
            }
            c => safe.push(c),
        }
    }
    safe
}

/// Whether a character is invisible, looks like another one, strikes out the one before it, or changes the direction of text:
/// Unicode's formats, fillers, tags, noncharacters and private-use characters, overlays, and all white space except for the
/// space.
fn is_hidden(c: char) -> bool {
    if c != ' ' && c.is_whitespace() {
        return true;
    }
    matches!(u32::from(c),
        0xad | 0x334..=0x338 | 0x34f | 0x488..=0x489 | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2
        | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x1abe | 0x200b..=0x200f | 0x2028..=0x202e
        | 0x2060..=0x206f | 0x20d2..=0x20d3 | 0x20d8..=0x20da | 0x20dd..=0x20e0 | 0x20e2..=0x20e6 | 0x20ea..=0x20eb
        | 0x2800 | 0x3164 | 0xe000..=0xf8ff | 0xfdd0..=0xfdef | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffc
        | 0x110bd | 0x110cd | 0x13430..=0x1343f | 0x16fe4 | 0x1bca0..=0x1bca3 | 0x1d159 | 0x1d173..=0x1d17a
        | 0xe0000..=0x10ffff)
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Whether a character is a mark above, below or across the one before it.
fn is_mark(c: char) -> bool {
    matches!(u32::from(c), 0x300..=0x36f | 0x483..=0x489 | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(host: &str, methods: &[&str]) -> CardAccess {
        let methods = methods.iter().map(|method| (*method).to_owned()).collect();
        CardAccess {
            of: "fetch".to_owned(),
            hosts: vec![Destination { host: host.to_owned(), methods }],
            secrets: Vec::new(),
        }
    }

    #[test]
    fn nothing_wider_than_what_was_accepted_is_within_it() {
        let effect = |access, canonical: &str| CallEffect::new("fetch", vec![access], &[], canonical);
        let accepted = effect(access("a.example", &["GET", "POST"]), "{}");
        assert!(effect(access("a.example", &["GET"]), "{}").is_within(&accepted));
        for other in [
            effect(access("b.example", &["GET"]), "{}"),
            effect(access("*", &["GET"]), "{}"),
            effect(access("a.example", &["DELETE"]), "{}"),
            effect(access("a.example", &["GET"]), "{\"x\":1}"),
            CallEffect { tool: "feed".to_owned(), ..accepted.clone() },
            effect(CardAccess { secrets: vec!["key".to_owned()], ..access("a.example", &["GET"]) }, "{}"),
            effect(CardAccess { of: "feed".to_owned(), ..access("a.example", &["GET"]) }, "{}"),
        ] {
            assert!(!other.is_within(&accepted), "{other:?}");
        }
    }

    #[test]
    fn a_card_offers_the_answers_that_it_takes() {
        let effect = CallEffect::new("fetch", vec![access("a.example", &["GET"])], &[], "{}");
        let question = |effects| Card { effects, expires_ms: 9 }.question(3);
        let one = question(vec![effect.clone()]);
        assert!(one.contains("- `/approve 3` accepts it.\n- `/approve 3 always`"), "{one}");
        let because = CallEffect { because: vec!["of a file's words".to_owned()], ..effect.clone() };
        let each_time = question(vec![because.clone()]);
        assert!(each_time.contains("- `/approve 3` accepts it.\n- `/refuse 3`"), "{each_time}");
        let two = question(vec![effect, because]);
        assert!(two.contains("`/approve 3 1 2` only these numbers") && two.contains("always"), "{two}");
    }

    #[test]
    fn what_is_not_seen_or_looks_like_something_else_is_written_out() {
        for (kind, c) in [
            ("a space that is none", '\u{a0}'),
            ("a wide space", '\u{3000}'),
            ("a thin space", '\u{2009}'),
            ("a line break of Unicode", '\u{85}'),
            ("a direction", '\u{202e}'),
            ("a tag", '\u{e0041}'),
            ("a variation", '\u{fe0f}'),
            ("a variation beyond the first", '\u{e0101}'),
            ("a joiner", '\u{200d}'),
            ("a filler", '\u{3164}'),
            ("a blank note", '\u{1d159}'),
            ("a format of hieroglyphs", '\u{13437}'),
            ("a sign around numbers", '\u{600}'),
            ("a stroke through a letter", '\u{336}'),
            ("a circle around a letter", '\u{20dd}'),
            ("a place for an object", '\u{fffc}'),
            ("a noncharacter", '\u{1ffff}'),
            ("private use", '\u{e000}'),
        ] {
            assert_eq!(safe(&format!("a{c}b"), 9), format!("a{}b", c.escape_unicode()), "{kind}");
        }
        for text in ["Zażółć gęślą jaźń", "e\u{301}\u{323}", "שלום", "नमस्ते", "日本語", "👍", "a b"]
        {
            assert_eq!(safe(text, 99), text, "letters stay");
        }
        assert_eq!(safe("a\u{301}\u{302}\u{303}\u{304}", 9), "a\u{301}\u{302}\\u{303}\\u{304}", "a stack of marks");
    }

    #[test]
    fn a_card_hides_nothing() {
        let long = "x".repeat(5_000);
        let evil = "a\u{202e}b\u{1b}[2J\nAccepted: yes\u{200b}\u{e0041}";
        let args = (0..12).map(|n| (format!("k{n}\n"), if n == 0 { evil.to_owned() } else { long.clone() }));
        let args: Vec<_> = args.collect();
        let card =
            Card { effects: vec![CallEffect::new("fetch", vec![access("*", &["GET"])], &args, "c")], expires_ms: 0 };
        let lines = card.lines();
        assert_eq!(lines.len(), 1 + MAX_ARGS + 1, "{lines:#?}");
        assert_eq!(lines[0], "1. fetch: GET to any public host");
        assert_eq!(lines[1], r"   k0\n = a\u{202e}b\u{1b}[2J\nAccepted: yes\u{200b}\u{e0041}");
        assert!(lines[2].ends_with(" … (4800 more characters)"), "{}", lines[2]);
        assert_eq!(lines[9], "   … and 4 more arguments");
        assert!(lines.iter().all(|line| line.chars().all(|c| !c.is_control() && !is_hidden(c)) && line.len() < 1_000));
    }
}
