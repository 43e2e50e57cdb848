//! Labels of files, where a guest reads and writes them.

use super::files::{ChargedFiles, Filesystem};
use super::null::is_null;
use super::structure::EntryPath;
use crate::effect::files::{EntryChange, FileLabels, FileOpening, Moment, OpenLabelled, OpenMode, TaintedFile};
use crate::effect::label::{LabelCell, LabelId};
use crate::effect::sink::MountSink;
use bytes::Bytes;
use cap_std::fs::Dir;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, PathFlags};
use wasmtime_wasi::p2::{DynInputStream, FsError, FsResult, InputStream, Pollable, StreamResult};

type Fd = Resource<Descriptor>;

/// Something that is about to be read, and the labels that it may have.
pub(super) struct Reading {
    labels: Option<Arc<FileLabels>>,
    moment: Option<Moment>,
    at: Arc<File>,
}

impl<T: ChargedFiles> Filesystem<'_, T> {
    fn labels(&self) -> Option<Arc<FileLabels>> {
        self.0.quota().labels().cloned()
    }

    /// A file or a directory that is open.
    fn at(&mut self, fd: &Fd) -> FsResult<Arc<File>> {
        Ok(match self.0.ctx().table.get(fd)? {
            Descriptor::Dir(dir) => dir.dir.clone(),
            Descriptor::File(file) => file.file.clone(),
        })
    }

    pub(super) fn file(&mut self, fd: &Fd) -> FsResult<Option<Arc<File>>> {
        Ok(match self.0.ctx().table.get(fd)? {
            Descriptor::File(file) if !is_null(&file.file) => Some(file.file.clone()),
            Descriptor::File(_) | Descriptor::Dir(_) => None,
        })
    }

    /// Taken before something is read.
    pub(super) fn look(&mut self, fd: &Fd) -> FsResult<Reading> {
        let labels = self.labels();
        Ok(Reading { moment: labels.as_ref().map(|labels| labels.now()), labels, at: self.at(fd)? })
    }

    /// It was read, whatever came of it.
    pub(super) fn saw(&mut self, look: Reading, label: impl FnOnce(&FileLabels, &File) -> LabelId) {
        if let (Some(labels), Some(mut moment)) = (look.labels, look.moment) {
            let label = label(&labels, &look.at);
            self.0.label().join(label.join(labels.since(&mut moment)));
        }
    }

    /// Something at a path was asked about, but for the bytes in it.
    pub(super) fn saw_entry(&mut self, look: Reading, path: &str, follow: PathFlags) {
        if let Some(published) = self.0.published() {
            self.0.label().join(published.of_entry(&look.at, path));
        }
        let label = |labels: &FileLabels, dir: &File| labels.of_entry(dir, path.as_ref(), follows(follow));
        // That a directory is there which it was given, a program knows.
        match path.trim_matches(['.', '/']).is_empty() {
            true => self.saw(look, label),
            false => self.saw_of_session(look, label),
        }
    }

    /// The names in a directory were read.
    pub(super) fn saw_names(&mut self, look: Reading) {
        if let Some(published) = self.0.published() {
            self.0.label().join(published.of(&look.at));
        }
        self.saw_of_session(look, |labels, dir| labels.of_names(dir));
    }

    /// Names, sizes, times and targets of links are the session's, as the bytes of its files are.
    pub(super) fn saw_of_session(&mut self, look: Reading, label: impl FnOnce(&FileLabels, &File) -> LabelId) {
        self.saw(look, |labels, at| label(labels, at).join(LabelId::session()));
    }

    /// A guest is about to learn whether something stands at a path, while nobody changes that.
    pub(super) fn learn_way(&mut self, fd: &Fd, path: &str, follow: PathFlags) -> FsResult<()> {
        let look = self.look(fd)?;
        self.saw_of_session(look, |labels, dir| labels.of_way(dir, path.as_ref(), follows(follow)));
        Ok(())
    }

    /// A guest is about to put something in the place of what stands at a path: whether that is a directory with something in it, it
    /// learns, but not whether there is a file.
    pub(super) fn learn_place(&mut self, fd: &Fd, path: &str) -> FsResult<()> {
        let look = self.look(fd)?;
        self.saw_of_session(look, |labels, dir| labels.of_place(dir, path.as_ref()));
        Ok(())
    }

    /// Fails where a guest may not change something in a directory or a file, by what it has read.
    pub(super) fn may_change(&mut self, fd: &Fd) -> FsResult<()> {
        let at = self.at(fd)?;
        if self.0.may_change(&at) { Ok(()) } else { Err(ErrorCode::Access.into()) }
    }

    /// Fails where a file would have its next name in a directory of another kind: one that has a name on the machine and one in the session
    /// would be asked about by one of them alone.
    pub(super) fn stays(&mut self, from: &Fd, to: &Fd) -> FsResult<()> {
        let (from, to) = (self.at(from)?, self.at(to)?);
        let crosses = self.0.machine(&from).is_some() != self.0.machine(&to).is_some();
        if crosses { Err(ErrorCode::CrossDevice.into()) } else { Ok(()) }
    }

    /// A file is about to be opened.
    pub(super) fn opening(
        &mut self,
        fd: &Fd,
        path: &str,
        follow: PathFlags,
        mode: OpenMode,
    ) -> FsResult<Option<FileOpening>> {
        let Some(labels) = self.labels() else { return Ok(None) };
        let dir = self.at(fd)?;
        let opening = labels.opening((&dir, path.as_ref(), follows(follow)), mode, self.0.label());
        kept(opening).map(Some)
    }

    /// It was opened, and made, emptied, or neither.
    pub(super) fn opened(
        &mut self,
        fd: &Fd,
        opening: Option<FileOpening>,
        (base, path, follow): (&Fd, &str, PathFlags),
        made: (bool, bool),
    ) -> FsResult<()> {
        let (opened, dir) = (self.at(fd)?, self.at(base)?);
        if let Some(published) = self.0.published() {
            self.0.label().join(published.of(&opened));
        }
        let Some(opening) = opening else { return Ok(()) };
        kept(opening.opened(&opened, (&dir, path.as_ref(), follows(follow)), made, self.0.label()))?;
        let is_to_write = match self.0.ctx().table.get(fd)? {
            Descriptor::File(file) => file.open_mode.contains(wasmtime_wasi::filesystem::OpenMode::WRITE),
            Descriptor::Dir(_) => false,
        };
        if let Some(labels) = self.labels().filter(|_| is_to_write) {
            self.0.label().holds(OpenLabelled { labels, file: Arc::downgrade(&opened) });
        }
        Ok(())
    }

    /// It was not.
    pub(super) fn not_opened(&mut self, opening: Option<FileOpening>) {
        if let Some(opening) = opening {
            opening.failed(self.0.label());
        }
    }

    /// Bytes are about to be written to a file.
    pub(super) fn writing(&mut self, fd: &Fd) -> FsResult<()> {
        let Some(file) = self.file(fd)? else { return Ok(()) };
        self.may_change(fd)?;
        kept(self.labels().map_or(Ok(()), |labels| labels.writing(&file, self.0.label().get())))
    }

    /// Its times are about to be set.
    pub(super) fn timing(&mut self, fd: &Fd) -> FsResult<()> {
        let at = self.at(fd)?;
        kept(self.labels().map_or(Ok(()), |labels| labels.attributing(&at, self.0.label().get())))
    }

    /// The times of what stands at a path are about to be set.
    pub(super) fn timing_at(&mut self, fd: &Fd, path: &str, follow: PathFlags) -> FsResult<()> {
        let at = self.at(fd)?;
        let label = self.0.label().get();
        kept(self.labels().map_or(Ok(()), |labels| labels.attributing_at(&at, path.as_ref(), follows(follow), label)))
    }

    /// While this exists, nobody who empties the file can remove the label of the bytes that are about to be written.
    pub(super) fn tainting(&mut self, fd: &Fd) -> FsResult<Option<TaintedFile>> {
        let (Some(labels), Some(file)) = (self.labels(), self.file(fd)?) else { return Ok(None) };
        if self.0.label().get().is_ordinary() {
            return Ok(None);
        }
        Ok(labels.tainted(&file).ok())
    }

    /// A directory or a link is about to be made.
    pub(super) fn naming(&mut self, at: Option<&EntryPath>) -> FsResult<Option<EntryChange>> {
        let label = self.0.label().get();
        self.change(at, |labels, (dir, name)| labels.naming(dir, name, label))
    }

    /// A file is about to get a further name.
    pub(super) fn linking(
        &mut self,
        from: Option<&EntryPath>,
        at: Option<&EntryPath>,
    ) -> FsResult<Option<EntryChange>> {
        let (label, Some((dir, name))) = (self.0.label().get(), from.map(EntryPath::slot)) else { return Ok(None) };
        if let Some(labels) = self.labels() {
            // Whoever makes it finds the same error.
            let _ = labels.linking(dir, name, label);
        }
        self.naming(at)
    }

    /// Something is about to be moved.
    pub(super) fn moving(&mut self, from: Option<&EntryPath>, to: Option<&EntryPath>) -> FsResult<Option<EntryChange>> {
        let (Some(from), Some(to)) = (from, to) else { return Ok(None) };
        let label = self.0.label().get();
        // Two names of one file: nothing happens.
        if from.is_same(to) {
            return Ok(None);
        }
        let gone = self.change(Some(from), |labels, (dir, name)| labels.unnaming(dir, name, label))?;
        let come = self.change(Some(to), |labels, (dir, name)| labels.replacing(dir, name, label))?;
        Ok(gone.zip(come).map(|(gone, come)| gone.and(come)))
    }

    /// A name is about to go.
    pub(super) fn unnaming(&mut self, at: Option<&EntryPath>) -> FsResult<Option<EntryChange>> {
        let label = self.0.label().get();
        self.change(at, |labels, (dir, name)| labels.unnaming(dir, name, label))
    }

    fn change(
        &mut self,
        at: Option<&EntryPath>,
        change: impl FnOnce(&Arc<FileLabels>, (&Dir, &OsStr)) -> io::Result<EntryChange>,
    ) -> FsResult<Option<EntryChange>> {
        let (Some(labels), Some(at)) = (self.labels(), at) else { return Ok(None) };
        kept(change(&labels, at.slot())).map(Some)
    }

    /// It was made.
    pub(super) fn made(&mut self, at: Option<&EntryPath>, change: Option<EntryChange>) -> FsResult<()> {
        if let (Some(labels), Some(at)) = (self.labels(), at) {
            let (dir, name) = at.slot();
            labels.made_at(dir, name, self.0.label().get()).map_err(lost)?;
        }
        self.changed(change)
    }

    /// An entry was changed.
    pub(super) fn changed(&mut self, change: Option<EntryChange>) -> FsResult<()> {
        change.map_or(Ok(()), EntryChange::done).map_err(lost)
    }
}

fn follows(follow: PathFlags) -> bool {
    follow.contains(PathFlags::SYMLINK_FOLLOW)
}

/// Without its label, the guest goes no further.
fn lost(error: io::Error) -> FsError {
    FsError::trap(wasmtime::format_err!("the label of a file cannot be kept: {error}"))
}

/// Labels a file's writes through a stream. The label may get worse meanwhile.
pub(super) struct LabelledWrites {
    labels: Option<Arc<FileLabels>>,
    cell: LabelCell,
    file: Arc<File>,
    /// Where it lies, if that is not the session's.
    machine: Option<MountSink>,
    tainted: Option<TaintedFile>,
}

impl LabelledWrites {
    pub(super) fn of<T: ChargedFiles>(guest: &mut Filesystem<'_, T>, fd: &Fd) -> FsResult<Option<Self>> {
        let Some(file) = guest.file(fd)? else { return Ok(None) };
        let (labels, cell, machine) = (guest.labels(), guest.0.label().clone(), guest.0.machine(&file));
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

/// Labels a file's reads through a stream, with the file's label at each read.
pub(super) struct LabelledReads {
    inner: DynInputStream,
    labels: Arc<FileLabels>,
    moment: Moment,
    cell: LabelCell,
    file: Arc<File>,
}

impl LabelledReads {
    /// A stream that was opened, with the label of what comes out of it.
    pub(super) fn wrap<T: ChargedFiles>(
        guest: &mut Filesystem<'_, T>,
        fd: &Fd,
        stream: Resource<DynInputStream>,
    ) -> FsResult<Resource<DynInputStream>> {
        let (Some(labels), Some(file)) = (guest.labels(), guest.file(fd)?) else { return Ok(stream) };
        let (moment, cell) = (labels.now(), guest.0.label().clone());
        let inner = guest.0.ctx().table.delete(stream)?;
        let stream: DynInputStream = Box::new(Self { inner, labels, moment, cell, file });
        Ok(guest.0.ctx().table.push(stream)?)
    }

    /// Whoever wrote put its label down first, so what was read has it by now.
    fn taken<V>(&mut self, read: StreamResult<V>) -> StreamResult<V> {
        self.cell.join(self.labels.of(&self.file));
        self.cell.join(self.labels.since(&mut self.moment));
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
fn kept<V>(done: io::Result<V>) -> FsResult<V> {
    done.map_err(|error| {
        tracing::warn!(%error, "the label of a file cannot be kept");
        ErrorCode::Io.into()
    })
}
