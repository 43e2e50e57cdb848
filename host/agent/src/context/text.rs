//! The text of each piece in a prompt.

use std::fmt::Write as _;

use super::signature::signature;
use kiso_plan::plan::{NamedEffect, Task};
use kiso_plan::prompt::{ChatMessage, ColumnKind, FileCard, Instructions, Piece, Pieces, SkillCard};
use kiso_plan::report::{Attempt, Correction, FailureNote, TaskReport, TaskStatus};

/// The text of one piece, in parts, and which of them can be dropped if there is not enough space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    pub items: Vec<String>,
    pub spare: Spare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spare {
    /// None: the parts belong together, and can only be shortened.
    No,
    /// The first parts, which are the oldest.
    First,
    /// The last parts, which matter least.
    Last,
}

/// Returns the text of `piece`; `None` if the role does not get it, or if it is empty.
pub(super) fn body(piece: Piece, pieces: &Pieces) -> Option<Body> {
    let whole = |items: Option<Vec<String>>| Some(Body { items: items?, spare: Spare::No });
    let one = |text: &Option<String>| whole(text.clone().filter(|text| !text.trim().is_empty()).map(|text| vec![text]));
    let oldest_first = |items: Option<Vec<String>>| Some(Body { items: items?, spare: Spare::First });
    let ranked = |items: Option<Vec<String>>| Some(Body { items: items?, spare: Spare::Last });
    let lines = |lines: &Option<Vec<String>>| list(lines, |_, line| format!("- {line}"));
    let talk = |messages: &Option<Vec<ChatMessage>>| list(messages, |_, message| message_text(message));
    match piece {
        Piece::Caller => one(&pieces.caller),
        Piece::Guidance => whole(list(&pieces.guidance, |_, text| text.clone())),
        Piece::Core => whole(list(&lines_of(&pieces.core), |_, line| line.clone())),
        Piece::Facts => ranked(lines(&pieces.facts)),
        Piece::Memory => ranked(lines(&pieces.memory)),
        Piece::Summary => one(&pieces.summary),
        Piece::Messages => oldest_first(talk(&pieces.messages)),
        Piece::Exchange => ranked(talk(&pieces.exchange)),
        Piece::Compress => whole(talk(&pieces.compress)),
        Piece::Consolidate => whole(lines(&pieces.consolidate)),
        Piece::Turn => whole(talk(&pieces.turn)),
        Piece::Known => oldest_first(list(&pieces.known, |number, line| format!("{number}. {line}"))),
        Piece::Tail => oldest_first(talk(&pieces.tail)),
        Piece::Categories => ranked(lines(&pieces.categories)),
        Piece::Skills => ranked(list(&pieces.skills, |_, card| skill_text(card))),
        Piece::AgentSkills => {
            ranked(list(&pieces.agent_skills, |_, card| format!("- {}: {}", card.name, card.description)))
        }
        Piece::Instructions => whole(list(&pieces.instructions, |_, of| instructions_text(of))),
        Piece::SkillEnvironment => ranked(lines(&pieces.skill_environment)),
        Piece::Environment => ranked(list(&pieces.environment, |_, file| file_line(file))),
        Piece::Replies => oldest_first(lines(&pieces.replies)),
        Piece::PlannerLane => oldest_first(lines(&pieces.planner_lane)),
        Piece::Completed => oldest_first(list(&pieces.completed, report_text)),
        Piece::Remaining => ranked(list(&pieces.remaining, |_, task| format!("- {}", task_text(task)))),
        Piece::ReplanHistory => oldest_first(list(&pieces.replan_history, attempt_text)),
        Piece::Failure => whole(pieces.failure.as_ref().map(failure_texts)),
        Piece::OriginalMessage => one(&pieces.original_message),
        Piece::Plan => whole(lines(&pieces.plan)),
        Piece::Readiness => ranked(lines(&pieces.readiness)),
        Piece::Evidence => oldest_first(list(&pieces.evidence, report_text)),
        Piece::ReasoningLane => oldest_first(lines(&pieces.reasoning_lane)),
        Piece::Feedback => oldest_first(lines(&pieces.feedback)),
        Piece::Now => one(&pieces.now),
        Piece::NewMessage => one(&pieces.new_message),
        Piece::Directive => one(&pieces.directive),
        Piece::Goal => one(&pieces.goal),
        Piece::Task => whole(pieces.task.as_ref().map(|task| vec![task_text(task)])),
        Piece::Expect => one(&pieces.expect),
        Piece::Transcript => oldest_first(list(&pieces.transcript, |_, line| line.clone())),
        Piece::Output => whole(pieces.output.as_ref().map(|report| vec![output_text(report)])),
        Piece::LookedAt => one(&pieces.looked_at),
        Piece::Brief => one(&pieces.brief),
        Piece::Correction => whole(pieces.correction.as_ref().map(correction_texts)),
    }
}

/// Returns whether the piece is not empty.
pub fn has(piece: Piece, pieces: &Pieces) -> bool {
    body(piece, pieces).is_some()
}

/// Returns `None` for an empty list: mentioning it would cost tokens in every call.
fn list<T>(items: &Option<Vec<T>>, text: impl Fn(usize, &T) -> String) -> Option<Vec<String>> {
    let items = items.as_ref().filter(|items| !items.is_empty())?;
    Some(items.iter().enumerate().map(|(index, item)| text(index + 1, item)).collect())
}

fn lines_of(text: &Option<String>) -> Option<Vec<String>> {
    Some(text.as_ref()?.lines().map(str::to_owned).collect())
}

fn message_text(message: &ChatMessage) -> String {
    format!("{}: {}", message.from, message.text)
}

fn skill_text(card: &SkillCard) -> String {
    let SkillCard { name, category, summary, .. } = card;
    let mut text = format!("- {name} ({category}): {summary}");
    let args = signature(&card.args, card.chosen);
    if !args.is_empty() {
        let _ = write!(text, "\n{args}");
    }
    if !card.secrets.is_empty() {
        let _ = write!(
            text,
            "\n  secrets: {}",
            card.secrets.iter().map(|name| name.trim_start_matches('*')).collect::<Vec<_>>().join(", ")
        );
    }
    text
}

fn instructions_text(of: &Instructions) -> String {
    let Instructions { name, place, files, text } = of;
    let files = if files.is_empty() { String::new() } else { format!("; beside it: {}", files.join(", ")) };
    format!("### {name} (in {place}, read-only{files})\n{text}")
}

fn file_line(file: &FileCard) -> String {
    let size = (!file.path.ends_with('/')).then(|| format!("{} bytes", file.bytes));
    let notes: Vec<String> = size.into_iter().chain(file.notes.iter().cloned()).collect();
    let mut line = format!("- {} ({})", file.path, notes.join(", "));
    if let Some(columns) = &file.columns {
        let columns: Vec<_> = columns
            .iter()
            .map(|column| {
                let kind = match column.kind {
                    ColumnKind::Number => "number",
                    ColumnKind::Date => "date",
                    ColumnKind::Text => "text",
                };
                format!("{} ({kind})", column.name)
            })
            .collect();
        let _ = write!(line, ", columns: {}", columns.join(", "));
    }
    line
}

fn task_text(task: &Task) -> String {
    let mut text = format!("{}: {}", task.label(), task.detail);
    if let Some(args) = &task.args {
        let _ = write!(text, "\n  args: {args}");
    }
    for NamedEffect { tool, args } in &task.effects {
        let _ = write!(text, "\n  effect: {tool} {args}");
    }
    if let Some(schema) = &task.schema {
        let _ = write!(text, "\n  answered with one JSON object of this schema: {schema}");
    }
    text
}

fn report_text(number: usize, report: &TaskReport) -> String {
    format!("### {number}. {}\n{}", task_text(&report.task), output_text(report))
}

fn output_text(report: &TaskReport) -> String {
    let mut text = match report.status {
        TaskStatus::Done => "status: done".to_owned(),
        TaskStatus::Failed => "status: failed".to_owned(),
        TaskStatus::Interrupted => "status: interrupted".to_owned(),
    };
    if let Some(code) = report.exit_code {
        let _ = write!(text, "\nexit code: {code}");
    }
    if let Some(trouble) = report.trouble() {
        let _ = write!(text, "\nerror: {trouble}");
    }
    for file in &report.files {
        let title = file.title.as_deref().map(|title| format!(", {title}")).unwrap_or_default();
        let _ = write!(text, "\nfile: {} ({}, {} bytes{title})", file.path, file.media_type, file.bytes);
    }
    if !report.text.is_empty() {
        let _ = write!(text, "\noutput:\n{}", report.text);
    } else if let Some(data) = &report.data {
        let _ = write!(text, "\ndata: {data}");
    }
    if !report.stderr.is_empty() {
        let _ = write!(text, "\nstandard error:\n{}", report.stderr);
    }
    text
}

fn failure_texts(failure: &FailureNote) -> Vec<String> {
    vec![format!("reason: {}", failure.reason), report_text(1, &failure.report)]
}

fn attempt_text(number: usize, attempt: &Attempt) -> String {
    let mut text = format!("{number}. goal: {}\n   given up because: {}", attempt.goal, attempt.reason);
    for tried in &attempt.tried {
        let _ = write!(text, "\n   tried: {tried}");
    }
    text
}

fn correction_texts(correction: &Correction) -> Vec<String> {
    let mut wrong = "What is wrong with it:".to_owned();
    for violation in &correction.violations {
        let _ = write!(wrong, "\n- {violation}");
    }
    vec![wrong, format!("The answer was:\n{}", correction.broken)]
}

/// Returns a correction without the answer that it concerns.
pub(super) fn correction_alone(parts: &[String]) -> Vec<String> {
    parts[..1.min(parts.len())].to_vec()
}
