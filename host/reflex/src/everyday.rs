//! Everyday questions about files: which files exist, and what is in one. Each becomes a sentence in the words of the skills'
//! examples, with the file's name. A question with any other word is left to the rules that read all of it.

use crate::closing::quoted_path;
use crate::keyword::{IMPLIED, NAMED};
use crate::scene::{Scene, Source};
use crate::word::{Punctuation, Word, WordShape, count, listed};

/// A question about files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileQuestion {
    /// Answered by a command line.
    Command(&'static str),
    /// The same question in the words of the rules.
    Sentence(String),
    /// It is about a file, but there is none, or several files fit.
    Unclear(String),
}

/// Words that any question about files may contain.
const PLAIN: &str = "\
    a an the i me my you your do does did have has is are was there here in inside of from for to it its this that these \
    can could would please show see give tell list display print what whats what's which all just now hi hello hey \
    file attached uploaded attachment";

/// The default number of rows.
const SOME: u64 = 10;

/// Maximum words of such a question.
const MAX_WORDS: usize = 14;

/// Reads the message as a question about files.
pub(crate) fn read(scene: &Scene) -> Option<FileQuestion> {
    if scene.text.len() > 200 {
        return None;
    }
    let words = scene.words(scene.text);
    let cut = words.iter().rev().skip(1).any(|word| word.mark == Punctuation::Stop);
    if words.is_empty() || words.len() > MAX_WORDS || cut {
        return None;
    }
    let (named, said): (Vec<&Word>, Vec<&Word>) = words.iter().partition(|word| is_file(scene, word));
    let norms: Vec<&str> = said.iter().map(|word| word.norm.as_str()).collect();
    let only = |more: &str| norms.iter().all(|norm| listed(PLAIN, norm) || listed(more, norm));
    let has = |any: &str| norms.iter().any(|norm| listed(any, norm));
    if named.is_empty() && only("files ls dir folder workspace directory documents got contains contents content") {
        let of_place = has("folder workspace directory") && !has("file");
        if has("files ls dir documents") || of_place {
            return Some(FileQuestion::Command("ls -l"));
        }
    }
    if named.is_empty() && only("how many count number files") && has("files") {
        return Some(FileQuestion::Command("find . -type f | wc -l"));
    }
    if let Some(day) = best_day(scene, &norms) {
        return Some(FileQuestion::Sentence(day));
    }
    let about = match named.as_slice() {
        [] => meant(scene),
        [one] => Ok(scene.file(&one.raw)?),
        _ => return None,
    };
    let sentence = |text: &dyn Fn(&str, bool) -> String| {
        Some(match &about {
            Ok(file) => FileQuestion::Sentence(text(&quoted_path(&file.path), file.is_text())),
            Err(why) => FileQuestion::Unclear(why.clone()),
        })
    };
    if about.as_ref().is_ok_and(|file| file.columns.is_none() && !file.is_text()) {
        return None;
    }
    let points = !named.is_empty() || has("file this it attachment");
    if has("line lines row rows") && only("line lines row rows how many count number") && has("many count number") {
        return sentence(&|file, text| match text {
            true => format!("count the lines of {file}"),
            false => format!("count the rows of {file}"),
        });
    }
    let number = norms.iter().find_map(|norm| count(norm));
    if let Some(end) = ["first", "top", "last"].into_iter().find(|end| norms.contains(end))
        && has("line lines row rows few records entries")
        && norms.iter().all(|norm| {
            listed(PLAIN, norm)
                || listed("first top last line lines row rows few some records entries", norm)
                || count(norm).is_some()
        })
    {
        let end = if end == "last" { "last" } else { "first" };
        let n = number.unwrap_or(if has("line row") { 1 } else { SOME });
        return sentence(&|file, text| format!("show the {end} {n} {} of {file}", if text { "lines" } else { "rows" }));
    }
    if has("columns column fields headers") && only("columns column fields headers names names how many name") {
        return sentence(&|file, _| format!("what columns does {file} have?"));
    }
    const CONTENT: &str = "data table dataset content contents spreadsheet csv";
    let looks = "preview open view look like cat read head";
    // "show weather.csv" asks for the whole file.
    let whole = !named.is_empty() && !has("preview open view look");
    if !whole
        && only(&format!("{CONTENT} {looks}"))
        && (has("preview") || (has("open view look read show display print see") && (points || has(CONTENT))))
    {
        return sentence(&|file, text| match text {
            true => format!("show {file}"),
            false => format!("show the first {SOME} rows of {file}"),
        });
    }
    const TOLD: &str =
        "about describe summarize summarise summary overview analyze analyse explore explain contain contains say says";
    let asks =
        has("what whats what's describe summarize summarise summary overview analyze analyse explore explain about");
    if asks && only(&format!("{CONTENT} {TOLD}")) && (points || has(CONTENT)) {
        return sentence(&|file, text| match text {
            true => format!("show {file}"),
            false => format!("describe {file}"),
        });
    }
    None
}

/// Reads "when was it coldest", "when did it rain the most" as a question for the day.
fn best_day(scene: &Scene, norms: &[&str]) -> Option<String> {
    scene.likely_tables().next()?;
    let rest: Vec<&str> = norms.iter().copied().filter(|norm| !listed("the it is was were did does", norm)).collect();
    match rest.as_slice() {
        ["when", one] if IMPLIED.iter().any(|(word, ..)| word == one) || one.ends_with("iest") => {
            Some(format!("the {one} day"))
        }
        ["when", column, most] if NAMED.iter().any(|(word, ..)| word == most) => {
            Some(format!("the day with the {most} {column}"))
        }
        _ => None,
    }
}

/// Returns the file that a message without a file's name is about.
fn meant<'a>(scene: &'a Scene) -> Result<&'a Source, String> {
    let came: Vec<&Source> = scene.files.iter().filter(|file| scene.attached.contains(&file.path)).collect();
    let readable = || scene.files.iter().filter(|file| file.columns.is_some() || file.is_text());
    let all = if came.is_empty() { readable().collect() } else { came };
    match all.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("no file came with the message, and {}", scene.holdings())),
        _ => Err(format!("it could be about more than one file; name one: {}", scene.holdings())),
    }
}

fn is_file(scene: &Scene, word: &Word) -> bool {
    word.shape == WordShape::File || (word.shape == WordShape::Quoted && scene.file(&word.raw).is_some())
}
