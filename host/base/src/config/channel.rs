//! `[channels.NAME]`: messaging services through which people write. A table is also the channel's grant: its component reaches
//! only the host of `url`, and kiso adds the token from an environment variable.
//!
//! ```toml
//! [channels.phone]
//! component = "ntfy"
//! url = "https://ntfy.sh"
//! options = ["topic=kiso-7c1f90b2"]
//! token_env = "NTFY_TOKEN"
//! ```

use super::fields::{NAME_RULE, TableFields, is_name};
use super::key::{Effect, Kind, NamedTable, ValueError, keys, words};
use super::provider::{is_secret, variable};
use super::webhook::check_webhook_url;
use crate::home::SessionName;
use serde::Serialize;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::DeValue;

/// One `[channels.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelSettings {
    pub name: String,
    /// The name of a built-in component, or the absolute path of a component.
    pub component: String,
    /// Address of the service.
    pub url: String,
    /// Options that only the component understands, each "NAME=VALUE".
    pub options: Vec<String>,
    /// The environment variable with the service's token.
    pub token_env: Option<String>,
    /// Where in a request kiso puts the token.
    pub token_in: TokenPlace,
    /// Whether the service may have a private address.
    pub allow_private: bool,
    /// Seconds between two polls for messages.
    pub poll_s: u64,
    /// Maximum messages of one sender within a minute.
    pub per_minute: u64,
    /// Maximum waiting messages of a sender who is not the owner.
    pub max_waiting: u64,
}

/// Where in a request a channel's token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenPlace {
    /// In the header `Authorization`, as a bearer token.
    Header,
    /// In the URL's path, in place of `$TOKEN`.
    Path,
}

impl TokenPlace {
    const NAMES: [(&'static str, Self); 2] = [("header", Self::Header), ("path", Self::Path)];

    /// Where the service of a component expects the token, if the file does not say.
    fn usual(component: &str) -> TokenPlace {
        if component == TELEGRAM { Self::Path } else { Self::Header }
    }
}

/// The component whose service expects the token in the path, and always needs one.
const TELEGRAM: &str = "telegram";

impl ChannelSettings {
    /// The session of the channel's owner. The sessions of other senders have this name, a dot and a number.
    #[expect(clippy::expect_used, reason = "a channel's name fits into a session's")]
    pub fn own_session(&self) -> SessionName {
        SessionName::parse(&format!("channel.{}", self.name)).expect("a channel's name fits into a session's")
    }

    /// The session of the sender with this number, who is not the owner.
    #[expect(clippy::expect_used, reason = "a channel's name fits into a session's")]
    pub fn session_of(&self, number: i64) -> SessionName {
        SessionName::parse(&format!("channel.{}.{number}", self.name)).expect("a channel's name fits into a session's")
    }

    /// Returns the options as pairs.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let pairs = self.options.iter().filter_map(|option| option.split_once('='));
        pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
    }
}

/// The keys and the documentation of these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "channels",
    heading: "[channels.NAME]",
    doc: "Messaging services through which people write; see docs/channels.md.",
    example: EXAMPLE,
    after: "gateway",
    effect: Effect::AtOnce,
    id: "name",
    keys: &keys(Effect::AtOnce, [
        ("component", Kind::Characters(1_000, false), "\"telegram\", \"ntfy\", or the absolute path of a `.wasm` file."),
        ("url", Kind::Characters(1_000, false), "URL of the service; the channel reaches this host and no other."),
        ("options", Kind::List(16), "Settings of the component, such as `topic=NAME`."),
        ("token_env", Kind::Variable, "Environment variable with the service's token, which kiso adds to each request."),
        ("token_in", Kind::Word("header", &words(TokenPlace::NAMES)), "Where kiso adds the token: as `Authorization: Bearer`, or for `$TOKEN` in the path. `telegram` has `path`."),
        ("allow_private", Kind::Bool(false), "Whether the service can have a private address and be reached over http."),
        ("poll_s", Kind::Int(5, 1, 3_600), "Seconds between two requests for new messages."),
        ("per_minute", Kind::Int(30, 1, 6_000), "Messages of one sender accepted in a minute."),
        ("max_waiting", Kind::Int(20, 1, 10_000), "Messages of a sender other than the owner that can wait."),
    ]),
};

/// Each channel is polled repeatedly.
const MAX_CHANNELS: usize = 16;

/// How the commented file of a fresh home shows channels.
const EXAMPLE: &str = "
# Messaging services through which people write; see docs/channels.md. `kiso connect channel allow` lets somebody in.
# [channels.phone]
# component = \"ntfy\"
# url = \"https://ntfy.sh\"
# options = [\"topic=kiso-CHANGE-ME\"]
# token_env = \"NTFY_TOKEN\"
# [channels.bot]
# component = \"telegram\"
# url = \"https://api.telegram.org\"
# token_env = \"TELEGRAM_TOKEN\"
";

/// Reads one table. `others` are the tables that were read before it.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
    others: usize,
) -> Result<ChannelSettings, Vec<ValueError>> {
    let text = name.get_ref().as_ref();
    if !is_name(text) {
        return Err(vec![(name.span(), format!("channels.{text:?}: a channel's name has {NAME_RULE}"))]);
    }
    if others >= MAX_CHANNELS {
        return Err(vec![(name.span(), format!("channels.{text}: there may be {MAX_CHANNELS} channels"))]);
    }
    let mut fields = TableFields::new(&TABLE, format!("channels.{text}"), name.span(), value)?;
    let component = fields.checked("component", |component| {
        let is_path = component.starts_with('/') && component.ends_with(".wasm");
        let rule = "must be the name of a channel, such as \"telegram\", or the absolute path of a .wasm file";
        if is_path || is_name(component) { Ok(component.to_owned()) } else { Err(rule) }
    });
    if !fields.has("component") {
        fields.missing("component", "\"telegram\", \"ntfy\", or the path of a component");
    }
    let allow_private = fields.bool("allow_private");
    let url = fields.checked("url", |url| {
        check_webhook_url(url, allow_private)?;
        if url.contains('?') {
            return Err("must end before any ?");
        }
        Ok(url.trim_end_matches('/').to_owned())
    });
    if !fields.has("url") {
        fields.missing("url", "the address of the service, such as \"https://ntfy.sh\"");
    }
    let rule = "must be a list of settings such as \"topic=NAME\", at most 1,000 characters each";
    let options = fields.list("options", rule, |option| {
        let named =
            option.split_once('=').is_some_and(|(name, value)| is_name(name.trim()) && !value.trim().is_empty());
        named && option.len() <= 1_000 && !option.chars().any(char::is_control)
    });
    let token_env = fields.checked("token_env", variable);
    let token_in = fields.one_of("token_in", &TokenPlace::NAMES);
    if component.as_deref() == Some(TELEGRAM) {
        if !fields.has("token_env") {
            fields.missing("token_env", "the environment variable with the bot's token");
        }
        if token_in == Some(TokenPlace::Header) {
            fields.wrong(name.span(), "token_in", "must be \"path\" for telegram");
        }
    }
    let poll_s = fields.int("poll_s");
    let per_minute = fields.int("per_minute");
    let max_waiting = fields.int("max_waiting");
    fields.finish(|key| {
        is_secret(key).then_some("tokens do not belong in this file; name the environment variable with token_env.")
    })?;
    let (Some(component), Some(url)) = (component, url) else { return Err(Vec::new()) };
    Ok(ChannelSettings {
        name: text.to_owned(),
        token_in: token_in.unwrap_or_else(|| TokenPlace::usual(&component)),
        component,
        url,
        options,
        token_env,
        allow_private,
        poll_s,
        per_minute,
        max_waiting,
    })
}

#[cfg(test)]
mod tests {
    use super::TokenPlace;
    use crate::config::Config;

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn a_channel_needs_a_component_and_a_service() {
        let text = "[channels.a]\ncomponent = \"ntfy\"\nurl = \"https://ntfy.sh/\"\noptions = [\"topic = x\"]\n";
        let config = Config::parse(text.as_bytes()).unwrap();
        let [channel] = config.channels.as_slice() else { panic!("{config:?}") };
        assert_eq!((channel.url.as_str(), channel.poll_s, channel.allow_private), ("https://ntfy.sh", 5, false));
        assert_eq!(channel.pairs(), [("topic".to_owned(), "x".to_owned())]);
        assert_eq!(channel.own_session().as_str(), "channel.a");
        assert_eq!(channel.session_of(7).as_str(), "channel.a.7");
        let shown = config.effective(|_| true);
        assert_eq!(Config::parse(shown.as_bytes()).unwrap(), config, "{shown}");
    }

    #[test]
    fn a_token_stands_where_the_service_wants_it() {
        let placed = |component: &str, more: &str| {
            let text = format!(
                "[channels.a]\ncomponent = {component:?}\nurl = \"https://a.example\"\ntoken_env = \"A_TOKEN\"\n{more}"
            );
            Config::parse(text.as_bytes()).map(|config| config.channels[0].token_in)
        };
        assert_eq!(placed("ntfy", "").unwrap(), TokenPlace::Header);
        assert_eq!(placed("telegram", "").unwrap(), TokenPlace::Path);
        assert_eq!(placed("/opt/own.wasm", "").unwrap(), TokenPlace::Header);
        assert_eq!(placed("/opt/own.wasm", "token_in = \"path\"\n").unwrap(), TokenPlace::Path);
        assert!(placed("telegram", "token_in = \"header\"\n").is_err());
    }

    #[test]
    fn what_is_wrong_with_a_channel_is_told() {
        let of = |more: &str| format!("[channels.a]\ncomponent = \"ntfy\"\nurl = \"https://a.example\"\n{more}\n");
        for (text, said) in [
            ("[channels.a]\n".to_owned(), "[channels.a] needs component"),
            ("[channels.a]\n".to_owned(), "[channels.a] needs url"),
            ("[channels.a]\ncomponent = \"x.wasm\"\nurl = \"https://a.example\"\n".to_owned(), "the absolute path"),
            ("[channels.a]\ncomponent = \"x\"\nurl = \"http://a.example\"\n".to_owned(), "must begin with https://"),
            ("[channels.a]\ncomponent = \"x\"\nurl = \"https://a:b@hidden\"\n".to_owned(), "no user or password"),
            ("[channels.a]\ncomponent = \"x\"\nurl = \"https://a.example/?x\"\n".to_owned(), "must end before any ?"),
            (of("options = [\"topic\"]"), "must be a list of settings"),
            (of("token = \"hidden\""), "name the environment variable with token_env"),
            (of("token_env = \"sk-hidden\""), "looks like a key itself"),
            (of("poll_s = 0"), "out of range: 1 to 3600"),
            (of("token_in = \"query\""), "must be \"header\" or \"path\""),
            (of("").replace("ntfy", "telegram"), "[channels.a] needs token_env"),
            ("[channels.\"a.b\"]\n".to_owned(), "a channel's name has"),
        ] {
            let told = problems(&text);
            assert!(told.contains(said) && !told.contains("hidden"), "{text}: {told}");
        }
    }
}
