//! The secrets of one run, and their redaction in everything that is stored.
//!
//! There are two kinds: secrets of the environment, which an administrator sets as `KISO_SKILL_NAME_KEY` (NAME in upper case,
//! with `__` for `-`), and secrets that a user writes in a message. The host ([`found`]) removes the latter from the message
//! before anything is stored, or the planner does, and the [`vault`] stores them. The manifest and the grant of a skill decide
//! which secrets it may get; this module does not.
//!
//! A value is searched for in all the ways that a text may contain it. `form` lists those that are completely different texts
//! (hexadecimal, base64), and `finder` searches for all of them at once. `decoder` decodes characters that URLs, JSON, HTML, CSV
//! or a shell's quotes escape. `stream` does both for a text in pieces, and `document` for JSON. [`spellings`] lists exact forms
//! for a search in bytes.

mod decoder;
mod derived;
mod document;
mod finder;
mod form;
pub mod found;
pub mod log_redaction;
mod stream;
pub mod vault;

pub use derived::derived;
pub use form::spellings;
pub use stream::RedactionStream;
pub use vault::{Vault, VaultError};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::{Arc, OnceLock};

use self::finder::Finder;
use self::form::forms_of;
use kiso_base::home::SkillName;

const PREFIX: &str = "KISO_SKILL_";

/// A value that is never printed, and is overwritten in memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

impl SecretValue {
    pub fn new(value: String) -> SecretValue {
        SecretValue(value)
    }

    /// Returns the value itself. Each call is a place where a secret leaves kiso's protection.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl Drop for SecretValue {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.fill(0);
        // Otherwise the compiler may remove a write that is never read.
        std::hint::black_box(&bytes);
    }
}

/// The secrets that a run knows.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// By the name of the variable.
    environment: BTreeMap<String, SecretValue>,
    /// By the name from the planner or the host.
    session: BTreeMap<String, SecretValue>,
    /// Keys of providers, which are only redacted.
    keys: BTreeMap<String, SecretValue>,
    /// The search for these values; created on first use.
    finder: OnceLock<Arc<Finder>>,
}

impl Secrets {
    /// Collects the secrets in the process's environment, in the form of [`std::env::vars_os`]. Ignores variables that are empty
    /// or not UTF-8.
    pub fn from_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Secrets {
        let environment = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
            .map(|(name, value)| (name, SecretValue(value)))
            .inspect(|(name, value)| log_redaction::keep(name, value))
            .collect();
        Secrets { environment, ..Secrets::default() }
    }

    /// Adds a secret from a user's message. It replaces an earlier one of the same name; [`Secrets::displaced`] returns the
    /// part of the earlier one that is kept.
    pub fn add_session(&mut self, name: String, value: SecretValue) {
        log_redaction::add(&name, &value);
        self.session.insert(name, value);
        self.finder = OnceLock::new();
    }

    /// Returns the current secret of that name with an unused name for it, if its value is different: an old password must still
    /// be redacted, and may be in use elsewhere.
    pub fn displaced(&self, name: &str, value: &SecretValue) -> Option<(String, SecretValue)> {
        let old = self.session.get(name).filter(|old| *old != value)?;
        Some((self.free_name(name, old), old.clone()))
    }

    /// Returns the name for a value from a message: its existing name, or the first unused one of `stem`, `stem_2` and so on.
    pub fn name_for(&self, stem: &str, value: &SecretValue) -> String {
        match self.session.iter().find(|(_, known)| *known == value) {
            Some((name, _)) => name.clone(),
            None if !self.session.contains_key(stem) => stem.to_owned(),
            None => self.free_name(stem, value),
        }
    }

    #[expect(clippy::expect_used, reason = "there is no end of numbers")]
    fn free_name(&self, stem: &str, value: &SecretValue) -> String {
        let mut names = (2..).map(|n| format!("{stem}_{n}"));
        let free = names.find(|name| self.session.get(name).is_none_or(|known| known == value));
        free.expect("there is no end of numbers")
    }

    /// Adds the key of a model's provider, by the name of its variable. No skill can get it.
    pub fn add_key(&mut self, variable: String, value: SecretValue) {
        log_redaction::keep(&variable, &value);
        self.keys.insert(variable, value);
        self.finder = OnceLock::new();
    }

    /// Returns a secret of the environment that was set for this skill.
    pub fn environment(&self, skill: &SkillName, key: &str) -> Option<&SecretValue> {
        self.environment.get(&variable(skill, key))
    }

    /// Returns a secret that the user gave.
    pub fn session(&self, name: &str) -> Option<&SecretValue> {
        self.session.get(name)
    }

    /// Returns the secrets from the user whose names match a skill's declaration.
    pub fn session_by_end<'a>(&'a self, declared: &'a str) -> impl Iterator<Item = (&'a str, &'a SecretValue)> {
        let named = self.session.iter().filter(move |(name, _)| is_declared_as(declared, name));
        named.map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the names of the secrets from the user.
    pub fn session_names(&self) -> impl Iterator<Item = &str> {
        self.session.keys().map(String::as_str)
    }

    /// Returns the text with every value of a known secret replaced by "[secret NAME]", in each of its [`form`]s.
    pub fn redact(&self, text: &str) -> String {
        if self.nothing_to_hide() {
            return text.to_owned();
        }
        let forms = self.finder().standing(text);
        if forms.is_empty() {
            return text.to_owned();
        }
        let mut stream = RedactionStream::new(forms);
        let mut clean = stream.push(text);
        clean.push_str(&stream.finish());
        clean
    }

    /// Whether there is nothing to redact: no secrets, or only values as short as words.
    pub fn nothing_to_hide(&self) -> bool {
        let of_all = [&self.session, &self.environment, &self.keys];
        of_all.iter().all(|values| values.is_empty()) || self.finder().is_empty()
    }

    /// [`Secrets::redact`] for a text that arrives in pieces. It ignores secrets that are added later.
    pub fn streaming(&self) -> RedactionStream {
        match self.nothing_to_hide() {
            true => RedactionStream::new([]),
            false => RedactionStream::new(self.finder().forms().iter().cloned()),
        }
    }

    /// Returns the search for all forms of all values.
    fn finder(&self) -> &Finder {
        self.finder.get_or_init(|| {
            let values = self.session.iter().chain(&self.environment).chain(&self.keys);
            let forms = values.flat_map(|(name, value)| forms_of(value).into_iter().map(|form| (name.clone(), form)));
            Arc::new(Finder::new(forms.collect()))
        })
    }
}

/// Whether the name that a skill declares covers the secret `name`: they are equal, or the declared one is `*` and an ending, as
/// `*password` covers `tax_password` and `tax_password_2`.
pub fn is_declared_as(declared: &str, name: &str) -> bool {
    let Some(end) = declared.strip_prefix('*') else { return declared == name };
    let without_number = name.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix('_');
    name.ends_with(end) || without_number.is_some_and(|stem| stem.ends_with(end))
}

/// Returns the variable of a skill's secret, such as `KISO_SKILL_SEARCH_API_KEY`. A dash becomes two underscores: with one, a key
/// of the skill `web` could have the same variable as one of `web-search`.
pub fn variable(skill: &SkillName, key: &str) -> String {
    format!("{PREFIX}{}_{key}", skill.as_str().replace('-', "__")).to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_name_may_be_the_end_of_several() {
        for (declared, name, covers) in [
            ("password", "password", true),
            ("password", "tax_password", false),
            ("*password", "tax_password", true),
            ("*password", "password_2", true),
            ("*password", "password_hint", false),
            ("*password", "token", false),
        ] {
            assert_eq!(is_declared_as(declared, name), covers, "{declared} {name}");
        }
    }

    fn secrets(environment: &[(&str, &str)], session: &[(&str, &str)]) -> Secrets {
        let mut secrets =
            Secrets::from_environment(environment.iter().map(|(name, value)| (name.into(), value.into())));
        for (name, value) in session {
            secrets.add_session((*name).to_owned(), SecretValue::new((*value).to_owned()));
        }
        secrets
    }

    /// Asserts that the text becomes `clean` however it is split.
    #[track_caller]
    fn in_pieces(secrets: &Secrets, text: &str, clean: &str) {
        for step in [1, 2, 3, 7] {
            let mut stream = secrets.streaming();
            let chars: Vec<char> = text.chars().collect();
            let mut pieces: String = chars.chunks(step).map(|c| stream.push(&String::from_iter(c))).collect();
            pieces += &stream.finish();
            assert_eq!(pieces, clean, "{text} in pieces of {step}");
        }
    }

    #[test]
    fn a_skill_finds_its_own() {
        let secrets = secrets(
            &[("KISO_SKILL_WEB__SEARCH_API_KEY", "k-123"), ("KISO_SKILL_DATA_TOKEN", ""), ("HOME", "/root")],
            &[("github_token", "ghp_1")],
        );
        let search = SkillName::parse("web-search").unwrap();
        assert_eq!(variable(&search, "api_key"), "KISO_SKILL_WEB__SEARCH_API_KEY");
        assert_eq!(secrets.environment(&search, "api_key").unwrap().expose(), "k-123");
        assert!(secrets.environment(&SkillName::parse("data").unwrap(), "token").is_none());
        assert_eq!(secrets.session("github_token").unwrap().expose(), "ghp_1");
        assert!(secrets.session("api_key").is_none());
    }

    #[test]
    fn values_are_never_printed() {
        let secrets = secrets(&[("KISO_SKILL_A_B", "hunter22")], &[("pw", "hunter33")]);
        let shown = format!("{secrets:?} {:?} {}", secrets.session("pw"), secrets.session("pw").unwrap());
        assert!(!shown.contains("hunter"), "{shown}");
        assert!(shown.contains("KISO_SKILL_A_B") && shown.contains("[secret]"), "{shown}");
    }

    #[test]
    fn texts_are_cleaned() {
        let secrets = secrets(
            &[("KISO_SKILL_A_KEY", "abcd")],
            &[
                ("long", "abcdefgh"),
                ("pin", "123"),
                ("odd", "a\"b\nc\\d"),
                ("word", "secret"),
                ("quoted", "\"quoted\""),
            ],
        );
        for (text, clean) in [
            ("nothing here", "nothing here"),
            ("key=abcd.", "key=[secret KISO_SKILL_A_KEY]."),
            ("abcdefgh", "[secret long]"),
            ("abcdabcd é abcd", "[secret KISO_SKILL_A_KEY][secret KISO_SKILL_A_KEY] é [secret KISO_SKILL_A_KEY]"),
            ("pin 123", "pin 123"),
            ("a \"secret\"", "a \"[secret word]\""),
            (r#"{"text":"a\"b\nc\\d"}"#, r#"{"text":"[secret odd]"}"#),
            ("a\"b\nc\\d", "[secret odd]"),
            (r#"[\"quoted\"]"#, "[[secret quoted]]"),
        ] {
            assert_eq!(secrets.redact(text), clean, "{text}");
        }
    }

    #[test]
    fn encoded_values_are_found() {
        let secrets = secrets(&[], &[("pw", "hunter/2 x+é"), ("odd", "50%25off\""), ("key", "k-12345678")]);
        for (text, clean) in [
            ("?q=hunter%2F2%20x%2B%C3%A9&a", "?q=[secret pw]&a"),
            ("?q=hunter%2f2+x%2b%c3%a9", "?q=[secret pw]"),
            ("%68%75%6E%74er%2f2%20x+%C3%a9.", "[secret pw]."),
            ("hunter%252F2%2520x%252B%25C3%25A9", "[secret pw]"),
            ("50%2525off%22", "[secret odd]"),
            ("50%2525off%5C%22", "[secret odd]"),
            ("6b2d3132333435363738", "[secret key]"),
            ("6B2D3132333435363738;", "[secret key];"),
            ("Basic dXNlcjprLTEyMzQ1Njc4", "Basic dXNlcjp[secret key]"),
            ("[ay0xMjM0NTY3OA==]", "[[secret key]A==]"),
            ("100% of 5+5 is é%", "100% of 5+5 is é%"),
        ] {
            assert_eq!(secrets.redact(text), clean, "{text}");
            in_pieces(&secrets, text, clean);
        }
    }

    /// The encoders of other programs: each escapes different characters.
    #[test]
    fn values_are_found_as_other_programs_write_them() {
        let secrets = secrets(&[], &[("pw", "a&b<c/d\"e'f"), ("word", "ża>b\u{1f511}c\\"), ("line", "n1\tn2/n3\nn4")]);
        for (text, clean) in [
            // JSON: Go, PHP, Python, Rails, .NET; and JSON in JSON.
            (r#"{"a":"a\u0026b\u003cc/d\"e'f"}"#, r#"{"a":"[secret pw]"}"#),
            (r#"{"a":"a&b<c\/d\"e'f"}"#, r#"{"a":"[secret pw]"}"#),
            (r#"["a\u0026b\u003Cc\/d\u0022e\u0027f"]"#, r#"["[secret pw]"]"#),
            (r#""{\"a\":\"a\\u0026b\\u003cc\\/d\\\"e'f\"}""#, r#""{\"a\":\"[secret pw]\"}""#),
            (r#"{"a":"\u017ca>b\ud83d\udd11c\\"}"#, r#"{"a":"[secret word]"}"#),
            (r#"{"a":"\u017Ca\u003Eb\uD83D\uDD11c\\","b":1}"#, r#"{"a":"[secret word]","b":1}"#),
            (r#"{"a":"C:\\\u017ca>b\ud83d\udd11c\\"}"#, r#"{"a":"C:\\[secret word]"}"#),
            (r"n1\tn2\/n3\nn4", "[secret line]"),
            (r"C:\\n1\tn2\/n3\nn4", r"C:\\[secret line]"),
            // HTML: with names, with numbers, twice, in JSON, around JSON, in a URL.
            ("<b>a&amp;b&lt;c/d&quot;e&#39;f</b>", "<b>[secret pw]</b>"),
            ("a&amp;b&lt;c&#x2F;d&#34;e&#x27;f&amp;", "[secret pw]&amp;"),
            ("a&#38;b&#X3c;c/d\"e&#039;f", "[secret pw]"),
            ("a&amp;b<c/d&quot;e&apos;f", "[secret pw]"),
            ("a&amp;amp;b&amp;lt;c/d&amp;quot;e&amp;#39;f", "[secret pw]"),
            (r"a\u0026amp;b\u0026lt;c/d\u0026quot;e\u0026#39;f", "[secret pw]"),
            ("{&quot;a&quot;:&quot;a&amp;b&lt;c\\/d\\&quot;e&#39;f&quot;}", "{&quot;a&quot;:&quot;[secret pw]&quot;}"),
            ("a%26amp%3Bb%26lt%3Bc%2Fd%26quot%3Be%26%2339%3Bf", "[secret pw]"),
            ("&#380;a&gt;b&#x1F511;c\\", "[secret word]"),
            // CSV, and JSON in it.
            ("1,\"a&b<c/d\"\"e'f\",2", "1,\"[secret pw]\",2"),
            (r#"1,"{""a"":""a&b<c/d\""e'f""}""#, r#"1,"{""a"":""[secret pw]""}""#),
            (r#"{"row":"1,\"a&b<c/d\"\"e'f\",2"}"#, r#"{"row":"1,\"[secret pw]\",2"}"#),
            // Shells, and SQL.
            (r#"echo 'a&b<c/d"e'\''f'"#, "echo '[secret pw]'"),
            (r#"{"c":"echo 'a&b<c/d\"e'\\''f'"}"#, r#"{"c":"echo '[secret pw]'"}"#),
            (r#"values ('a&b<c/d"e''f')"#, "values ('[secret pw]')"),
        ] {
            assert_eq!(secrets.redact(text), clean, "{text}");
            in_pieces(&secrets, text, clean);
        }
    }

    #[test]
    fn texts_that_only_resemble_a_value_stay() {
        let secrets = secrets(
            &[],
            &[
                ("odd", "a\"\"\"b"),
                ("entity", "&lt;"),
                ("quotes", "\"\"\"\"\"\""),
                ("slashes", "\\\\\\\\"),
                ("newline", "nabc/d"),
                ("end", "wxyz\\"),
                ("coded", "k%41y&amp;z"),
                ("two", "1\"\"234"),
                ("plus", "one+two"),
            ],
        );
        for text in [
            "a\"b, a\\\"b and a\"\"b",
            "1 &amp;lt; 2 < 3 &amp;amp; 4",
            "{\"a\":\"\",\"b\":\"\\\"\"} \\ \\\\",
            "first\nabc/d",
            "first\nabc\\/d",
            "\"wxyz\", wxyz/ and wxyz\n\\",
            "kAy&z, 5% off",
            "1\"234 but \"\"",
            "one two %20",
            r"\u12 \ud83d \ud83d\u0041 &#; &#x; &#xd800; &#99999999999; &nosuch; & &amp",
        ] {
            assert_eq!(secrets.redact(text), text, "{text}");
            in_pieces(&secrets, text, text);
        }
    }

    #[test]
    fn overlapping_values_leave_no_rest() {
        let secrets = secrets(&[], &[("one", "aaaabbbb"), ("two", "bbbbcccc")]);
        assert_eq!(secrets.redact("x aaaabbbbcccc y"), "x [secret one] y");
    }
}
