//! `kiso trace`: what a run did, step by step, after the fact.

use super::show::{Show, duration, printable, size};
use super::{Exit, Failure, Opened, Shared};
use crate::drive::SPEC;
use crate::graph::plan::TaskKind;
use crate::graph::report::TaskReport;
use crate::graph::step::{Event, StepResult};
use crate::skill::Quiet;
use crate::store::{self, RunStatus};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub struct Trace {
    /// A run's id or the beginning of one; "last" for the newest. Without it, the last runs are listed
    run: Option<String>,
    /// How many runs a listing shows
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

impl Trace {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match &self.run {
            None => self.list(&opened, shared.json),
            Some(name) => show(&opened, name, shared.json),
        }
    }

    fn list(&self, opened: &Opened, json: bool) -> Result<Exit, Failure> {
        let runs = opened.store.read_blocking(|view| view.list_runs(None, None, self.limit))?;
        if runs.is_empty() && !json {
            eprintln!("there are no runs yet; `kiso run \"…\"` makes one");
        }
        for run in runs {
            if json {
                let object = json!({
                    "type": "run", "run": run.id.to_string(), "session": run.session.to_string(), "status": run.status.as_str(),
                    "started_ms": run.started_ms, "ended_ms": run.ended_ms, "message": run.message,
                });
                outln!("{object}");
            } else {
                let message = printable(run.message.lines().next().unwrap_or_default());
                outln!(
                    "{}  {}  {:9}  {:12}  {}",
                    run.id,
                    time(run.started_ms),
                    run.status.as_str(),
                    run.session.as_str(),
                    message
                );
            }
        }
        Ok(Exit::Done)
    }
}

fn show(opened: &Opened, name: &str, json: bool) -> Result<Exit, Failure> {
    let (run, events) = opened.store.read_blocking(|view| {
        let id = view.resolve_run(name)?;
        let run = view.run(&id)?.ok_or(store::StoreError::NoRun { text: name.to_owned() })?;
        Ok((run, view.events(&id)?))
    })?;
    if json {
        let object = json!({
            "type": "run", "run": run.id.to_string(), "session": run.session.to_string(), "status": run.status.as_str(),
            "started_ms": run.started_ms, "ended_ms": run.ended_ms, "message": run.message,
        });
        outln!("{object}");
        for event in events {
            let body: Value = serde_json::from_str(&event.body).unwrap_or(Value::Null);
            outln!(
                "{}",
                json!({ "type": "event", "seq": event.seq, "at_ms": event.at_ms, "kind": event.kind, "body": body })
            );
        }
        return Ok(Exit::Done);
    }
    let show = Show::stdout();
    outln!("run {}  {}  session {}  {}", run.id, time(run.started_ms), run.session, run.status.as_str());
    outln!("message: {}", printable(&run.message));
    let mut last = run.started_ms;
    for event in events {
        let after = u64::try_from(event.at_ms - run.started_ms).unwrap_or(0);
        let took = u64::try_from(event.at_ms - last).unwrap_or(0);
        last = event.at_ms;
        let head = format!("{:3}  +{:8}", event.seq, duration(after));
        if event.kind == SPEC {
            continue;
        }
        match serde_json::from_str::<Event>(&event.body) {
            Ok(stored) => step(&show, &head, took, &stored),
            Err(error) => outln!("{head}  {}  (this version of kiso cannot read the event: {error})", event.kind),
        }
    }
    match (run.status, run.ended_ms) {
        (RunStatus::Running, _) => outln!("the run has not ended: it is still running, or its process was stopped"),
        (status, Some(ended)) => {
            let millis = u64::try_from(ended - run.started_ms).unwrap_or(0);
            outln!("{} after {}", status.as_str(), duration(millis));
        }
        (status, None) => outln!("{}", status.as_str()),
    }
    Ok(Exit::Done)
}

fn step(show: &Show, head: &str, took: u64, event: &Event) {
    let indent = " ".repeat(head.chars().count() + 2);
    let more = |text: &str| {
        for line in printable(text).lines() {
            outln!("{indent}{line}");
        }
    };
    match &event.result {
        StepResult::Retrieved { files, .. } => outln!("{head}  retrieval: {} in /work", count(files.len(), "file")),
        StepResult::Planned { plan, call, secrets, .. } => {
            outln!(
                "{head}  planner ({}, {} + {} tokens): {}",
                call.model,
                call.usage.input_tokens,
                call.usage.output_tokens,
                printable(&plan.goal)
            );
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
            if !secrets.is_empty() {
                more(&format!("secrets taken out of the message: {}", secrets.join(", ")));
            }
        }
        StepResult::Unplanned { correction, call, .. } => {
            outln!("{head}  planner ({}): the answer could not be used", call.model);
            more(&correction.violations.join("\n"));
        }
        StepResult::Started { task } => outln!("{head}  start of task {}", task + 1),
        StepResult::Executed { task, report, call } => {
            let model = call
                .as_ref()
                .map(|c| format!(" ({}, {} + {} tokens)", c.model, c.usage.input_tokens, c.usage.output_tokens));
            outln!(
                "{head}  task {}: {}{} {}",
                task + 1,
                printable(&report.task.label()),
                model.unwrap_or_default(),
                show.dim(&duration(took))
            );
            executed(report, &more);
        }
        StepResult::Reviewed { verdict, call } => {
            let status = format!("{:?}", verdict.status).to_lowercase();
            outln!("{head}  reviewer ({}): {status}", call.model);
            for text in verdict.reason.iter().chain(&verdict.learn) {
                more(text);
            }
        }
        StepResult::Unreviewed { correction, call } => {
            outln!("{head}  reviewer ({}): the answer could not be used", call.model);
            more(&correction.violations.join("\n"));
        }
        StepResult::ModelFailed { message } => outln!("{head}  {}", printable(message)),
        StepResult::Told { text } => {
            outln!("{head}  told the user");
            more(text);
        }
        StepResult::Finished { reply } => {
            outln!("{head}  reply");
            more(reply);
        }
    }
    for limit in &event.limits {
        more(&format!("limit reached: {} = {}", limit.limit, limit.value));
    }
}

/// Lines of a task's text that a trace shows; `--json` has it whole.
const TEXT_LINES: usize = 12;

fn executed(report: &TaskReport, more: &impl Fn(&str)) {
    if let Some(trouble) = report.trouble() {
        more(&format!("failed: {trouble}"));
    }
    if report.task.kind != TaskKind::Msg {
        let lines: Vec<&str> = report.text.lines().collect();
        more(&lines[..lines.len().min(TEXT_LINES)].join("\n"));
        if lines.len() > TEXT_LINES {
            more(&format!("… and {} more lines", lines.len() - TEXT_LINES));
        }
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
    if let Some(used) = &report.used {
        let digest = report
            .skill_digest
            .as_deref()
            .map(|d| format!("  component {}", &d[..d.len().min(12)]))
            .unwrap_or_default();
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

/// "2026-11-21 22:08:41" in local time.
fn time(ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn count(n: usize, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}{plural}") }
}
