//! `kiso:skill/publish`: links to files of the workspace.

use super::files::{NoteError, note};
use super::kv::Keep;
use super::{failure, refused};
use crate::skill::ctx::{Ctx, cut};
use crate::skill::wit::since_v0_1::kiso::skill::publish::Host;
use crate::skill::wit::since_v0_1::kiso::skill::types::Failure;

/// Larger files are copied by hand, not opened in a browser.
const MAX_BYTES: u64 = 64 << 20;

/// A link's title, which is stored: without a cut it would be a way around the quota on bytes.
const TITLE_BYTES: usize = 200;

impl Host for Ctx {
    async fn file(&mut self, path: String, title: Option<String>) -> wasmtime::Result<Result<String, Failure>> {
        let Some(work) = &self.work else {
            return Ok(Err(failure("denied", "this skill has no workspace")));
        };
        let note = match note(work, &path) {
            Ok(note) => note,
            Err(NoteError::NotFound) => {
                return Ok(Err(failure("not-found", format!("{path} is not in the workspace"))));
            }
            Err(error) => return Ok(Err(failure("denied", format!("{path}: {error}")))),
        };
        if self.keep == Keep::Nothing {
            return Ok(Err(failure("unavailable", "nothing is published in a test")));
        }
        let title = title.map(|title| cut(&title, TITLE_BYTES).to_owned());
        if note.bytes > MAX_BYTES {
            return Ok(Err(failure("too-large", format!("{path} is larger than {} MiB", MAX_BYTES >> 20))));
        }
        let (session, path, media_type) = (self.session.clone(), note.path.clone(), note.media_type);
        let published = self
            .store
            .write(move |tx| tx.publish(&session, &path, &media_type, title.as_deref(), crate::clock::now_ms()))
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
