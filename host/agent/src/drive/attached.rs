//! Files of a message, and pictures in requests.

use super::prompt::as_text;
use super::run_context::RunContext;
use super::{DriveError, RunExecutor};
use crate::context;
use crate::node::conversation::NewMessage;
use crate::node::eyes;
use crate::tool::{files, text_room};
use data_encoding::{BASE64, HEXLOWER};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_graph::run::Run;
use kiso_llm::transcribe::MAX_SOUND;
use kiso_llm::{Image, Model, Request, Turn, probe};
use kiso_plan::attached::{self, AttachedDocument, AttachedFiles};
use kiso_plan::label::Label;
use kiso_plan::picture::Picture;
use kiso_plan::prompt::{ATTACHED, FileCard};
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::skill::Caller;
use kiso_store::scratchpad::truncate_middle;
use kiso_store::store::{KeptPicture, MAX_PICTURE_BYTES};
use ring::digest::{SHA256, digest};
use std::collections::HashSet;

/// Maximum number of tokens in the transcript of a recording, for models that do not accept audio.
const MAX_TRANSCRIPT_TOKENS: usize = 2_000;

impl RunExecutor {
    /// Returns the transcript of a recording in a workspace, or the reason for a failure; `None` without a model for
    /// transcription, or without such a file.
    pub async fn transcribe(&self, session: &SessionName, path: &str) -> Option<Result<String, String>> {
        let transcriber = self.models.transcriber().filter(|_| is_sound(path))?;
        let sound = files::bytes(&self.home.open_work(session).ok()?, path, MAX_SOUND as u64 + 1).ok()?;
        if sound.len() > MAX_SOUND {
            return Some(Err(format!("it has more than {} MiB", MAX_SOUND >> 20)));
        }
        Some(transcriber.transcribe(path, &sound).await.map_err(|error| error.to_string()))
    }
}

/// Returns whether a file is a recording, by its name; the model detects the actual content.
fn is_sound(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    ["ogg", "oga", "opus", "mp3", "m4a", "wav", "flac", "webm", "mpga"].contains(&ending.as_str())
}

impl RunContext<'_> {
    /// Returns the smallest context of the models that see a message's files.
    pub(super) fn shown_budget(&self) -> usize {
        let budgets =
            [Role::Actor, Role::Worker, Role::Planner].map(|role| self.drive.models.settings(role).context_budget);
        budgets.into_iter().min().unwrap_or_default()
    }

    /// Returns the message of the run.
    pub(super) fn new_message<'r>(&self, run: &'r Run) -> NewMessage<'r> {
        NewMessage { text: run.message(), attached: Some(run.attached()), foreign: self.subagent }
    }

    /// Returns the files that the message names, in the form for models. The built-in model reads files by its plan.
    pub(super) async fn attached(&self, message: &str, files: &[FileCard]) -> AttachedFiles {
        if self.drive.models.are_free() {
            return AttachedFiles::default();
        }
        let named = attached::named(message, files);
        if named.is_empty() {
            return AttachedFiles::default();
        }
        let context_budget = self.shown_budget();
        let caller = Caller {
            session: &self.session,
            locale: &self.locale,
            secrets: &self.secrets,
            shared: false,
            transaction: None,
            accepted: None,
            permit: None,
            network: None,
        };
        let mut attached = self.drive.tools.attached(&named, context_budget, self.caller, &caller).await;
        for file in named.iter().filter(|file| file.came_along && is_sound(&file.card.path)) {
            if self.is_heard() && self.keep_sound(&file.card.path, &mut attached).await {
                continue;
            }
            attached
                .documents
                .extend(self.heard(&file.card.path, text_room(context_budget), &mut attached.label).await);
        }
        // Files that the conversation already shows are not sent again.
        let shown: Vec<_> = self.earlier.messages.iter().filter(|message| message.from == ATTACHED).collect();
        attached.pictures.retain(|picture| !shown.iter().any(|message| message.pictures.contains(picture)));
        attached.documents.retain(|document| !shown.iter().any(|message| message.text.contains(&document.section())));
        attached
    }

    /// Returns whether one of the models that see files accepts audio.
    fn is_heard(&self) -> bool {
        [Role::Actor, Role::Worker, Role::Planner].into_iter().any(|role| self.drive.models.for_role(role).hears())
    }

    /// Keeps a recording for models that accept audio, and its transcript for the others. Returns false if its format is not
    /// supported, or if it is too long.
    async fn keep_sound(&self, path: &str, attached: &mut AttachedFiles) -> bool {
        let Ok(work) = self.drive.home.open_work(&self.session) else { return false };
        let sound = files::bytes(&work, path, MAX_PICTURE_BYTES as u64 + 1);
        let Some(sound) = sound.ok().filter(|sound| sound.len() <= MAX_PICTURE_BYTES) else { return false };
        let media_type = match sound.get(..12) {
            Some(head) if head.starts_with(b"RIFF") && head.ends_with(b"WAVE") => "audio/wav",
            Some(head) if head.starts_with(b"ID3") || head[0] == 0xff && head[1] & 0xe0 == 0xe0 => "audio/mpeg",
            _ => return false,
        };
        let words = self.heard(path, MAX_TRANSCRIPT_TOKENS, &mut attached.label).await.map(|heard| heard.text);
        let digest = HEXLOWER.encode(digest(&SHA256, &sound).as_ref());
        let (session, kept) = (self.session.clone(), digest.clone());
        let kept = self.drive.store.write(move |tx| {
            tx.keep_picture(&session, &kept, &sound, now_ms())?;
            words.map_or(Ok(()), |words| tx.describe_picture(&session, &kept, &words))
        });
        if let Err(error) = kept.await {
            tracing::warn!(session = %self.session, "a recording is not kept: {error}");
            return false;
        }
        attached.label.join(&files::label(&work, path, &FileLabels::of_session(&self.drive.home, &self.session)));
        let name = format!("/work/{path}");
        attached.pictures.push(Picture { name, digest, media_type: media_type.to_owned(), width: 0, height: 0 });
        true
    }

    /// Returns the transcript of a recording, if there is a model for transcription.
    async fn heard(&self, path: &str, room: usize, label: &mut Label) -> Option<AttachedDocument> {
        let text = match self.drive.transcribe(&self.session, path).await? {
            Ok(text) => text,
            Err(why) => format!("This recording could not be written down: {why}"),
        };
        let work = self.drive.home.open_work(&self.session).ok()?;
        label.join(&files::label(&work, path, &FileLabels::of_session(&self.drive.home, &self.session)));
        Some(AttachedDocument { path: path.to_owned(), text: truncate_middle(&self.secrets.redact(&text), room) })
    }

    /// Loads the pictures of a request for the model of a role, or replaces them by another model's descriptions if the model
    /// does not accept pictures.
    pub(super) async fn load_pictures(&self, run: &Run, request: &mut Request, by: Role) -> Result<(), DriveError> {
        if request.images().next().is_none() {
            return Ok(());
        }
        let (has_eyes, hears) = (self.has_eyes(by), self.drive.models.for_role(by).hears());
        let has_pictures = request.images().any(|image| !image.picture.is_sound());
        let sees = match self.drive.models.for_role(by).sees() {
            // Tested in advance: if the model refused pictures later, the descriptions would be missing from the first request.
            None if has_eyes && has_pictures => probe::sees(&self.model(by)).await,
            sees => sees.unwrap_or(true),
        };
        let mut shown = HashSet::new();
        for turn in &mut request.turns {
            let Turn::Pictures(images) = turn else { continue };
            for image in images {
                image.repeats = !shown.insert(image.picture.digest.clone());
                let (session, digest) = (self.session.clone(), image.picture.digest.clone());
                let kept = self.drive.store.read(move |view| view.picture(&session, &digest)).await?;
                let Some(KeptPicture { content, described }) = kept else { continue };
                if image.picture.is_sound() && !hears {
                    image.described = described.map(|words| context::fenced(&words, &self.boundary));
                    continue;
                }
                image.content = Some(BASE64.encode(&content).into());
                if !sees && !image.picture.is_sound() {
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

    /// Returns whether another model than the role's can describe pictures for it.
    fn has_eyes(&self, by: Role) -> bool {
        let eyes = self.drive.models.for_role(Role::Eyes);
        eyes.name() != self.drive.models.for_role(by).name() && eyes.sees() != Some(false)
    }

    /// Lets the model with vision describe a picture, and stores the description.
    async fn describe(&self, run: &Run, image: &Image) -> Result<Option<String>, DriveError> {
        let system = self.drive.system_prompt(Role::Eyes)?;
        let request = eyes::request(&system, run.message(), image, &self.boundary);
        self.note_asked(Role::Eyes, as_text(&request));
        let answer = match self.model(Role::Eyes).complete(&request, &mut |_: &str| {}).await {
            Ok(completion) if !completion.blind && !completion.text.trim().is_empty() => completion.text,
            Ok(_) => return Ok(None),
            Err(error) => {
                // The model continues without a description, and is told that.
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
