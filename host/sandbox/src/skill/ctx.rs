//! The state of one call in wasmtime's store.

use super::capability::{Capabilities, GuestState};
use super::workspace::{
    ChargedFiles, ControlFile, DetachedFiles, DirectoryUse, Listings, Quota, Roots, RunningOperations,
};
use crate::effect::label::LabelCell;
use crate::effect::overlay::Overlays;
use crate::effect::published::PublishedFiles;
use crate::engine::guest::Guest;
use crate::engine::limits::{Budget, HitCell, LimitHit};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use wasmtime_wasi::{WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtxView, WasiHttpView};

/// The data of a call's store. A host function sees only its own capability.
pub(super) struct Ctx {
    pub(super) guest: Guest,
    pub(super) capabilities: Capabilities,
}

impl std::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx").finish_non_exhaustive()
    }
}

impl GuestState for Ctx {
    fn capabilities(&mut self) -> &mut Capabilities {
        &mut self.capabilities
    }
}

impl ChargedFiles for Ctx {
    fn quota(&self) -> &Arc<Quota> {
        &self.capabilities.workspace.quota
    }

    fn label(&self) -> &LabelCell {
        &self.capabilities.workspace.label
    }

    fn plain_dirs(&mut self) -> &mut HashSet<u32> {
        &mut self.capabilities.workspace.plain_dirs
    }

    fn listings(&self) -> &Listings {
        &self.capabilities.workspace.listings
    }

    fn listings_hit(&self) -> LimitHit {
        self.capabilities.workspace.listings_hit()
    }

    fn published(&self) -> Option<&PublishedFiles> {
        self.capabilities.workspace.published.as_ref()
    }

    fn overlays(&self) -> Option<&Overlays> {
        Some(&self.capabilities.workspace.overlays)
    }

    fn blocks(&self) -> bool {
        self.capabilities.workspace.blocks
    }

    fn roots(&self) -> &Roots {
        &self.capabilities.workspace.roots
    }

    fn control(&mut self) -> Option<&mut ControlFile> {
        self.capabilities.workspace.control.as_mut()
    }

    fn touched(&self) -> Option<&Arc<Mutex<DirectoryUse>>> {
        Some(&self.capabilities.workspace.touched)
    }
}

impl DetachedFiles for Ctx {
    fn limits(&self) -> (&Budget, &HitCell) {
        self.capabilities.workspace.limits()
    }

    fn operations(&self) -> &RunningOperations {
        &self.capabilities.workspace.operations
    }

    fn take_control(&mut self) -> Option<ControlFile> {
        self.capabilities.workspace.control.take()
    }

    fn put_control(&mut self, control: Option<ControlFile>) {
        self.capabilities.workspace.control = control;
    }
}

impl WasiView for Ctx {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.guest.wasi()
    }
}

impl WasiHttpView for Ctx {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let http = &mut self.capabilities.http;
        WasiHttpCtxView { ctx: &mut http.ctx, table: &mut self.guest.table, hooks: &mut http.gate }
    }
}
