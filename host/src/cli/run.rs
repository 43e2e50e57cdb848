//! `kiso run`: one message, from plan to reply, without a daemon.

use super::show::{Show, duration, printable, size};
use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets, session};
use crate::drive::{Drive, Listener, Models};
use crate::graph::outcome::{Ending, Outcome};
use crate::graph::plan::{Caller, Task, TaskKind};
use crate::graph::report::TaskReport;
use crate::graph::run::Run as Machine;
use crate::graph::step::{Event, Step, StepResult};
use crate::graph::verdict::Status;
use crate::home::{Home, SessionName};
use crate::llm::Role;
use crate::node::output;
use crate::skill::Skills;
use crate::store::RunId;
use crate::tool::Tools;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub struct Run {
    /// What is to be done, in plain words, as `skill key=value …`, or as `$ command`
    message: String,
    /// The conversation it belongs to; made when it is new
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Copy this file into the session's /work first; may be given several times
    #[arg(long, short, value_name = "PATH")]
    file: Vec<PathBuf>,
}

/// Longest message that is taken.
const MAX_MESSAGE: usize = 1 << 20;

impl Run {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        if self.message.trim().is_empty() {
            return Err(Failure::new(Exit::Usage, "the message is empty; say what is to be done"));
        }
        if self.message.len() > MAX_MESSAGE {
            return Err(Failure::new(
                Exit::Usage,
                "the message is larger than 1 MiB; put the text into a file and give it with --file",
            ));
        }
        let session = session(self.session.as_deref())?;
        let show = Arc::new(Show::new(shared.json));
        let opened = Opened::new(shared, show.clone())?;
        let models = Models::open(&opened.config, super::environment)?;
        let lock = opened.home.lock_session(&session)?;
        opened.import(&session, &self.file, &show)?;
        let drive = Drive {
            home: opened.home.clone(),
            config: opened.config.clone(),
            store: opened.store.clone(),
            tools: Tools::new(opened.skills.clone(), opened.exec.clone()),
            models,
        };
        let mut listener = Told {
            show: &show,
            json: shared.json,
            home: &opened.home,
            skills: &opened.skills,
            session: &session,
            run: None,
            last: None,
        };
        let outcome = block_on(async {
            let work = drive.run(&session, self.message.trim(), Caller::Admin, environment_secrets(), &mut listener);
            tokio::select! {
                ended = work => Some(ended),
                _ = tokio::signal::ctrl_c() => None,
            }
        })?;
        show.rest();
        drop(lock);
        let Some(outcome) = outcome else {
            if let Some(run) = &listener.run {
                block_on(drive.cancel(run))??;
            }
            let how = listener.run.as_ref().map(|run| format!("; `kiso trace {run}` shows how far it came"));
            return Err(Failure::new(Exit::Failed, format!("the run was cancelled{}", how.unwrap_or_default())));
        };
        let (_, outcome) = outcome?;
        listener.ended(&outcome);
        let exit = exit(&outcome, listener.last);
        opened.store.close();
        Ok(exit)
    }
}

/// A failed run ends with the code of what its last task ran into.
fn exit(outcome: &Outcome, last: Option<LastError>) -> Exit {
    match (&outcome.ending, last) {
        (Ending::Done, _) => Exit::Done,
        (Ending::LimitHit(_), _) | (Ending::Failed { .. }, Some(LastError::Limit)) => Exit::Limit,
        (Ending::Failed { .. }, Some(LastError::Policy)) => Exit::Policy,
        (Ending::Failed { .. }, None) => Exit::Failed,
    }
}

#[derive(Debug, Clone, Copy)]
enum LastError {
    Limit,
    Policy,
}

/// Prints what a run does.
struct Told<'a> {
    show: &'a Show,
    json: bool,
    home: &'a Home,
    skills: &'a Skills,
    session: &'a SessionName,
    run: Option<RunId>,
    /// What the last task that was more than a message ran into.
    last: Option<LastError>,
}

impl Told<'_> {
    fn json(&self, object: &serde_json::Value) {
        if self.json {
            outln!("{object}");
        }
    }

    fn plan(&self, goal: &str, tasks: &[Task]) {
        self.json(&json!({ "type": "plan", "goal": goal, "tasks": tasks }));
        self.show.line(&format!("{} {}", self.show.bold("Plan:"), printable(goal)));
        for (i, task) in tasks.iter().enumerate() {
            let review = if task.review { self.show.dim("  (reviewed)") } else { String::new() };
            self.show.line(&format!("  {}. {}{review}", i + 1, printable(&describe(task, self.skills))));
        }
    }

    fn task(&mut self, index: usize, report: &TaskReport) {
        self.json(&json!({ "type": "task", "index": index, "report": report }));
        if report.task.kind == TaskKind::Msg {
            return;
        }
        self.last = report.error.as_ref().and_then(|error| match error {
            error if error.limit.is_some() => Some(LastError::Limit),
            error if error.policy => Some(LastError::Policy),
            _ => None,
        });
        let (mark, rest) = match report.trouble() {
            None => (self.show.green("✓"), String::new()),
            Some(trouble) => (self.show.red("✗"), format!("  {}", printable(&trouble))),
        };
        let time = self.show.dim(&duration(report.millis));
        self.show.line(&format!("{mark} {}  {time}{rest}", printable(&report.task.label())));
    }

    fn ended(&self, outcome: &Outcome) {
        let work = self.home.work_dir(self.session);
        let place = |path: &str| work.join(path).display().to_string();
        if self.json {
            let files: Vec<_> =
                outcome.files.iter().map(|f| json!({ "path": f.path, "host_path": place(&f.path), "media_type": f.media_type, "bytes": f.bytes })).collect();
            self.json(
                &json!({ "type": "ended", "outcome": outcome.ending, "reply": output::reply(outcome), "files": files }),
            );
            return;
        }
        outln!("{}", printable(&output::reply(outcome)));
        for file in &outcome.files {
            self.show.line(&self.show.dim(&format!("{} ({})", printable(&place(&file.path)), size(file.bytes))));
        }
        if let Some(run) = &self.run {
            self.show.line(&self.show.dim(&format!("`kiso trace {run}` shows every step")));
        }
    }
}

/// A task on one line: "data file=weather.csv group=month(date)".
fn describe(task: &Task, skills: &Skills) -> String {
    match task.kind {
        TaskKind::Skill => {
            let name = task.skill.as_deref().unwrap_or("skill");
            let args = task.args.as_ref().and_then(|a| a.as_object()).into_iter().flatten();
            // What the schema filled in says nothing about this task.
            let default =
                |key: &str| skills.find_tool(name).ok().and_then(|(s, i)| s.tools[i].args.default_of(key).cloned());
            let args =
                args.filter(|(key, value)| default(key).as_ref() != Some(*value)).map(|(key, value)| match value {
                    serde_json::Value::String(text) => format!(" {key}={text}"),
                    other => format!(" {key}={other}"),
                });
            format!("{name}{}", args.collect::<String>())
        }
        TaskKind::Exec => format!("$ {}", task.detail),
        TaskKind::Msg => "reply".to_owned(),
        TaskKind::Act => task.detail.clone(),
    }
}

impl Listener for Told<'_> {
    fn begun(&mut self, run: &RunId) {
        self.run = Some(run.clone());
        self.json(&json!({ "type": "begun", "run": run.to_string(), "session": self.session.to_string() }));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Plan(_) => self.show.busy("planning"),
            Step::Execute { brief, .. } => {
                self.show.busy(&format!("{}/{} {}", brief.number, brief.of, printable(&brief.task.label())));
            }
            Step::Review(_) => self.show.busy("reviewing"),
            _ => {}
        }
    }

    fn token(&mut self, role: Role, text: &str) {
        if role == Role::Planner {
            self.show.line(&printable(text));
        }
    }

    fn event(&mut self, _seq: u32, event: &Event, _run: &Machine) {
        self.show.rest();
        match &event.result {
            StepResult::Planned { plan, .. } => self.plan(&plan.goal, &plan.tasks),
            StepResult::Unplanned { correction, .. } => {
                self.json(&json!({ "type": "unplanned", "violations": correction.violations }));
                self.show
                    .line(&format!("the plan could not be used: {}", printable(&correction.violations.join("; "))));
            }
            StepResult::Executed { task, report, .. } => self.task(*task, report),
            StepResult::Reviewed { verdict, .. } => {
                let status = match verdict.status {
                    Status::Ok => "ok",
                    Status::NeedsFix => "needs_fix",
                    Status::Replan => "replan",
                };
                self.json(&json!({ "type": "review", "status": status, "reason": verdict.reason }));
                let reason = verdict.reason.as_deref().map(|r| format!(": {}", printable(r))).unwrap_or_default();
                self.show.line(&format!("  review {status}{reason}"));
            }
            StepResult::Unreviewed { correction, .. } => {
                self.json(&json!({ "type": "unreviewed", "violations": correction.violations }));
            }
            StepResult::ModelFailed { message } => {
                self.json(&json!({ "type": "model_failed", "message": message }));
                self.show.line(&self.show.red(&printable(message)));
            }
            StepResult::Told { text } => {
                self.json(&json!({ "type": "notice", "text": text }));
                self.show.line(&printable(text));
            }
            StepResult::Retrieved { .. } | StepResult::Started { .. } | StepResult::Finished { .. } => {}
        }
        if let Some(text) = &event.say {
            self.json(&json!({ "type": "say", "text": text }));
        }
    }
}
