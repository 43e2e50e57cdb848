//! Labels of files, where a guest reads and writes them.

use super::files::ChargedFiles;
use super::structure::EntryPath;
use crate::effect::files::{FileLabels, TaintedFile};
use crate::effect::label::LabelCell;
use crate::effect::sink::MountSink;
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{DynInputStream, FsResult, InputStream, Pollable, StreamResult};

/// What a guest is told; the outer error ends it.
type Labelled = wasmtime::Result<Result<(), ErrorCode>>;

fn labels<T: ChargedFiles>(ctx: &T) -> Option<Arc<FileLabels>> {
    ctx.quota().labels().cloned()
}

/// A directory that is open.
fn dir<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> wasmtime::Result<Option<Arc<File>>> {
    Ok(match ctx.ctx().table.get(fd)? {
        Descriptor::Dir(dir) => Some(dir.dir.clone()),
        Descriptor::File(_) => None,
    })
}

fn file<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> wasmtime::Result<Option<Arc<File>>> {
    Ok(match ctx.ctx().table.get(fd)? {
        Descriptor::File(file) => Some(file.file.clone()),
        Descriptor::Dir(_) => None,
    })
}

/// The bytes of a file that is open are read.
pub(super) fn read<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> wasmtime::Result<()> {
    if let (Some(labels), Some(file)) = (labels(ctx), file(ctx, fd)?) {
        ctx.label().join(labels.of(&file));
    }
    Ok(())
}

/// Whether a guest may change something in a directory, by what it has read.
pub(super) fn changing<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> Labelled {
    match dir(ctx, fd)? {
        Some(dir) if !ctx.may_change(&dir) => Ok(Err(ErrorCode::Access)),
        _ => Ok(Ok(())),
    }
}

/// Whether a file may have its next name in another directory: one that has a name on the machine and one in the session would be
/// asked about by one of them alone.
pub(super) fn naming<T: ChargedFiles>(ctx: &mut T, from: &Resource<Descriptor>, to: &Resource<Descriptor>) -> Labelled {
    let (Some(from), Some(to)) = (dir(ctx, from)?, dir(ctx, to)?) else { return Ok(Ok(())) };
    let crosses = ctx.machine(&from).is_some() != ctx.machine(&to).is_some();
    Ok(if crosses { Err(ErrorCode::CrossDevice) } else { Ok(()) })
}

/// A file was opened: it is read, or it has nothing of what it had before.
pub(super) fn opened<T: ChargedFiles>(
    ctx: &mut T,
    fd: &Resource<Descriptor>,
    (new, emptied): (bool, bool),
) -> Labelled {
    let Some(opened) = file(ctx, fd)? else { return Ok(Ok(())) };
    if let Some(published) = ctx.published() {
        ctx.label().join(published.of(&opened));
    }
    let Some(labels) = labels(ctx) else { return Ok(Ok(())) };
    let label = ctx.label().get();
    Ok(told(match (new, emptied) {
        (true, _) => labels.made(&opened, label),
        (false, true) => labels.emptied(&opened, label),
        (false, false) => {
            ctx.label().join(labels.of(&opened));
            Ok(())
        }
    }))
}

/// Something at a path is looked at, but for what is in it.
pub(super) fn looked<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>, path: &str) -> wasmtime::Result<()> {
    let Some(dir) = dir(ctx, fd)? else { return Ok(()) };
    if let Some(published) = ctx.published() {
        ctx.label().join(published.of_entry(&dir, path));
    }
    let label = match labels(ctx) {
        Some(labels) if !labels.is_empty() => labels.of_entry(&*dir, path.as_ref()),
        _ => return Ok(()),
    };
    if !label.is_ordinary() {
        ctx.label().join(label);
    }
    Ok(())
}

/// The names in a directory are read.
pub(super) fn listed<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> wasmtime::Result<()> {
    let Some(dir) = dir(ctx, fd)? else { return Ok(()) };
    if let Some(published) = ctx.published() {
        ctx.label().join(published.of(&dir));
    }
    if let Some(labels) = labels(ctx) {
        ctx.label().join(labels.of_names(&*dir));
    }
    Ok(())
}

/// Bytes are about to be written to a file.
pub(super) fn writing<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> Labelled {
    let (Some(file), label) = (file(ctx, fd)?, ctx.label().get()) else { return Ok(Ok(())) };
    if !ctx.may_change(&file) {
        return Ok(Err(ErrorCode::Access));
    }
    Ok(told(labels(ctx).map_or(Ok(()), |labels| labels.writing(&file, label))))
}

/// Keeps whoever empties a file meanwhile from taking the label of what is about to be written.
pub(super) fn tainting<T: ChargedFiles>(
    ctx: &mut T,
    fd: &Resource<Descriptor>,
) -> wasmtime::Result<Option<TaintedFile>> {
    let (Some(labels), Some(file)) = (labels(ctx), file(ctx, fd)?) else { return Ok(None) };
    if ctx.label().get().is_ordinary() {
        return Ok(None);
    }
    Ok(labels.tainted(&file).ok())
}

/// A directory or a link was made.
pub(super) fn made<T: ChargedFiles>(ctx: &T, at: Option<&EntryPath>) -> Result<(), ErrorCode> {
    let (Some(labels), Some(at)) = (labels(ctx), at) else { return Ok(()) };
    let ((dir, name), label) = (at.slot(), ctx.label().get());
    told(labels.made_at(dir, name, label))
}

/// Something has a name now that it did not have.
pub(super) fn named<T: ChargedFiles>(ctx: &T, at: Option<&EntryPath>) -> Result<(), ErrorCode> {
    let (Some(labels), Some(at)) = (labels(ctx), at) else { return Ok(()) };
    let ((dir, name), label) = (at.slot(), ctx.label().get());
    told(labels.named(dir, name, label))
}

/// A name is about to go.
pub(super) fn unnaming<T: ChargedFiles>(ctx: &T, at: Option<&EntryPath>) -> Result<(), ErrorCode> {
    let (Some(labels), Some(at)) = (labels(ctx), at) else { return Ok(()) };
    told(labels.unnaming(at.slot().0, ctx.label().get()))
}

/// Takes down the label of what was done at a place; without it, the call ends.
pub(super) fn taken<T: ChargedFiles, V>(
    ctx: &T,
    done: &FsResult<V>,
    at: Option<&EntryPath>,
    take: impl FnOnce(&T, Option<&EntryPath>) -> Result<(), ErrorCode>,
) -> wasmtime::Result<()> {
    match done {
        Ok(_) => take(ctx, at).map_err(|_| wasmtime::format_err!("the label of a file cannot be kept")),
        Err(_) => Ok(()),
    }
}

/// What writes to a file through a stream, whose label may get worse meanwhile.
pub(super) struct LabelledWrites {
    labels: Option<Arc<FileLabels>>,
    cell: LabelCell,
    file: Arc<File>,
    /// Where it lies, if that is not the session's.
    machine: Option<MountSink>,
    tainted: Option<TaintedFile>,
}

impl LabelledWrites {
    pub(super) fn of<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> wasmtime::Result<Option<Self>> {
        let Some(file) = file(ctx, fd)? else { return Ok(None) };
        let (labels, cell, machine) = (labels(ctx), ctx.label().clone(), ctx.machine(&file));
        Ok(Some(Self { labels, cell, file, machine, tainted: None }))
    }

    /// Bytes are about to be written.
    pub(super) fn writing(&mut self) -> io::Result<()> {
        let label = self.cell.get();
        if self.machine.as_ref().is_some_and(|machine| !machine.admits(label)) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let Some(labels) = self.labels.as_ref().filter(|_| !label.is_ordinary()) else { return Ok(()) };
        if self.tainted.is_none() {
            self.tainted = Some(labels.tainted(&self.file)?);
        }
        labels.writing(&self.file, label)
    }
}

/// What reads a file through a stream: each time as it is then.
pub(super) struct LabelledReads {
    inner: DynInputStream,
    labels: Arc<FileLabels>,
    cell: LabelCell,
    file: Arc<File>,
}

impl LabelledReads {
    /// A stream that was opened, with the label of what comes out of it.
    pub(super) fn wrap<T: ChargedFiles>(
        ctx: &mut T,
        fd: &Resource<Descriptor>,
        stream: Resource<DynInputStream>,
    ) -> wasmtime::Result<Resource<DynInputStream>> {
        let (Some(labels), Some(file)) = (labels(ctx), file(ctx, fd)?) else { return Ok(stream) };
        let cell = ctx.label().clone();
        let inner = ctx.ctx().table.delete(stream)?;
        let stream: DynInputStream = Box::new(Self { inner, labels, cell, file });
        Ok(ctx.ctx().table.push(stream)?)
    }

    /// Whoever wrote put its label down first, so what was read has it by now.
    fn taken<V>(&self, read: StreamResult<V>) -> StreamResult<V> {
        self.cell.join(self.labels.of(&self.file));
        read
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for LabelledReads {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let read = self.inner.read(size);
        self.taken(read)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        let read = self.inner.blocking_read(size).await;
        self.taken(read)
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LabelledReads {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

/// Without its label, nothing is written.
fn told(done: io::Result<()>) -> Result<(), ErrorCode> {
    done.map_err(|error| {
        tracing::warn!(%error, "the label of a file cannot be kept");
        ErrorCode::Io
    })
}
