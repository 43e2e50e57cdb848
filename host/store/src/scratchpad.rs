//! The scratchpad: texts of a session that are too large for a prompt, or worth keeping beside it.
//!
//! ```text
//!  a long input   ─▶ input-1 ─┐                      ┌─▶ "ref:tool-3" as an argument: the host puts the text there
//!  a long result  ─▶ tool-3  ─┼─▶ stored whole ──────┤
//!  saved by name  ─▶ notes   ─┘   preview in prompt  └─▶ file_read, scratchpad
//! ```
//!
//! A prompt contains a preview (beginning and end) and the key of the whole text.

use serde_json::Value;

use crate::store::{MAX_ENTRY_BYTES, Store, StoreError, View};
use kiso_base::home::SessionName;
use kiso_plan::estimate::{quarters, tokens};
use kiso_plan::label::Label;
use kiso_plan::plan::Violation;

/// The key of the current run's steps.
pub const LEDGER: &str = "run_step_ledger";

/// The keys of texts that the host archives have one of these stems and a number: `input-1`, `tool-1`, `context-1`, `history-1`.
const STEMS: [&str; 4] = ["input", "tool", "context", HISTORY];

/// The stem of a session's archived messages.
const HISTORY: &str = "history";

/// Maximum bytes of a key. Prompts repeat it.
pub const MAX_KEY: usize = 64;

/// Maximum bytes that refs may add to the arguments of one call; a skill's maximum.
pub const MAX_RESOLVED: usize = 1 << 20;

/// Maximum refs in the arguments of one call.
const MAX_REFS: usize = 32;

/// Maximum characters of a line in search results.
const MAX_LINE: usize = 240;

/// Tokens of the note about a preview's gap.
const NOTE_TOKENS: usize = 16;

pub const REF: &str = "ref:";
const MARK: &str = "[Full result saved as ref:";

/// A key is one word, so that it can be distinguished from the text around it: 1 to 64 ASCII letters, digits, `_`, `-` and `.`,
/// beginning with a letter or digit.
pub fn check_key(key: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(format!("a key has 1 to {MAX_KEY} characters"));
    }
    if !key.starts_with(|c: char| c.is_ascii_alphanumeric()) || !key.chars().all(plain) {
        return Err("a key has ASCII letters, digits, '_', '-' and '.', and begins with a letter or digit".to_owned());
    }
    Ok(())
}

/// Whether only the host may write entries with this key. A model that could write them would change the host's texts, or use up
/// the numbers of future ones.
pub fn is_hosts(key: &str) -> bool {
    let numbered = |stem: &&str| {
        key.strip_prefix(*stem)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    key == LEDGER || STEMS.iter().any(numbered)
}

/// Returns the key of a text that is exactly `ref:KEY`.
pub fn parse_ref(text: &str) -> Option<&str> {
    text.trim().strip_prefix(REF).filter(|key| check_key(key).is_ok())
}

/// Returns the text in at most `limit_tokens`: all of it if it fits, otherwise its beginning and end, with the size of the gap
/// between them.
pub fn truncate_middle(text: &str, limit_tokens: usize) -> String {
    if tokens(text) <= limit_tokens {
        return text.to_owned();
    }
    let room = 4 * limit_tokens.saturating_sub(NOTE_TOKENS);
    let fits = |room: usize| {
        let mut used = 0;
        move |c: &char| {
            used += quarters(*c);
            used <= room
        }
    };
    // The beginning shows what a text is; the end of a log shows its result.
    let head: usize = text.chars().take_while(fits(room - room / 3)).map(char::len_utf8).sum();
    let tail: usize = text.chars().rev().take_while(fits(room / 3)).map(char::len_utf8).sum();
    let gap = &text[head..text.len() - tail];
    let lines = match gap.matches('\n').count() + 1 {
        1 => String::new(),
        lines => format!(" in {lines} lines"),
    };
    let (count, tail) = (gap.chars().count(), &text[text.len() - tail..]);
    format!("{}\n[… {count} characters{lines} left out …]\n{tail}", &text[..head])
}

/// Returns the replacement of a text that was archived under `key`: a preview and the mark, together about `limit_tokens`.
pub fn preview(text: &str, key: &str, limit_tokens: usize) -> String {
    let mark = mark(key);
    let room = limit_tokens.saturating_sub(tokens(&mark) + 1);
    format!("{}\n{mark}", truncate_middle(text, room))
}

/// Returns the mark that names the key of the whole text.
pub fn mark(key: &str) -> String {
    format!("{MARK}{key}]")
}

/// Whether the text ends with the mark of [`preview`].
pub fn is_archived(text: &str) -> bool {
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    last.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(']')).is_some_and(|key| check_key(key).is_ok())
}

/// Whether to archive a text before it goes into a prompt: it exceeds the limit by more than a tenth (a preview would not pay off
/// for less), and was not archived before. The mark of a text far above the limit is forged, and ignored.
pub fn is_too_large(text: &str, limit_tokens: usize) -> bool {
    let size = tokens(text);
    size > limit_tokens.saturating_add(limit_tokens / 10)
        && !(is_archived(text) && size <= limit_tokens.saturating_mul(2))
}

/// Archives a text under a new key, `STEM-1`, `STEM-2` …, and returns the key. For a text larger than an entry
/// ([`MAX_ENTRY_BYTES`]), the beginning and the end are stored with a note between them. Fails with [`StoreError::Quota`] if
/// named entries fill the scratchpad.
pub async fn put_away(
    store: &Store,
    session: &SessionName,
    stem: &'static str,
    text: String,
    label: &Label,
    at_ms: i64,
) -> Result<String, StoreError> {
    debug_assert!(STEMS.contains(&stem), "{stem}");
    let (session, label) = (session.clone(), label.clone());
    let text = fit(text, MAX_ENTRY_BYTES as usize);
    let write = store.write(move |tx| {
        let key = format!("{stem}-{}", tx.scratchpad_last(&session, stem)? + 1);
        tx.scratchpad_put(&session, &key, &text, false, at_ms)?;
        tx.set_ref_label(&session, &key, &label)?;
        Ok(key)
    });
    write.await
}

/// Archives the messages of a session before they are summarized, under `history-` and the number of the last one, so that a
/// repetition uses the same key. Returns the key.
pub async fn put_history_away(
    store: &Store,
    session: &SessionName,
    last: i64,
    text: String,
    label: &Label,
    at_ms: i64,
) -> Result<String, StoreError> {
    let (session, key, label) = (session.clone(), format!("{HISTORY}-{last}"), label.clone());
    let text = fit(text, MAX_ENTRY_BYTES as usize);
    let write = store.write(move |tx| {
        tx.scratchpad_put(&session, &key, &text, false, at_ms)?;
        tx.set_ref_label(&session, &key, &label)?;
        Ok(key)
    });
    write.await
}

/// Shortens the text to at most `max` bytes.
pub fn fit(text: String, max: usize) -> String {
    const NOTE: usize = 80;
    if text.len() <= max {
        return text;
    }
    let half = max / 2;
    let (head, tail) =
        (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half.saturating_sub(NOTE)));
    format!("{}\n[… {} bytes left out: too large to keep …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// Saves a text under a name, replacing an older one.
pub async fn save(
    store: &Store,
    session: &SessionName,
    key: &str,
    text: String,
    label: &Label,
    at_ms: i64,
) -> Result<(), StoreError> {
    let (session, key, label) = (session.clone(), key.to_owned(), label.clone());
    let write = store.write(move |tx| {
        tx.scratchpad_put(&session, &key, &text, true, at_ms)?;
        tx.set_ref_label(&session, &key, &label)
    });
    write.await
}

/// A line that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub key: String,
    /// Counted from 1.
    pub line: usize,
    /// The part of the line around the match, at most 240 characters.
    pub text: String,
}

/// Returns lines of a session's entries that contain `wanted`, ignoring case; newest entries first, at most `limit` lines.
pub fn search(view: &View<'_>, session: &SessionName, wanted: &str, limit: usize) -> Result<Vec<Hit>, StoreError> {
    let wanted = wanted.trim().to_lowercase();
    let mut hits = Vec::new();
    if wanted.is_empty() {
        return Ok(hits);
    }
    view.scratchpad_each(session, |key, text| {
        for (index, line) in text.lines().enumerate() {
            if hits.len() == limit {
                return false;
            }
            let lower = line.to_lowercase();
            if let Some(at) = lower.find(&wanted) {
                // Lower case may be longer, so the position may be a few characters off.
                let before = lower[..at].chars().count();
                let text = line.chars().skip(before.saturating_sub(MAX_LINE / 3)).take(MAX_LINE).collect();
                hits.push(Hit { key: key.to_owned(), line: index + 1, text });
            }
        }
        true
    })?;
    Ok(hits)
}

/// Replaces every string that is exactly `ref:KEY`, at any depth, by the text of that key. If a key is missing or the texts are
/// too large, replaces nothing and returns every violation with its path.
pub fn resolve_refs<E>(
    args: &mut Value,
    mut lookup: impl FnMut(&str) -> Result<Option<String>, E>,
    known: impl Fn() -> Result<Vec<String>, E>,
) -> Result<Vec<Violation>, E> {
    let mut places = Vec::new();
    refs(args, &mut String::new(), &mut String::new(), &mut places);
    if places.len() > MAX_REFS {
        return Ok(vec![Violation::new("", format!("at most {MAX_REFS} refs are taken in one call"))]);
    }
    let (mut texts, mut violations, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (path, _, key) in &places {
        match lookup(key)? {
            Some(text) => {
                bytes += text.len();
                texts.push(text);
            }
            None => {
                let message = format!("there is no ref:{key} in the scratchpad{}", near(key, &known()?));
                violations.push(Violation::new(path.as_str(), message));
            }
        }
    }
    if bytes > MAX_RESOLVED {
        let message = format!(
            "the texts of the refs have {} KiB and may have {} together: read the part that is needed",
            bytes.div_ceil(1 << 10),
            MAX_RESOLVED >> 10
        );
        violations.push(Violation::new(places.first().map_or("", |(path, ..)| path.as_str()), message));
    }
    if violations.is_empty() {
        for ((_, pointer, _), text) in places.iter().zip(texts) {
            if let Some(place) = args.pointer_mut(pointer) {
                *place = Value::String(text);
            }
        }
    }
    Ok(violations)
}

/// [`resolve_refs`] with the entries of a session. Returns the arguments and the label of the inserted texts, or the errors.
pub async fn resolve(
    store: &Store,
    session: &SessionName,
    mut args: Value,
) -> Result<Result<(Value, Label), Vec<Violation>>, StoreError> {
    let mut places = Vec::new();
    refs(&args, &mut String::new(), &mut String::new(), &mut places);
    if places.is_empty() {
        return Ok(Ok((args, Label::default())));
    }
    let session = session.clone();
    let read = store.read(move |view| {
        let known = || Ok(view.scratchpad_list(&session)?.into_iter().map(|entry| entry.key).collect());
        let violations = resolve_refs(&mut args, |key| view.scratchpad_get(&session, key), known)?;
        let mut label = Label::session();
        for (_, _, key) in &places {
            label.join(&view.ref_label(&session, key)?);
        }
        Ok(if violations.is_empty() { Ok((args, label)) } else { Err(violations) })
    });
    read.await
}

/// Collects the readable path, the JSON pointer, and the key of every ref.
fn refs(value: &Value, path: &mut String, pointer: &mut String, places: &mut Vec<(String, String, String)>) {
    let (path_end, pointer_end) = (path.len(), pointer.len());
    match value {
        Value::String(text) => {
            if let Some(key) = parse_ref(text) {
                places.push((path.clone(), pointer.clone(), key.to_owned()));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                pointer.push_str(&format!("/{index}"));
                refs(item, path, pointer, places);
                path.truncate(path_end);
                pointer.truncate(pointer_end);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                path.push_str(if path_end == 0 { "" } else { "." });
                path.push_str(name);
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                refs(member, path, pointer, places);
                path.truncate(path_end);
                pointer.truncate(pointer_end);
            }
        }
        _ => {}
    }
}

/// Returns "; near: ref:a, ref:b", or the list of keys.
pub fn near(key: &str, known: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut close: Vec<(usize, &String)> = known
        .iter()
        .map(|name| (strsim::osa_distance(key, name), name))
        .filter(|(distance, name)| *distance <= 2 || name.starts_with(key) || key.starts_with(name.as_str()))
        .collect();
    close.sort();
    let list = |names: Vec<&String>| {
        names.into_iter().take(SHOWN).map(|name| format!("{REF}{name}")).collect::<Vec<_>>().join(", ")
    };
    match (close.is_empty(), known.is_empty()) {
        (false, _) => format!("; near: {}", list(close.into_iter().map(|(_, name)| name).collect())),
        (true, false) => format!("; the newest are {}", list(known.iter().collect())),
        (true, true) => ", which is empty".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn keys_are_single_words() {
        for good in ["a", "input-1", "run_step_ledger", "notes.v2", &"x".repeat(64)] {
            check_key(good).unwrap();
            assert_eq!(parse_ref(&format!("ref:{good}")), Some(good));
        }
        for bad in ["", "-a", "a b", "a/b", "ä", "a]", &"x".repeat(65)] {
            assert!(check_key(bad).is_err(), "{bad}");
            assert_eq!(parse_ref(&format!("ref:{bad}")), None);
        }
        assert_eq!(parse_ref("see ref:a"), None);
        assert_eq!(parse_ref("a"), None);
    }

    #[test]
    fn a_preview_shows_head_and_tail_and_counts_the_gap() {
        let text = (1..=1_000).map(|n| format!("line {n}\n")).collect::<String>();
        let shown = preview(&text, "tool-3", 100);
        assert!(shown.starts_with("line 1\nline 2\n") && shown.contains("line 1000"), "{shown}");
        assert!(shown.contains(" characters in ") && shown.ends_with("\n[Full result saved as ref:tool-3]"), "{shown}");
        assert!(is_archived(&shown) && !is_too_large(&shown, 100));
        assert!(is_too_large(&text, 100) && !is_too_large("short", 100));
        assert_eq!(truncate_middle("short", 100), "short");
        for other in ["", "[Full result saved as ref:a] and more", "[Full result saved as ref:a b]"] {
            assert!(!is_archived(other), "{other}");
        }
        // Writing the mark under a huge text does not get it into a prompt.
        assert!(is_too_large(&format!("{text}[Full result saved as ref:tool-3]"), 100));
    }

    #[test]
    fn the_keys_of_the_host_are_told_from_all_others() {
        for key in [LEDGER, "history-7", "tool-1", "input-0", "context-12", "tool-9223372036854775807", "tool-9x"] {
            assert!(is_hosts(key), "{key}");
        }
        for key in ["notes", "tool", "tool-", "tool-a", "tools-1", "my-tool-1", "run_step_ledger2"] {
            assert!(!is_hosts(key), "{key}");
        }
    }

    fn texts(key: &str) -> Result<Option<String>, ()> {
        Ok(match key {
            "a" => Some("text of a".to_owned()),
            "chain" => Some("ref:a".to_owned()),
            "huge" => Some("x".repeat(MAX_RESOLVED + 1)),
            _ => None,
        })
    }

    fn known() -> Result<Vec<String>, ()> {
        Ok(["tool-1", "tool-12", "a"].map(str::to_owned).to_vec())
    }

    #[test]
    fn refs_are_replaced_at_any_depth_and_once() {
        let mut args =
            json!({ "text": "ref:a", "list": [1, "ref:chain", { "x/y~z": " ref:a " }], "note": "see ref:a" });
        assert_eq!(resolve_refs(&mut args, texts, known), Ok(vec![]));
        let wanted =
            json!({ "text": "text of a", "list": [1, "ref:a", { "x/y~z": "text of a" }], "note": "see ref:a" });
        assert_eq!(args, wanted);
    }

    #[test]
    fn a_ref_that_leads_nowhere_replaces_nothing() {
        let mut args = json!({ "text": "ref:a", "list": ["ref:tool-2"], "n": "ref:zzzzz" });
        let before = args.clone();
        let told: Vec<String> =
            resolve_refs(&mut args, texts, known).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "list[0]: there is no ref:tool-2 in the scratchpad; near: ref:tool-1, ref:tool-12",
                "n: there is no ref:zzzzz in the scratchpad; the newest are ref:tool-1, ref:tool-12, ref:a",
            ]
        );
        assert_eq!(args, before);
        let mut args = json!({ "text": "ref:huge" });
        let told = resolve_refs(&mut args, texts, known).unwrap();
        assert!(
            told[0].to_string().starts_with("text: the texts of the refs have 1025 KiB and may have 1024"),
            "{told:?}"
        );
        let mut args = Value::from(vec!["ref:a"; MAX_REFS + 1]);
        assert_eq!(resolve_refs(&mut args, texts, known).unwrap().len(), 1);
    }

    #[tokio::test]
    async fn what_is_put_away_is_numbered_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let s = SessionName::parse("s").unwrap();
        let first = put_away(&store, &s, "tool", "alpha\nGrüße BETA\n".to_owned(), &Label::session(), 1).await.unwrap();
        let second = put_away(&store, &s, "tool", "gamma".to_owned(), &Label::session(), 2).await.unwrap();
        assert_eq!([first.as_str(), second.as_str()], ["tool-1", "tool-2"]);
        save(&store, &s, "notes", "beta again".to_owned(), &Label::session(), 3).await.unwrap();
        let hits = store.read_blocking(|view| search(view, &s, "beta", 10)).unwrap();
        let hits: Vec<_> = hits.iter().map(|hit| (hit.key.as_str(), hit.line, hit.text.as_str())).collect();
        assert_eq!(hits, [("notes", 1, "beta again"), ("tool-1", 2, "Grüße BETA")]);
        assert_eq!(store.read_blocking(|view| search(view, &s, "a", 2)).unwrap().len(), 2);
        assert_eq!(store.read_blocking(|view| search(view, &s, " ", 2)).unwrap(), []);
        let args = resolve(&store, &s, json!({ "text": "ref:tool-2", "n": 1 })).await.unwrap();
        assert_eq!(args, Ok((json!({ "text": "gamma", "n": 1 }), Label::session())));
        let args = resolve(&store, &s, json!({ "text": "ref:tool-3" })).await.unwrap();
        assert!(args.unwrap_err()[0].to_string().contains("near: ref:tool-1, ref:tool-2"));
        // However these keys were created.
        for key in ["tool-9223372036854775807", "tool-99x"] {
            save(&store, &s, key, "mine".to_owned(), &Label::session(), 3).await.unwrap();
        }
        assert_eq!(put_away(&store, &s, "tool", "delta".to_owned(), &Label::session(), 4).await.unwrap(), "tool-3");
        let huge = "é".repeat(MAX_ENTRY_BYTES as usize / 2) + "the end";
        let key = put_away(&store, &s, "input", huge, &Label::session(), 4).await.unwrap();
        let kept = store.read_blocking(|view| view.scratchpad_get(&s, &key)).unwrap().unwrap();
        assert!(kept.ends_with("the end") && kept.contains(" bytes left out: too large to keep"));
        store.close();
    }

    proptest! {
        #[test]
        fn a_preview_keeps_its_limit(text in "[a-zé日\n]{0,3000}", limit in 40_usize..400) {
            let shown = truncate_middle(&text, limit);
            prop_assert!(tokens(&shown) <= limit, "{} > {limit}", tokens(&shown));
            prop_assert!(tokens(&preview(&text, "tool-12", limit)) <= limit + 1);
        }
    }
}
