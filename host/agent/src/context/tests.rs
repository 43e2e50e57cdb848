mod budget;
mod fences;

use super::text::body;
use super::*;
use kiso_base::role::{Cell, Role};
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::prompt::{
    AgentSkillCard, ChatMessage, Column, ColumnKind, FileCard, Instructions, Piece, Pieces, SkillCard, TABLE,
};
use kiso_plan::report::{Attempt, Correction, FailureNote, TaskReport, TaskStatus};
use serde_json::json;
use std::sync::Arc;

fn task(marker: &str) -> Task {
    let (skill, args) = (Some("chart".to_owned()), Some(json!({"file": "a.csv"})));
    Task { skill, args, ..Task::new(TaskKind::Skill, marker) }
}

fn report(marker: &str) -> TaskReport {
    TaskReport::new(task(marker), TaskStatus::Done, format!("{marker} text"))
}

fn one_message(text: &str) -> Option<Vec<ChatMessage>> {
    Some(vec![ChatMessage::new("user", text)])
}

/// Every piece with a unique marker: `M-` and the name of its field. The caller's rights are the host's own text.
fn planted() -> Pieces {
    let text = |marker: &str| Some(marker.to_owned());
    let lines = |marker: &str| Some(vec![marker.to_owned()]);
    Pieces {
        now: text("a Saturday"),
        new_message: text("M-new_message"),
        original_message: text("M-original_message"),
        caller: text("admin: may do all"),
        skills: Some(vec![Arc::new(SkillCard {
            name: "M-skills".to_owned(),
            summary: "draws".to_owned(),
            category: "chart".to_owned(),
            examples: vec!["draw {file}".to_owned()],
            secrets: Vec::new(),
            chosen: false,
            args: json!({"type": "object"}),
        })]),
        agent_skills: Some(vec![AgentSkillCard { name: "M-agent_skills".to_owned(), description: "forms".to_owned() }]),
        instructions: Some(vec![Instructions {
            name: "M-instructions".to_owned(),
            place: "/skills/x".to_owned(),
            files: vec!["a.sh".to_owned()],
            text: "Fill the form.".to_owned(),
        }]),
        environment: Some(vec![FileCard {
            path: "M-environment.csv".to_owned(),
            bytes: 3,
            columns: Some(vec![Column { name: "day".to_owned(), kind: ColumnKind::Date }]),
            notes: Vec::new(),
        }]),
        summary: text("M-summary"),
        messages: one_message("M-messages"),
        guidance: lines("M-guidance"),
        core: text("M-core"),
        facts: lines("M-facts"),
        goal: text("M-goal"),
        task: Some(task("M-task")),
        evidence: Some(vec![report("M-evidence")]),
        expect: text("M-expect"),
        output: Some(report("M-output")),
        looked_at: text("M-looked_at"),
        completed: Some(vec![report("M-completed")]),
        remaining: Some(vec![task("M-remaining")]),
        failure: Some(FailureNote { report: report("M-failure"), reason: "M-failure reason".to_owned() }),
        replan_history: Some(vec![Attempt {
            goal: "M-replan_history".to_owned(),
            reason: "M-replan_history".to_owned(),
            tried: vec!["M-replan_history".to_owned()],
        }]),
        correction: Some(Correction {
            broken: "M-correction".to_owned(),
            violations: vec!["goal: missing".to_owned()],
        }),
        directive: text("M-directive"),
        memory: lines("M-memory"),
        skill_environment: lines("M-skill_environment"),
        replies: lines("M-replies"),
        planner_lane: lines("M-planner_lane"),
        plan: lines("M-plan"),
        readiness: lines("M-readiness"),
        feedback: lines("M-feedback"),
        reasoning_lane: lines("M-reasoning_lane"),
        brief: text("M-brief"),
        transcript: lines("M-transcript"),
        tail: one_message("M-tail"),
        categories: lines("M-categories"),
        compress: one_message("M-compress"),
        consolidate: lines("M-consolidate"),
        turn: one_message("M-turn"),
        known: lines("M-known"),
        exchange: one_message("M-exchange"),
    }
}

/// Pieces of a role's first call, written independently a second time; additional pieces of a retry and a replan.
const COLUMNS: [(Role, &str); 8] = [
    (
        Role::Planner,
        "caller guidance core facts memory summary messages skills agent_skills skill_environment environment replies planner_lane \
         feedback instructions now new_message directive",
    ),
    (Role::Reviewer, "original_message environment evidence goal task expect transcript output looked_at"),
    (
        Role::Worker,
        "guidance core facts memory summary messages original_message now goal evidence feedback instructions task expect",
    ),
    (Role::Summarizer, "summary compress consolidate turn known"),
    (Role::Router, "tail categories agent_skills environment new_message"),
    (
        Role::Reasoner,
        "memory skill_environment replies original_message plan readiness evidence reasoning_lane feedback now goal task expect",
    ),
    (
        Role::Actor,
        "guidance core facts summary agent_skills environment messages memory original_message evidence instructions now brief",
    ),
    (Role::Titler, "exchange"),
];
const REPLAN: &str = "completed remaining replan_history failure";
const RETRYING: [Role; 3] = [Role::Planner, Role::Reviewer, Role::Reasoner];

/// The marker of each field, in the order of the fields.
fn markers() -> Vec<(String, String)> {
    let fields = serde_json::to_value(planted()).unwrap();
    let marker = |field: &String| match field.as_str() {
        "caller" => "may do all".to_owned(),
        "now" => "a Saturday".to_owned(),
        field => format!("M-{field}"),
    };
    fields.as_object().unwrap().keys().map(|field| (field.clone(), marker(field))).collect()
}

/// Returns whether `text` contains the marker itself, and not only one with the same beginning.
fn has(text: &str, marker: &str) -> bool {
    text.match_indices(marker)
        .any(|(at, _)| !text[at + marker.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[test]
fn a_role_sees_its_column_and_nothing_else() {
    for (retry, replan) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut all = planted();
        if !retry {
            all.correction = None;
        }
        if !replan {
            // The others keep their markers: without a failure they must not be shown.
            all.failure = None;
        }
        for (role, column) in COLUMNS {
            let mut column: Vec<&str> = column.split_whitespace().collect();
            if replan && role == Role::Planner {
                column.extend(REPLAN.split(' '));
            }
            if retry && RETRYING.contains(&role) {
                column.push("correction");
            }
            let pieces = select(role, &all);
            let fields = serde_json::to_value(&pieces).unwrap();
            for budget in [usize::MAX, 400] {
                let prompt = render(&pieces, "b0undary", budget);
                for (field, marker) in markers() {
                    let allowed = column.contains(&field.as_str());
                    if budget == usize::MAX || !allowed {
                        assert_eq!(has(&prompt, &marker), allowed, "{field} in the prompt of the {role}:\n{prompt}");
                    }
                    assert_eq!(fields.get(&field).is_some(), allowed, "{field} in the fields of the {role}");
                }
            }
            assert_eq!(select(role, &pieces), pieces);
        }
    }
}

/// The table from kiso's design, in another order: planner, reviewer, worker, summarizer.
#[test]
fn the_first_columns_are_as_designed() {
    let seed = [
        (Piece::Summary, "yes - yes old"),
        (Piece::Messages, "yes - yes -"),
        (Piece::NewMessage, "yes - - -"),
        (Piece::Facts, "yes - yes -"),
        (Piece::Skills, "yes - - -"),
        (Piece::Caller, "yes - - -"),
        (Piece::Goal, "generates yes brief -"),
        (Piece::Task, "- yes yes -"),
        (Piece::Expect, "- yes brief -"),
        (Piece::Output, "- yes - -"),
        (Piece::OriginalMessage, "- yes added -"),
        (Piece::Compress, "- - - yes"),
        (Piece::Completed, "replan - - -"),
        (Piece::Remaining, "replan - - -"),
        (Piece::Failure, "replan - - -"),
        (Piece::ReplanHistory, "replan - - -"),
    ];
    let roles = [Role::Planner, Role::Reviewer, Role::Worker, Role::Summarizer];
    for (piece, cells) in seed {
        let row = TABLE.iter().find(|row| row.piece == piece).unwrap();
        for (role, cell) in roles.into_iter().zip(cells.split(' ')) {
            let cell = match cell {
                "yes" | "added" => Cell::Yes,
                "old" => Cell::Old,
                "generates" => Cell::Writes,
                "replan" => Cell::Replan,
                "brief" => Cell::Brief,
                "-" => Cell::No,
                other => panic!("{other} is not a word of the table"),
            };
            assert_eq!(role.cell(row.piece), cell, "{piece:?} for the {role}");
        }
    }
    // The exceptions, where that table has a "-" and the role still gets the piece: a task is passed to its role as a brief,
    // which contains the goal and the expectation, and the author of a reply reads the message. There are no other exceptions.
    let departing = seed.iter().flat_map(|(piece, cells)| {
        let roles = roles.into_iter().zip(cells.split(' '));
        roles.filter(|(_, cell)| ["brief", "added"].contains(cell)).map(move |(role, _)| (*piece, role))
    });
    let expected = [Piece::Goal, Piece::Expect, Piece::OriginalMessage].map(|piece| (piece, Role::Worker));
    assert_eq!(departing.collect::<Vec<_>>(), expected);
}

#[test]
fn every_piece_has_a_field_a_row_and_a_text() {
    let all = planted();
    assert_eq!(markers().len(), Piece::ALL.len());
    for (index, role) in Role::ALL.into_iter().enumerate() {
        assert_eq!(role as usize, index, "the cells of a row are in the order of the roles");
    }
    for (row, piece) in TABLE.iter().zip(Piece::ALL) {
        assert_eq!(row.piece, *piece, "the rows are in the order of the pieces");
        assert!(body(*piece, &all).is_some(), "{piece:?}");
        assert!(body(*piece, &Pieces::default()).is_none(), "{piece:?}");
        let told = Role::ALL.into_iter().filter(|role| !matches!(role.cell(row.piece), Cell::No | Cell::Writes));
        assert!(told.count() > 0, "nobody is told {piece:?}");
    }
}

const BOUNDARY: &str = "3f9c2b7d51e8a604";

/// Appends `text` to every text in `value` that has a marker.
fn plant(value: &mut serde_json::Value, text: &str) {
    match value {
        serde_json::Value::String(marker) if marker.starts_with("M-") => marker.push_str(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| plant(item, text)),
        serde_json::Value::Object(map) => map.values_mut().for_each(|item| plant(item, text)),
        _ => {}
    }
}

#[test]
fn what_is_empty_is_left_out() {
    let pieces = Pieces {
        environment: Some(Vec::new()),
        evidence: Some(Vec::new()),
        goal: Some(String::new()),
        core: Some(String::new()),
        ..Pieces::default()
    };
    assert_eq!(render(&pieces, "b", usize::MAX), "", "not even the fence is declared");
    assert_eq!(render_beside(&planted(), Piece::ALL, "b", usize::MAX), "");
}

/// A role that is asked again gets only what is new, and only the new entries of a list.
#[test]
fn what_was_told_is_not_told_again() {
    let all = Pieces { correction: None, evidence: Some(vec![report("M-one")]), ..planted() };
    let first = Pieces { evidence: all.evidence.clone(), ..select(Role::Planner, &all) };
    let told = PieceHistory::new(&first, "b");
    let head = told.news(&first, "b");
    assert_eq!(head.lines().count(), 1, "nothing is new: {head}");
    let next = Pieces {
        correction: planted().correction,
        evidence: Some(vec![report("M-one"), report("M-two")]),
        planner_lane: Some(vec!["M-lane".to_owned()]),
        environment: Some(vec![FileCard { path: "M-new.csv".to_owned(), bytes: 1, ..FileCard::default() }]),
        feedback: None,
        ..first.clone()
    };
    let news = told.news(&next, "b");
    let headings: Vec<_> = news.lines().filter(|line| line.starts_with("## ")).collect();
    let correction = TABLE.iter().find(|row| row.piece == Piece::Correction).unwrap().title;
    let wanted = [
        "## Files in /work (those from outside are left out)",
        "## What the tasks so far left behind, continued",
        "## What the critic found wrong",
        &format!("## {correction}"),
    ];
    assert_eq!(headings, wanted, "{news}");
    assert!(has(&news, "M-two") && !has(&news, "M-one") && news.contains("### 2. "), "{news}");
    assert!(news.contains("goal: missing") && !news.contains("M-correction"), "its answer stands above: {news}");
    assert!(news.contains("## What the critic found wrong\n<<<b\n(nothing any more)\nb>>>"), "{news}");
    assert!(!news.contains("M-lane"), "nor what it said itself: {news}");
}

#[test]
fn the_table_is_printed_for_the_docs() {
    let table = markdown();
    assert!(table.starts_with(
        "| Piece | Planner | Reviewer | Worker | Summarizer | Router | Reasoner | Actor | Titler | Eyes | At"
    ));
    assert!(table.contains("| Why the last plan was given up | replan only | - | - | - |"));
    assert!(table.contains("| Goal of the whole plan | writes it | yes | in its brief | - | - | yes |"));
    assert!(table.contains("| Your last answer could not be used | its own | its own | - | - | - | its own |"));
    let cells = table.lines().map(|line| line.matches('|').count());
    assert!(cells.clone().all(|cells| cells == Role::ALL.len() + 3) && cells.count() == TABLE.len() + 2);
}
