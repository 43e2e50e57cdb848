//! Text files: questions about them are answered with a command line. They are shown (completely, or the first or last lines),
//! counted (lines, words, characters) or searched. A text has no columns, so other questions are impossible.

use kiso_plan::prompt::ChatMessage;

use crate::clause::split;
use crate::scene::{Scene, Source};
use crate::word::{Word, WordShape, count, key, listed};

/// The keys of words that begin a clause about a text file.
const VERBS: &str = "show read cat open view count search find grep look head tail";

/// Words of such a clause without further meaning, besides fillers.
const PLAIN: &str = "\
    text file content contents whole entire full what whats what's how is are there does do have has say says \
    contain contains";

/// The default number of lines: "the first lines".
const LINES: u64 = 10;

/// Returns the command lines for a message that only asks this about text files; `None` for any other message.
pub(crate) fn read(scene: &Scene, messages: &[ChatMessage]) -> Option<Vec<String>> {
    if scene.text.len() > crate::chain::MAX_TEXT || !scene.files.iter().any(Source::is_text) {
        return None;
    }
    let said = scene.words(scene.text);
    let verbs = VERBS.split(' ').map(key).collect();
    let mut about = meant(scene, messages);
    let mut lines = Vec::new();
    for clause in split(&said, &verbs, &scene.files) {
        let (named, rest): (Vec<&Word>, Vec<&Word>) = clause.iter().partition(|word| is_file(scene, word));
        about = match named.as_slice() {
            [] => about,
            [one] => scene.file(&one.raw).filter(|file| file.is_text()).map(|file| file.path.clone()),
            _ => None,
        };
        lines.push(command(scene, &rest, about.as_deref()?)?);
    }
    (!lines.is_empty()).then_some(lines)
}

/// Returns the text file that a message without a file's name is about: the attached one, the only one, or the one that the
/// conversation named last.
fn meant(scene: &Scene, messages: &[ChatMessage]) -> Option<String> {
    let only = |paths: Vec<&Source>| match paths.as_slice() {
        [one] if one.is_text() => Some(one.path.clone()),
        _ => None,
    };
    if !scene.attached.is_empty() {
        return only(scene.files.iter().filter(|file| scene.attached.contains(&file.path)).collect());
    }
    only(scene.files.iter().collect()).or_else(|| {
        let said = messages.iter().rev().flat_map(|message| scene.words(crate::word::clip(&message.text, 2_000)));
        let named = said.filter(|word| is_file(scene, word)).find_map(|word| scene.file(&word.raw).cloned());
        named.filter(Source::is_text).map(|file| file.path)
    })
}

fn is_file(scene: &Scene, word: &Word) -> bool {
    word.shape == WordShape::File || (word.shape == WordShape::Quoted && scene.file(&word.raw).is_some())
}

fn command(scene: &Scene, words: &[&Word], file: &str) -> Option<String> {
    let file = quoted(if file.starts_with('-') { format!("./{file}") } else { file.to_owned() }.as_str());
    let norms: Vec<&str> = words.iter().map(|word| word.norm.as_str()).collect();
    let has = |any: &[&str]| norms.iter().any(|norm| any.contains(norm));
    let counts = has(&["count"]) || norms.windows(2).any(|two| matches!(two, ["how", "many"] | ["number", "of"]));
    let times = norms.windows(2).any(|two| matches!(two, ["how", "often"] | ["many", "times"]))
        || has(&["occurrences", "occurrence"]);
    if let Some(phrase) = wanted(scene, words) {
        let phrase = quoted(&phrase);
        return Some(match () {
            () if times => format!("grep -oiF -e {phrase} {file} | wc -l"),
            () if counts => format!("grep -ciF -e {phrase} {file}"),
            () => format!("grep -niF -e {phrase} {file}"),
        });
    }
    let units: String = [("-l", ["lines", "line"]), ("-w", ["words", "word"]), ("-m", ["characters", "letters"])]
        .iter()
        .filter(|(_, names)| has(names))
        .map(|(option, _)| format!(" {option}"))
        .collect();
    let mut first = None;
    let understood = words.iter().enumerate().all(|(at, word)| {
        let end = match word.norm.as_str() {
            "first" | "top" | "head" | "beginning" => Some("head"),
            "last" | "bottom" | "tail" | "end" => Some("tail"),
            _ => None,
        };
        if let Some(end) = end {
            first = Some((end, words.get(at + 1).and_then(|next| count(&next.norm))));
        }
        let verb = listed(VERBS, &word.norm) || listed(VERBS, &word.key);
        let number = at > 0 && matches!(first, Some((_, Some(_)))) && count(&word.norm).is_some();
        const KNOWN: &str = "line lines word words characters letters number many long size";
        end.is_some() || number || verb || !word.is_content() || listed(KNOWN, &word.norm) || listed(PLAIN, &word.norm)
    });
    if !understood {
        return None;
    }
    Some(match first {
        _ if counts => format!("wc{units} {file}"),
        _ if has(&["long", "size"]) => format!("wc {file}"),
        Some((end, number)) => {
            let number = number.unwrap_or(if has(&["line"]) { 1 } else { LINES });
            format!("{end} -n {number} {file}")
        }
        None if units.is_empty() || has(&["all"]) => format!("cat {file}"),
        None => return None,
    })
}

/// Returns the text to search for: in quotes, or after a word that asks for it, up to the file.
fn wanted(scene: &Scene, words: &[&Word]) -> Option<String> {
    const ASKS: &str = "search find grep look";
    const HOLDS: &str = "contain contains containing mention mentions mentioning match matching with having";
    let norm = |at: usize| words.get(at).map_or("", |word| word.norm.as_str());
    let asks = words.iter().position(|word| listed(ASKS, &word.norm));
    let holds = words.iter().position(|word| listed(HOLDS, &word.norm));
    let times = (0..words.len()).find(|at| {
        matches!((norm(*at), norm(at + 1)), ("how", "often") | ("many", "times")) || norm(*at).starts_with("occurrence")
    });
    if let Some(quote) = words.iter().find(|word| word.shape == WordShape::Quoted) {
        return (asks.or(holds).or(times)).map(|_| quote.raw.clone());
    }
    let (mut start, mut end) = match (asks, holds, times) {
        (Some(at), _, _) => {
            let at = (at..words.len()).find(|at| norm(*at) == "for").unwrap_or(at);
            (at + 1, words.len())
        }
        (None, _, Some(at)) => {
            let at = if norm(at).starts_with("occurrence") { at + 1 } else { at + 2 };
            let end = (at..words.len()).find(|at| matches!(words[*at].key.as_str(), "occur" | "appear" | "stand"));
            (at, end.unwrap_or(words.len()))
        }
        // "what does it contain" asks for the whole file.
        (None, Some(at), None) if at + 1 < words.len() => (at + 1, words.len()),
        _ => return None,
    };
    const BEFORE: &str = "the a an word words text phrase string does is of lines line all";
    while start < end && listed(BEFORE, norm(start)) {
        start += 1;
    }
    // "lines with error": the text to search for comes after it.
    if start < end && listed(HOLDS, norm(start)) {
        start += 1;
    }
    const AFTER: &str = "in from of the it this file text within";
    while start < end && listed(AFTER, norm(end - 1)) {
        end -= 1;
    }
    let (first, last) = (words.get(start).filter(|_| start < end)?, words.get(end - 1)?);
    // If the file's name is between two words, the phrase is split.
    let text = scene.text.get(first.at.start..last.at.end)?;
    let torn = scene.words(text).iter().any(|word| is_file(scene, word));
    (!torn).then(|| text.trim_matches(['?', '.', '!', ' ']).to_owned()).filter(|text| !text.is_empty())
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
