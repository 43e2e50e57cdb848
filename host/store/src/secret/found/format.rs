//! Credentials that are recognized by their form.

use std::ops::Range;

/// A prefix that a provider uses for its credentials.
struct Form {
    prefix: &'static str,
    name: &'static str,
    /// Characters that may follow the prefix, besides letters and digits.
    marks: &'static str,
    /// Minimum characters after the prefix.
    least: usize,
    /// Minimum length of a run of letters and digits, including a digit, among them: distinguishes a key from words with dashes.
    dense: usize,
}

const fn form(prefix: &'static str, name: &'static str, marks: &'static str, least: usize, dense: usize) -> Form {
    Form { prefix, name, marks, least, dense }
}

/// Longer prefixes come before those that they begin with.
const FORMS: &[Form] = &[
    form("sk-ant-", "anthropic_api_key", "-_", 16, 8),
    form("sk-or-", "openrouter_api_key", "-_", 16, 8),
    form("sk-", "openai_api_key", "-_", 16, 12),
    form("sk_live_", "stripe_key", "", 16, 8),
    form("sk_test_", "stripe_key", "", 16, 8),
    form("rk_live_", "stripe_key", "", 16, 8),
    form("github_pat_", "github_token", "_", 10, 4),
    form("ghp_", "github_token", "", 6, 4),
    form("gho_", "github_token", "", 6, 4),
    form("ghu_", "github_token", "", 6, 4),
    form("ghs_", "github_token", "", 6, 4),
    form("ghr_", "github_token", "", 6, 4),
    form("glpat-", "gitlab_token", "-_.", 10, 4),
    form("xoxb-", "slack_token", "-", 10, 4),
    form("xoxp-", "slack_token", "-", 10, 4),
    form("xoxa-", "slack_token", "-", 10, 4),
    form("xoxr-", "slack_token", "-", 10, 4),
    form("xoxs-", "slack_token", "-", 10, 4),
    form("xapp-", "slack_token", "-", 10, 4),
    form("AIza", "google_api_key", "-_", 30, 4),
    form("hf_", "huggingface_token", "", 20, 8),
    form("npm_", "npm_token", "", 30, 8),
    form("kiso_", "kiso_token", "_", 30, 12),
];

const JWT: &str = "jwt";
const AWS: &str = "aws_access_key_id";
const PEM: &str = "private_key";
const URL: &str = "password";

/// Every name that a form gives.
pub(super) const NAMES: &[&str] = &[
    "anthropic_api_key",
    "openrouter_api_key",
    "openai_api_key",
    "stripe_key",
    "github_token",
    "gitlab_token",
    "slack_token",
    "google_api_key",
    "huggingface_token",
    "npm_token",
    "kiso_token",
    JWT,
    AWS,
    PEM,
];

pub(super) fn spans(text: &str) -> Vec<(Range<usize>, String)> {
    let mut spans = Vec::new();
    for (range, name) in private_keys(text).chain(url_passwords(text)) {
        spans.push((range, name.to_owned()));
    }
    let mut end = 0;
    for (at, _) in text.char_indices() {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        if at < end || before.is_alphanumeric() || before == '_' {
            continue;
        }
        if let Some((length, name)) = token(&text[at..], before) {
            end = at + length;
            spans.push((at..end, name.to_owned()));
        }
    }
    spans
}

/// Returns the token at the beginning of the text. The character `before` it must not belong to such a token; otherwise a text
/// like "sk-sk-sk-…" would be read to its end from each of its parts.
fn token(text: &str, before: char) -> Option<(usize, &'static str)> {
    for form in FORMS {
        let Some(rest) = text.strip_prefix(form.prefix).filter(|_| !form.marks.contains(before)) else { continue };
        let run = run(rest, form.marks);
        if run.len() >= form.least && dense(run) >= form.dense {
            return Some((form.prefix.len() + run.len(), form.name));
        }
    }
    if ["AKIA", "ASIA"].iter().any(|prefix| text.starts_with(prefix)) {
        let run = run(text, "_");
        let plain = run.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        return (run.len() == 20 && plain).then_some((20, AWS));
    }
    if text.starts_with("eyJ") && !"-.".contains(before) {
        let whole = run(text, "-_.").trim_end_matches('.');
        let mut parts = whole.split('.');
        let head = parts.next().is_some_and(|part| part.len() >= 10);
        let body = parts.next().is_some_and(|part| part.len() >= 10 && part.starts_with("eyJ"));
        let signature = parts.next().is_some_and(|part| part.len() >= 10);
        return (head && body && signature && parts.next().is_none()).then_some((whole.len(), JWT));
    }
    None
}

/// Returns the letters, digits and marks at the beginning of the text.
fn run<'a>(text: &'a str, marks: &str) -> &'a str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !marks.contains(c)).unwrap_or(text.len());
    text[..end].trim_end_matches(['-', '.'])
}

/// Returns the length of the longest run of letters and digits that contains a digit.
fn dense(run: &str) -> usize {
    let parts = run.split(|c: char| !c.is_ascii_alphanumeric());
    parts.filter(|part| part.bytes().any(|byte| byte.is_ascii_digit())).map(str::len).max().unwrap_or(0)
}

/// Returns PEM blocks with a private key, including markers; up to the end of the text if the end marker is missing.
fn private_keys(text: &str) -> impl Iterator<Item = (Range<usize>, &'static str)> {
    const BEGIN: &str = "-----BEGIN ";
    const KIND: usize = 40;
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(at) = text[from..].find(BEGIN).map(|at| from + at) {
            from = at + BEGIN.len();
            let kind_end = text[from..].find("-----").filter(|end| *end <= KIND).map(|end| from + end);
            let Some(kind) = kind_end.map(|end| &text[from..end]).filter(|kind| kind.ends_with("PRIVATE KEY")) else {
                continue;
            };
            let last = format!("-----END {kind}-----");
            let end = text[from..].find(&last).map_or(text.len(), |end| from + end + last.len());
            from = end;
            return Some((at..end, PEM));
        }
        None
    })
}

/// Returns the passwords in `scheme://user:password@host`.
fn url_passwords(text: &str) -> impl Iterator<Item = (Range<usize>, &'static str)> {
    text.match_indices("://").filter_map(|(at, mark)| {
        let start = at + mark.len();
        let end = text[start..].find(|c: char| c.is_whitespace() || "/?#\"'<>`".contains(c));
        let authority = &text[start..end.map_or(text.len(), |end| start + end)];
        let (login, _) = authority.rsplit_once('@')?;
        let (user, password) = login.split_once(':')?;
        let begin = start + user.len() + 1;
        // A password equal to the user name is not secret, and the name must stay in other places.
        let plain = super::label::is_placeholder(password) || password.chars().count() < 4 || password == user;
        (!plain).then_some((begin..begin + password.len(), URL))
    })
}
