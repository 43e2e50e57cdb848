//! `kiso run`: one message, from plan to reply, without a daemon.

mod ask;
mod work;

use super::cancel::stop;
use super::folder::{FolderArgs, after_run};
use super::show::charts::{Charts, folded};
use super::show::told::LastError;
use super::show::{Show, WrittenText, printable, printable_line, told};
use super::{Exit, Failure, Opened, Shared, block_on, out, session};
use kiso_agent::drive::{Cancel, DriveError, Listener, RunExecutor, Thought};
use kiso_agent::node::output;
use kiso_agent::session::command::{CommandContext, SlashCommand};
use kiso_base::home::{GUIDANCE, Home, SessionName};
use kiso_base::role::Role;
use kiso_graph::outcome::{Ending, Outcome};
use kiso_graph::run::Run as Machine;
use kiso_graph::step::{Event, Step, StepResult};
use kiso_plan::effort::Effort;
use kiso_plan::plan::{CallerScope, TaskKind};
use kiso_plan::report::TaskReport;
use kiso_sandbox::skill::Skills;
use kiso_store::store::{MessageRole, RunId, StoreError, Tx, View};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// The request, in plain words, as `skill key=value …`, as `$ command`, or as a `/command` (`/help` lists these)
    #[arg(required_unless_present = "resume")]
    message: Option<String>,
    /// Resume an interrupted run, by its id, the beginning of one, or "last"
    #[arg(long, value_name = "RUN", conflicts_with_all = ["message", "session", "file"])]
    resume: Option<String>,
    /// The session to use; created if it does not exist
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Copy this file or folder into the session's /work first; repeat for several
    #[arg(long, short, value_name = "PATH")]
    file: Vec<PathBuf>,
    #[command(flatten)]
    folders: FolderArgs,
    /// Apply the changes to the folders at the end, except text from outside and deletions of more than 10 files, which wait
    /// for `kiso diff`
    #[arg(long)]
    apply: bool,
}

/// Maximum bytes of a message.
const MAX_MESSAGE: usize = 1 << 20;

impl RunArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let message = self.message.as_deref().map(str::trim);
        if message.is_some_and(str::is_empty) {
            return Err(Failure::new(Exit::Usage, "the message is empty; say what you would like to do"));
        }
        if message.is_some_and(|message| message.len() > MAX_MESSAGE) {
            return Err(Failure::new(
                Exit::Usage,
                "the message is larger than 1 MiB; put the text in a file and attach it with --file",
            ));
        }
        let named = session(self.session.as_deref())?;
        out::outlive_reader();
        let show = Arc::new(Show::new(shared.json));
        let opened = Opened::new(shared, show.clone())?;
        let drive = opened.drive()?;
        let (resumed, session) = match &self.resume {
            None => (None, named),
            Some(name) => {
                let run = opened.store.read_blocking(|view| {
                    let id = view.resolve_run(name)?;
                    view.run(&id)?.ok_or(StoreError::NoRun { text: name.to_owned() })
                })?;
                (Some(run.id), run.session)
            }
        };
        // The same order as for every message: a command that names a pill becomes that pill, and the others are answered at
        // once.
        let pill = message.and_then(|message| opened.config.command_pill(message));
        let message = pill.as_deref().or(message);
        if let Some(command) = message.and_then(SlashCommand::parse) {
            return self.answer(command, shared.json, &opened, &session, &drive);
        }
        // Checked before anything is created.
        opened.store.read_blocking(|view| view.may_open(&session, opened.config.limits.max_sessions))?;
        let lock = opened.home.lock_session(&session)?;
        let copied = opened.copy_in(&session, &self.file, &show)?;
        self.folders.open(&opened, &session)?;
        let message = message.map(|message| with_files(message, &copied));
        let cancel = Cancel::new();
        let (at, cancelling) =
            (Watched { show: &show, json: shared.json, opened: &opened, session: &session }, &cancel);
        let ended = block_on(async {
            // A separate task, so that Ctrl-C works whatever the run does.
            let hearing = tokio::spawn(interrupted(cancel.clone(), show.clone()));
            let ended = work::perform(&drive, &at, message.as_deref(), resumed, cancelling).await;
            hearing.abort();
            ended
        })?;
        show.rest();
        let (outcome, last) = ended?;
        // The remaining work does not need the session; other processes may use it now.
        drop(lock);
        after_run(&drive, &session, self.apply, &show, shared.json)?;
        show.busy("updating memory; press Ctrl-C to do it later");
        block_on(async {
            // The reply is printed; if the remaining work fails, it is done at the next start.
            tokio::select! {
                done = drive.background(Some(&session)) => {
                    if let Err(error) = done {
                        tracing::warn!(%error, "memory will be updated later");
                    }
                }
                _ = tokio::signal::ctrl_c() => {}
            }
            drive.tools.servers().stop().await;
        })?;
        show.rest();
        opened.store.close();
        // The session has the reply, but the caller must have it, too.
        Ok(if out::is_lost() { Exit::Failed } else { exit(&outcome, last) })
    }
}

impl RunArgs {
    /// Answers a slash command.
    fn answer(
        &self,
        command: SlashCommand,
        json: bool,
        opened: &Opened,
        session: &SessionName,
        drive: &RunExecutor,
    ) -> Result<Exit, Failure> {
        if !self.file.is_empty() {
            return Err(Failure::new(Exit::Usage, "a message that is a slash command takes no files"));
        }
        let (mut stopped, is_known) = (false, !matches!(command, SlashCommand::Unknown(_)));
        if command == SlashCommand::Cancel {
            let open =
                |view: &View<'_>| Ok([view.unfinished_runs(Some(session))?, view.runs_waiting(session)?].concat());
            for run in opened.store.read_blocking(open)? {
                stop(opened, &run, session)?;
                stopped = true;
            }
        }
        let queued = opened.store.read_blocking(|view| view.count_queued())?;
        let asked = CommandContext {
            drive,
            session,
            queued,
            began_ms: None,
            stopped,
            by_person: true,
            caller: CallerScope::Admin,
        };
        let text = block_on(asked.answer(command))??;
        if json {
            outln!("{}", json!({ "type": "answered", "session": session, "text": text }));
        } else {
            outln!("{}", printable(&text));
        }
        Ok(if is_known { Exit::Done } else { Exit::Usage })
    }
}

/// Adds the names of attached files to a message, as the page does. Leaves out files that the message names, and
/// instructions for agents.
fn with_files(message: &str, names: &[String]) -> String {
    let is_told = |name: &&str| message.contains(name) || GUIDANCE.contains(name);
    let others: Vec<&str> = names.iter().map(String::as_str).filter(|name| !is_told(name)).collect();
    match others.is_empty() {
        true => message.to_owned(),
        false => format!("{message}\n\nFiles: {}", others.join(", ")),
    }
}

/// The first Ctrl-C stops the run in order, a second one exits at once.
async fn interrupted(cancel: Cancel, show: Arc<Show>) {
    let _ = tokio::signal::ctrl_c().await;
    show.line("stopping the run; press Ctrl-C again to quit immediately");
    cancel.cancel();
    let _ = tokio::signal::ctrl_c().await;
    std::process::exit(130);
}

/// Shared data for printing runs.
struct Watched<'a> {
    show: &'a Show,
    json: bool,
    opened: &'a Opened,
    session: &'a SessionName,
}

impl<'a> Watched<'a> {
    /// Executes a run, and prints its steps and its result.
    async fn watch(
        &self,
        reply: Reply,
        perform: impl AsyncFnOnce(&mut RunPrinter<'a>) -> Result<(RunId, Outcome), DriveError>,
    ) -> Result<(Outcome, Option<LastError>), DriveError> {
        let mut told = RunPrinter {
            show: self.show,
            json: self.json,
            reply,
            home: &self.opened.home,
            skills: &self.opened.skills,
            session: self.session,
            run: None,
            doing: String::new(),
            last: None,
            written: WrittenText::default(),
            charts: Charts::default(),
            talk: WrittenText::default(),
        };
        let (run, outcome) = perform(&mut told).await?;
        self.show.rest();
        told.ended(&outcome);
        if !out::is_lost() {
            self.mark_read(run).await;
        }
        Ok((outcome, told.last))
    }

    /// Marks the reply of a run as read, because it was printed.
    async fn mark_read(&self, run: RunId) {
        let of = self.session.clone();
        let write = move |tx: &Tx<'_>| {
            let last = tx.last_messages(&of, 1)?.pop();
            match last.filter(|last| last.role == MessageRole::Assistant && last.run.as_ref() == Some(&run)) {
                Some(reply) => tx.pass_over(&of, reply.id),
                None => Ok(()),
            }
        };
        if let Err(error) = self.opened.store.write(write).await {
            tracing::warn!(%error, "the reply stays marked as unread");
        }
    }
}

/// Returns the exit code. A failed run has the code of its last task's error.
fn exit(outcome: &Outcome, last: Option<LastError>) -> Exit {
    match (&outcome.ending, last) {
        (Ending::Done, _) => Exit::Done,
        (Ending::LimitHit(_), _) => Exit::Limit,
        (Ending::Failed { .. }, last) => LastError::exit(last),
        (Ending::Cancelled, _) => Exit::Failed,
    }
}

/// Whose reply a run produces, which decides where it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// The requested one: on standard output.
    Asked,
    /// One to an earlier message, whose run was interrupted: on standard error, so that it is never mistaken for the
    /// requested one.
    Earlier,
}

/// Prints the events of a run.
struct RunPrinter<'a> {
    show: &'a Show,
    json: bool,
    reply: Reply,
    home: &'a Home,
    skills: &'a Skills,
    session: &'a SessionName,
    run: Option<RunId>,
    /// Its current activity.
    doing: String,
    /// The error of the last task that was more than a message.
    last: Option<LastError>,
    /// The reply, on standard output.
    written: WrittenText,
    /// Replaces the charts in the reply by lines of text.
    charts: Charts,
    /// The planner's text beside its plan, on standard error.
    talk: WrittenText,
}

impl RunPrinter<'_> {
    fn json(&self, object: &serde_json::Value) {
        match self.reply {
            _ if !self.json => {}
            Reply::Asked => outln!("{object}"),
            Reply::Earlier => out::write_json_error(object),
        }
    }

    /// Prints a part of the reply.
    fn print(&self, text: &str) {
        match self.reply {
            Reply::Asked => out!("{text}"),
            Reply::Earlier => self.show.piece(text),
        }
    }

    fn task(&mut self, index: usize, report: &TaskReport) {
        self.json(&json!({ "type": "task", "index": index, "report": report }));
        if report.task.kind != TaskKind::Msg {
            self.last = LastError::from_report(report);
        }
    }

    fn ended(&mut self, outcome: &Outcome) {
        let work = self.home.work_dir(self.session);
        let place = |path: &str| work.join(path).display().to_string();
        if self.json {
            let files: Vec<_> =
                outcome.files.iter().map(|f| json!({ "path": f.path, "host_path": place(&f.path), "media_type": f.media_type, "bytes": f.bytes })).collect();
            self.json(&json!({ "type": "ended", "outcome": outcome.ending, "reply": outcome.reply, "files": files }));
            return;
        }
        // The files are listed once, with the paths on this machine.
        let reply = output::without_list(outcome).unwrap_or_else(|| outcome.reply.clone());
        let rest = self.written.end(&folded(&printable(&reply)));
        self.print(&format!("{rest}\n"));
        told::files(self.show.paint(), &work, &outcome.files).iter().for_each(|line| self.show.line(line));
        if outcome.more_files > 0 {
            let public = printable_line(&place("pub"));
            self.show.line(&self.show.dim(&format!("and {} more in {public}", outcome.more_files)));
        }
        if let Some(run) = &self.run {
            self.show.line(&self.show.dim(&format!("`kiso trace {run}` shows every step")));
        }
    }
}

impl Listener for RunPrinter<'_> {
    fn begun(&mut self, run: &RunId) {
        self.run = Some(run.clone());
        self.json(&json!({ "type": "begun", "run": run.to_string(), "session": self.session.to_string() }));
    }

    fn step(&mut self, _seq: u32, step: &Step) {
        // Held back text is not part of the next text.
        self.charts = Charts::default();
        match step {
            Step::Execute { brief, .. } if brief.task.kind == TaskKind::Msg && brief.task.notify => self.written.part(),
            Step::Converse { .. } | Step::Act(_) => self.written.part(),
            Step::Plan(_) => self.talk = WrittenText::default(),
            _ => {}
        }
    }

    fn thought(&mut self, thought: &Thought) {
        self.json(&json!({ "type": "thought", "kind": thought.kind(), "text": thought.text() }));
        self.doing = thought.text();
        self.show.busy(&self.doing);
    }

    fn token(&mut self, role: Role, text: &str) {
        self.json(&json!({ "type": "token", "role": role.name(), "text": text }));
        if role == Role::Planner {
            self.show.piece(&self.talk.push(&printable(text)));
        } else if !self.json {
            self.show.rest();
            let shown = self.charts.push(&printable(text));
            let piece = self.written.push(&shown);
            self.print(&piece);
        }
    }

    fn output(&mut self, call: usize, stream: &'static str, text: &str) {
        self.json(&json!({ "type": "output", "call": call, "stream": stream, "text": text }));
        if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            self.show.busy(&format!("{}: {line}", self.doing));
        }
    }

    fn restart(&mut self, role: Role) {
        self.json(&json!({ "type": "restart", "role": role.name() }));
        let written = if role == Role::Planner { &mut self.talk } else { &mut self.written };
        self.charts = Charts::default();
        if std::mem::take(written).has_no_text() {
            return;
        }
        if role != Role::Planner {
            // Discarded text stays on the terminal; the valid text is separated from it.
            self.print("\n\n");
        }
        self.show.line("the text so far is not the answer");
    }

    fn event(&mut self, _seq: u32, event: &Event, run: &Machine) {
        self.show.rest();
        match &event.result {
            StepResult::Planned { plan, .. } => {
                self.json(&json!({ "type": "plan", "goal": plan.goal, "tasks": plan.tasks }));
            }
            StepResult::Unplanned { correction, .. } => {
                self.json(&json!({ "type": "unplanned", "violations": correction.violations }));
            }
            StepResult::Executed { task, report, .. } => self.task(*task, report),
            StepResult::Reviewed { verdict, .. } => {
                let status = told::status_of(verdict);
                self.json(&json!({ "type": "review", "status": status, "reason": verdict.reason }));
            }
            StepResult::Unreviewed { correction, .. } => {
                self.json(&json!({ "type": "unreviewed", "violations": correction.violations }));
            }
            StepResult::ModelFailed { message } => {
                self.json(&json!({ "type": "model_failed", "message": message }));
            }
            StepResult::Told { text } => self.json(&json!({ "type": "notice", "text": text })),
            StepResult::Routed { routing, by, .. } => {
                let object = json!({ "type": "routed", "effort": routing.effort, "by": by, "categories": routing.categories, "goal": routing.goal });
                self.json(&object);
            }
            StepResult::Briefed { brief, .. } => self.json(&json!({ "type": "brief", "brief": brief })),
            StepResult::Unbriefed { correction, .. } => {
                self.json(&json!({ "type": "unbriefed", "violations": correction.violations }));
            }
            StepResult::Acted { text, calls, .. } => {
                if !calls.is_empty() {
                    if is_direct(run) {
                        // The text was written before a call and is not part of the reply.
                        if !self.json && !self.written.has_no_text() {
                            self.print("\n\n");
                        }
                        self.written = WrittenText::default();
                    }
                    self.json(&json!({ "type": "calls", "text": text, "calls": calls }));
                }
            }
            StepResult::Called { results } => {
                for result in results {
                    self.json(&json!({ "type": "tool", "result": result }));
                }
            }
            StepResult::Compressed { reference, .. } => {
                self.json(&json!({ "type": "compressed", "archived": reference }));
            }
            StepResult::Finished { reply, .. } if event.continues => {
                self.json(&json!({ "type": "reply", "text": reply }));
                if !self.json {
                    let rest = self.written.end(&folded(&printable(reply)));
                    self.print(&format!("{rest}\n\n"));
                }
            }
            StepResult::ApprovalWanted { .. } => {}
            StepResult::ApprovalGiven { answer } => {
                self.json(&json!({ "type": "approval_answer", "answer": answer }));
            }
            StepResult::Stopped { limit } => self.json(&json!({ "type": "limit", "limit": limit })),
            StepResult::Cancelled => self.json(&json!({ "type": "cancelled" })),
            StepResult::Admitted { unknown, .. } => {
                for tag in unknown {
                    self.json(&json!({ "type": "notice", "text": tag.to_string() }));
                }
            }
            StepResult::Retrieved { .. }
            | StepResult::Started { .. }
            | StepResult::CallsStarted
            | StepResult::Assessed { .. }
            | StepResult::Conversed { .. }
            | StepResult::Finished { .. } => {}
        }
        for line in told::lines(self.show.paint(), event, self.skills) {
            self.show.line(&line);
        }
        // A task of the action loop has no event of its own: it ends with an answer.
        let ended = event.moves.iter().any(|step| step.why == kiso_graph::Why::TaskEnded);
        if ended
            && !matches!(event.result, StepResult::Executed { .. })
            && let Some((index, report)) = run.reports().enumerate().last()
        {
            self.task(index, report);
            told::task(self.show.paint(), report).iter().for_each(|line| self.show.line(line));
        }
        if let Some(text) = &event.say {
            self.json(&json!({ "type": "say", "text": text }));
            // A model's text for the user was shown while it was written.
            let heard = run.reports().next_back().is_none_or(|report| report.task.kind == TaskKind::Msg);
            if !self.json && !heard && !is_direct(run) {
                let said = self.written.say(&printable(text));
                self.print(&said);
            }
        }
    }
}

/// Returns whether the actor's text goes straight to the user because there is no plan.
fn is_direct(run: &Machine) -> bool {
    run.routing().is_some_and(|routing| routing.effort == Effort::Medium)
}
