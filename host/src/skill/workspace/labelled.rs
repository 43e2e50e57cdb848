//! Labels of files, where a guest reads and writes them.

use super::files::ChargedFiles;
use super::structure::EntryPath;
use crate::effect::files::FileLabels;
use crate::effect::label::{LabelCell, LabelId};
use std::fs::File;
use std::io;
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

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

/// Whether a guest may change something in a directory, by what it has read.
pub(super) fn changing<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> Labelled {
    match dir(ctx, fd)? {
        Some(dir) if !ctx.may_change(&dir) => Ok(Err(ErrorCode::Access)),
        _ => Ok(Ok(())),
    }
}

/// A file was opened: it is read, or it has nothing of what it had before.
pub(super) fn opened<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>, new: bool) -> Labelled {
    let Some(labels) = labels(ctx) else { return Ok(Ok(())) };
    let Some(opened) = file(ctx, fd)? else { return Ok(Ok(())) };
    let label = ctx.label().get();
    if !new {
        ctx.label().join(labels.of(&opened));
        return Ok(Ok(()));
    }
    Ok(told(labels.made(&opened, label)))
}

/// Something at a path is looked at, but for what is in it.
pub(super) fn looked<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>, path: &str) -> wasmtime::Result<()> {
    let Some(labels) = labels(ctx) else { return Ok(()) };
    let label = match dir(ctx, fd)? {
        Some(dir) if !labels.is_empty() => labels.of_entry(&*dir, path.as_ref()),
        _ => return Ok(()),
    };
    if !label.is_ordinary() {
        ctx.label().join(label);
    }
    Ok(())
}

/// The names in a directory are read.
pub(super) fn listed<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> wasmtime::Result<()> {
    let Some(labels) = labels(ctx) else { return Ok(()) };
    let label = match dir(ctx, fd)? {
        Some(dir) => labels.of_names(&*dir),
        None => return Ok(()),
    };
    ctx.label().join(label);
    Ok(())
}

/// Bytes are about to be written to a file.
pub(super) fn writing<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> Labelled {
    let Some(labels) = labels(ctx) else { return Ok(Ok(())) };
    let label = ctx.label().get();
    match file(ctx, fd)? {
        Some(file) => Ok(told(labels.writing(&file, label))),
        None => Ok(Ok(())),
    }
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
    labels: Arc<FileLabels>,
    cell: LabelCell,
    file: Arc<File>,
    last: LabelId,
}

impl LabelledWrites {
    pub fn of<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> wasmtime::Result<Option<Self>> {
        let (Some(labels), cell) = (labels(ctx), ctx.label().clone()) else { return Ok(None) };
        let file = file(ctx, fd)?;
        Ok(file.map(|file| Self { labels, cell, file, last: LabelId::default() }))
    }

    /// Bytes are about to be written.
    pub fn writing(&mut self) -> io::Result<()> {
        let now = self.cell.get();
        if now != self.last {
            self.labels.writing(&self.file, now)?;
            self.last = now;
        }
        Ok(())
    }
}

/// Without its label, nothing is written.
fn told(done: io::Result<()>) -> Result<(), ErrorCode> {
    done.map_err(|error| {
        tracing::warn!(%error, "the label of a file cannot be kept");
        ErrorCode::Io
    })
}
