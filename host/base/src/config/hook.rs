//! `[hooks.NAME]`: events of other programs that become messages. The file never contains the secret: kiso derives it, or an
//! environment variable holds it.
//!
//! ```toml
//! [hooks.issues]
//! auth = "github"
//! only = ["header.x-github-event = issues", "body.action = opened|reopened"]
//! template = "Sort the issue {body.issue.title} of {body.sender.login}: {body.issue.body?}"
//! session = "home"
//! ```

mod template;

use super::fields::{NAME_RULE, TableFields, is_name};
use super::key::{Effect, Kind, NamedTable, ValueError, keys, words};
use super::provider::{is_secret, variable};
use crate::home::SessionName;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use toml::Spanned;
use toml::de::DeValue;

pub use template::{EventField, EventPart, HookTemplate, TemplatePiece};

/// One `[hooks.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookSettings {
    pub name: String,
    /// How a sender authenticates.
    pub auth: HookAuth,
    /// The environment variable with the secret; `None` if kiso derives it.
    pub secret_env: Option<String>,
    /// The header with the signature or the token, if not the usual one.
    pub header: Option<String>,
    /// The header with the delivery's id, if not a usual one.
    pub id_header: Option<String>,
    /// The message that an event becomes.
    pub template: HookTemplate,
    /// Conditions that must all hold; otherwise the event is ignored.
    pub only: Vec<HookCondition>,
    /// The session that also gets the replies, besides the hook's own.
    pub session: Option<SessionName>,
    /// Maximum difference between a signature's time and now, in seconds.
    pub replay_s: u64,
    /// Maximum size of an event in KiB.
    pub max_body_kib: u64,
    /// Maximum events within a minute.
    pub per_minute: u64,
    /// Maximum waiting messages of the hook.
    pub max_waiting: u64,
}

/// How a sender authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HookAuth {
    /// HMAC-SHA256 of the body, as GitHub, Gitea and Forgejo send it.
    Github,
    /// The signature of standardwebhooks.com, over id, time and body.
    Standard,
    /// The signature of kiso's own webhooks, over time and body.
    Kiso,
    /// The secret itself, as a token.
    Token,
}

impl HookAuth {
    const NAMES: [(&'static str, Self); 4] =
        [("github", Self::Github), ("standard", Self::Standard), ("kiso", Self::Kiso), ("token", Self::Token)];

    /// The usual header with the signature or the token.
    pub fn usual_header(self) -> &'static str {
        match self {
            Self::Github => "x-hub-signature-256",
            Self::Standard => "webhook-signature",
            Self::Kiso => "kiso-signature",
            Self::Token => "authorization",
        }
    }
}

/// A condition such as "header.x-github-event = issues|issue_comment".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCondition {
    pub field: EventField,
    /// The values of which one must match.
    pub values: Vec<String>,
}

impl HookCondition {
    fn parse(text: &str) -> Option<HookCondition> {
        let (field, values) = text.split_once('=')?;
        let field = EventField::parse(field.trim()).ok().filter(|field| !field.optional)?;
        let values: Vec<_> = values.split('|').map(|value| value.trim().to_owned()).collect();
        (!values.iter().any(String::is_empty)).then_some(HookCondition { field, values })
    }
}

impl Serialize for HookCondition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} = {}", self.field.name, self.values.join("|")))
    }
}

impl HookSettings {
    /// The session that handles the hook's events.
    #[expect(clippy::expect_used, reason = "a hook's name fits into a session's")]
    pub fn own_session(&self) -> SessionName {
        SessionName::parse(&format!("hook.{}", self.name)).expect("a hook's name fits into a session's")
    }

    /// The header with the signature or the token.
    pub fn auth_header(&self) -> &str {
        self.header.as_deref().unwrap_or_else(|| self.auth.usual_header())
    }
}

/// The keys and the documentation of these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "hooks",
    heading: "[hooks.NAME]",
    doc: "Events of other programs that become messages; see docs/hooks.md.",
    example: EXAMPLE,
    after: "gateway",
    effect: Effect::AtOnce,
    id: "name",
    keys: &keys(Effect::AtOnce, [
        ("auth", Kind::Word("", &words(HookAuth::NAMES)), "How the sender authenticates: by a signature, or with the secret itself."),
        ("template", Kind::Characters(8_000, true), "The message; `{body.a.b}` and `{header.x}` stand for parts of the event, and a `?` at the end allows them to be missing."),
        ("secret_env", Kind::Variable, "Environment variable with the secret, at least 16 characters; without it, `kiso connect hook secret` prints a derived one."),
        ("header", Kind::Characters(100, false), "Header with the signature or token, if not the usual one."),
        ("id_header", Kind::Characters(100, false), "Header with the id of a delivery, if not Idempotency-Key, X-GitHub-Delivery or webhook-id."),
        ("only", Kind::List(16), "Conditions such as `body.action = opened|closed`; other events are ignored."),
        ("session", Kind::Characters(64, false), "Session that also receives the replies."),
        ("replay_s", Kind::Int(300, 10, 86_400), "Seconds by which the time of a signature can differ from the clock."),
        ("max_body_kib", Kind::Int(256, 1, 8_192), "Size in KiB of an event."),
        ("per_minute", Kind::Int(60, 1, 6_000), "Events accepted in a minute."),
        ("max_waiting", Kind::Int(100, 1, 10_000), "Messages of the hook that can wait."),
    ]),
};

/// Hooks are found by name in a list and shown in listings.
const MAX_HOOKS: usize = 64;

/// How the commented file of a fresh home shows hooks.
const EXAMPLE: &str = "
# Events of other programs that become messages; see docs/hooks.md. `kiso connect hook secret NAME` prints the secret.
# [hooks.issues]
# auth = \"github\"
# only = [\"header.x-github-event = issues\", \"body.action = opened\"]
# template = \"Sort the issue {body.issue.title} of {body.sender.login}\"
# session = \"home\"
";

/// Headers with credentials; they must never get into a message.
const SECRET_HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Reads one table. `others` are the tables that were read before it.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
    others: usize,
) -> Result<HookSettings, Vec<ValueError>> {
    let text = name.get_ref().as_ref();
    if !is_name(text) {
        return Err(vec![(name.span(), format!("hooks.{text:?}: a hook's name has {NAME_RULE}"))]);
    }
    if others >= MAX_HOOKS {
        return Err(vec![(name.span(), format!("hooks.{text}: there may be {MAX_HOOKS} hooks"))]);
    }
    let mut fields = TableFields::new(&TABLE, format!("hooks.{text}"), name.span(), value)?;
    let auth = fields.one_of("auth", &HookAuth::NAMES);
    if !fields.has("auth") {
        fields.missing("auth", "\"github\", \"standard\", \"kiso\" or \"token\"");
    }
    let header = fields.checked("header", header_name);
    let secret_header = header.as_deref().or(auth.map(HookAuth::usual_header));
    let mut template = None;
    if let Some((text, span)) = fields.text("template") {
        match HookTemplate::parse(&text).and_then(|template| shows_no_secret(template, secret_header)) {
            Ok(read) => template = Some(read),
            Err(why) => fields.wrong(span, "template", &why),
        }
    }
    if !fields.has("template") {
        fields.missing("template", "what an event becomes, with {body.PATH} for parts of it");
    }
    let secret_env = fields.checked("secret_env", variable);
    let id_header = fields.checked("id_header", header_name);
    let rule = "must be a list of conditions such as \"body.action = opened|closed\"";
    let only = fields.list("only", rule, |text| HookCondition::parse(text).is_some());
    let only = only.iter().filter_map(|text| HookCondition::parse(text)).collect();
    let session = fields.checked("session", |name| {
        SessionName::parse(name).map_err(|_| "must be the name of a session: 1 to 64 letters, digits, '.', '_' and '-'")
    });
    let replay_s = fields.int("replay_s");
    let max_body_kib = fields.int("max_body_kib");
    let per_minute = fields.int("per_minute");
    let max_waiting = fields.int("max_waiting");
    fields.finish(|key| {
        is_secret(key).then_some("secrets do not belong in this file; name the environment variable with secret_env.")
    })?;
    let (Some(auth), Some(template)) = (auth, template) else { return Err(Vec::new()) };
    Ok(HookSettings {
        name: text.to_owned(),
        auth,
        secret_env,
        header,
        id_header,
        template,
        only,
        session,
        replay_s,
        max_body_kib,
        per_minute,
        max_waiting,
    })
}

/// Returns a header's name in lower case.
fn header_name(text: &str) -> Result<String, &'static str> {
    let rule = "must be the name of a header, such as \"X-Gitlab-Token\"";
    http::HeaderName::from_bytes(text.as_bytes()).map(|name| name.as_str().to_owned()).map_err(|_| rule)
}

fn shows_no_secret(template: HookTemplate, auth_header: Option<&str>) -> Result<HookTemplate, String> {
    let of_header = |field: &EventField| match field.part {
        EventPart::Header => field.path.first().cloned(),
        EventPart::Body => None,
    };
    let shows = |name: &String| {
        SECRET_HEADERS.contains(&name.as_str()) || auth_header.is_some_and(|secret| secret.eq_ignore_ascii_case(name))
    };
    let found = template.fields().filter_map(of_header).find(shows);
    match found {
        Some(name) => Err(format!("must not have {{header.{name}}}, which shows who the sender is")),
        None => Ok(template),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn a_hook_needs_to_know_who_sends_and_what_it_becomes() {
        let text = "[hooks.a]\nauth = \"token\"\nheader = \"X-Gitlab-Token\"\ntemplate = \"{body.x} {header.x-event}\"\n\
                    only = [\"body.action = opened | closed\"]\nsession = \"home\"\n";
        let config = Config::parse(text.as_bytes()).unwrap();
        let [hook] = config.hooks.as_slice() else { panic!("{config:?}") };
        assert_eq!((hook.auth_header(), hook.own_session().as_str()), ("x-gitlab-token", "hook.a"));
        assert_eq!(hook.only[0].values, ["opened", "closed"]);
        assert_eq!((hook.replay_s, hook.per_minute), (300, 60));
        let shown = config.effective(|_| true);
        assert_eq!(Config::parse(shown.as_bytes()).unwrap(), config, "{shown}");
        let json = config.to_json(|_| false);
        assert_eq!(json["hooks"][0]["only"][0], "body.action = opened|closed");
    }

    #[test]
    fn what_is_wrong_with_a_hook_is_told() {
        let template = |text: &str| format!("[hooks.a]\nauth = \"github\"\ntemplate = \"{text}\"\n");
        for (text, said) in [
            ("[hooks.a]\n".to_owned(), "[hooks.a] needs auth"),
            ("[hooks.a]\n".to_owned(), "[hooks.a] needs template: what an event becomes"),
            ("[hooks.a]\nauth = \"none\"\ntemplate = \"x\"\n".to_owned(), "auth must be \"github\" or"),
            (template("{issue.title}"), "3:12: hooks.a.template has {issue.title}"),
            (template("{body.x"), "hooks.a.template has a { without its }"),
            (template("$ rm {body.x}"), "must not begin a line with $"),
            (template("/new"), "must not begin with /"),
            (template("{header.Authorization}"), "must not have {header.authorization}"),
            (template("{header.x-hub-signature-256}"), "which shows who the sender is"),
            (template("{header.a.b}"), "has {header.a.b}"),
            (template("x") + "header = \"a b\"\n", "must be the name of a header"),
            (template("x") + "only = [\"action = opened\"]\n", "must be a list of conditions"),
            (template("x") + "only = [\"body.a = |\"]\n", "must be a list of conditions"),
            (template("x") + "session = \"a b\"\n", "must be the name of a session"),
            (template("x") + "secret = \"hidden\"\n", "name the environment variable with secret_env"),
            (template("x") + "secret_env = \"sk-hidden\"\n", "looks like a key itself"),
            (template("x") + "max_body_kib = 0\n", "out of range: 1 to 8192"),
            (template("x") + "per_minute = 1_000_000\n", "out of range: 1 to 6000"),
            ("[hooks.\"a b\"]\n".to_owned(), "a hook's name has"),
            ("hooks = 1\n".to_owned(), "[hooks] must be a table"),
        ] {
            let told = problems(&text);
            assert!(told.contains(said) && !told.contains("hidden"), "{text}: {told}");
        }
        let many: String = (0..65).map(|n| format!("[hooks.a{n}]\nauth = \"token\"\ntemplate = \"x\"\n")).collect();
        assert!(problems(&many).contains("there may be 64 hooks"));
    }
}
