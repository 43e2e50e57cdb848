//! The reply in the form in which it is delivered.

use std::fmt::Write as _;

use kiso_graph::outcome::Outcome;
use kiso_plan::report::{FileNote, size};

/// Beginning of the list of files.
const HEAD: &str = "\n\nFiles:";

/// Returns the reply, with a list of the files that it does not mention.
pub fn reply(outcome: &Outcome) -> String {
    let mut reply = outcome.reply.clone();
    let missing: Vec<_> = outcome.files.iter().filter(|file| !mentions(&reply, file, &outcome.files)).collect();
    let more =
        Some(outcome.more_files).filter(|more| *more > 0).map(|more| format!("\n- and {more} more in /work/pub"));
    let more = more.filter(|line| !reply.contains(line.as_str()));
    if missing.is_empty() && more.is_none() {
        return reply;
    }
    reply.push_str(HEAD);
    for file in missing {
        let _ = write!(reply, "\n- {}", file.path);
        if let Some(title) = &file.title {
            let _ = write!(reply, ": {title}");
        }
        let _ = write!(reply, " ({}{})", file.kind(), size(file.bytes));
        if let Some(link) = &file.link {
            let _ = write!(reply, " {link}");
        }
    }
    reply.push_str(&more.unwrap_or_default());
    reply
}

/// Returns the reply of a delivered outcome without the list that [`reply`] has added; `None` if it has added none.
pub fn without_list(outcome: &Outcome) -> Option<String> {
    let (text, _) = outcome.reply.rsplit_once(HEAD)?;
    let bare = Outcome { reply: text.to_owned(), ..outcome.clone() };
    (reply(&bare) == outcome.reply).then_some(bare.reply)
}

/// Returns whether a reader of `reply` learns of the file: it contains the path, the link, or the name, if no other of `all` has
/// the same name. A name without an extension may be any word.
fn mentions(reply: &str, file: &FileNote, all: &[FileNote]) -> bool {
    let stands = |name: &str| {
        reply.match_indices(name).any(|(at, _)| {
            let before = reply[..at].chars().next_back();
            let after = reply[at + name.len()..].chars().next();
            // Neither "train.svg" nor "rain.svgz" mentions "rain.svg".
            let part_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
        })
    };
    let name_of = |file: &FileNote| file.path.rsplit('/').next().unwrap_or_default().to_owned();
    let name = name_of(file);
    let is_only = name.contains('.') && all.iter().filter(|other| name_of(other) == name).count() == 1;
    stands(&file.path) || file.link.as_deref().is_some_and(stands) || is_only && stands(&name)
}
