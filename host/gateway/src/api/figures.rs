//! Figures about the daemon: read once here, and shown in two formats, for Prometheus and for people.

use std::path::Path;
use std::sync::atomic::Ordering;

use crate::App;
use kiso_base::clock::now_ms;
use kiso_store::store::{Figures, Scope, StoreError, Totals, WebhookLine};

/// The figures at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub at_ms: i64,
    /// Number of active runs.
    pub running: u64,
    /// Number of queued messages.
    pub queued: u64,
    pub event_streams: u64,
    pub figures: Figures,
    /// Usage of models on the current day (UTC).
    pub today: Totals,
    pub store_bytes: u64,
    pub wal_bytes: u64,
    pub slots_free: u64,
    pub calls_waiting: u64,
    pub webhooks: Vec<WebhookLine>,
}

impl Snapshot {
    pub(super) async fn read(app: &App) -> Result<Snapshot, StoreError> {
        let at_ms = now_ms();
        let store = &app.0.drive.store;
        let read = store.read(move |view| {
            let running = view.unfinished_runs(None)?.len() as u64;
            Ok((running, view.usage_total(Scope::Day(at_ms))?, view.figures()?, view.webhooks()?))
        });
        let (running, today, figures, webhooks) = read.await?;
        let drive = app.0.drive.newest();
        let slots = drive.models.slots();
        Ok(Snapshot {
            at_ms,
            running,
            queued: app.intake().queued(),
            event_streams: app.0.counters.streams.load(Ordering::Relaxed),
            figures,
            today,
            store_bytes: size(store.path()),
            wal_bytes: size(&store.path().with_extension("db-wal")),
            slots_free: slots.free() as u64,
            calls_waiting: slots.waiting() as u64,
            webhooks,
        })
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}
