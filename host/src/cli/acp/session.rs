//! A conversation of the editor: one session, one prompt at a time.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::board::Board;
use super::content::PromptContent;
use super::diff::{Change, WatchedDir, changes_of};
use super::update;
use crate::cli::client::daemon::{new_key, whole};
use crate::cli::client::wire::{NoticeLine, Say, ServerLine};
use crate::cli::client::{Client, News};
use crate::drive::RunExecutor;
use crate::gateway::{ReplyWriter, progress, put, standing};
use crate::graph::outcome::{Ending, Outcome};
use crate::graph::plan::{Task, TaskKind};
use crate::graph::report::{TaskReport, TaskStatus};
use crate::graph::step::{Event, StepResult, ToolResult};
use crate::home::{HomeError, HomeLock, PROJECT, Project, SessionName};
use crate::rpc::{self, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RequestId, RpcError};
use crate::session::workspace::Incoming;
use crate::store::{JobState, RunId, StoreError};

/// How often it is looked whether files can be put into the session, and for how long.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 100;

/// Bytes of thoughts that are told of one prompt.
const MAX_THOUGHTS: usize = 256 << 10;

/// What the editor wants of a conversation.
#[derive(Debug)]
pub enum SessionRequest {
    Prompt {
        id: RequestId,
        blocks: Vec<Value>,
    },
    /// Of the prompt that is under way.
    Cancel,
    /// What came of a request to the editor.
    Answer {
        id: String,
        result: Result<Value, RpcError>,
    },
}

pub struct AcpSession {
    session: SessionName,
    drive: RunExecutor,
    client: Client,
    out: mpsc::Sender<Value>,
    project: Option<Project>,
    /// Whether the editor is still to be asked if files of the project may be changed.
    asks: bool,
    /// Whether the model was told of the project.
    told_project: bool,
    /// Makes ids and `ref`s.
    count: u64,
    /// A prompt that waits for a person's permission, and the id of the request for it.
    held: Option<(String, RequestId, PromptContent)>,
    prompt: Option<PromptTurn>,
    files: Vec<WatchedDir>,
}

/// A prompt that is being answered.
struct PromptTurn {
    id: RequestId,
    reference: String,
    message: Option<i64>,
    run: Option<RunId>,
    text: ReplyWriter,
    board: Board,
    /// The tool call of the task that is under way.
    task_call: Option<String>,
    /// Tool calls of the actor, by the ids that its model gave them.
    calls: HashMap<String, String>,
    busy: String,
    thoughts_left: usize,
    cancelled: bool,
}

impl AcpSession {
    /// Begins a conversation in a task of its own, which ends when nobody can request anything of it any more and its prompt is
    /// answered.
    pub fn start(
        session: SessionName,
        drive: RunExecutor,
        out: mpsc::Sender<Value>,
        project: Option<Project>,
        asks: bool,
        requests: mpsc::Receiver<SessionRequest>,
    ) -> JoinHandle<()> {
        let client = Client::start("acp", drive.home.socket_path(), &session, true);
        let (held, prompt, files) = (None, None, Vec::new());
        let talk =
            AcpSession { session, drive, client, out, project, asks, told_project: false, count: 0, held, prompt, files };
        tokio::spawn(talk.run(requests))
    }

    async fn run(mut self, mut requests: mpsc::Receiver<SessionRequest>) {
        let mut is_closing = false;
        loop {
            tokio::select! {
                request = requests.recv(), if !is_closing => match request {
                    Some(SessionRequest::Prompt { id, blocks }) => self.ask(id, &blocks).await,
                    Some(SessionRequest::Cancel) => self.cancel().await,
                    Some(SessionRequest::Answer { id, result }) => self.permitted(&id, result).await,
                    None => is_closing = true,
                },
                news = self.client.news() => match news {
                    News::Connected { .. } => {}
                    News::Lost => self.think("kiso is offline; reconnecting\n").await,
                    News::Heard(heard) => {
                        let heard = whole(&self.drive.store, heard).await;
                        if let Err(error) = self.hear(heard).await {
                            tracing::error!("the store cannot be read: {error}");
                            self.fail(RpcError::internal(&error)).await;
                        }
                    }
                },
            }
            if is_closing && self.prompt.is_none() {
                // Nobody is left who would see what is done there.
                if self.project.is_some() && let Err(error) = self.drive.home.set_project(&self.session, None) {
                    tracing::warn!("the project stays with the session {}: {error}", self.session);
                }
                return;
            }
        }
    }

    async fn send(&self, message: Value) {
        let _ = self.out.send(message).await;
    }

    fn next_id(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// A prompt of the editor.
    async fn ask(&mut self, id: RequestId, blocks: &[Value]) {
        let refused = match self.prompt.is_some() || self.held.is_some() {
            true => Err(RpcError::new(INVALID_REQUEST, "a prompt of this session is still under way; cancel it, or wait")),
            false => PromptContent::read(blocks, self.project.as_ref().map(|project| project.path.as_path())),
        };
        let content = match refused {
            Ok(content) => content,
            Err(error) => return self.send(rpc::refusal(Some(&id), error)).await,
        };
        if self.asks
            && let Some(project) = &self.project
        {
            let path = project.path.clone();
            let number = self.next_id();
            let request = format!("{}/{number}", self.session);
            self.send(permission(&request, &self.session, &path)).await;
            self.held = Some((request, id, content));
            return;
        }
        self.begin(id, content).await;
    }

    /// What a person said to the request for permission.
    async fn permitted(&mut self, request: &str, result: Result<Value, RpcError>) {
        let Some((_, id, content)) = self.held.take_if(|(held, ..)| held == request) else { return };
        let outcome = result.map(|result| result["outcome"].clone()).unwrap_or_default();
        if outcome["outcome"] == "cancelled" {
            return self.send(stopped(&id, "cancelled")).await;
        }
        // Only what is plainly a yes is one.
        let write = outcome["outcome"] == "selected" && outcome["optionId"] == "write";
        self.asks = false;
        if let Some(project) = &mut self.project {
            project.write = write;
            if let Err(error) = self.drive.home.set_project(&self.session, Some(project)) {
                return self.send(rpc::refusal(Some(&id), RpcError::internal(&error))).await;
            }
        }
        self.begin(id, content).await;
    }

    /// Sends a prompt to the daemon, with its files.
    async fn begin(&mut self, id: RequestId, mut content: PromptContent) {
        let names = match self.put_files(std::mem::take(&mut content.files)).await {
            Ok(names) => names,
            Err(error) => return self.send(rpc::refusal(Some(&id), error)).await,
        };
        let mut text = content.message(&names);
        // A command line or a command is what it is; the others are read by a model that is to know.
        if !self.told_project
            && !text.trim_start().starts_with(['$', '/'])
            && let Some(project) = &self.project
        {
            let access = if project.write { "its files may be changed" } else { "read-only" };
            text += &format!("\n\n(The editor's project is at {PROJECT} for command lines, {access}.)");
            self.told_project = true;
        }
        let key = match new_key("acp") {
            Ok(key) => key,
            Err(error) => return self.send(rpc::refusal(Some(&id), RpcError::internal(&error.message))).await,
        };
        self.look_at_files().await;
        let reference = self.next_id().to_string();
        self.client.say(Say::Inbound { text, key, reference: reference.clone() });
        self.prompt = Some(PromptTurn {
            id,
            reference,
            message: None,
            run: None,
            text: ReplyWriter::default(),
            board: Board::default(),
            task_call: None,
            calls: HashMap::new(),
            busy: String::new(),
            thoughts_left: MAX_THOUGHTS,
            cancelled: false,
        });
    }

    /// Puts files into the workspace, as soon as nothing is at work there.
    async fn put_files(&self, files: Vec<crate::gateway::Attachment>) -> Result<Vec<String>, RpcError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let _lock = self.lock().await?;
        let put = put(&self.drive.now(), &self.session, files, Incoming::begin_locked).await;
        put.map_err(|error| RpcError::new(INVALID_PARAMS, error.message))
    }

    async fn lock(&self) -> Result<HomeLock, RpcError> {
        for _ in 0..LOOKS {
            match self.drive.home.lock_session(&self.session) {
                Ok(lock) => return Ok(lock),
                Err(HomeError::Busy { .. }) => tokio::time::sleep(LOOK).await,
                Err(error) => return Err(RpcError::internal(&error)),
            }
        }
        let message = "the session is busy with something else, so files cannot be added now; try again";
        Err(RpcError::new(INTERNAL_ERROR, message))
    }

    /// Looks at the files as they are before anything is done with them.
    async fn look_at_files(&mut self) {
        let mut places = vec![self.drive.home.work_dir(&self.session)];
        places.extend(self.project.as_ref().filter(|project| project.write).map(|project| project.path.clone()));
        let look = move || places.into_iter().map(WatchedDir::new).collect();
        self.files = tokio::task::spawn_blocking(look).await.unwrap_or_default();
    }

    async fn changes(&mut self) -> Vec<Change> {
        let mut files = std::mem::take(&mut self.files);
        let look = move || {
            let changes = changes_of(&mut files);
            (files, changes)
        };
        let (files, changes) = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        self.files = files;
        changes
    }

    async fn cancel(&mut self) {
        if let Some((_, id, _)) = self.held.take() {
            self.send(stopped(&id, "cancelled")).await;
        }
        if let Some(prompt) = &mut self.prompt {
            prompt.cancelled = true;
            self.say_cancel();
        }
    }

    fn say_cancel(&mut self) {
        let reference = self.next_id().to_string();
        self.client.say(Say::Command { command: "cancel".to_owned(), args: String::new(), reference });
    }

    /// A line of the daemon.
    async fn hear(&mut self, heard: ServerLine) -> Result<(), StoreError> {
        let Some(prompt) = &mut self.prompt else { return Ok(()) };
        let is_own = heard.reference() == Some(prompt.reference.as_str());
        match heard {
            ServerLine::Accepted { message, .. } if is_own => {
                prompt.message = Some(message);
                self.settle().await
            }
            ServerLine::Outbound(outbound) if is_own => {
                self.write(&outbound.answer.unwrap_or_default()).await;
                self.finish("end_turn").await;
                Ok(())
            }
            ServerLine::Outbound(outbound)
                if prompt.message.is_some_and(|message| outbound.answers.contains(&message)) =>
            {
                self.settle().await
            }
            ServerLine::Error { code, message, hint, .. } if is_own => {
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                let code = if code == "bad_request" || code == "too_large" { INVALID_PARAMS } else { INTERNAL_ERROR };
                self.fail(RpcError::new(code, format!("{message}{hint}"))).await;
                Ok(())
            }
            ServerLine::Event(notice) => self.happened(notice).await,
            _ => Ok(()),
        }
    }

    async fn happened(&mut self, notice: NoticeLine) -> Result<(), StoreError> {
        let NoticeLine { event, data, .. } = notice;
        match event.as_str() {
            "run" if self.is_own(&data["id"]).await? => {
                let is_cancelled = self.prompt.as_ref().is_some_and(|prompt| prompt.cancelled);
                // It was cancelled before it had begun.
                if is_cancelled && data["status"] == "running" {
                    self.say_cancel();
                }
                self.settle().await?;
            }
            "event" if self.is_own(&data["run"]).await? => self.step(data).await,
            "live" if self.is_own(&data["run"]).await? => self.live(&data).await,
            "gap" => self.settle().await?,
            "deleted" => self.fail(RpcError::new(INTERNAL_ERROR, "the session was deleted")).await,
            _ => {}
        }
        Ok(())
    }

    /// Whether this is the run that answers the prompt.
    async fn is_own(&mut self, run: &Value) -> Result<bool, StoreError> {
        let Some(prompt) = &mut self.prompt else { return Ok(false) };
        if prompt.run.is_none()
            && let Some(message) = prompt.message
        {
            prompt.run = self.drive.store.read(move |view| view.job(message)).await?.and_then(|job| job.run);
        }
        Ok(prompt.run.as_ref().is_some_and(|own| run.as_str() == Some(own.as_str())))
    }

    /// Ends the prompt if it is answered, or waits for somebody.
    async fn settle(&mut self) -> Result<(), StoreError> {
        let Some(message) = self.prompt.as_ref().and_then(|prompt| prompt.message) else { return Ok(()) };
        match standing(&self.drive.store, &self.drive.vault, message, Some(&self.session)).await? {
            None => self.fail(RpcError::new(INTERNAL_ERROR, "the message was deleted with its session")).await,
            Some(Ok(answer)) => {
                let rest = self.prompt.as_mut().map(|prompt| prompt.text.end(&answer.text)).unwrap_or_default();
                self.write(&rest).await;
                let reason = self.stop_reason(answer.state, answer.run).await?;
                self.finish(reason).await;
            }
            Some(Err(JobState::Held)) => {
                let message = "the run was cut off too often, and waits for a person to say that it is to be tried again, in kiso's page";
                self.fail(RpcError::new(INTERNAL_ERROR, message)).await;
            }
            Some(Err(_)) => {}
        }
        Ok(())
    }

    async fn stop_reason(&self, state: JobState, run: Option<RunId>) -> Result<&'static str, StoreError> {
        if state == JobState::Cancelled || self.prompt.as_ref().is_some_and(|prompt| prompt.cancelled) {
            return Ok("cancelled");
        }
        let Some(run) = run else { return Ok("end_turn") };
        let ending = self.drive.store.read(move |view| view.ending(&run)).await?;
        let outcome = ending.and_then(|(_, outcome)| serde_json::from_str::<Outcome>(&outcome?).ok());
        let is_limit = outcome.is_some_and(|outcome| matches!(outcome.ending, Ending::LimitHit(_)));
        Ok(if is_limit { "max_turn_requests" } else { "end_turn" })
    }

    /// A step of the run.
    async fn step(&mut self, mut data: Value) {
        let kind = data["kind"].as_str().unwrap_or_default().to_owned();
        let event = serde_json::from_value::<Event>(data["body"].take());
        let Some(prompt) = &mut self.prompt else { return };
        let Ok(event) = event else { return prompt.text.missed(&kind) };
        let piece = prompt.text.hear_event(&event);
        match &event.result {
            StepResult::Planned { plan, .. } => {
                prompt.board.plan(&plan.tasks);
                self.tell_plan().await;
            }
            StepResult::Started { .. } => {
                let task = prompt.board.start();
                self.tell_plan().await;
                if let Some(task) = task.filter(|task| matches!(task.kind, TaskKind::Exec | TaskKind::Skill)) {
                    let id = self.begin_call(&task.label(), task_kind(&task), task_input(&task)).await;
                    if let Some(prompt) = &mut self.prompt {
                        prompt.task_call = Some(id);
                    }
                }
            }
            StepResult::Executed { report, .. } => self.executed(report).await,
            StepResult::Acted { calls, .. } => {
                for call in calls {
                    let input = serde_json::from_str(&call.args).unwrap_or_else(|_| json!({ "args": call.args }));
                    let id = self.begin_call(&call.name, tool_kind(&call.name), input).await;
                    if let Some(prompt) = &mut self.prompt {
                        prompt.calls.insert(call.id.clone(), id);
                    }
                }
            }
            StepResult::Called { results } => self.called(results).await,
            StepResult::Reviewed { verdict, .. } => {
                prompt.board.inject(&verdict.inject);
                if !verdict.inject.is_empty() {
                    self.tell_plan().await;
                }
                self.think_of(&event).await;
            }
            StepResult::Told { .. } => self.think_of(&event).await,
            _ => {}
        }
        self.write(&piece).await;
    }

    /// A task has ended. What is said to the user is a part of the reply, and no tool call.
    async fn executed(&mut self, report: &TaskReport) {
        let Some(prompt) = &mut self.prompt else { return };
        prompt.board.end();
        let begun = prompt.task_call.take();
        self.tell_plan().await;
        if report.task.kind == TaskKind::Msg {
            return;
        }
        let id = match begun {
            Some(id) => id,
            None => self.begin_call(&report.task.label(), task_kind(&report.task), task_input(&report.task)).await,
        };
        let changes = self.changes().await;
        let trouble = report.trouble();
        let output = match &trouble {
            Some(trouble) if report.text.trim().is_empty() => trouble.clone(),
            Some(trouble) => format!("{}\n{trouble}", report.text.trim_end()),
            None => report.text.clone(),
        };
        let is_done = trouble.is_none() && report.status == TaskStatus::Done;
        self.send(update::called(&self.session, &id, is_done, &output, changes)).await;
    }

    /// Tools that the actor called have answered.
    async fn called(&mut self, results: &[ToolResult]) {
        // What one of them changed cannot be told from what another did.
        let mut changes = Some(self.changes().await);
        for result in results {
            let begun = self.prompt.as_mut().and_then(|prompt| prompt.calls.remove(&result.id));
            let id = match begun {
                Some(id) => id,
                None => self.begin_call(&result.name, tool_kind(&result.name), Value::Null).await,
            };
            let is_done = result.code.is_none();
            let changes = changes.take().unwrap_or_default();
            self.send(update::called(&self.session, &id, is_done, &result.text, changes)).await;
        }
    }

    async fn begin_call(&mut self, title: &str, kind: &str, input: Value) -> String {
        let id = format!("call-{}", self.next_id());
        self.send(update::call(&self.session, &id, title, kind, input)).await;
        id
    }

    async fn tell_plan(&self) {
        if let Some(prompt) = self.prompt.as_ref().filter(|prompt| !prompt.board.is_empty()) {
            self.send(update::plan(&self.session, &prompt.board)).await;
        }
    }

    async fn live(&mut self, data: &Value) {
        let Some(prompt) = &mut self.prompt else { return };
        if data["type"] == "thought" {
            let text = data["text"].as_str().unwrap_or_default();
            if prompt.busy != text {
                text.clone_into(&mut prompt.busy);
                self.think(&format!("{text}\n")).await;
            }
            return;
        }
        let piece = prompt.text.hear_live(data);
        self.write(&piece).await;
    }

    async fn think_of(&mut self, event: &Event) {
        if let Some(text) = progress::of(event) {
            self.think(&text).await;
        }
    }

    async fn think(&mut self, text: &str) {
        let Some(prompt) = &mut self.prompt else { return };
        let Some(left) = prompt.thoughts_left.checked_sub(text.len()) else { return };
        prompt.thoughts_left = left;
        self.send(update::text(&self.session, "agent_thought_chunk", text)).await;
    }

    async fn write(&self, text: &str) {
        if !text.is_empty() {
            self.send(update::text(&self.session, "agent_message_chunk", text)).await;
        }
    }

    async fn finish(&mut self, reason: &str) {
        let Some(mut prompt) = self.prompt.take() else { return };
        prompt.board.end();
        if !prompt.board.is_empty() {
            self.send(update::plan(&self.session, &prompt.board)).await;
        }
        self.send(stopped(&prompt.id, reason)).await;
    }

    async fn fail(&mut self, error: RpcError) {
        if let Some(prompt) = self.prompt.take() {
            self.send(rpc::refusal(Some(&prompt.id), error)).await;
        }
    }
}

fn stopped(id: &RequestId, reason: &str) -> Value {
    rpc::response(id, Ok(json!({ "stopReason": reason })))
}

/// Asks a person whether files of the project may be changed.
fn permission(request: &str, session: &SessionName, project: &Path) -> Value {
    let title = format!("Let kiso change files in {}", project.display());
    let params = json!({
        "sessionId": session,
        "toolCall": {
            "toolCallId": "project", "title": title, "kind": "edit", "status": "pending",
            "locations": [{ "path": project }],
        },
        "options": [
            { "optionId": "write", "name": "Allow in this conversation", "kind": "allow_always" },
            { "optionId": "read", "name": "Only let it read", "kind": "reject_always" },
        ],
    });
    rpc::request(&RequestId::Text(request.to_owned()), "session/request_permission", params)
}

fn task_kind(task: &Task) -> &'static str {
    match task.kind {
        TaskKind::Exec => "execute",
        TaskKind::Act => "think",
        TaskKind::Skill | TaskKind::Msg => "other",
    }
}

fn task_input(task: &Task) -> Value {
    match task.kind {
        TaskKind::Exec => json!({ "command": task.detail }),
        _ => task.args.clone().unwrap_or_else(|| json!({})),
    }
}

/// The kind of a built-in tool; what an installed skill does is not known.
fn tool_kind(name: &str) -> &'static str {
    match name {
        "exec" => "execute",
        name if name.contains("search") => "search",
        _ => "other",
    }
}
