//! The question before a skill is installed: its grant.

use crate::cli::show::{Show, printable};
use crate::cli::{Exit, Failure};
use kiso_sandbox::skill::{GrantChoice, InstallCandidate};
use std::io::{BufRead, IsTerminal};

/// Returns the grant of a component: from the command line, or from a person, who is asked about everything new.
pub(super) fn choose(
    candidate: &InstallCandidate,
    grant: Option<GrantChoice>,
    show: &Show,
    as_json: bool,
) -> Result<GrantChoice, Failure> {
    let choice = match grant {
        Some(grant) => grant,
        None if candidate.needs_no_answer() => GrantChoice::Keep,
        None if candidate.beyond.is_empty() && candidate.doubt.is_none() => {
            confirm(&candidate.question(), as_json)?;
            GrantChoice::KeepShown
        }
        None => ask(&candidate.question(), as_json)?,
    };
    match (&candidate.doubt, grant) {
        (Some(doubt), Some(_)) => show.line(&printable(doubt)),
        (None, Some(_)) if candidate.replaces.is_some() && !candidate.needs_no_answer() => {
            show.line(printable(&candidate.question()).trim_end());
        }
        _ => {}
    }
    Ok(choice)
}

/// Asks a person for the grant.
pub(super) fn ask(question: &str, json: bool) -> Result<GrantChoice, Failure> {
    match answer(
        question,
        "Allow all of this? [y]es, [n]o but install, [c]ancel: ",
        "--grant all or --grant none",
        json,
    )?
    .as_str()
    {
        "y" | "yes" => Ok(GrantChoice::All),
        "n" | "no" => Ok(GrantChoice::Basic),
        _ => Err(Failure::new(Exit::Policy, "nothing was installed; the answer was neither y nor n")),
    }
}

/// Asks a person whether to install a change, which grants nothing.
pub(super) fn confirm(question: &str, json: bool) -> Result<(), Failure> {
    match answer(question, "Install it? [y]es, [N]o: ", "--grant keep", json)?.as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(Exit::Policy, "nothing was installed; the answer was not y")),
    }
}

/// Returns a person's answer; if nobody can be asked, the command line must have it.
fn answer(question: &str, asks: &str, option: &str, json: bool) -> Result<String, Failure> {
    if json || !std::io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Policy, format!("{question}nothing was installed; add {option}")));
    }
    err!("{}{asks}", printable(question));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok();
    // After Ctrl-D, the cursor is still behind the question.
    if answer.is_empty() {
        errln!();
    }
    Ok(answer.trim().to_lowercase())
}
