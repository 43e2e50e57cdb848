//! The worker: writes the reply from the results of the tasks.

use serde_json::Value;

use kiso_plan::block::Block;
use kiso_plan::plan::TaskKind;
use kiso_plan::prompt::Pieces;
use kiso_plan::report::{FileNote, TaskReport, TaskStatus, size};

use crate::closing::NOTE;
use crate::honest::VERBATIM;

/// Maximum lines of a result that is shown completely.
const SMALL: usize = 40;
/// Lines that are shown of a longer one.
const HEAD: usize = 15;

/// Lines of a failed command's standard error that are shown.
const ERRORS: usize = 10;

/// Returns the text of a msg task.
pub fn reply(pieces: &Pieces) -> String {
    let detail = pieces.task.as_ref().map(|t| t.detail.as_str()).unwrap_or_default();
    if let Some(text) = detail.strip_prefix(VERBATIM) {
        return text.to_owned();
    }
    let reports: Vec<&TaskReport> = pieces.evidence.iter().flatten().filter(|r| r.task.kind != TaskKind::Msg).collect();
    let notes: Vec<&str> = detail.lines().filter_map(|line| line.strip_prefix(NOTE)).collect();
    if reports.is_empty() && notes.is_empty() {
        // A message that another planner wrote before the execution.
        return detail.to_owned();
    }
    let mut parts: Vec<String> = ranking(&reports).into_iter().collect();
    parts.extend(reports.iter().map(|report| section(report)));
    parts.extend(files(&reports));
    parts
        .extend((!notes.is_empty()).then(|| notes.iter().map(|n| format!("Note: {n}")).collect::<Vec<_>>().join("\n")));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// Returns the same in parts; files are listed separately.
pub fn blocks(pieces: &Pieces) -> Vec<Block> {
    let detail = pieces.task.as_ref().map(|t| t.detail.as_str()).unwrap_or_default();
    if detail.starts_with(VERBATIM) {
        return Vec::new();
    }
    let reports: Vec<&TaskReport> = pieces.evidence.iter().flatten().filter(|r| r.task.kind != TaskKind::Msg).collect();
    let mut blocks: Vec<Block> = ranking(&reports).map(|text| Block::Text { text }).into_iter().collect();
    blocks.extend(reports.iter().copied().map(Block::from_report));
    if !blocks.is_empty() {
        let notes = detail.lines().filter_map(|line| line.strip_prefix(NOTE));
        blocks.extend(notes.map(|note| Block::Text { text: format!("Note: {note}") }));
    }
    blocks
}

/// Returns a sentence that names the first group of a table, if a single task has grouped it and sorted it by a computed value.
fn ranking(reports: &[&TaskReport]) -> Option<String> {
    let [report] = reports else { return None };
    let (args, data) = (report.task.args.as_ref()?, report.data.as_ref()?);
    let (group, amount) = match data["columns"].as_array()?.as_slice() {
        [group, amount] => (group.as_str()?, amount.as_str()?),
        _ => return None,
    };
    let sorted = |value: &Value| value.as_array().and_then(|all| all.first()?.as_str().map(str::to_owned));
    let descending = args.as_object()?.values().filter_map(sorted).find_map(|key| match key.strip_suffix(" desc") {
        Some(column) => (column == amount).then_some(true),
        None => (key == amount).then_some(false),
    })?;
    let row = |at: usize| {
        let row = data["rows"].get(at)?.as_array()?;
        let name = row.first()?;
        Some((name.as_str().map_or_else(|| name.to_string(), str::to_owned), row.get(1)?.as_f64()?))
    };
    let (first, value) = row(0)?;
    let second = row(1);
    if second.as_ref().is_some_and(|(_, other)| *other == value) {
        return None;
    }
    let end = if descending { "highest" } else { "lowest" };
    let amount = amount.replacen('_', " ", 1);
    let next = second.map(|(name, other)| format!(", then {name} with {}", rounded(other))).unwrap_or_default();
    Some(format!("The {group} with the {end} {amount} is {first} with {}{next}.", rounded(value)))
}

/// Formats a number with at most two decimals.
fn rounded(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the output of a task, or why it has none.
fn section(report: &TaskReport) -> String {
    let label = report.task.label();
    if let Some(trouble) = report.trouble() {
        let what = if report.status == TaskStatus::Interrupted { "was interrupted" } else { "failed" };
        let parts = [shown(&report.text), report.error_lines(ERRORS)].into_iter();
        // The reason contains the last line of standard error.
        let parts = parts.filter(|part| !part.is_empty() && !trouble.ends_with(part.as_str()));
        let tail: String = parts.map(|part| format!("\n{part}")).collect();
        return format!("{label} {what}: {trouble}{tail}");
    }
    if report.is_negative_answer() {
        return match shown(&report.text) {
            output if output.is_empty() => format!("{label}: no (exit code 1)."),
            output => format!("{label} (exit code 1)\n{output}"),
        };
    }
    match shown(&report.text) {
        output if output.is_empty() => format!("{label}: done, without output."),
        output if report.task.kind == TaskKind::Exec => format!("{label}\n{output}"),
        output => output,
    }
}

fn shown(text: &str) -> String {
    let text = text.trim_matches('\n').trim_end();
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= SMALL {
        return text.to_owned();
    }
    format!("{}\n… {} more lines", lines[..HEAD].join("\n"), lines.len() - HEAD)
}

/// Lists the files of all tasks, each once.
fn files(reports: &[&TaskReport]) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for file in reports.iter().flat_map(|r| &r.files) {
        let line = file_line(file);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    (!lines.is_empty()).then(|| format!("Files:\n{}", lines.join("\n")))
}

fn file_line(file: &FileNote) -> String {
    let title = file.title.as_ref().map(|t| format!(", {t}")).unwrap_or_default();
    let link = file.link.as_ref().map(|l| format!(", {l}")).unwrap_or_default();
    format!("- /work/{} ({}{title}{link})", file.path, size(file.bytes))
}
