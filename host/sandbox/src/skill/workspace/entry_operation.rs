//! A guest's operations on an entry of a directory. Each function reads the labels on the way, keeps the old state, charges the
//! quota, and then delegates to wasmtime.
//!
//! The caller holds the structure lock for every change of an entry.

use super::asked::{again, allow, fits, fixed_attributes, is_plain, is_there, settle};
use super::directory_use::{READ, WRITE};
use super::files::{ChargedFiles, Filesystem, note};
use super::structure::EntryPath;
use crate::effect::files::OpenMode;
use crate::effect::undo::Opening;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, HostDescriptor, MetadataHashValue, NewTimestamp,
    OpenFlags, PathFlags,
};

type Fd = Resource<Descriptor>;

impl<T: ChargedFiles> Filesystem<'_, T> {
    pub(super) async fn set_times_here(
        &mut self,
        fd: Fd,
        follow: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.may_change(&fd)?;
        self.learn_way(&fd, &path, follow)?;
        self.timing_at(&fd, &path, follow)?;
        self.wasi().set_times_at(fd, follow, path, accessed, modified).await
    }

    pub(super) async fn stat_here(&mut self, fd: Fd, follow: PathFlags, path: String) -> FsResult<DescriptorStat> {
        note(self.0, &fd, &path, READ, false);
        let look = self.look(&fd)?;
        let stat = self.wasi().stat_at(fd, follow, path.clone()).await;
        self.saw_entry(look, &path, follow);
        Ok(fixed_attributes(stat?))
    }

    pub(super) async fn metadata_hash_here(
        &mut self,
        fd: Fd,
        follow: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let look = self.look(&fd)?;
        // wasi-libc makes a file's number from this, and asks about the link if a program asks about the file. `cp` then took
        // them for two files and emptied the file. So a link has the number of its target.
        let of_file = PathFlags::SYMLINK_FOLLOW;
        let hash = match self.wasi().metadata_hash_at(again(&fd), of_file, path.clone()).await {
            Err(_) => self.wasi().metadata_hash_at(fd, follow, path.clone()).await,
            hash => hash,
        };
        self.saw_entry(look, &path, of_file);
        hash
    }

    pub(super) async fn readlink_here(&mut self, fd: Fd, path: String) -> FsResult<String> {
        let look = self.look(&fd)?;
        let target = self.wasi().readlink_at(fd, path.clone()).await;
        self.saw_entry(look, &path, PathFlags::empty());
        target
    }

    pub(super) async fn open_here(
        &mut self,
        fd: Fd,
        follow: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let changes = open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
        let writes = flags.contains(DescriptorFlags::WRITE) || changes;
        let mode = OpenMode {
            makes: open.contains(OpenFlags::CREATE),
            is_first: open.contains(OpenFlags::EXCLUSIVE),
            empties: open.contains(OpenFlags::TRUNCATE),
        };
        let labelled = self.opening(&fd, &path, follow, mode)?;
        let there = self.wasi().stat_at(again(&fd), follow, path.clone()).await;
        // Opening a pipe or a device that a person left there could block a thread for ever.
        if there.as_ref().is_ok_and(|stat| !is_plain(stat.type_)) {
            self.not_opened(labelled);
            return Err(ErrorCode::NotPermitted.into());
        }
        if writes {
            self.may_change(&fd)?;
        }
        let is_dir = there.as_ref().is_ok_and(|stat| stat.type_ == DescriptorType::Directory);
        let mut new = there.is_err() && mode.makes;
        let charge = if new { Some(self.entry()?) } else { None };
        let kept = match self.keep_opening(&fd, (&path, follow.contains(PathFlags::SYMLINK_FOLLOW), open)) {
            Ok(kept) => kept,
            refused => {
                settle(charge, &refused);
                return refused.map(|_| fd);
            }
        };
        note(self.0, &fd, &path, READ, is_dir);
        let (base, name) = (again(&fd), path.clone());
        // Only a file that this call creates can belong to nobody else.
        let first = if new { open | OpenFlags::EXCLUSIVE } else { open };
        let opened = match self.wasi().open_at(again(&fd), follow, path.clone(), first, flags).await {
            Err(error) if new && !mode.is_first && is_there(&error) => {
                new = false;
                self.wasi().open_at(fd, follow, path, open, flags).await
            }
            opened => opened,
        };
        settle(charge, &opened);
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.not_opened(labelled);
                return Err(error);
            }
        };
        if writes && !is_dir {
            note(self.0, &base, &name, WRITE, false);
        }
        if let Opening::Fresh = kept {
            self.keep_made(&opened);
        }
        self.opened(&opened, labelled, (&base, &name, follow), (new, mode.empties))?;
        Ok(opened)
    }

    pub(super) async fn create_dir_here(&mut self, fd: Fd, path: String) -> FsResult<()> {
        self.may_change(&fd)?;
        self.learn_way(&fd, &path, PathFlags::empty())?;
        let place = self.place(&fd, &path)?;
        allow(self.0, fits(&place, EntryPath::takes_directory))?;
        self.keep_making(&fd, place.as_ref().ok())?;
        let charge = self.entry()?;
        note(self.0, &fd, &path, WRITE, false);
        let change = self.naming(place.as_ref().ok())?;
        let made = self.wasi().create_directory_at(fd, path).await;
        settle(Some(charge), &made);
        made?;
        self.made(place.as_ref().ok(), change)
    }

    pub(super) async fn symlink_here(&mut self, fd: Fd, old: String, new: String) -> FsResult<()> {
        self.may_change(&fd)?;
        self.learn_way(&fd, &new, PathFlags::empty())?;
        let place = self.place(&fd, &new)?;
        let old = place.as_ref().map_or(old.clone(), |place| place.kept_target(&old));
        allow(self.0, fits(&place, |place| place.takes_link(&old)))?;
        self.keep_making(&fd, place.as_ref().ok())?;
        let charge = self.entry()?;
        note(self.0, &fd, &new, WRITE, false);
        let change = self.naming(place.as_ref().ok())?;
        let made = self.wasi().symlink_at(fd, old, new).await;
        settle(Some(charge), &made);
        made?;
        self.made(place.as_ref().ok(), change)
    }

    pub(super) async fn link_here(
        &mut self,
        fd: Fd,
        follow: PathFlags,
        old: String,
        to: Fd,
        new: String,
    ) -> FsResult<()> {
        self.may_change(&to)?;
        self.stays(&fd, &to)?;
        self.learn_way(&fd, &old, follow)?;
        self.learn_way(&to, &new, PathFlags::empty())?;
        // A second name of a link is a link, and its target may be different from there.
        let (from, place) = (self.place(&fd, &old)?, self.place(&to, &new)?);
        allow(self.0, fits(&from, |from| fits(&place, |place| place.takes(from))))?;
        self.keep_linking(&to, (from.as_ref().ok(), place.as_ref().ok()))?;
        note(self.0, &to, &new, WRITE, false);
        let (charge, moving) = (self.entry()?, self.0.quota().moving());
        let change = self.linking(from.as_ref().ok(), place.as_ref().ok())?;
        let made = self.wasi().link_at(fd, follow, old, to, new).await;
        drop(moving);
        settle(Some(charge), &made);
        made?;
        self.changed(change)
    }

    pub(super) async fn rename_here(&mut self, fd: Fd, old: String, to: Fd, new: String) -> FsResult<()> {
        self.may_change(&fd)?;
        self.may_change(&to)?;
        self.stays(&fd, &to)?;
        self.learn_way(&fd, &old, PathFlags::empty())?;
        self.learn_place(&to, &new)?;
        let (from, place) = (self.place(&fd, &old)?, self.place(&to, &new)?);
        allow(self.0, fits(&from, |from| fits(&place, |place| place.takes(from))))?;
        self.keep_moving((&fd, &to), (from.as_ref().ok(), place.as_ref().ok()))?;
        note(self.0, &fd, &old, WRITE, false);
        note(self.0, &to, &new, WRITE, false);
        let change = self.moving(from.as_ref().ok(), place.as_ref().ok())?;
        let moving = self.0.quota().moving();
        let moved = self.wasi().rename_at(fd, old, to, new).await;
        drop(moving);
        moved?;
        self.changed(change)
    }

    pub(super) async fn unlink_here(&mut self, fd: Fd, path: String, is_there: bool) -> FsResult<()> {
        self.may_change(&fd)?;
        self.learn_way(&fd, &path, PathFlags::empty())?;
        self.0.quota().settle();
        let place = self.place(&fd, &path)?.ok();
        note(self.0, &fd, &path, WRITE, false);
        let bytes = place.as_ref().and_then(EntryPath::file_bytes);
        let change = self.unnaming(place.as_ref())?;
        if is_there && !self.keep_removing(&fd, (&path, place.as_ref()))? {
            self.wasi().unlink_file_at(fd, path).await?;
        }
        self.changed(change)?;
        if let Some(bytes) = bytes {
            self.0.quota().credit_entry(bytes);
        }
        Ok(())
    }

    pub(super) async fn remove_dir_here(&mut self, fd: Fd, path: String, is_there: bool) -> FsResult<()> {
        self.may_change(&fd)?;
        self.learn_place(&fd, &path)?;
        self.learn_way(&fd, &path, PathFlags::empty())?;
        self.0.quota().settle();
        let place = self.place(&fd, &path)?.ok();
        if is_there {
            self.keep_removing_dir(&fd, place.as_ref())?;
        }
        note(self.0, &fd, &path, WRITE, false);
        let change = self.unnaming(place.as_ref())?;
        if is_there {
            self.wasi().remove_directory_at(fd, path).await?;
        }
        self.changed(change)?;
        if is_there {
            self.0.quota().credit_entry(0);
        }
        Ok(())
    }
}
