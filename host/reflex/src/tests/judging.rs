//! Verdicts and replies.

use serde_json::{Value, json};

use kiso_plan::code::ErrorCode;
use kiso_plan::plan::Task;
use kiso_plan::prompt::Pieces;
use kiso_plan::report::{FileNote, TaskError, TaskReport, TaskStatus};
use kiso_plan::verdict::{Status, Verdict};

use super::fixtures::*;
use crate::closing::msg;
use crate::reply::reply;
use crate::review::review;

fn exec(text: &str, exit_code: i32) -> TaskReport {
    let task = plan("$ true").tasks[0].clone();
    TaskReport { exit_code: Some(exit_code), ..TaskReport::new(task, TaskStatus::Done, text) }
}

fn skill(text: &str, data: Option<Value>, files: &[&str]) -> TaskReport {
    let note = |path: &&str| FileNote {
        path: (*path).to_owned(),
        media_type: String::new(),
        bytes: 12_300,
        title: None,
        link: None,
    };
    let task = plan("describe weather.csv").tasks[0].clone();
    TaskReport { data, files: files.iter().map(note).collect(), ..TaskReport::new(task, TaskStatus::Done, text) }
}

fn judged(report: TaskReport, expect: &str) -> (Status, String) {
    let Verdict { status, reason, .. } =
        review(&Pieces { output: Some(report), expect: Some(expect.to_owned()), ..Pieces::default() });
    (status, reason.unwrap_or_default())
}

#[test]
fn verdicts() {
    let table = || skill("| month | rain |\n|---|---|\n| 1 | 2 |", None, &["m.csv"]);
    let ok = |reason: &str| (Status::Ok, reason.to_owned());
    let replan = |reason: &str| (Status::Replan, reason.to_owned());
    for (report, expect, verdict) in [
        (exec("", 0), "exit code 0", ok("")),
        (exec("", 1), "exit code 0", replan("it ended with exit code 1, not 0")),
        (exec("", 1), "exit code 1", ok("")),
        (exec("", 2), "all tests pass", replan("it ended with exit code 2")),
        (exec("x", 0), "all tests pass, exit code 0", ok("checked by status only: \"all tests pass\"")),
        (table(), "a table with the columns month and rain and at least 1 row, the file m.csv", ok("")),
        (table(), "a table with a column wind", replan("the table has no column wind; it has month, rain")),
        (table(), "at least 2 rows", replan("the table has 1 rows, fewer than 2")),
        (table(), "the file n.csv", replan("the file n.csv was not made")),
        (skill("", Some(json!([{"month": 1}])), &[]), "a table with a column month and at least 1 row", ok("")),
        (
            skill("drawn", None, &["pub/a.svg"]),
            "files ending in .svg and .png",
            replan("there is no file ending in .png"),
        ),
        (skill("drawn", None, &["pub/a.svg", "pub/a.png"]), "files ending in .svg and .png", ok("")),
        (skill("one two", None, &[]), "contains \"two\"", ok("")),
        (skill("", None, &[]), "not empty", replan("the output is empty")),
    ] {
        assert_eq!(judged(report, expect), verdict, "{expect}");
    }
}

#[test]
fn a_failure_is_never_accepted() {
    let error = TaskError {
        code: ErrorCode::Timeout,
        message: "it took longer than 30 s".to_owned(),
        limit: None,
        retryable: true,
        policy: false,
    };
    let report = TaskReport::failed(plan("describe weather.csv").tasks[0].clone(), error);
    assert_eq!(judged(report, "not empty"), (Status::Replan, "it took longer than 30 s".to_owned()));
    assert_eq!(review(&Pieces::default()).status, Status::Replan);
}

fn replied(task: Task, evidence: Vec<TaskReport>) -> String {
    reply(&Pieces { task: Some(task), evidence: Some(evidence), ..Pieces::default() })
}

#[test]
fn replies() {
    let task = plan("plot rain by month from weather.csv").tasks.pop().unwrap();
    let long = (1..=60).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    let error = TaskError {
        code: ErrorCode::Failed,
        message: "no such column".to_owned(),
        limit: None,
        retryable: false,
        policy: false,
    };
    let failed = TaskReport::failed(plan("describe weather.csv").tasks[0].clone(), error);
    let text =
        replied(task, vec![skill("a b\n1 2", None, &[]), skill(&long, None, &["pub/a.svg", "pub/a.svg"]), failed]);
    for part in [
        "a b\n1 2\n\n1\n2\n",
        "15\n… 45 more lines",
        "Files:\n- /work/pub/a.svg (12.3 kB)\n\nNote: month was read",
        "skill data failed: no such column",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    assert_eq!(replied(msg("Starting work on JWT auth".to_owned()), vec![]), "Starting work on JWT auth");
    let honest = replied(plan("make me a sandwich").tasks.pop().unwrap(), vec![]);
    assert!(honest.starts_with("I am reflex"), "{honest}");
}
