//! What is committed together: the events since the last commit.

use super::entry::{Entry, Opener, Projection};
use kiso_base::home::SessionName;
use kiso_store::secret::Secrets;
use kiso_store::secret::vault::Vault;
use kiso_store::store::{RunId, StoreError, Tx};

/// Events that are not on disk yet.
#[derive(Default)]
pub(super) struct Batch {
    events: Vec<(Entry, Projection)>,
    /// As they were known at the last event.
    secrets: Secrets,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// What the entry opens, and is not on disk, is written in clear from the beginning.
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
            // They are among those of the entry that opens them.
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
