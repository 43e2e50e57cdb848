//! Finds values after a label, in English, German, Spanish, French, Russian and Japanese.

use std::ops::Range;

/// Maximum characters of a value after a label. It also limits the work for texts that repeat a label.
const LONGEST: usize = 1_024;

/// The kind of secret that a label names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Password,
    ApiKey,
    Token,
    Secret,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Password => "password",
            Kind::ApiKey => "api_key",
            Kind::Token => "token",
            Kind::Secret => "secret",
        }
    }
}

/// In lower case; a space matches a space, a dash, an underscore or nothing.
const LABELS: &[(&str, Kind)] = &[
    ("password", Kind::Password),
    ("passphrase", Kind::Password),
    ("passwd", Kind::Password),
    ("pwd", Kind::Password),
    ("passwort", Kind::Password),
    ("kennwort", Kind::Password),
    ("contraseña", Kind::Password),
    ("contrasena", Kind::Password),
    ("mot de passe", Kind::Password),
    ("пароль", Kind::Password),
    ("パスワード", Kind::Password),
    ("api key", Kind::ApiKey),
    ("api schlüssel", Kind::ApiKey),
    ("clave de api", Kind::ApiKey),
    ("clave api", Kind::ApiKey),
    ("clé d'api", Kind::ApiKey),
    ("clé d’api", Kind::ApiKey),
    ("clé api", Kind::ApiKey),
    ("api ключ", Kind::ApiKey),
    ("ключ api", Kind::ApiKey),
    ("api キー", Kind::ApiKey),
    ("secret key", Kind::Secret),
    ("secret access key", Kind::Secret),
    ("client secret", Kind::Secret),
    ("access key", Kind::Secret),
    ("secret", Kind::Secret),
    ("clave", Kind::Secret),
    ("token", Kind::Token),
    ("jeton", Kind::Token),
    ("токен", Kind::Token),
    ("トークン", Kind::Token),
    ("bearer", Kind::Token),
];

/// How certain it is that a value follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    /// "password hunter22"
    Beside,
    /// "the password is hunter22"
    Verb,
    /// "password: hunter22", "password=hunter22"
    Sign,
}

const VERBS: &[&str] = &["is", "are", "ist", "lautet", "heißt", "es", "est", "это", "は", "が"];

/// Words after a label that are not values, and placeholders.
const NO_VALUES: &[&str] = &[
    "password",
    "passwort",
    "secret",
    "token",
    "string",
    "text",
    "none",
    "null",
    "true",
    "false",
    "undefined",
    "required",
    "optional",
    "hidden",
    "missing",
    "invalid",
    "incorrect",
    "wrong",
    "empty",
    "changeme",
    "example",
    "placeholder",
    "redacted",
    "removed",
    "input",
    "prompt",
    "default",
    "unknown",
    "number",
    "integer",
    "boolean",
    "varchar",
    "expired",
    "siehe",
    "falsch",
    "erforderlich",
    "obligatoire",
    "incorrecta",
    "requerida",
    "pass",
    "passwd",
    "value",
    "username",
];

/// Beginnings of words that describe a password.
const DESCRIPTIONS: &[&str] =
    &["base64", "base32", "sha1", "sha2", "sha5", "md5", "argon2", "bcrypt", "utf8", "utf-8", "pbkdf2", "oauth2"];

pub(super) fn spans(text: &str) -> Vec<(Range<usize>, String)> {
    let mut spans = Vec::new();
    let mut end = 0;
    for (at, first) in text.char_indices() {
        // A letter before it would make it another word; in "GITHUB_TOKEN", the end is a label.
        let before = text[..at].chars().next_back();
        if at < end || before.is_some_and(|c| c.is_alphanumeric() && c.is_ascii()) {
            continue;
        }
        let first = first.to_lowercase().next();
        for (label, kind) in LABELS.iter().filter(|(label, _)| label.chars().next() == first) {
            let Some(length) = matches(&text[at..], label) else { continue };
            if let Some(value) = value(text, at + length, *kind, *label == "bearer") {
                end = value.end;
                spans.push((value, name(text, at, at + length, *kind)));
                break;
            }
        }
    }
    spans
}

/// Whether a value is a placeholder: `<password>`, `$PASSWORD`, `****`.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    NO_VALUES.contains(&lower.as_str())
        || value.starts_with(['<', '$', '{', '[', '%', '*', '…', '('])
        || value.starts_with("...")
        || lower.starts_with("xxx")
        || ["your_", "your-", "your.", "my_", "my-", "http://", "https://"].iter().any(|start| lower.starts_with(start))
        || value.contains(['(', '{', '<'])
        || value.contains("['")
        || value.contains("[\"")
        || !value.chars().any(char::is_alphanumeric)
}

/// Returns the length of the label if the text begins with it.
fn matches(text: &str, label: &str) -> Option<usize> {
    let mut rest = text;
    for wanted in label.chars() {
        if wanted == ' ' {
            rest = rest.strip_prefix([' ', '-', '_']).unwrap_or(rest);
            continue;
        }
        let mut chars = rest.chars();
        let mut folded = chars.next()?.to_lowercase();
        if folded.next() != Some(wanted) || folded.next().is_some() {
            return None;
        }
        rest = chars.as_str();
    }
    // "passwords" and "tokenizer" are other words; Japanese has no space after a word.
    let more = rest.chars().next().is_some_and(|c| c.is_alphanumeric() && !is_cjk(c) || c == '_');
    (!more).then_some(text.len() - rest.len())
}

/// Returns the place of the value after a label, if there is one.
fn value(text: &str, after: usize, kind: Kind, bearer: bool) -> Option<Range<usize>> {
    let (link, mut start) = link(text, after);
    if link == Link::Beside && start == after {
        return None;
    }
    let rest = &text[start..];
    let open = rest.chars().next()?;
    let close = match open {
        '"' | '\'' | '`' => Some(open),
        '“' | '„' => Some('”'),
        '«' => Some('»'),
        '「' => Some('」'),
        _ => None,
    };
    let (length, quoted) = match close {
        Some(close) => {
            start += open.len_utf8();
            // German closes with the quotation mark that opens in English.
            let ends = |c: char| c == close || close == '”' && c == '“' || c == '\n';
            let (length, end) = text[start..].char_indices().take(LONGEST).find(|(_, c)| ends(*c))?;
            (if end == '\n' { None } else { Some(length) }?, true)
        }
        None => {
            let mut chars = rest.char_indices().take(LONGEST);
            let end = match chars.find(|(_, c)| c.is_whitespace() || is_cjk(*c)) {
                Some((end, _)) => end,
                None if rest.len() <= LONGEST => rest.len(),
                None => return None,
            };
            let run =
                rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '`', '»', '…']);
            // Before the next pair of a query string or a list.
            let run = run.split(['&', ';', ',']).next().unwrap_or_default();
            (run.len(), false)
        }
    };
    let value = &text[start..start + length];
    let next = text[start + length..].trim_start_matches([' ', '\t']).chars().next();
    let last_word = next.is_none_or(|c| !c.is_alphanumeric() || is_cjk(c));
    let sure = if bearer && link == Link::Beside {
        value.len() >= 16 && has_digit(value)
    } else {
        is_value(value, kind, link, quoted, last_word)
    };
    sure.then(|| start..start + length)
}

fn is_value(value: &str, kind: Kind, link: Link, quoted: bool, last_word: bool) -> bool {
    let length = value.chars().count();
    let lower = value.to_lowercase();
    if length < 4 || is_placeholder(value) || value.contains("://") || value.contains("::") {
        return false;
    }
    if DESCRIPTIONS.iter().any(|word| lower.starts_with(word)) && link < Link::Sign {
        return false;
    }
    let digits = value.chars().all(|c| c.is_ascii_digit());
    let letters = value.chars().any(char::is_alphabetic);
    let mixed = letters && has_digit(value);
    if kind != Kind::Password {
        // Numbers are counts of tokens, words are names of things.
        let telling = mixed && length >= 8 || length >= 24 && !value.contains(char::is_whitespace) && !digits;
        return telling && (link > Link::Beside || quoted) && !is_path(value);
    }
    match link {
        // Excludes "12-character" and "list2.txt"
        Link::Beside => (quoted || length >= 6) && mixed && !is_path(value) && !counts(value),
        Link::Verb if quoted => true,
        Link::Verb if digits => last_word,
        Link::Verb => {
            (has_digit(value) || value.contains(['!', '@', '#', '$', '%', '^', '&', '*', '+'])) && !counts(value)
        }
        Link::Sign if quoted || has_digit(value) => quoted || !counts(value) || last_word,
        Link::Sign => {
            let telling = length >= 6 || !value.chars().all(char::is_alphabetic);
            last_word && telling && !is_path(value) && !is_compound(value)
        }
    }
}

fn has_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether it is a number and a word, such as "8-character".
fn counts(value: &str) -> bool {
    let word = value.trim_start_matches(|c: char| c.is_ascii_digit());
    word.len() < value.len() && word.strip_prefix('-').is_some_and(|word| word.chars().all(char::is_alphabetic))
}

/// Whether it is a compound such as "percent-decoded"; more than two words may be a password.
fn is_compound(value: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.chars().all(char::is_lowercase);
    value.split_once('-').is_some_and(|(one, other)| word(one) && word(other))
}

/// Whether it is a path or name such as "list2.txt", "self.token", "docs/api.md".
fn is_path(value: &str) -> bool {
    let ending = value
        .rsplit_once('.')
        .is_some_and(|(_, ending)| (1..=5).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_lowercase()));
    ending || value.starts_with(['/', '.', '~']) || value.starts_with("self.") || value.starts_with("os.")
}

/// Returns how the text continues after a label, and where the next word begins.
fn link(text: &str, after: usize) -> (Link, usize) {
    let rest = &text[after..];
    // `"password": "…"`, **password**: …
    let unquoted = rest.trim_start_matches(['"', '\'', '`', '*', ' ', '\t']);
    let sign = unquoted.strip_prefix([':', '=', '：', '＝', '—', '–']);
    // "passwd::name" is code.
    if let Some(value) = sign.filter(|value| !value.starts_with(':')) {
        // ": =" of some languages, "->" of some people, ** that ends here.
        let value = value.trim_start_matches(['=', '>', '*', ' ', '\t']);
        return (Link::Sign, text.len() - value.len());
    }
    let words = rest.trim_start_matches([' ', '\t', '\u{3000}']);
    for verb in VERBS {
        if let Some(value) =
            words.get(..verb.len()).filter(|word| word.to_lowercase() == **verb).map(|w| &words[w.len()..])
        {
            let begins = value.trim_start_matches([' ', '\t', ':', '\u{3000}']);
            if begins.len() < value.len() || verb.chars().all(is_cjk) {
                return (Link::Verb, text.len() - begins.len());
            }
        }
    }
    (Link::Beside, text.len() - words.len())
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

/// Returns the name of a value: its own if it is like `GITHUB_TOKEN`, otherwise that of the label's kind.
fn name(text: &str, start: usize, end: usize, kind: Kind) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before =
        text[..start].rfind(|c| !plain(c)).map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    let whole = &text[before..end];
    let own = before < start && whole.len() <= 64 && whole.chars().all(plain) && !whole.starts_with('_');
    if own { whole.to_ascii_lowercase() } else { kind.name().to_owned() }
}
