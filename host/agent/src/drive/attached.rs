//! What came with a message, and pictures on their way into a request.

use super::DriveError;
use super::prompt::as_text;
use super::run_context::RunContext;
use crate::context;
use crate::node::conversation::NewMessage;
use crate::node::eyes;
use data_encoding::BASE64;
use kiso_base::role::Role;
use kiso_graph::run::Run;
use kiso_llm::{Image, Model, Request, Turn, probe};
use kiso_plan::attached::{self, Attached};
use kiso_plan::prompt::FileCard;
use kiso_sandbox::skill::Caller;
use kiso_store::store::KeptPicture;

/// The part of a context that documents of a message may take, and the most that they take of any.
const SHARE: usize = 5;
const MOST: usize = 8_000;

impl RunContext<'_> {
    /// The message that the run is at.
    pub(super) fn new_message<'r>(&self, run: &'r Run) -> NewMessage<'r> {
        NewMessage { text: run.message(), attached: Some(run.attached()), foreign: self.subagent }
    }

    /// The files that the message names in its last line, as its models are shown them. The built-in model reads files by its plan.
    pub(super) async fn attached(&self, message: &str, files: &[FileCard]) -> Attached {
        if self.drive.models.are_free() {
            return Attached::default();
        }
        let (_, named) = attached::split(message, files);
        let cards: Vec<_> = files.iter().filter(|file| named.contains(&file.path)).collect();
        if cards.is_empty() {
            return Attached::default();
        }
        let budget =
            [Role::Actor, Role::Worker, Role::Planner].map(|role| self.drive.models.settings(role).context_budget);
        let room = budget.into_iter().min().map_or(0, |budget| budget / SHARE).min(MOST);
        let caller = Caller {
            session: &self.session,
            locale: &self.locale,
            secrets: &self.secrets,
            transaction: None,
            accepted: None,
            permit: None,
        };
        self.drive.tools.attached(&cards, room, self.caller, &caller).await
    }

    /// Gives the pictures of a request for the model of a role their bytes, and for one that takes none what another says of them.
    pub(super) async fn load_pictures(&self, run: &Run, request: &mut Request, by: Role) -> Result<(), DriveError> {
        if request.images().next().is_none() {
            return Ok(());
        }
        let has_eyes = self.has_eyes(by);
        let sees = match self.drive.models.of(by).sees() {
            // So that no words are lost by a refusal: those of the other model have to stand in the first request.
            None if has_eyes => probe::sees(&self.model(by)).await,
            sees => sees.unwrap_or(true),
        };
        for turn in &mut request.turns {
            let Turn::Pictures(images) = turn else { continue };
            for image in images {
                let (session, digest) = (self.session.clone(), image.picture.digest.clone());
                let kept = self.drive.store.read(move |view| view.picture(&session, &digest)).await?;
                let Some(KeptPicture { content, described }) = kept else { continue };
                image.content = Some(BASE64.encode(&content).into());
                if !sees {
                    let words = match described {
                        None if has_eyes => self.describe(run, image).await?,
                        described => described,
                    };
                    image.described = words.map(|words| context::fenced(&words, &self.boundary));
                }
            }
        }
        Ok(())
    }

    /// Whether another model than that of the role may see for it.
    fn has_eyes(&self, by: Role) -> bool {
        let eyes = self.drive.models.of(Role::Eyes);
        eyes.name() != self.drive.models.of(by).name() && eyes.sees() != Some(false)
    }

    /// Has the model that sees say what is on a picture, and keeps that.
    async fn describe(&self, run: &Run, image: &Image) -> Result<Option<String>, DriveError> {
        let system = self.drive.system_prompt(Role::Eyes)?;
        let request = eyes::request(&system, run.message(), image, &self.boundary);
        self.note_asked(Role::Eyes, as_text(&request));
        let answer = match self.model(Role::Eyes).complete(&request, &mut |_: &str| {}).await {
            Ok(completion) if !completion.blind && !completion.text.trim().is_empty() => completion.text,
            Ok(_) => return Ok(None),
            Err(error) => {
                // The model that asked goes on without, and knows that.
                tracing::warn!(session = %self.session, "no picture was described: {error}");
                return Ok(None);
            }
        };
        let words = self.secrets.redact(answer.trim());
        let (session, digest, kept) = (self.session.clone(), image.picture.digest.clone(), words.clone());
        self.drive.store.write(move |tx| tx.describe_picture(&session, &digest, &kept)).await?;
        Ok(Some(words))
    }
}
