//! Prints one event of a trace.

use crate::cli::show::{Show, duration, printable, printable_line};
use kiso_graph::Why;
use kiso_graph::reflection::Reflection;
use kiso_graph::step::{Call, Event, StepResult};
use kiso_plan::limits::Usage;
use kiso_plan::plan::TaskKind;
use kiso_plan::report::{LimitUse, TaskReport, size};

/// Prints one event; `head` is its number and time, `took` the milliseconds since the event before.
pub(super) fn step(show: &Show, head: &str, took: u64, event: &Event) {
    let indent = " ".repeat(head.chars().count() + 2);
    let more = |text: &str| {
        for line in printable(text).lines() {
            outln!("{indent}{line}");
        }
    };
    match &event.result {
        StepResult::Admitted { tags, pill, unknown, archived, .. } => {
            outln!("{head}  input");
            if let Some(pill) = pill {
                more(&format!("pill {} ({})", pill.name, pill.effort));
            }
            if !tags.is_empty() {
                more(&format!("tags: #{}", tags.join(" #")));
            }
            for tag in unknown {
                more(&tag.to_string());
            }
            if let Some(key) = archived {
                more(&format!("the input was too large; it is stored in ref:{key}"));
            }
        }
        StepResult::Retrieved { files, memory, credentials, attached } => {
            outln!("{head}  retrieval: {} in /work", count(files.len(), "file"));
            for line in memory {
                more(&format!("remembers: {line}"));
            }
            if !credentials.is_empty() {
                more(&format!("has the secrets: {}", credentials.join(", ")));
            }
            for picture in &attached.pictures {
                more(&format!("shows models {}", picture.title()));
            }
            for document in &attached.documents {
                more(&format!("read {}: {}", document.path, count(document.text.chars().count(), "character")));
            }
        }
        StepResult::Routed { routing, by, memory, trouble, call, secrets } => {
            let who = call.as_ref().map(|call| model(call, took)).unwrap_or_default();
            outln!("{head}  router{who}: {} ({by:?}), {}", routing.effort, printable_line(&routing.goal));
            if !routing.categories.is_empty() {
                more(&format!("tools of: {}", routing.categories.join(", ")));
            }
            for line in memory.iter().flatten() {
                more(&format!("remembers: {line}"));
            }
            if let Some(trouble) = trouble {
                more(&format!("the answer could not be used: {trouble}"));
            }
            taken_out(secrets, &more);
        }
        StepResult::Planned { plan, call, secrets, .. } => {
            outln!("{head}  planner{}: {}", model(call, took), printable_line(&plan.goal));
            for (i, task) in plan.tasks.iter().enumerate() {
                let args = task.args.as_ref().map(|a| format!(" {a}")).unwrap_or_default();
                more(&format!("{}. {}{args}", i + 1, task.label()));
                if let Some(expect) = &task.expect {
                    more(&format!("   expects: {expect}"));
                }
            }
            if let Some(blocked) = &plan.blocked {
                more(&format!("blocked: {blocked}"));
            }
            taken_out(secrets, &more);
        }
        StepResult::Unplanned { correction, call, .. } => {
            outln!("{head}  planner{}: the answer could not be used", model(call, took));
            more(&correction.violations.join("\n"));
        }
        StepResult::ApprovalWanted { card } => {
            outln!("{head}  approval: asks for {}", count(card.effects.len(), "effect"));
            more(&card.lines().join("\n"));
        }
        StepResult::ApprovalGiven { answer } if answer.expired => outln!("{head}  approval: nobody answered in time"),
        StepResult::ApprovalGiven { answer } => {
            let by = if answer.by.is_empty() { String::new() } else { format!(" by {}", printable_line(&answer.by)) };
            let numbers: Vec<_> = answer.accepted.iter().map(ToString::to_string).collect();
            let numbers = if numbers.is_empty() { "nothing".to_owned() } else { numbers.join(", ") };
            outln!("{head}  approval: accepted {numbers}{by} {}", show.dim(&duration(took)));
        }
        StepResult::Started { task } => outln!("{head}  start of task {}", task + 1),
        StepResult::Executed { task, report, call } => {
            let who = call.as_ref().map(|call| model(call, took)).unwrap_or_default();
            let time = show.dim(&duration(report.millis));
            outln!("{head}  task {}: {}{who} {time}", task + 1, printable_line(&report.task.label()));
            executed(report, &more);
        }
        StepResult::Reviewed { verdict, call, .. } => {
            let status = format!("{:?}", verdict.status).to_lowercase();
            outln!("{head}  reviewer{}: {status}", model(call, took));
            for text in verdict.reason.iter().chain(&verdict.learn) {
                more(text);
            }
        }
        StepResult::Unreviewed { correction, call, .. } => {
            outln!("{head}  reviewer{}: the answer could not be used", model(call, took));
            more(&correction.violations.join("\n"));
        }
        StepResult::Briefed { brief, call } => {
            outln!("{head}  reasoner{}: {}", model(call, took), printable_line(&brief.action));
            more(&brief.text());
        }
        StepResult::Unbriefed { correction, call } => {
            outln!("{head}  reasoner{}: the answer could not be used", model(call, took));
            more(&correction.violations.join("\n"));
        }
        StepResult::Acted { text, calls, call } => {
            outln!("{head}  actor{}", model(call, took));
            more(text.trim());
            for call in calls {
                more(&format!("→ {} {}", call.name, call.args));
            }
        }
        StepResult::CallsStarted => outln!("{head}  start of the calls"),
        StepResult::Called { results } => {
            outln!("{head}  tools {}", show.dim(&duration(took)));
            for result in results {
                let time = duration(result.millis);
                more(&format!("{} [{}] {time}", result.name, result.status.name()));
                shortened(&result.text, &more);
                if let Some(key) = &result.archived {
                    more(&format!("whole in ref:{key}"));
                }
                used(result.used.as_ref(), result.skill_digest.as_deref(), &more);
            }
            let reflections = results.iter().map(Reflection::of_result);
            for Reflection { tool, status, finding, next_action, .. } in reflections {
                more(&format!("reflection: {tool} {}: {finding} → {next_action}", status.name()));
            }
        }
        StepResult::Compressed { reference, summary, calls } => {
            let who = calls.first().map(|call| model(call, took)).unwrap_or_default();
            outln!("{head}  summarizer{who}: the beginning of the action loop was archived as ref:{reference}");
            shortened(summary, &more);
        }
        StepResult::Assessed { text, call } => {
            outln!("{head}  actor{}: self-assessment at the round limit", model(call, took));
            more(text);
        }
        StepResult::Conversed { call, .. } => outln!("{head}  worker{}: answer without tools", model(call, took)),
        StepResult::Stopped { limit } => outln!("{head}  stopped by the limit {}", limit.limit),
        StepResult::Cancelled => outln!("{head}  cancelled"),
        StepResult::ModelFailed { message } => outln!("{head}  {}", printable_line(message)),
        StepResult::Told { text } => {
            outln!("{head}  told the user");
            more(text);
        }
        StepResult::Finished { reply, arrived, .. } => {
            outln!("{head}  reply");
            more(reply);
            if event.continues {
                more(&format!("the turn continues with {} that arrived meanwhile", count(arrived.len(), "message")));
            }
        }
    }
    let way: Vec<_> = event.moves.iter().map(|step| format!("{} ─{}→ {}", step.from, why(step.why), step.to)).collect();
    if !way.is_empty() {
        more(&show.dim(&way.join(", ")));
    }
    for limit in &event.limits {
        more(&format!("limit reached: {} = {}", limit.limit, limit.value));
    }
}

/// Lines of a task's text in a trace; `--json` prints all of it.
const TEXT_LINES: usize = 12;

fn executed(report: &TaskReport, more: &impl Fn(&str)) {
    if let Some(trouble) = report.trouble() {
        more(&format!("failed: {trouble}"));
    }
    if report.task.kind != TaskKind::Msg {
        shortened(&report.text, more);
    }
    if !report.stderr.is_empty() {
        let lines: Vec<&str> = report.stderr.lines().collect();
        more(&format!("standard error: {}", lines[..lines.len().min(TEXT_LINES)].join("\n")));
    }
    for file in &report.files {
        more(&format!("file: {} ({}, {})", file.path, file.media_type, size(file.bytes)));
    }
    for line in &report.log {
        more(&format!("{}: {}", line.level, line.message));
    }
    used(report.used.as_ref(), report.skill_digest.as_deref(), more);
}

fn used(used: Option<&LimitUse>, digest: Option<&str>, more: &impl Fn(&str)) {
    if let Some(used) = used {
        let digest = digest.map(|d| format!("  component {}", &d[..d.len().min(12)])).unwrap_or_default();
        let counted = match used.processes {
            0 => format!("{} host calls", used.host_calls),
            n => format!(
                "{} ({} at once)",
                count(usize::try_from(n).unwrap_or(usize::MAX), "process"),
                used.processes_at_once
            ),
        };
        more(&format!(
            "used: {}, {} of memory, {} written, {counted}{digest}",
            duration(used.millis),
            size(used.memory_bytes),
            size(used.written_bytes)
        ));
    }
}

/// Prints the beginning of a text.
fn shortened(text: &str, more: &impl Fn(&str)) {
    let lines: Vec<&str> = text.lines().collect();
    more(&lines[..lines.len().min(TEXT_LINES)].join("\n"));
    if lines.len() > TEXT_LINES {
        more(&format!("… and {} more lines", lines.len() - TEXT_LINES));
    }
}

fn taken_out(secrets: &[String], more: &impl Fn(&str)) {
    if !secrets.is_empty() {
        more(&format!("secrets taken out of the message: {}", secrets.join(", ")));
    }
}

/// Returns the model of a call, its cost and its duration.
fn model(call: &Call, took: u64) -> String {
    format!(" ({}, {}, {})", call.model, cost(call.usage), duration(took))
}

/// Returns text such as "120 + 30 tokens, $0.0012"; with cached input tokens, "120 (80 cached) + 30 tokens".
pub(super) fn cost(usage: Usage) -> String {
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    let tokens = format!("{}{cached} + {} tokens", usage.input_tokens, usage.output_tokens);
    match usage.cost_micros {
        0 => tokens,
        micros => format!("{tokens}, ${:.4}", micros as f64 / 1e6),
    }
}

/// Returns the stored word of an edge.
fn why(why: Why) -> String {
    serde_json::to_value(why).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn count(n: usize, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}{plural}") }
}
