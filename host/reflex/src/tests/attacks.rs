//! Input that is meant to keep the rules busy: each of these once took minutes, hours or forever. The test is that they end; the
//! time is only printed.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use serde_json::json;

use kiso_plan::code::ErrorCode;
use kiso_plan::prompt::{ChatMessage, Column, ColumnKind, FileCard, Pieces, SkillCard};
use kiso_plan::report::{FailureNote, TaskError, TaskReport, TaskStatus};

use super::fixtures::{pieces, plan, weather};
use crate::plan as planned;

/// Fails a test whose answer never comes. A passing test does not wait for it.
const GUARD: Duration = Duration::from_secs(120);

/// Returns the answer, computed on a thread that is abandoned if it does not end.
#[track_caller]
fn answered<T: Send + 'static>(what: &str, role: fn(&Pieces) -> T, pieces: Pieces) -> T {
    let (sender, answer) = mpsc::channel();
    let began = Instant::now();
    std::thread::spawn(move || sender.send(role(&pieces)));
    let answer = answer.recv_timeout(GUARD).unwrap_or_else(|_| panic!("{what}: no answer within {GUARD:?}"));
    println!("{what}: {} ms", began.elapsed().as_millis());
    answer
}

fn table(path: &str, names: impl Iterator<Item = String>) -> FileCard {
    let columns = names.map(|name| Column { name, kind: ColumnKind::Number }).collect();
    FileCard { path: path.to_owned(), bytes: 1, columns: Some(columns), ..FileCard::default() }
}

/// Returns words that cannot be distinguished by their first letters.
fn alike(n: usize) -> String {
    format!("tempera{}ture{}", ["a", "e", "i", "o", "u"][n % 5].repeat(1 + n % 3), n % 97)
}

#[test]
fn names_of_columns() {
    let long = || table("d.json", ["k".repeat(60_000), "k".repeat(59_999)].into_iter());
    let many = |tables: usize, each: usize| -> Vec<FileCard> {
        (0..tables).map(|t| table(&format!("t{t}.csv"), (0..each).map(|n| alike(n * 7 + t)))).collect()
    };
    let said = (0..55).map(alike).collect::<Vec<_>>().join(" ");
    for (what, message, files) in [
        ("a name of 60 kB", "hello".to_owned(), vec![long()]),
        ("the same, asked for", format!("plot {} by {}", "k".repeat(60_000), "k".repeat(9_000)), vec![long()]),
        ("a table of 2,000 columns", format!("compute mean {said} by {said}"), many(1, 2_000)),
        ("50 tables of 100 columns", format!("plot {said}"), many(50, 100)),
        ("the same in seven steps", format!("plot {said}. ").repeat(7), many(50, 100)),
        ("dotted words", "a.b c.d ".repeat(190), many(50, 100)),
    ] {
        let answer = answered(what, planned, pieces(&message, files));
        assert!(!answer.tasks.is_empty(), "{what}");
    }
}

#[test]
fn messages() {
    for (what, message) in [
        ("one word of 1 MB", "k".repeat(1 << 20)),
        ("a word for each byte", "a ".repeat(1 << 19)),
        ("quotes that nobody closes", "\u{201c} ".repeat(1 << 18)),
        ("commands in back quotes", "run `a` ".repeat(1 << 17)),
        ("steps without end", "plot rain. ".repeat(1 << 16)),
        ("brackets", "(".repeat(1 << 20)),
        ("comparisons", "a>=b<c!=".repeat(1 << 17)),
        ("pairs", format!("data {}", "a=b ".repeat(1 << 18))),
        ("a skill that nobody knows", format!("{} a=b", "k".repeat(1 << 20))),
    ] {
        let answer = answered(what, planned, pieces(&message, vec![weather()]));
        assert!(!answer.tasks.is_empty(), "{what}");
        let before = (0..50).map(|_| ChatMessage::new("user", message.clone())).collect();
        let given = Pieces { messages: Some(before), ..pieces("plot rain by date", vec![weather()]) };
        answered(&format!("{what}, said before"), planned, given);
    }
}

#[test]
fn catalogs() {
    let example = |n: usize| format!("{} {{a}} and {{b}} of {{c}} with {{d}} for {{e}}", alike(n)).repeat(20);
    let skill = |n: usize| SkillCard {
        name: format!("skill{n}"),
        summary: "x".repeat(58_000),
        category: "web".to_owned(),
        examples: (0..500).map(example).collect(),
        secrets: Vec::new(),
        chosen: false,
        args: json!({"properties": {
            "a": {"type": "string", "format": "column"}, "b": {"type": "array", "format": "column"},
            "c": {"type": "string", "format": "file"}, "d": {"type": "string"},
            "e": {"type": "string", "enum": (0..5_000).map(alike).collect::<Vec<_>>()},
        }}),
    };
    let said = (0..55).map(alike).collect::<Vec<_>>().join(" ");
    let given = Pieces { skills: Some((0..40).map(skill).map(Arc::new).collect()), ..pieces(&said, vec![weather()]) };
    let answer = answered("40 skills of 500 examples", planned, given);
    assert!(!answer.tasks.is_empty());
}

#[test]
fn failures() {
    let task = plan("plot rain by date").tasks[0].clone();
    for (what, message) in [
        ("a name without letters", "no column `` there; near: `x`".to_owned()),
        ("names of 1 MB", format!("no column `{}`; near: `{}`", "a".repeat(1 << 20), "b".repeat(1 << 20))),
        ("marks without end", "near: `".repeat(1 << 17)),
    ] {
        let error = TaskError { code: ErrorCode::Failed, ..TaskError::of_host(message) };
        let report = TaskReport::failed(task.clone(), error);
        let failure = Some(FailureNote { report, reason: String::new() });
        let answer = answered(what, planned, Pieces { failure, ..pieces("plot rain by date", vec![weather()]) });
        assert!(!answer.tasks.is_empty(), "{what}");
    }
}

#[test]
fn outputs_and_what_is_summarized() {
    let task = plan("plot rain by date").tasks[0].clone();
    let wide = (0..20_000).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
    let mut report = TaskReport::new(task, TaskStatus::Done, format!("{wide}\n1,2\n"));
    report.data = Some(json!((0..20_000).map(|n| json!({ format!("c{n}"): n })).collect::<Vec<_>>()));
    let names = (0..20_000).map(|n| format!("d{n}")).collect::<Vec<_>>().join(" and ");
    let expect = Some(format!("a table with the columns {names}"));
    answered("20,000 columns", crate::review, Pieces { output: Some(report), expect, ..Pieces::default() });
    let facts = Some((0..50_000).map(|n| format!("fact {n}")).collect());
    answered("50,000 facts", crate::summarize, Pieces { consolidate: facts, ..Pieces::default() });
    let said = |n| ChatMessage::new("user", format!("message {n}"));
    let compress = Some((0..50_000).map(said).collect());
    answered("50,000 messages", crate::summarize, Pieces { compress, ..Pieces::default() });
}
