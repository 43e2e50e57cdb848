//! Events since the last commit, which are committed together.

use super::entry::{Entry, Opener, Projection};
use kiso_base::home::SessionName;
use kiso_store::secret::Secrets;
use kiso_store::secret::vault::Vault;
use kiso_store::store::{RunId, StoreError, Tx};

/// Events that are not stored yet.
#[derive(Default)]
pub(super) struct Batch {
    events: Vec<(Entry, Projection)>,
    /// The secrets that were known at the last event.
    secrets: Secrets,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Unstored events that the entry opens are stored in plain text directly.
    pub(super) fn add(&mut self, mut entry: Entry, projection: Projection, secrets: &Secrets) {
        let (events, opens) = (&mut self.events, entry.opens);
        entry.rewrite.retain_mut(|(seq, body)| match events.iter_mut().find(|(event, _)| event.seq == *seq) {
            Some((event, _)) => {
                event.body = std::mem::take(body);
                false
            }
            None => true,
        });
        if opens {
            // The entry that opens them contains their prompts.
            events.iter_mut().filter(|(event, _)| !event.clear).for_each(|(event, _)| event.prompts.clear());
        }
        self.events.push((entry, projection));
        self.secrets = secrets.clone();
    }

    pub(super) fn commit(
        &self,
        tx: &Tx<'_>,
        id: &RunId,
        session: &SessionName,
        vault: &Vault,
    ) -> Result<(), StoreError> {
        let opener = Opener { vault, secrets: &self.secrets };
        for (entry, projection) in &self.events {
            entry.commit(tx, id, session, &opener)?;
            projection.commit(tx, id, session, &opener)?;
        }
        Ok(())
    }
}
