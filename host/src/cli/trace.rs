//! `kiso trace`: the steps of a past run.

mod step;

use self::step::step;
use super::listing::typed;
use super::show::{Show, duration, printable, printable_line};
use super::{Exit, Failure, Opened, Shared};
use kiso_agent::drive::{SEALED_RUN, SPEC};
use kiso_gateway::shown;
use kiso_graph::step::Event;
use kiso_plan::limits::Usage;
use kiso_sandbox::skill::Quiet;
use kiso_store::secret::vault::{Vault, is_sealed};
use kiso_store::store::{self, RunLine, RunStatus};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(super) struct TraceArgs {
    /// A run's id, the beginning of one, or "last" for the newest [default: list the last runs]
    run: Option<String>,
    /// Also show the prompts of all model calls
    #[arg(long, requires = "run")]
    prompts: bool,
    /// How many runs to list
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

impl TraceArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match &self.run {
            None => self.list(&opened, shared.json),
            Some(name) => show(&opened, name, self.prompts, shared.json),
        }
    }

    fn list(&self, opened: &Opened, json: bool) -> Result<Exit, Failure> {
        let runs = opened.store.read_blocking(|view| view.list_runs(None, None, self.limit))?;
        if runs.is_empty() && !json {
            errln!("there are no runs yet; `kiso run \"…\"` makes one");
        }
        for run in runs {
            if json {
                outln!("{}", object(shown(run)));
            } else {
                let message = match is_sealed(&run.message) {
                    true => "(not looked at yet)".to_owned(),
                    false => printable_line(run.message.lines().next().unwrap_or_default()),
                };
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

/// Returns a run in the form that the gateway sends, with `run` as a second name of `id`.
fn object(run: RunLine) -> Value {
    let mut object = typed("run", &run);
    object["run"] = object["id"].clone();
    object
}

fn show(opened: &Opened, name: &str, prompts: bool, json: bool) -> Result<Exit, Failure> {
    let (mut run, mut events, mut prompts) = opened.store.read_blocking(|view| {
        let id = view.resolve_run(name)?;
        let run = view.run(&id)?.ok_or(store::StoreError::NoRun { text: name.to_owned() })?;
        let prompts = if prompts { view.prompts(&id)? } else { Vec::new() };
        Ok((run, view.events(&id)?, prompts))
    })?;
    let vault = Vault::open(&opened.home);
    // Text that no model has checked for secrets yet is sealed; the key is here.
    let open = |text: &str| vault.open_text(SEALED_RUN, text).map(Cow::into_owned).unwrap_or_else(|e| format!("[{e}]"));
    run.message = open(&run.message);
    for event in &mut events {
        event.body = open(&event.body);
    }
    for prompt in &mut prompts {
        prompt.text = open(&prompt.text);
    }
    if json {
        let store::Run { id, session, message, status, started_ms, ended_ms, .. } = run;
        outln!("{}", object(RunLine { id, session, message, status, started_ms, ended_ms }));
        for event in events {
            let body: Value = serde_json::from_str(&event.body).unwrap_or(Value::Null);
            outln!(
                "{}",
                json!({ "type": "event", "seq": event.seq, "at_ms": event.at_ms, "kind": event.kind, "body": body })
            );
            for prompt in prompts.iter().filter(|prompt| prompt.seq == event.seq) {
                outln!("{}", json!({ "type": "prompt", "seq": prompt.seq, "role": prompt.role, "text": prompt.text }));
            }
        }
        return Ok(Exit::Done);
    }
    let show = Show::stdout();
    outln!("run {}  {}  session {}  {}", run.id, time(run.started_ms), run.session, run.status.as_str());
    outln!("message: {}", printable(&run.message));
    if events.is_empty() {
        outln!("its steps are no longer kept (traces_days in [retention])");
    }
    let mut last = run.started_ms;
    let mut usage = Usage::default();
    for event in events {
        let after = u64::try_from(event.at_ms - run.started_ms).unwrap_or(0);
        let took = u64::try_from(event.at_ms - last).unwrap_or(0);
        last = event.at_ms;
        let head = format!("{:3}  +{:8}", event.seq, duration(after));
        if event.kind == SPEC {
            continue;
        }
        match serde_json::from_str::<Event>(&event.body) {
            Ok(stored) => {
                stored.calls().for_each(|call| usage += call.usage);
                step(&show, &head, took, &stored);
            }
            Err(error) => outln!(
                "{head}  {}  (this version of kiso cannot read the event: {})",
                event.kind,
                printable_line(&error.to_string())
            ),
        }
        for prompt in prompts.iter().filter(|prompt| prompt.seq == event.seq) {
            outln!("{}", show.dim(&format!("     ┌ prompt of the {}", prompt.role)));
            for line in printable(&prompt.text).lines() {
                outln!("     │ {line}");
            }
        }
    }
    outln!("in all: {}", step::cost(usage));
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

/// Formats a local time: "2026-11-21 22:08:41".
pub(super) fn time(ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
