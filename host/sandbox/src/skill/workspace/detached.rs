//! An operation on files that runs apart from the guest's store.
//!
//! The functions of `wasi:filesystem` 0.2 hold the store until they return. Those of 0.3 may not: meanwhile, other functions of the
//! guest run. So each runs on a copy of what it needs, with the guest's own quota, labels and record of use.

use super::control::ControlFile;
use super::directory_use::DirectoryUse;
use super::files::{ChargedFiles, DetachedFiles, Filesystem};
use super::open_listings::Listings;
use super::quota::Quota;
use super::running::{OperationPlace, RunningChange, RunningOperations};
use super::structure::Roots;
use crate::effect::label::LabelCell;
use crate::effect::overlay::Overlays;
use crate::effect::published::PublishedFiles;
use crate::engine::limits::{Budget, HitCell, Limit, LimitHit};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtx, WasiFilesystemCtxView, WasiFilesystemView};

/// The data of one operation.
pub(super) struct DetachedOperation {
    wasi: WasiFilesystemCtx,
    /// The descriptors of the operation, and nothing else of the guest.
    table: ResourceTable,
    quota: Arc<Quota>,
    label: LabelCell,
    listings: Listings,
    plain_dirs: HashSet<u32>,
    budget: Budget,
    hit: HitCell,
    published: Option<PublishedFiles>,
    overlays: Option<Overlays>,
    blocks: bool,
    roots: Roots,
    touched: Option<Arc<Mutex<DirectoryUse>>>,
    operations: RunningOperations,
    /// Its place among the operations of the guest, until it has ended.
    _place: Option<OperationPlace>,
    pub(super) control: Option<ControlFile>,
}

impl DetachedOperation {
    /// An operation on these descriptors of a guest. Returns it with their handles there.
    pub(super) fn new<T: DetachedFiles, const N: usize>(
        guest: &mut T,
        fds: [&Resource<Descriptor>; N],
    ) -> wasmtime::Result<(Self, [Resource<Descriptor>; N])> {
        let WasiFilesystemCtxView { ctx, table } = guest.filesystem();
        let wasi = ctx.clone();
        let mut own = ResourceTable::new();
        let mut copies = Vec::with_capacity(N);
        for fd in fds {
            copies.push(own.push(table.get(fd)?.clone())?);
        }
        let copies = copies.try_into().map_err(|_| wasmtime::format_err!("a descriptor is missing"))?;
        let (budget, hit) = guest.limits();
        let operation = Self {
            wasi,
            table: own,
            budget: budget.clone(),
            hit: hit.clone(),
            quota: guest.quota().clone(),
            label: guest.label().clone(),
            listings: guest.listings().clone(),
            plain_dirs: HashSet::new(),
            published: guest.published().cloned(),
            overlays: guest.overlays().cloned(),
            blocks: guest.blocks(),
            roots: guest.roots().clone(),
            touched: guest.touched().cloned(),
            operations: guest.operations().clone(),
            _place: None,
            control: None,
        };
        Ok((operation, copies))
    }

    /// The same operation, which holds its place.
    pub(super) fn with_place(self, place: OperationPlace) -> Self {
        Self { _place: Some(place), ..self }
    }

    /// Waits for its place.
    pub(super) async fn placed(self) -> wasmtime::Result<Self> {
        let place = self.operations.clone().place().await?;
        Ok(self.with_place(place))
    }

    /// The functions of `wasi:filesystem` 0.2, for the descriptors of this operation.
    pub(super) fn filesystem(&mut self) -> Filesystem<'_, Self> {
        Filesystem(self)
    }

    /// Records that the operation begins to change something; `None` if the call has ended.
    pub(super) fn begin(&self) -> Option<RunningChange> {
        self.operations.begin()
    }

    /// Takes a descriptor that the operation has opened.
    pub(super) fn take(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<Descriptor> {
        Ok(self.table.delete(fd)?)
    }

    /// Takes something else that the operation has made.
    pub(super) fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }
}

impl WasiFilesystemView for DetachedOperation {
    fn filesystem(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl ChargedFiles for DetachedOperation {
    fn quota(&self) -> &Arc<Quota> {
        &self.quota
    }

    fn label(&self) -> &LabelCell {
        &self.label
    }

    fn listings(&self) -> &Listings {
        &self.listings
    }

    fn plain_dirs(&mut self) -> &mut HashSet<u32> {
        &mut self.plain_dirs
    }

    fn listings_hit(&self) -> LimitHit {
        self.hit.set(self.budget.hit(Limit::Listings))
    }

    fn published(&self) -> Option<&PublishedFiles> {
        self.published.as_ref()
    }

    fn overlays(&self) -> Option<&Overlays> {
        self.overlays.as_ref()
    }

    fn blocks(&self) -> bool {
        self.blocks
    }

    fn roots(&self) -> &Roots {
        &self.roots
    }

    fn control(&mut self) -> Option<&mut ControlFile> {
        self.control.as_mut()
    }

    fn touched(&self) -> Option<&Arc<Mutex<DirectoryUse>>> {
        self.touched.as_ref()
    }
}
