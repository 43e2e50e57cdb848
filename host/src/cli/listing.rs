//! Listings: pages, times, lines that fit the terminal, and objects of `--json`.

use super::show::{printable, printable_line};
use super::{Exit, Failure};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{BufRead, IsTerminal};

/// Which part of a listing that has no end.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PageArgs {
    /// How many to show
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Show entries before this one; the end of each page names it
    #[arg(long, value_name = "PLACE")]
    pub before: Option<String>,
}

impl PageArgs {
    /// The number in `--before`.
    pub(super) fn before_id(&self) -> Result<Option<i64>, Failure> {
        let parse = |text: &String| {
            let wrong = || Failure::new(Exit::Usage, format!("--before {text:?} is not a position in this list"));
            text.parse().map_err(|_| wrong())
        };
        self.before.as_ref().map(parse).transpose()
    }

    /// Says on a terminal how to see the next page, where this one was full. `last` is where it ended.
    pub(super) fn more(&self, shown: usize, last: Option<impl Display>) {
        if shown == self.limit as usize
            && let Some(last) = last
            && std::io::stderr().is_terminal()
        {
            errln!("for more, add --before {last}");
        }
    }
}

/// An object of `--json`: its type, and what is shown in the form that the gateway sends, too.
pub(super) fn typed(kind: &str, shown: &impl Serialize) -> Value {
    let mut object = json!({ "type": kind });
    if let (Some(object), Value::Object(shown)) = (object.as_object_mut(), json!(shown)) {
        object.extend(shown);
    }
    object
}

/// A row of a listing: `head` stands as it is, of `text` as much of one line as the terminal has room for. A pipe gets
/// all of it.
pub(super) fn row(head: &str, text: &str) {
    let text = printable_line(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let Some(width) = width() else { return outln!("{head}  {text}") };
    let room = width.saturating_sub(head.chars().count() + 2).max(20);
    match text.char_indices().nth(room) {
        Some(_) => outln!("{head}  {}…", text.chars().take(room - 1).collect::<String>()),
        None => outln!("{head}  {text}"),
    }
}

/// Columns of the terminal; `None` where standard output is none.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Asks before something is done that cannot be undone. Where nobody can be asked, `yes` must say so.
pub(super) fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Usage, format!("{question} There is no terminal to confirm on; pass --yes")));
    }
    err!("{} [y/N] ", printable(question));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::new(Exit::Failed, "nothing changed")),
    }
}
