//! A directory's entries as a stream of WASI 0.3. They are read when the guest reads the stream's first entry.

use super::super::detached::DetachedOperation;
use super::super::listing::DirectoryListing;
use super::convert::{code, kind};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use wasmtime::component::{Destination, Resource, StreamProducer, StreamResult, VecBuffer};
use wasmtime::{AsContextMut, StoreContextMut};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::HostDescriptor as _;
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::p3::bindings::filesystem::types::{DirectoryEntry, ErrorCode};

/// Most entries that one step of the stream moves.
const ENTRIES: usize = 256;

pub(super) struct ListingSource {
    state: State,
    end: Option<oneshot::Sender<Result<(), ErrorCode>>>,
}

enum State {
    Reading(Pin<Box<dyn Future<Output = FsResult<DirectoryListing>> + Send>>),
    Open(DirectoryListing),
    Ended,
}

impl ListingSource {
    /// The entries of a directory of the operation. `end` gets the end of the stream.
    pub(super) fn new(
        operation: DetachedOperation,
        fd: Resource<Descriptor>,
        end: oneshot::Sender<Result<(), ErrorCode>>,
    ) -> Self {
        let reading = async move {
            let mut operation = operation.placed().await.map_err(FsError::trap)?;
            let stream = operation.filesystem().read_directory(fd).await?;
            Ok(operation.table().delete(Resource::<DirectoryListing>::new_own(stream.rep()))?)
        };
        Self { state: State::Reading(Box::pin(reading)), end: Some(end) }
    }

    fn finish(&mut self, end: Result<(), ErrorCode>) {
        self.state = State::Ended;
        if let Some(sender) = self.end.take() {
            // The guest may have dropped the future.
            let _ = sender.send(end);
        }
    }
}

impl<D> StreamProducer<D> for ListingSource {
    type Item = DirectoryEntry;
    type Buffer = VecBuffer<DirectoryEntry>;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut store: StoreContextMut<'a, D>,
        mut destination: Destination<'a, DirectoryEntry, VecBuffer<DirectoryEntry>>,
        finishes: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let wanted = destination.remaining(store.as_context_mut()).unwrap_or(ENTRIES).min(ENTRIES);
        if wanted == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let this = &mut *self;
        if let State::Reading(reading) = &mut this.state {
            match reading.as_mut().poll(cx) {
                Poll::Pending if finishes => return Poll::Ready(Ok(StreamResult::Cancelled)),
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(listing)) => this.state = State::Open(listing),
                Poll::Ready(Err(error)) => {
                    this.state = State::Ended;
                    this.finish(Err(code(error.downcast()?)));
                    return Poll::Ready(Ok(StreamResult::Dropped));
                }
            }
        }
        let State::Open(listing) = &mut this.state else { return Poll::Ready(Ok(StreamResult::Dropped)) };
        let mut entries = Vec::new();
        let end = loop {
            if entries.len() == wanted {
                break None;
            }
            match listing.next() {
                Ok(Some(entry)) => entries.push(DirectoryEntry { type_: kind(entry.type_), name: entry.name }),
                Ok(None) => break Some(Ok(())),
                Err(error) => break Some(Err(code(error.downcast()?))),
            }
        };
        destination.set_buffer(entries.into());
        match end {
            None => Poll::Ready(Ok(StreamResult::Completed)),
            Some(end) => {
                this.finish(end);
                Poll::Ready(Ok(StreamResult::Dropped))
            }
        }
    }
}
