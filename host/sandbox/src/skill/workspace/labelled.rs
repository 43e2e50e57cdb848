//! Reads and writes labels where a guest reads and writes files.

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

/// A read that is about to happen, and the moment from which dropped labels count.
pub(super) struct Reading {
    labels: Option<Arc<FileLabels>>,
    moment: Option<Moment>,
    at: Arc<File>,
}

impl<T: ChargedFiles> Filesystem<'_, T> {
    fn labels(&self) -> Option<Arc<FileLabels>> {
        self.0.quota().labels().cloned()
    }

    /// An open file or directory.
    fn file_or_dir(&mut self, fd: &Fd) -> FsResult<Arc<File>> {
        Ok(match self.0.filesystem().table.get(fd)? {
            Descriptor::Dir(dir) => dir.dir.clone(),
            Descriptor::File(file) => file.file.clone(),
        })
    }

    pub(super) fn file(&mut self, fd: &Fd) -> FsResult<Option<Arc<File>>> {
        Ok(match self.0.filesystem().table.get(fd)? {
            Descriptor::File(file) if !is_null(&file.file) => Some(file.file.clone()),
            Descriptor::File(_) | Descriptor::Dir(_) => None,
        })
    }

    /// Begins a read.
    pub(super) fn look(&mut self, fd: &Fd) -> FsResult<Reading> {
        let labels = self.labels();
        Ok(Reading { moment: labels.as_ref().map(|labels| labels.now()), labels, at: self.file_or_dir(fd)? })
    }

    /// Ends a read, successful or not, and joins the label.
    pub(super) fn saw(&mut self, look: Reading, label: impl FnOnce(&FileLabels, &File) -> LabelId) {
        if let (Some(labels), Some(mut moment)) = (look.labels, look.moment) {
            let label = label(&labels, &look.at);
            self.0.label().join(label.join(labels.since(&mut moment)));
        }
    }

    /// Records that the guest has asked about the entry of a path, but not read its bytes.
    pub(super) fn saw_entry(&mut self, look: Reading, path: &str, follow: PathFlags) {
        if let Some(published) = self.0.published() {
            self.0.label().join(published.of_entry(&look.at, path));
        }
        let label = |labels: &FileLabels, dir: &File| labels.of_entry(dir, path.as_ref(), follows(follow));
        // A program knows that a directory exists that it was given.
        match path.trim_matches(['.', '/']).is_empty() {
            true => self.saw(look, label),
            false => self.saw_of_session(look, label),
        }
    }

    /// Records that the names in a directory were read.
    pub(super) fn saw_names(&mut self, look: Reading) {
        if let Some(published) = self.0.published() {
            self.0.label().join(published.label_of(&look.at));
        }
        self.saw_of_session(look, |labels, dir| labels.of_names(dir));
    }

    /// Names, sizes, times and targets of links are the session's information, as the bytes of its files are.
    pub(super) fn saw_of_session(&mut self, look: Reading, label: impl FnOnce(&FileLabels, &File) -> LabelId) {
        self.saw(look, |labels, at| label(labels, at).join(LabelId::session()));
    }

    /// Records that a guest is about to learn whether a path exists. Nobody changes that meanwhile.
    pub(super) fn learn_way(&mut self, fd: &Fd, path: &str, follow: PathFlags) -> FsResult<()> {
        let look = self.look(fd)?;
        self.saw_of_session(look, |labels, dir| labels.of_way(dir, path.as_ref(), follows(follow)));
        Ok(())
    }

    /// Records that a guest is about to replace the entry of a path. It learns whether that is a directory with entries, but not
    /// whether a file exists.
    pub(super) fn learn_place(&mut self, fd: &Fd, path: &str) -> FsResult<()> {
        let look = self.look(fd)?;
        self.saw_of_session(look, |labels, dir| labels.of_place(dir, path.as_ref()));
        Ok(())
    }

    /// Fails if a guest may not change a directory or a file, given the data that it has read.
    pub(super) fn may_change(&mut self, fd: &Fd) -> FsResult<()> {
        let at = self.file_or_dir(fd)?;
        if self.0.may_change(&at) { Ok(()) } else { Err(ErrorCode::Access.into()) }
    }

    /// Fails if a file would get a second name in a directory of another kind. With a name on the machine and one in the session,
    /// only one of the two checks would apply.
    pub(super) fn stays(&mut self, from: &Fd, to: &Fd) -> FsResult<()> {
        let (from, to) = (self.file_or_dir(from)?, self.file_or_dir(to)?);
        let crosses = self.0.machine(&from).is_some() != self.0.machine(&to).is_some();
        if crosses { Err(ErrorCode::CrossDevice.into()) } else { Ok(()) }
    }

    /// Records that a file is about to be opened.
    pub(super) fn opening(
        &mut self,
        fd: &Fd,
        path: &str,
        follow: PathFlags,
        mode: OpenMode,
    ) -> FsResult<Option<FileOpening>> {
        let Some(labels) = self.labels() else { return Ok(None) };
        let dir = self.file_or_dir(fd)?;
        let opening = labels.opening((&dir, path.as_ref(), follows(follow)), mode, self.0.label());
        kept(opening).map(Some)
    }

    /// Records that it was opened, and whether it was made or emptied.
    pub(super) fn opened(
        &mut self,
        fd: &Fd,
        opening: Option<FileOpening>,
        (base, path, follow): (&Fd, &str, PathFlags),
        made: (bool, bool),
    ) -> FsResult<()> {
        let (opened, dir) = (self.file_or_dir(fd)?, self.file_or_dir(base)?);
        if let Some(published) = self.0.published() {
            self.0.label().join(published.label_of(&opened));
        }
        let Some(opening) = opening else { return Ok(()) };
        kept(opening.opened(&opened, (&dir, path.as_ref(), follows(follow)), made, self.0.label()))?;
        let is_to_write = match self.0.filesystem().table.get(fd)? {
            Descriptor::File(file) => file.open_mode.contains(wasmtime_wasi::filesystem::OpenMode::WRITE),
            Descriptor::Dir(_) => false,
        };
        if let Some(labels) = self.labels().filter(|_| is_to_write) {
            self.0.label().holds(OpenLabelled { labels, file: Arc::downgrade(&opened) });
        }
        Ok(())
    }

    /// Records that it was not opened.
    pub(super) fn not_opened(&mut self, opening: Option<FileOpening>) {
        if let Some(opening) = opening {
            opening.failed(self.0.label());
        }
    }

    /// Records that bytes are about to be written to a file.
    pub(super) fn writing(&mut self, fd: &Fd) -> FsResult<()> {
        let Some(file) = self.file(fd)? else { return Ok(()) };
        self.may_change(fd)?;
        kept(self.labels().map_or(Ok(()), |labels| labels.writing(&file, self.0.label().get())))
    }

    /// Records that its times are about to be set.
    pub(super) fn timing(&mut self, fd: &Fd) -> FsResult<()> {
        let at = self.file_or_dir(fd)?;
        kept(self.labels().map_or(Ok(()), |labels| labels.attributing(&at, self.0.label().get())))
    }

    /// Records that the times of a path's entry are about to be set.
    pub(super) fn timing_at(&mut self, fd: &Fd, path: &str, follow: PathFlags) -> FsResult<()> {
        let at = self.file_or_dir(fd)?;
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

    /// Records that a directory or a link is about to be made.
    pub(super) fn naming(&mut self, at: Option<&EntryPath>) -> FsResult<Option<EntryChange>> {
        let label = self.0.label().get();
        self.change(at, |labels, (dir, name)| labels.naming(dir, name, label))
    }

    /// Records that a file is about to get a further name.
    pub(super) fn linking(
        &mut self,
        from: Option<&EntryPath>,
        at: Option<&EntryPath>,
    ) -> FsResult<Option<EntryChange>> {
        let (label, Some((dir, name))) = (self.0.label().get(), from.map(EntryPath::slot)) else { return Ok(None) };
        if let Some(labels) = self.labels() {
            // The operation itself returns the same error.
            let _ = labels.linking(dir, name, label);
        }
        self.naming(at)
    }

    /// Records that an entry is about to be moved.
    pub(super) fn moving(&mut self, from: Option<&EntryPath>, to: Option<&EntryPath>) -> FsResult<Option<EntryChange>> {
        let (Some(from), Some(to)) = (from, to) else { return Ok(None) };
        let label = self.0.label().get();
        // Both are names of one file: nothing happens.
        if from.is_same(to) {
            return Ok(None);
        }
        let gone = self.change(Some(from), |labels, (dir, name)| labels.unnaming(dir, name, label))?;
        let come = self.change(Some(to), |labels, (dir, name)| labels.replacing(dir, name, label))?;
        Ok(gone.zip(come).map(|(gone, come)| gone.and(come)))
    }

    /// Records that a name is about to be removed.
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

    /// Records that the entry was made.
    pub(super) fn made(&mut self, at: Option<&EntryPath>, change: Option<EntryChange>) -> FsResult<()> {
        if let (Some(labels), Some(at)) = (self.labels(), at) {
            let (dir, name) = at.slot();
            labels.made_at(dir, name, self.0.label().get()).map_err(lost)?;
        }
        self.changed(change)
    }

    /// Records that an entry was changed.
    pub(super) fn changed(&mut self, change: Option<EntryChange>) -> FsResult<()> {
        change.map_or(Ok(()), EntryChange::done).map_err(lost)
    }
}

fn follows(follow: PathFlags) -> bool {
    follow.contains(PathFlags::SYMLINK_FOLLOW)
}

/// Without its label, the guest must not continue.
fn lost(error: io::Error) -> FsError {
    FsError::trap(wasmtime::format_err!("the label of a file cannot be kept: {error}"))
}

/// Labels a file's writes through a stream. The label may get worse meanwhile.
pub(super) struct LabelledWrites {
    labels: Option<Arc<FileLabels>>,
    cell: LabelCell,
    file: Arc<File>,
    /// Its mount, if it does not belong to the session.
    machine: Option<MountSink>,
    tainted: Option<TaintedFile>,
}

impl LabelledWrites {
    pub(super) fn from_fd<T: ChargedFiles>(guest: &mut Filesystem<'_, T>, fd: &Fd) -> FsResult<Option<Self>> {
        let Some(file) = guest.file(fd)? else { return Ok(None) };
        let (labels, cell, machine) = (guest.labels(), guest.0.label().clone(), guest.0.machine(&file));
        Ok(Some(Self { labels, cell, file, machine, tainted: None }))
    }

    /// Records that bytes are about to be written.
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
    /// Wraps an opened stream, so that its reads join the label.
    pub(super) fn wrap<T: ChargedFiles>(
        guest: &mut Filesystem<'_, T>,
        fd: &Fd,
        stream: Resource<DynInputStream>,
    ) -> FsResult<Resource<DynInputStream>> {
        let (Some(labels), Some(file)) = (guest.labels(), guest.file(fd)?) else { return Ok(stream) };
        let (moment, cell) = (labels.now(), guest.0.label().clone());
        let inner = guest.0.filesystem().table.delete(stream)?;
        let stream: DynInputStream = Box::new(Self { inner, labels, moment, cell, file });
        Ok(guest.0.filesystem().table.push(stream)?)
    }

    /// A writer records its label first, so data that was read has its label by now.
    fn taken<V>(&mut self, read: StreamResult<V>) -> StreamResult<V> {
        self.cell.join(self.labels.label_of(&self.file));
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
