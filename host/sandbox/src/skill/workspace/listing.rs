//! Listings of directories, sorted by name: the order in the directory would show its earlier content.

use super::files::{ChargedFiles, Filesystem};
use super::open_listings::ListingSlot;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, DirectoryEntryStream, HostDirectoryEntryStream};

/// A listing that a guest reads. It replaces wasmtime's own stream in the table.
pub(super) struct DirectoryListing {
    entries: std::vec::IntoIter<FsResult<DirectoryEntry>>,
    /// Its place among the guest's listings, until it is dropped.
    _slot: Option<ListingSlot>,
}

impl DirectoryListing {
    pub(super) fn new(mut entries: Vec<FsResult<DirectoryEntry>>) -> Self {
        entries.sort_by(|one, other| match (one, other) {
            (Ok(one), Ok(other)) => one.name.cmp(&other.name),
            (one, other) => one.is_err().cmp(&other.is_err()),
        });
        Self { entries: entries.into_iter(), _slot: None }
    }

    /// The same listing, which holds its place.
    pub(super) fn with_slot(self, slot: ListingSlot) -> Self {
        Self { _slot: Some(slot), ..self }
    }

    /// The next entry.
    pub(super) fn next(&mut self) -> FsResult<Option<DirectoryEntry>> {
        self.entries.next().transpose()
    }

    pub(super) fn handle(rep: u32) -> Resource<Self> {
        Resource::new_borrow(rep)
    }
}

impl<T: ChargedFiles> HostDirectoryEntryStream for Filesystem<'_, T> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.0.filesystem().table.get_mut(&DirectoryListing::handle(stream.rep()))?.next()
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.0.filesystem().table.delete(Resource::<DirectoryListing>::new_own(stream.rep()))?;
        Ok(())
    }
}
