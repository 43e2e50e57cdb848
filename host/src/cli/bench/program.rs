//! The program alone: its size, and the cost of starting it for one command.

use super::Bench;
use super::figure::Figure;
use crate::cli::show::Show;
use crate::cli::{Exit, Failure};
use std::time::Instant;

pub(super) fn measure(bench: &Bench, show: &Show, print: &dyn Fn(Figure)) -> Result<(), Failure> {
    let size = std::fs::metadata(&bench.program)
        .map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be read: {error}", bench.program.display())))?;
    print(Figure::bytes("program", "the program on disk", size.len()));

    show.busy("starting kiso");
    let start = timed(|| bench.run("started", &["--version"]));
    print(Figure::times("start", "start and end: `kiso --version`", bench.repeat(40, start)?));

    show.busy("command lines of new homes");
    let mut homes = 0;
    let first = || {
        homes += 1;
        let home = format!("home-{homes}");
        timed(|| bench.run(&home, &LINE))()
    };
    print(Figure::times("first_line", "first command line of a new home", bench.repeat(15, first)?));
    let again = timed(|| bench.run("home-1", &LINE));
    print(Figure::times("line", "the same again: start, line, end", bench.repeat(40, again)?));
    Ok(())
}

const LINE: [&str; 3] = ["shell", "-c", "echo hello | tr a-z A-Z | cat"];

/// Measures the time of something that must succeed.
fn timed(mut work: impl FnMut() -> Result<(), Failure>) -> impl FnMut() -> Result<std::time::Duration, Failure> {
    move || {
        let began = Instant::now();
        work()?;
        Ok(began.elapsed())
    }
}
