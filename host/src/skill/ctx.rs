//! What one call carries through the host's functions: the store's data.

use super::host::{ChargedFiles, HttpGate, Keep, Quota, Roots};
use super::limits::{Budget, HitCell, Limit, LimitHit, Meter};
use crate::graph::report::LogLine;
use crate::home::{SessionName, SkillName};
use crate::secret::SecretValue;
use crate::store::Store;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

/// The data of a call's store.
pub struct Ctx {
    pub(super) wasi: WasiCtx,
    pub(super) http: WasiHttpCtx,
    pub(super) gate: HttpGate,
    pub(super) table: ResourceTable,
    pub(super) meter: Meter,
    pub(super) quota: Arc<Quota>,
    pub(super) log: Log,
    pub(super) skill: SkillName,
    pub(super) session: SessionName,
    /// The session's workspace on this machine, if the skill may see it.
    pub(super) work: Option<PathBuf>,
    pub(super) roots: Roots,
    pub(super) secrets: ReadableSecrets,
    pub(super) store: Store,
    pub(super) progress: Arc<dyn Observer>,
    /// Files that the guest published in this call: path under `/work` and link.
    pub(super) published: Vec<(String, String)>,
    pub(super) keep: Keep,
    /// Handles of directory listings that may still be open.
    pub(super) listings: Vec<u32>,
    pub(super) budget: Budget,
    pub(super) hit: HitCell,
}

impl std::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx").field("skill", &self.skill).field("session", &self.session).finish_non_exhaustive()
    }
}

impl ChargedFiles for Ctx {
    fn quota(&self) -> &Arc<Quota> {
        &self.quota
    }

    fn listings(&mut self) -> &mut Vec<u32> {
        &mut self.listings
    }

    fn listings_hit(&self) -> LimitHit {
        self.hit.set(self.budget.hit(Limit::Listings))
    }

    fn roots(&self) -> &Roots {
        &self.roots
    }
}

impl WasiView for Ctx {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for Ctx {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.gate }
    }
}

/// Hears how far a call has come, while it runs. Must return at once.
pub trait Observer: Send + Sync {
    /// A skill is being compiled, which may take seconds.
    fn compiling(&self, _skill: &str) {}

    /// It is still being compiled, for so long already.
    fn still_compiling(&self, _skill: &str, _elapsed: Duration) {}

    /// The guest reported progress: a share from 0 to 1 if known, and a few words.
    fn progress(&self, _skill: &str, _done: Option<f64>, _note: &str) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Observer for Quiet {}

/// What a call may read through `secrets`.
#[derive(Debug, Default)]
pub struct ReadableSecrets {
    /// Name to value, where the skill declares it, it is granted and set.
    pub values: BTreeMap<String, SecretValue>,
    /// Declared to go into requests, so that the guest never has it.
    pub injected: Vec<String>,
    /// Declared, but not granted.
    pub denied: Vec<String>,
    /// Declared and granted, but nobody has set it: name and how to set it.
    pub unset: Vec<(String, String)>,
}

/// The lines of one call, within their limits.
#[derive(Debug)]
pub struct Log {
    lines: Vec<LogLine>,
    bytes: u64,
    budget: Budget,
    hit: HitCell,
}

/// Longest message that is kept.
const MESSAGE_BYTES: usize = 8 << 10;

impl Log {
    pub fn new(budget: Budget, hit: HitCell) -> Self {
        Self { lines: Vec::new(), bytes: 0, budget, hit }
    }

    /// Adds a line; the message is cut at 8 KiB.
    pub fn push(&mut self, level: &str, message: &str) -> Result<(), LimitHit> {
        let level = match level {
            "error" | "warn" | "debug" => level,
            _ => "info",
        };
        let message = cut(message, MESSAGE_BYTES);
        self.bytes += message.len() as u64;
        if self.lines.len() as u64 >= self.budget.log_lines || self.bytes > self.budget.log_kib << 10 {
            return Err(self.hit.set(self.budget.hit(Limit::Log)));
        }
        self.lines.push(LogLine { level: level.to_owned(), message: message.to_owned() });
        Ok(())
    }

    pub fn take(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.lines)
    }
}

/// The longest start of `text` that has at most `max` bytes.
pub(super) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
