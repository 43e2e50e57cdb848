//! Admission of a turn: archives large inputs, and detects tags, named skills and pills.

use super::DriveError;
use super::run_context::RunContext;
use crate::tool::pills::Pills;
use kiso_base::clock::now_ms;
use kiso_graph::mention;
use kiso_graph::step::StepResult;
use kiso_plan::label::Label;
use kiso_plan::pill;
use kiso_plan::tags::{Tags, UnknownTag};
use kiso_sandbox::skill;
use kiso_store::scratchpad;
use kiso_store::store::StoreError;

/// Maximum size in bytes of an archived input; encryption doubles it.
const MAX_INPUT: usize = kiso_store::store::MAX_ENTRY_BYTES as usize / 2 - 256;

impl RunContext<'_> {
    /// Handles the gatekeeper, tags, named skills, and the pill.
    pub(super) async fn admit(&self, texts: &[String], label: &Label) -> Result<StepResult, DriveError> {
        let drive = self.drive;
        let whole = texts.join("\n\n");
        let (tags, known) = (Tags::from_text(&whole), drive.tools.categories());
        let mut categories = tags.categories(&known);
        let unknown = tags.unknown(&known).map(|tag| UnknownTag {
            near: skill::near_names(tag, known.iter().map(String::as_str)).into_iter().map(str::to_owned).collect(),
            tag: tag.to_owned(),
        });
        let unknown = unknown.collect();
        for category in mention::categories(&whole, &drive.tools.by_name()) {
            if !categories.contains(&category) {
                categories.push(category);
            }
        }
        let pills = Pills::new(&drive.config, &drive.store).for_caller(self.caller).await?;
        let (mut message, pill) = pill::expand_all(texts, &pills);
        let limit = usize::try_from(drive.config.limits.input_limit_tokens).unwrap_or(usize::MAX);
        let limit = limit.min(drive.models.message_tokens());
        let mut archived = None;
        if scratchpad::is_too_large(&message, limit) {
            // Sealed like the message itself; the log opens it when a model has looked for secrets.
            let whole = scratchpad::fit(self.secrets.redact(&message), MAX_INPUT);
            let sealed = drive.vault.seal_text(super::SEALED_RUN, &whole)?;
            match scratchpad::put_away(&drive.store, &self.session, "input", sealed, label, now_ms()).await {
                Ok(key) => {
                    message = scratchpad::preview(&message, &key, limit);
                    archived = Some(key);
                }
                // As for a tool's result: the part that fits is still useful, and the message itself is not lost.
                Err(full @ StoreError::Quota { .. }) => {
                    message = format!("{}\n[{full}]", scratchpad::truncate_middle(&message, limit));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let instructions = self.instructions_of_message(&message);
        Ok(StepResult::Admitted { message, tags: tags.names, pill, categories, unknown, archived, instructions })
    }
}
