//! The input that a model has to read again during some work, compared with the longest request of each role. The minimum is 1.

use crate::run::model_server;
use measure::{figures, plan, talk, tool_loop};

#[path = "../all/prefix/measure.rs"]
mod measure;

/// Prints the rows.
pub(crate) fn rows() {
    let courses = [
        tool_loop("a loop of 8 rounds", 8),
        tool_loop("a loop of 16 rounds", 16),
        plan(),
        talk("a talk of 12 turns, all in its window", "[context]\nsliding_window = 40\n", 12, 0),
        talk(
            "a talk of 30 turns, the last 20 messages in its window",
            "[context]\nsummarize_threshold = 1_000\n",
            30,
            4,
        ),
    ];
    for course in courses {
        let found = figures(env!("CARGO_BIN_EXE_kiso").as_ref(), &course);
        let total = found.total();
        let (name, requests, longest) = (course.name, total.requests, total.longest);
        println!(
            "| not cached: {name}, {requests} requests | {} bytes | of {longest} | {:.2} |",
            total.fresh,
            total.ratio()
        );
    }
}
