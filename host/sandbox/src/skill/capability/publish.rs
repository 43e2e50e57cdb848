//! `kiso:skill/publish`: links to files of the workspace.

use super::{Capability, Doc, GuestState, failure, refused};
use crate::effect::files::FileLabels;
use crate::effect::sink::Permit;
use crate::effect::undo::Transaction;
use crate::engine::limits::{HitCell, cut};
use crate::skill::error::SkillError;
use crate::skill::input::{CallInput, Keep};
use crate::skill::wit::since_v0_1::kiso::skill::publish::{Host, add_to_linker};
use crate::skill::wit::since_v0_1::kiso::skill::types::Failure;
use crate::skill::wit::{ImportSpec, V0_1};
use crate::skill::workspace::{NoteError, note};
use kiso_base::home::SessionName;
use kiso_plan::code::ErrorCode;
use kiso_store::store::{Publication, Store};
use std::path::PathBuf;
use std::sync::Arc;
use wasmtime::component::{HasSelf, Linker};

/// The files that a call publishes, and their directory.
#[derive(Debug)]
pub(crate) struct Publish {
    /// The session's workspace on this machine, if the skill may see it.
    work: Option<PathBuf>,
    session: SessionName,
    store: Store,
    /// Nothing is published in a test.
    test: bool,
    /// The transaction that the call belongs to. It cannot take links back.
    transaction: Option<Arc<Transaction>>,
    permit: Permit,
    labels: Option<Arc<FileLabels>>,
    /// Path under `/work` and link of each file.
    published: Vec<(String, String)>,
    /// The message to the guest when a policy refused to publish something.
    refusal: Option<String>,
}

/// Larger files are copied by hand, not opened in a browser.
const MAX_BYTES: u64 = 64 << 20;

/// The length of a stored title. Without a limit, titles would be a way around the quota.
const TITLE_BYTES: usize = 200;

impl Capability for Publish {
    const IMPORTS: &'static [ImportSpec] = &[ImportSpec::skill("kiso:skill/publish", V0_1)];
    const DOC: Doc = Doc { about: "publish a file of `/work` under a link", asked: "" };
    type Allowed = ();

    fn link<T: GuestState>(linker: &mut Linker<T>, state: fn(&mut T) -> &mut Self) -> wasmtime::Result<()> {
        add_to_linker::<T, HasSelf<Self>>(linker, state)
    }

    fn prepare(call: &CallInput<'_>, _: &(), _: &HitCell) -> Result<Self, SkillError> {
        Ok(Self {
            work: call.visible.then(|| call.work.clone()),
            session: call.session.clone(),
            store: call.store.clone(),
            test: call.keep == Keep::Nothing,
            transaction: call.transaction.clone(),
            permit: call.permit.clone(),
            labels: call.labels.clone(),
            published: Vec::new(),
            refusal: None,
        })
    }
}

impl Publish {
    /// Takes the files that were published so far.
    pub(crate) fn take(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.published)
    }
}

impl Publish {
    /// The message to the guest when a policy refused to publish something.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

impl Host for Publish {
    async fn file(&mut self, path: String, title: Option<String>) -> wasmtime::Result<Result<String, Failure>> {
        let Some(work) = &self.work else {
            return Ok(Err(failure(ErrorCode::Denied, "this skill has no workspace")));
        };
        let note = match note(work, &path) {
            Ok(note) => note,
            Err(NoteError::NotFound) => {
                return Ok(Err(failure(ErrorCode::NotFound, format!("{path} is not in the workspace"))));
            }
            Err(error) => return Ok(Err(failure(ErrorCode::Denied, format!("{path}: {error}")))),
        };
        if self.test {
            return Ok(Err(failure(ErrorCode::Unavailable, "nothing is published in a test")));
        }
        let title = title.map(|title| cut(&title, TITLE_BYTES).to_owned());
        if note.bytes > MAX_BYTES {
            return Ok(Err(failure(ErrorCode::TooLarge, format!("{path} is larger than {} MiB", MAX_BYTES >> 20))));
        }
        // Anybody with the link can read the file.
        if let Some(labels) = &self.labels {
            match std::fs::File::open(work) {
                Ok(work) => self.permit.read().join(labels.of_entry(&work, note.path.as_ref(), false)),
                Err(error) => {
                    return Ok(Err(failure(ErrorCode::Unavailable, format!("{path} cannot be opened: {error}"))));
                }
            }
        }
        if let Err(why) = self.permit.leave("publish", "everybody with the link", true, true) {
            let message = format!("{path} is not published: {why} (docs/policy.md)");
            self.refusal = Some(message.clone());
            return Ok(Err(failure(ErrorCode::Denied, message)));
        }
        if let Some(Err(error)) = self.transaction.as_ref().map(|work| work.leaving("a link to a file")) {
            return Ok(Err(failure(ErrorCode::Unavailable, format!("it could not be put on record: {error}"))));
        }
        let (session, path, media_type) = (self.session.clone(), note.path.clone(), note.media_type);
        let label = self.permit.read().get().label();
        let published = self
            .store
            .write(move |tx| {
                let (path, media_type, title) = (path.as_str(), media_type.as_str(), title.as_deref());
                tx.publish(&session, Publication { path, media_type, title, label: &label }, kiso_base::clock::now_ms())
            })
            .await;
        Ok(match published {
            Ok(id) => {
                let link = format!("/pub/{id}");
                if self.published.iter().all(|(path, _)| *path != note.path) {
                    self.published.push((note.path, link.clone()));
                }
                Ok(link)
            }
            Err(error) => Err(refused(&error)),
        })
    }
}
