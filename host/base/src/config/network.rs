//! `[network]`: which hosts command lines may reach.
//!
//! ```toml
//! [network]
//! default = "ask"
//!
//! [[network.rules]]   # the first matching rule counts
//! host = "*.example.org"
//! access = "allow"
//! ```

use super::Config;
use super::fields::TableFields;
use super::key::{Effect, Kind, NamedTable, ValueError, article, keys, words};
use crate::home::Home;
use kiso_plan::label::Integrity;
use kiso_plan::network::{METHODS, NetworkAccess, NetworkRule};
use kiso_plan::plan::CallerScope;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::DeValue;

/// Maximum rules of a configuration. Each request is compared with all of them.
const MAX_RULES: usize = 1_000;

const ACCESS: [(&str, NetworkAccess); 3] =
    [("allow", NetworkAccess::Allow), ("ask", NetworkAccess::Ask), ("deny", NetworkAccess::Deny)];

const ROLES: [(&str, CallerScope); 2] = [("admin", CallerScope::Admin), ("user", CallerScope::User)];

const LABELS: [(&str, Integrity); 5] = [
    ("user", Integrity::User),
    ("attached", Integrity::Attached),
    ("publisher", Integrity::Publisher),
    ("person", Integrity::Person),
    ("world", Integrity::World),
];

/// How the commented file of a fresh home shows rules.
const EXAMPLE: &str = "
# Hosts that command lines can reach; the first rule that fits counts. See docs/network.md.
# [[network.rules]]
# host = \"*.example.org\"
# access = \"allow\"
# [[network.rules]]
# host = \"192.168.1.7:8080\"
# access = \"allow\"
# methods = [\"GET\", \"POST\"]
# private = true
";

/// The keys and the documentation of these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "network.rules",
    heading: "[[network.rules]]",
    doc: "Rules about the hosts that command lines reach. The first that fits a request counts; one with `ask` leaves the decision to `kiso network` and to approvals. At most 1_000.",
    example: EXAMPLE,
    after: "network",
    effect: Effect::NextRun,
    id: "",
    keys: &keys(Effect::NextRun, [
        ("host", Kind::Characters(260, true), "`\"example.org\"`, `\"*.example.org\"` (every name below it) or `\"*\"`, each with an optional `:PORT`. Without a port, that of the scheme."),
        ("access", Kind::Word("", &words(ACCESS)), "Whether the request is made, you are asked, or it is refused."),
        ("methods", Kind::Named(&METHODS, "those that read: GET, HEAD, OPTIONS; all if access is `\"deny\"`"), "Methods that the rule is about; GET stands for all that read."),
        ("private", Kind::Bool(false), "Whether the host can be in the machine's own network, such as 127.0.0.1. Needs a host without `*`."),
        ("role", Kind::OneOf(&words(ROLES), "both"), "Whose command lines the rule is about."),
        ("secret", Kind::Characters(64, false), "The name of a secret that kiso puts into each request, such as `\"github_token\"`; command lines never have it. Of the session (`kiso secret set`) or of the environment (`KISO_SKILL_NETWORK_NAME`). Needs access `\"allow\"` and a host without `*`."),
        ("secret_header", Kind::Characters(260, false), "The header that the secret goes into; without it, `Authorization: Bearer`."),
        ("secret_user", Kind::Characters(260, false), "The user whose password the secret is, for basic authentication, as `git` needs it."),
        ("label", Kind::OneOf(&words(LABELS), "all"), "The rule is about command lines that have read words of these people, or of less trusted ones."),
    ]),
};

/// Reads one rule. `others` is the number of rules before it.
pub(super) fn read<'a>(value: &'a Spanned<DeValue<'a>>, others: usize) -> Result<NetworkRule, Vec<ValueError>> {
    let path = format!("network.rules.{}", others + 1);
    let mut fields = TableFields::new(&TABLE, path, value.span(), value)?;
    let host = fields.text("host");
    let access = fields.one_of("access", &ACCESS);
    for (key, wanted) in [("host", "such as \"example.org\""), ("access", "\"allow\", \"ask\" or \"deny\"")] {
        if !fields.has(key) {
            fields.missing(key, wanted);
        }
    }
    let rule = format!("must be a list of methods: {}", METHODS.join(", "));
    let methods = fields.list("methods", &rule, |method| METHODS.contains(&method));
    let private = fields.bool("private");
    let mut named = |key: &'static str| fields.text(key).map(|(text, _)| text);
    let (secret, secret_header, secret_user) = (named("secret"), named("secret_header"), named("secret_user"));
    let role = fields.one_of("role", &ROLES);
    let label = fields.one_of("label", &LABELS);
    let read = host.zip(access).map(|((host, span), access)| {
        let plain = NetworkRule { methods, role, label, ..NetworkRule::new(&host, access) };
        let checked = plain.check().map_err(|why| fields.wrong(span, "host", &format!("= {why}")));
        let rule = NetworkRule { private, ..plain };
        if checked.is_ok() && rule.check().is_err() {
            fields.unfit("private", "needs a host by its full name");
        }
        let rule = NetworkRule { private: false, secret, secret_header, secret_user, ..rule };
        if let (Ok(()), Err(why)) = (checked, rule.check()) {
            let key = ["secret", "secret_header", "secret_user"].into_iter().find(|key| fields.has(key));
            fields.unfit(key.unwrap_or("secret"), &format!("cannot stand here: {why}"));
        }
        NetworkRule { private, ..rule }
    });
    fields.finish(|_| None)?;
    read.ok_or_else(Vec::new)
}

/// Reads all rules. Returns those that are valid, and the errors of the others.
pub(super) fn read_all(value: &Spanned<DeValue<'_>>) -> (Vec<NetworkRule>, Vec<ValueError>) {
    let rule = |message: String| (Vec::new(), vec![(value.span(), message)]);
    let DeValue::Array(items) = value.get_ref() else {
        return rule(format!("[[network.rules]] must be a list of tables, and this is {}", article(value.get_ref())));
    };
    if items.len() > MAX_RULES {
        return rule(format!("[[network.rules]] has {} entries; the most is {MAX_RULES}", items.len()));
    }
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    for (at, item) in items.iter().enumerate() {
        match read(item, at) {
            Ok(rule) => rules.push(rule),
            Err(errors) => wrong.extend(errors),
        }
    }
    (rules, wrong)
}

impl Config {
    /// The access to a host that no rule matches.
    pub fn network_default(&self) -> NetworkAccess {
        let named = ACCESS.iter().find(|(word, _)| *word == self.network.default);
        named.map_or_else(NetworkAccess::default, |(_, access)| *access)
    }

    /// The path of `[network] ca_file`; a relative path begins in the home.
    pub fn ca_file(&self, home: &Home) -> Option<PathBuf> {
        self.network.ca_file.as_ref().map(|file| home.path().join(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn rules_keep_the_order_of_the_file() {
        let text = "[network]\ndefault = \"deny\"\n[[network.rules]]\nhost = \"a.example\"\naccess = \"allow\"\n\
                    methods = [\"POST\"]\nrole = \"admin\"\nlabel = \"world\"\n\
                    [[network.rules]]\nhost = \"127.0.0.1:81\"\naccess = \"ask\"\nprivate = true\n";
        let config = Config::parse(text.as_bytes()).unwrap();
        assert_eq!(config.network_default(), NetworkAccess::Deny);
        let [first, second] = config.network_rules.as_slice() else { panic!("{config:?}") };
        let expected = NetworkRule {
            methods: vec!["POST".to_owned()],
            role: Some(CallerScope::Admin),
            label: Some(Integrity::World),
            ..NetworkRule::new("a.example", NetworkAccess::Allow)
        };
        assert_eq!(first, &expected);
        assert_eq!((second.access, second.private), (NetworkAccess::Ask, true));
        let shown = config.effective(|_| true);
        assert_eq!(Config::parse(shown.as_bytes()).unwrap(), config, "{shown}");
        assert_eq!(config.to_json(|_| false)["network_rules"][0]["role"], "admin");
        let changes = config.changes(&Config::default());
        let named: Vec<_> = changes.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(named, ["network.default", "[[network.rules]]"]);
        assert_eq!(Config::default().network_default(), NetworkAccess::Ask);
    }

    #[test]
    fn a_rule_that_is_wrong_is_reported_where_it_stands() {
        let rule = |rest: &str| format!("[[network.rules]]\nhost = \"a.example\"\naccess = \"allow\"\n{rest}\n");
        for (text, expected) in [
            ("[[network.rules]]\n".to_owned(), "1:1: [network.rules.1] needs host: such as \"example.org\""),
            ("[[network.rules]]\n".to_owned(), "[network.rules.1] needs access: \"allow\", \"ask\" or \"deny\""),
            (
                rule("[[network.rules]]\nhost = \"https://b\"\naccess = \"deny\""),
                "5:8: network.rules.2.host = \"https://b\" is not a host",
            ),
            (rule("methods = [\"BREW\"]"), "4:12: network.rules.1.methods must be a list of methods: GET, HEAD"),
            (rule("methods = \"GET\""), "network.rules.1.methods must be a list of strings, and this is a string"),
            (rule("role = \"root\""), "4:8: network.rules.1.role must be \"admin\" or \"user\""),
            (rule("label = \"all\""), "network.rules.1.label must be \"user\" or \"attached\""),
            (
                rule("ports = [1]"),
                "Allowed here: access, host, label, methods, private, role, secret, secret_header, secret_user",
            ),
            (
                rule("secret_user = \"me\""),
                "4:15: network.rules.1.secret_user cannot stand here: a header or user of a",
            ),
            (
                "[[network.rules]]\nhost = \"*\"\naccess = \"allow\"\nsecret = \"token\"\n".to_owned(),
                "4:10: network.rules.1.secret cannot stand here: `secret` needs",
            ),
            (
                "[[network.rules]]\nhost = \"*\"\naccess = \"allow\"\nprivate = true\n".to_owned(),
                "4:11: network.rules.1.private needs a host by its full name",
            ),
            ("[network]\nrules = 3\n".to_owned(), "2:9: [[network.rules]] must be a list of tables, and this is an"),
            ("[network]\nrules = [3]\n".to_owned(), "2:10: [network.rules.1] must be a table, and this is an integer"),
            ("[network]\ndefault = \"no\"\n".to_owned(), "network.default = \"no\" must be one of ask, allow, deny"),
            ("\"network.rules\" = 1\n".to_owned(), "unknown key network.rules"),
            (rule("").repeat(1_001), "[[network.rules]] has 1001 entries; the most is 1000"),
        ] {
            let reported = problems(&text);
            assert!(reported.contains(expected), "{}: {reported}", &text[..text.len().min(200)]);
        }
        assert_eq!(Config::parse(rule("").repeat(1_000).as_bytes()).unwrap().network_rules.len(), 1_000);
    }

    #[test]
    fn a_file_of_certificates_that_cannot_be_used_is_reported_where_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let load = |file: &str| {
            std::fs::write(home.config_path(), format!("[network]\nca_file = {file:?}\n")).unwrap();
            Config::load(&home).map_err(|error| error.to_string())
        };
        let (reported, at) = (load("ca.pem").unwrap_err(), home.path().join("ca.pem"));
        let expected =
            format!("config.toml:2:1: network.ca_file: {} cannot be used: failed to read it: ", at.display());
        assert!(reported.contains(&expected), "{reported}");
    }

    #[test]
    fn a_relative_path_begins_in_the_home() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let file = |path: &str| {
            let config = Config::parse(format!("[network]\nca_file = {path:?}\n").as_bytes()).unwrap();
            config.ca_file(&home)
        };
        assert_eq!(file("ca.pem"), Some(home.path().join("ca.pem")));
        assert_eq!(file("/etc/ca.pem"), Some(PathBuf::from("/etc/ca.pem")));
        assert_eq!(file(""), None);
    }
}
