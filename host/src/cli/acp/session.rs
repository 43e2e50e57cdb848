//! A conversation in the editor: one session, one prompt at a time.

mod approve;
mod folder;
mod follow;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::folder::HeldEnd;
use super::board::PlanBoard;
use super::content::PromptContent;
use super::diff::{Change, WatchedDir, changes_of};
use super::update;
use crate::cli::client::daemon::{new_key, whole};
use crate::cli::client::wire::Say;
use crate::cli::client::{Client, News};
use kiso_agent::drive::RunExecutor;
use kiso_agent::session::workspace::Incoming;
use kiso_base::home::{HomeError, HomeLock, PROJECT, SessionFolder, SessionName};
use kiso_base::rpc::{self, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RequestId, RpcError};
use kiso_gateway::{ReplyWriter, put};
use kiso_plan::label::Label;
use kiso_sandbox::effect::label::LabelId;
use kiso_store::store::RunId;

/// How often, and how many times, to check whether files can be put into the session.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 100;

/// Maximum bytes of thoughts that are sent for one prompt.
const MAX_THOUGHTS: usize = 256 << 10;

/// A request of the editor to a conversation.
#[derive(Debug)]
pub(super) enum SessionRequest {
    Prompt {
        id: RequestId,
        blocks: Vec<Value>,
    },
    /// Cancels the current prompt.
    Cancel,
    /// The editor's response to a request.
    Answer {
        id: String,
        result: Result<Value, RpcError>,
    },
}

pub(super) struct AcpSession {
    session: SessionName,
    drive: RunExecutor,
    client: Client,
    out: mpsc::Sender<Value>,
    project: Option<SessionFolder>,
    /// Whether the model knows about the project.
    told_project: bool,
    /// Counter for ids and `ref`s.
    count: u64,
    held: Option<HeldEnd>,
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
    board: PlanBoard,
    /// The tool call of the current task.
    task_call: Option<String>,
    /// Tool calls of the actor, by the ids from its model.
    calls: HashMap<String, String>,
    busy: String,
    thoughts_left: usize,
    cancelled: bool,
    /// The card that the editor was asked about, and the id of that request.
    asked: Option<(i64, String)>,
}

impl AcpSession {
    /// Starts a conversation in its own task. It ends when its channel of requests is closed and its prompt is answered.
    pub(super) fn start(
        session: SessionName,
        drive: RunExecutor,
        out: mpsc::Sender<Value>,
        project: Option<SessionFolder>,
        requests: mpsc::Receiver<SessionRequest>,
    ) -> JoinHandle<()> {
        let client = Client::start("acp", drive.home.socket_path(), &session, true);
        let (held, prompt, files) = (None, None, Vec::new());
        let talk =
            AcpSession { session, drive, client, out, project, told_project: false, count: 0, held, prompt, files };
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
                self.close_project().await;
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

    /// Handles a prompt of the editor.
    async fn ask(&mut self, id: RequestId, blocks: &[Value]) {
        let refused = match self.prompt.is_some() || self.held.is_some() {
            true => {
                Err(RpcError::new(INVALID_REQUEST, "a prompt of this session is still under way; cancel it, or wait"))
            }
            false => PromptContent::read(blocks, self.project.as_ref().map(|project| project.path.as_path())),
        };
        let content = match refused {
            Ok(content) => content,
            Err(error) => return self.send(rpc::refusal(Some(&id), error)).await,
        };
        self.begin(id, content).await;
    }

    /// Handles a person's answer to a request for permission.
    async fn permitted(&mut self, request: &str, result: Result<Value, RpcError>) {
        match self.held.take_if(|held| held.is_of(request)) {
            Some(held) => self.answer_changes(held, result).await,
            None => self.answer_card(request, result).await,
        }
    }

    /// Sends a prompt with its files to the daemon.
    async fn begin(&mut self, id: RequestId, mut content: PromptContent) {
        let names = match self.put_files(std::mem::take(&mut content.files)).await {
            Ok(names) => names,
            Err(error) => return self.send(rpc::refusal(Some(&id), error)).await,
        };
        let mut text = content.message(&names);
        // Command lines and commands are sent unchanged; other messages go to a model, which must know about the project.
        if !self.told_project
            && !text.trim_start().starts_with(['$', '/'])
            && let Some(project) = &self.project
        {
            let access = match project.write {
                true => "changes to it are applied when the user agrees",
                false => "read-only",
            };
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
            board: PlanBoard::default(),
            task_call: None,
            calls: HashMap::new(),
            busy: String::new(),
            thoughts_left: MAX_THOUGHTS,
            cancelled: false,
            asked: None,
        });
    }

    /// Puts files into the workspace as soon as no run works there.
    async fn put_files(&self, files: Vec<kiso_gateway::Attachment>) -> Result<Vec<String>, RpcError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let _lock = self.lock().await?;
        let put = put(
            &self.drive.newest(),
            &self.session,
            files,
            LabelId::from_label(&Label::attached()),
            Incoming::begin_locked,
        )
        .await;
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

    /// Records the state of the files before the prompt changes them.
    async fn look_at_files(&mut self) {
        let places = vec![self.drive.home.work_dir(&self.session)];
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
        if let Some(held) = self.held.take() {
            self.send(held.cancelled()).await;
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

    async fn finish(&mut self, reason: &'static str) {
        let Some(mut prompt) = self.prompt.take() else { return };
        prompt.board.end();
        if !prompt.board.is_empty() {
            self.send(update::plan(&self.session, &prompt.board)).await;
        }
        self.end(prompt.id, reason).await;
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
