//! `kiso approval explain`: decisions about data that left the sandbox, and the origin of that data.

use crate::cli::show::{printable, printable_line};
use crate::cli::{Exit, Failure, Opened};
use kiso_agent::drive::{SEALED_RUN, SPEC};
use kiso_graph::run::RunSpec;
use kiso_graph::step::{Event, StepResult};
use kiso_plan::label::Label;
use kiso_plan::sink::SinkDecision;
use kiso_store::secret::vault::Vault;
use kiso_store::store;
use serde_json::json;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A step is the number of an event, as in `kiso trace RUN`. Each line names the texts that were read until then; a decision \
                  names the texts that it was made from, and the reason. docs/policy.md has the rules."
)]
pub(in crate::cli) struct ExplainArgs {
    /// A run's id, the beginning of one, or "last" for the newest
    run: String,
    /// Only this step [default: all of them]
    step: Option<u32>,
}

impl ExplainArgs {
    pub(super) fn execute(&self, opened: &Opened, json: bool) -> Result<Exit, Failure> {
        let Self { run, step } = self;
        let (id, rows) = opened.store.read_blocking(|view| {
            let id = view.resolve_run(run)?;
            let found = view.run(&id)?.ok_or(store::StoreError::NoRun { text: run.to_owned() })?;
            Ok((found.id, view.events(&id)?))
        })?;
        let vault = Vault::open(&opened.home);
        let mut seen = Label::default();
        let mut told = 0;
        for row in rows {
            let unreadable = |error: serde_json::Error| {
                Failure::new(Exit::Failed, format!("step {} of run {id} cannot be read: {error}", row.seq))
            };
            let body = vault.open_text(SEALED_RUN, &row.body)?;
            let lines = match row.kind.as_str() {
                SPEC => {
                    let spec: RunSpec = serde_json::from_str(&body).map_err(unreadable)?;
                    let mut lines = vec![StepLine::read("the message", &spec.label)];
                    if !spec.context.is_default() {
                        let before = if spec.context.is_trusted() || spec.policy.shows_all {
                            "what was said before"
                        } else {
                            "what was said before; router and planner are told only that it is there"
                        };
                        lines.push(StepLine::read(before, &spec.context));
                    }
                    seen = spec.label.joined(&spec.context);
                    lines
                }
                _ => of_event(serde_json::from_str::<Event>(&body).map_err(unreadable)?.result, &mut seen),
            };
            if step.is_some_and(|wanted| wanted != row.seq) {
                continue;
            }
            for line in lines {
                told += 1;
                match json {
                    true => outln!("{}", line.json(row.seq, &seen)),
                    false => line.tell(row.seq, &seen),
                }
            }
        }
        if told == 0 && !json {
            match step {
                Some(step) => outln!("nothing was read or decided in step {step} of run {id}"),
                None => outln!("nothing was read or decided in run {id}, or its steps are no longer kept"),
            }
        }
        Ok(Exit::Done)
    }
}

/// A read or a decision of a step.
enum StepLine {
    /// Data was read.
    Read { what: String, label: Label },
    /// Data was about to leave the sandbox.
    Sink(Box<SinkDecision>),
}

impl StepLine {
    fn read(what: &str, label: &Label) -> Self {
        Self::Read { what: what.to_owned(), label: label.clone() }
    }

    fn json(&self, seq: u32, seen: &Label) -> serde_json::Value {
        match self {
            Self::Read { what, label } => {
                json!({ "type": "read", "seq": seq, "what": what, "label": label, "seen": seen })
            }
            Self::Sink(decision) => json!({ "type": "sink", "seq": seq, "decision": decision }),
        }
    }

    fn tell(&self, seq: u32, seen: &Label) {
        match self {
            Self::Read { what, label } => {
                outln!("{seq:3}  read {}: {label}", printable_line(what));
                if !seen.is_trusted() {
                    outln!("     from here on, decisions of a model that was shown it are {seen}");
                }
            }
            Self::Sink(decision) => {
                let SinkDecision { tool, destination, verdict, because, .. } = decision.as_ref();
                outln!("{seq:3}  {} to {}: {}", printable_line(tool), printable_line(destination), verdict.as_str());
                outln!("     decided from what was {}", decision.decision);
                for arg in &decision.args {
                    let role = format!("{:?}", arg.role).to_lowercase();
                    outln!("     {} ({role}): {}", printable_line(&arg.name), arg.label);
                }
                if !because.is_empty() {
                    outln!("     {}", printable(because));
                }
            }
        }
    }
}

/// The name of data that a run got from memory.
const REMEMBERED: &str = "what is remembered";

fn of_event(result: StepResult, seen: &mut Label) -> Vec<StepLine> {
    let mut lines = Vec::new();
    let mut take = |what: String, label: &Label, sinks: Vec<SinkDecision>| {
        lines.extend(sinks.into_iter().map(|sink| StepLine::Sink(Box::new(sink))));
        seen.join(label);
        if !label.is_default() {
            lines.push(StepLine::read(&what, label));
        }
    };
    match result {
        StepResult::Admitted { instructions, .. } => {
            take("the Agent Skills that the message names".to_owned(), &instructions, Vec::new());
        }
        // Each file of instructions is read when its task starts, and counts from then on.
        StepResult::Planned { instructions, .. } | StepResult::Reviewed { instructions, .. }
            if !instructions.is_empty() =>
        {
            let label = Label::join_all(&instructions);
            lines.push(StepLine::read("what the Agent Skills say that its tasks name", &label));
        }
        StepResult::Executed { report, .. } => {
            let what = format!("the output of {}", report.task.label());
            take(what, &report.label.clone(), report.sinks);
        }
        StepResult::Called { results } => {
            for result in results {
                take(format!("the result of {}", result.name), &result.label.clone(), result.sinks);
            }
        }
        StepResult::Retrieved { memory, attached, .. } => {
            if !attached.label.is_default() {
                take("the files that came along".to_owned(), &attached.label, Vec::new());
            }
            if !memory.is_empty() {
                take(REMEMBERED.to_owned(), &Label::session(), Vec::new());
            }
        }
        StepResult::Routed { memory: Some(memory), .. } if !memory.is_empty() => {
            take(REMEMBERED.to_owned(), &Label::session(), Vec::new());
        }
        _ => {}
    }
    lines
}
