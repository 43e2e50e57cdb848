//! The streams of WASI 0.3 as views of those of WASI 0.2. Whatever checks, charges or labels the bytes of a stream does so for both.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;
use tokio::task::coop::poll_proceed;
use wasmtime::component::{
    Destination, FutureReader, Lift, Lower, Source, StreamConsumer, StreamProducer, StreamReader, StreamResult,
};
use wasmtime::{AsContextMut, StoreContextMut};
use wasmtime_wasi::p2::{self, DynInputStream, DynOutputStream, StreamError};

/// Most bytes that one step of a stream moves.
const CHUNK: usize = 64 << 10;

/// An error code of an interface of WASI 0.3.
pub(crate) trait StreamErrorCode: Lower + Lift + Send + Sync + 'static {
    /// The code for an operation that failed.
    fn from_error(error: &wasmtime::Error) -> Self;

    /// The code for a write that nobody reads.
    fn closed() -> Self;
}

/// A read or a write that is under way, until it is dropped.
pub(crate) type StreamStep = Box<dyn Send>;

/// Bounds how many reads and writes of streams run at once. The end of the call waits for writes.
pub(crate) trait StreamSteps: Send + Sync {
    /// Waits until a read may run. Fails at the end of the call.
    fn begin_read(&self) -> BoxFuture<'static, wasmtime::Result<StreamStep>>;

    /// The same for a write.
    fn begin_write(&self) -> BoxFuture<'static, wasmtime::Result<StreamStep>>;
}

/// The end of a stream, for the guest's future.
type End<E> = Option<oneshot::Sender<Result<(), E>>>;

/// A stream that a guest reads, and the future of its end.
type StreamWithEnd<E> = (StreamReader<u8>, FutureReader<Result<(), E>>);

/// A future that resolves to the end of a stream. A stream that the guest drops has ended well.
pub(crate) fn end<E: StreamErrorCode>(
    store: impl AsContextMut,
    end: oneshot::Receiver<Result<(), E>>,
) -> wasmtime::Result<FutureReader<Result<(), E>>> {
    FutureReader::new(store, async move { Ok::<_, wasmtime::Error>(end.await.unwrap_or(Ok(()))) })
}

/// A stream that a guest reads, and its end. `steps` bounds its reads.
pub(crate) fn readable<E: StreamErrorCode>(
    mut store: impl AsContextMut,
    from: DynInputStream,
    steps: Option<Arc<dyn StreamSteps>>,
) -> wasmtime::Result<StreamWithEnd<E>> {
    let (sender, receiver) = oneshot::channel();
    let source = StreamSource { state: SourceState::Idle(from), steps, end: Some(sender) };
    Ok((StreamReader::new(&mut store, source)?, end(&mut store, receiver)?))
}

/// The same for a stream that could not be opened.
pub(crate) fn unreadable<E: StreamErrorCode>(
    mut store: impl AsContextMut,
    error: E,
) -> wasmtime::Result<StreamWithEnd<E>> {
    let (sender, receiver) = oneshot::channel();
    let _ = sender.send(Err(error));
    Ok((StreamReader::new(&mut store, std::iter::empty())?, end(&mut store, receiver)?))
}

/// Writes what a guest sends, and returns the end of it. With `steps`, a write that has begun runs to its end, even if the guest ends.
pub(crate) fn written<E: StreamErrorCode>(
    mut store: impl AsContextMut,
    data: StreamReader<u8>,
    to: DynOutputStream,
    steps: Option<Arc<dyn StreamSteps>>,
) -> wasmtime::Result<FutureReader<Result<(), E>>> {
    let (sender, receiver) = oneshot::channel();
    data.pipe(&mut store, StreamSink { state: SinkState::Idle(to), steps, end: Some(sender) })?;
    end(&mut store, receiver)
}

/// The same for a stream that could not be opened.
pub(crate) fn unwritable<E: StreamErrorCode>(
    mut store: impl AsContextMut,
    mut data: StreamReader<u8>,
    error: E,
) -> wasmtime::Result<FutureReader<Result<(), E>>> {
    data.close(&mut store)?;
    let (sender, receiver) = oneshot::channel();
    let _ = sender.send(Err(error));
    end(&mut store, receiver)
}

fn finish<E>(end: &mut End<E>, result: Result<(), E>) {
    if let Some(end) = end.take() {
        // The guest may have dropped the future.
        let _ = end.send(result);
    }
}

struct StreamSource<E> {
    state: SourceState,
    steps: Option<Arc<dyn StreamSteps>>,
    end: End<E>,
}

enum SourceState {
    Idle(DynInputStream),
    Reading(BoxFuture<'static, (DynInputStream, p2::StreamResult<Bytes>)>),
    Ended,
}

impl<D, E: StreamErrorCode> StreamProducer<D> for StreamSource<E> {
    type Item = u8;
    type Buffer = Bytes;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut store: StoreContextMut<'a, D>,
        mut destination: Destination<'a, u8, Bytes>,
        finishes: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        if !finishes {
            // A guest can join a stream of the host to another: nothing else would yield then.
            ready!(poll_proceed(cx)).made_progress();
        }
        let wanted = destination.remaining(store.as_context_mut()).unwrap_or(CHUNK).min(CHUNK);
        // A read of no bytes asks whether there are some, which only a read can tell.
        if wanted == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let this = &mut *self;
        let mut reading = match std::mem::replace(&mut this.state, SourceState::Ended) {
            SourceState::Idle(mut from) => {
                let step = this.steps.as_ref().map(|steps| steps.begin_read());
                Box::pin(async move {
                    let _step = match step {
                        Some(step) => match step.await {
                            Ok(step) => Some(step),
                            Err(ended) => return (from, Err(StreamError::Trap(ended))),
                        },
                        None => None,
                    };
                    let read = from.blocking_read(wanted).await;
                    (from, read)
                })
            }
            SourceState::Reading(reading) => reading,
            SourceState::Ended => return Poll::Ready(Ok(StreamResult::Dropped)),
        };
        let Poll::Ready((from, read)) = reading.as_mut().poll(cx) else {
            this.state = SourceState::Reading(reading);
            // The bytes of a cancelled read are those of the next one.
            return if finishes { Poll::Ready(Ok(StreamResult::Cancelled)) } else { Poll::Pending };
        };
        match read {
            Ok(bytes) => {
                this.state = SourceState::Idle(from);
                if !bytes.is_empty() {
                    destination.set_buffer(bytes);
                    return Poll::Ready(Ok(StreamResult::Completed));
                }
                if finishes {
                    return Poll::Ready(Ok(StreamResult::Cancelled));
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(StreamError::Trap(trap)) => Poll::Ready(Err(trap)),
            Err(StreamError::Closed) => {
                finish(&mut this.end, Ok(()));
                Poll::Ready(Ok(StreamResult::Dropped))
            }
            Err(StreamError::LastOperationFailed(error)) => {
                finish(&mut this.end, Err(E::from_error(&error)));
                Poll::Ready(Ok(StreamResult::Dropped))
            }
        }
    }
}

struct StreamSink<E> {
    state: SinkState,
    steps: Option<Arc<dyn StreamSteps>>,
    end: End<E>,
}

enum SinkState {
    Idle(DynOutputStream),
    /// The number of bytes that are being written; the guest's memory holds them until then.
    Writing(usize, BoxFuture<'static, wasmtime::Result<(DynOutputStream, p2::StreamResult<()>)>>),
    Ended,
}

impl<D, E: StreamErrorCode> StreamConsumer<D> for StreamSink<E> {
    type Item = u8;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        store: StoreContextMut<'_, D>,
        source: Source<'_, u8>,
        finishes: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        if !finishes {
            ready!(poll_proceed(cx)).made_progress();
        }
        let this = &mut *self;
        let mut source = source.as_direct(store);
        let (count, mut writing) = match std::mem::replace(&mut this.state, SinkState::Ended) {
            SinkState::Idle(mut to) => {
                let bytes = source.remaining();
                let count = bytes.len().min(CHUNK);
                if count == 0 || finishes {
                    this.state = SinkState::Idle(to);
                    let result = if finishes { StreamResult::Cancelled } else { StreamResult::Completed };
                    return Poll::Ready(Ok(result));
                }
                let bytes = Bytes::copy_from_slice(&bytes[..count]);
                let write = async move {
                    let written = to.blocking_write_and_flush(bytes).await;
                    (to, written)
                };
                let writing: BoxFuture<'static, _> = match this.steps.as_ref().map(|steps| steps.begin_write()) {
                    None => Box::pin(async move { Ok(write.await) }),
                    Some(step) => {
                        let written = tokio::spawn(async move {
                            let _step = step.await?;
                            wasmtime::error::Ok(write.await)
                        });
                        Box::pin(async move { written.await? })
                    }
                };
                (count, writing)
            }
            SinkState::Writing(count, writing) => (count, writing),
            SinkState::Ended => return Poll::Ready(Ok(StreamResult::Dropped)),
        };
        let Poll::Ready(ended) = writing.as_mut().poll(cx) else {
            // Bytes on their way to a file cannot be taken back, so a guest that cancels the write waits, too.
            this.state = SinkState::Writing(count, writing);
            return Poll::Pending;
        };
        let (to, written) = ended?;
        match written {
            Ok(()) => {
                this.state = SinkState::Idle(to);
                source.mark_read(count);
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Err(StreamError::Trap(trap)) => Poll::Ready(Err(trap)),
            Err(StreamError::Closed) => {
                finish(&mut this.end, Err(E::closed()));
                Poll::Ready(Ok(StreamResult::Dropped))
            }
            Err(StreamError::LastOperationFailed(error)) => {
                finish(&mut this.end, Err(E::from_error(&error)));
                Poll::Ready(Ok(StreamResult::Dropped))
            }
        }
    }
}
