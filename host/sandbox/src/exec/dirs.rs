//! The directories that processes see, and how the shell opens a file in them.

use super::channel::{Channel, IoError, OpenFile};
use super::errno::Errno;
use super::wit::kiso::exec::spawn::Mode;
use crate::effect::files::OpenMode;
use crate::effect::label::LabelCell;
use crate::effect::overlay::{FileAccess, Overlay, Overlays, PendingOpen};
use crate::effect::published::PublishedFiles;
use crate::effect::sink::{MountSink, Permit};
use crate::effect::undo::Opening;
use crate::skill::SKILLS_MOUNT;
use crate::skill::sandbox::{DirId, Quota, Root, Roots, from_root, target};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use kiso_base::home::SHARED;
use kiso_base::system::{path_of, path_to_open};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

/// A directory that processes see.
#[derive(Debug)]
pub(super) struct MountPoint {
    /// Its path for processes, such as "/work".
    pub at: String,
    /// Its path on this machine.
    path: PathBuf,
    pub write: bool,
    pub dir: Dir,
    /// A person's folder, whose changes are kept in `dir`.
    pub overlay: Option<Arc<Overlay>>,
}

impl MountPoint {
    pub(super) fn open(at: &str, path: PathBuf, write: bool) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self { at: at.to_owned(), path, write, dir, overlay: None })
    }

    /// A folder that the session has open.
    pub(super) fn open_folder(overlay: Overlay, write: bool) -> io::Result<Self> {
        let mounted = Self::open(overlay.mount_point(), overlay.upper_path().to_owned(), write)?;
        Ok(Self { overlay: Some(Arc::new(overlay)), ..mounted })
    }

    /// Whether tasks may write to it although it does not belong to the session.
    pub(super) fn is_of_machine(&self) -> bool {
        self.write && self.overlay.is_none() && !OWN.contains(&self.at.as_str())
    }
}

/// All directories of a task.
#[derive(Debug)]
pub(super) struct Dirs {
    mounted: Vec<MountPoint>,
    roots: Roots,
    published: PublishedFiles,
    overlays: Overlays,
    /// An empty directory, which is mounted at `/dev`.
    dev: PathBuf,
}

/// The place of devices.
const DEV: &str = "/dev";

/// The directories of the session itself.
const OWN: [&str; 2] = ["/work", "/tmp"];

impl Dirs {
    /// The mount of a directory that tasks may write to and that does not belong to the session; `None` for every other.
    pub(super) fn machine(&self, dir: &std::fs::File) -> Option<&str> {
        use std::os::unix::fs::MetadataExt;
        if !self.mounted.iter().any(MountPoint::is_of_machine) {
            return None;
        }
        let device = dir.metadata().ok()?.dev();
        let path = path_of(dir).ok();
        let mounts = self.mounted.iter().filter(|mounted| mounted.is_of_machine());
        let mut mounts = mounts.filter(|mounted| match &path {
            Some(path) => mounted.path.canonicalize().is_ok_and(|root| path.starts_with(root)),
            // The directory has no path any more. It may be any on the same file system.
            None => mounted.dir.dir_metadata().is_ok_and(|found| cap_std::fs::MetadataExt::dev(&found) == device),
        });
        mounts.next().map(|mounted| mounted.at.as_str())
    }

    /// Beside these, a task sees `/` itself: a read-only directory that contains only their names. It is made at `root`, where it
    /// stays from one line to the next: no task can change it.
    pub(super) fn new(
        (root, dev): (PathBuf, PathBuf),
        mut mounted: Vec<MountPoint>,
        published: PublishedFiles,
    ) -> io::Result<Self> {
        for mounted in &mounted {
            std::fs::create_dir_all(root.join(mounted.at.trim_start_matches('/')))?;
        }
        mounted.push(MountPoint::open("/", root, false)?);
        let root = |mounted: &MountPoint| {
            let root = Root::new(DirId::from_fd(&mounted.dir)?, mounted.at.clone());
            Ok(Root { is_folder: mounted.overlay.is_some(), ..root })
        };
        let mut roots = mounted.iter().map(root).collect::<io::Result<Roots>>()?;
        std::fs::create_dir_all(&dev)?;
        roots.push(Root::new(DirId::from_path(&dev)?, DEV));
        let overlays = Overlays::new(mounted.iter().filter_map(|mounted| mounted.overlay.clone()).collect());
        Ok(Self { mounted, roots, published, overlays, dev })
    }

    /// The path of `/tmp` on this machine.
    pub(super) fn tmp(&self) -> &Path {
        self.mounted
            .iter()
            .find(|mounted| mounted.at == "/tmp")
            .map_or(Path::new("/nonexistent"), |mounted| &mounted.path)
    }

    /// The path of the folders of Agent Skills on this machine, if the task sees them.
    pub(super) fn skills(&self) -> Option<&Path> {
        self.mounted
            .iter()
            .find(|mounted| mounted.at == SKILLS_MOUNT && !mounted.write)
            .map(|mounted| mounted.path.as_path())
    }

    /// The directory in which a line begins: the first folder that the session has open, or else its workspace.
    pub(super) fn start(&self) -> &str {
        self.overlays
            .iter()
            .find(|overlay| overlay.mount_point() != SHARED)
            .map_or("/work", |overlay| overlay.mount_point())
    }

    /// Takes a sentence for each file of a folder that was hidden since the last call.
    pub(super) fn take_refusals(&self) -> Vec<String> {
        let refusals = |overlay: &Arc<Overlay>| {
            let at = overlay.mount_point().to_owned();
            overlay.take_refused().into_iter().map(move |path| {
                let path = path.display();
                format!("kiso: {at}/{path} is not shown, because it holds credentials; its user can open the folder with --with-secrets\n")
            })
        };
        self.overlays.iter().flat_map(refusals).collect()
    }

    /// The folders among them.
    pub(super) fn overlays(&self) -> &Overlays {
        &self.overlays
    }

    /// The folders for a skill that runs as a command: path, upper layer, and whether it may be changed.
    pub(super) fn folders(&self) -> Vec<(String, PathBuf, bool)> {
        let folders = self.mounted.iter().filter(|mounted| mounted.overlay.is_some() && mounted.at != SHARED);
        folders.map(|mounted| (mounted.at.clone(), mounted.path.clone(), mounted.write)).collect()
    }

    /// The session's layer of the shared files, if the task sees those.
    pub(super) fn shared(&self) -> Option<&Path> {
        self.mounted.iter().find(|mounted| mounted.at == SHARED).map(|mounted| mounted.path.as_path())
    }

    /// The labels of the files of Agent Skills.
    pub(super) fn published(&self) -> &PublishedFiles {
        &self.published
    }

    /// Each directory as processes see it, whether they may write there, and whether it counts against the quota of the
    /// workspace from the first byte on.
    pub(super) fn volumes(&self) -> impl Iterator<Item = (&str, bool, bool)> {
        let kept = self.mounted.iter().filter(|mounted| mounted.at != "/");
        kept.map(|mounted| {
            (mounted.at.as_str(), mounted.write, OWN.contains(&mounted.at.as_str()) || mounted.overlay.is_some())
        })
    }

    /// The roots of all directories, for the workspace's file system.
    pub(super) fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Mounts all directories for a process.
    pub(super) fn give(&self, wasi: &mut WasiCtxBuilder) -> wasmtime::Result<()> {
        for mounted in &self.mounted {
            let perms = if mounted.write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
            wasi.preopened_dir(&mounted.path, &mounted.at, perms)?;
        }
        Ok(())
    }

    /// Mounts `/dev` for a process, and its working directory as `.`, if that exists. To a C library, `.` is the same as `/`, so
    /// that it finds nothing else below that.
    pub(super) fn give_cwd(&self, wasi: &mut WasiCtxBuilder, cwd: &str) {
        let _ = wasi.preopened_dir(&self.dev, DEV, FsPerms::ReadOnly);
        let (mounted, relative) = match self.find(cwd) {
            Ok((mounted, relative)) => (mounted, relative),
            Err(_) => match self.mounted.iter().find(|mounted| mounted.at == cwd) {
                Some(mounted) => (mounted, PathBuf::from(".")),
                None => return,
            },
        };
        let opened = match &mounted.overlay {
            Some(_) => self.overlays.open_dir(cwd).map(File::from),
            // It may be a link by now, so it is opened without leaving its root.
            None => mounted.dir.open_dir(relative).ok().map(Dir::into_std_file),
        };
        let Some(dir) = opened else { return };
        let perms = if mounted.write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
        // If the system has no path for it, the process has no `.`.
        if let Some(path) = path_to_open(&dir) {
            let _ = wasi.preopened_dir(path, ".", perms);
        }
    }

    /// Opens a file for a redirection, by its absolute path, charged to the task's quota.
    pub(super) fn open_file(
        &self,
        path: &str,
        mode: Mode,
        quota: &Arc<Quota>,
        (reader, permit): (&LabelCell, &Permit),
    ) -> Result<Channel, IoError> {
        match path {
            "/dev/null" => return Ok(Channel::Null),
            "/dev/zero" => return Ok(Channel::Zero),
            "/dev/random" | "/dev/urandom" => return Ok(Channel::Random),
            _ => {}
        }
        let (mounted, mut relative) = self.find(path)?;
        let (readable, writable) = match mode {
            Mode::Read => (true, false),
            Mode::ReadWrite => (true, true),
            Mode::Write | Mode::Append | Mode::CreateNew => (false, true),
        };
        if writable && !mounted.write {
            return Err(Errno::ReadOnly.into());
        }
        let how = OpenMode {
            makes: matches!(mode, Mode::Write | Mode::Append | Mode::ReadWrite | Mode::CreateNew),
            is_first: mode == Mode::CreateNew,
            empties: mode == Mode::Write,
        };
        let mut follows = true;
        let mut in_folder = None;
        if let Some(overlay) = &mounted.overlay {
            let slot = open_in_folder(overlay, &relative, (writable, how), quota, reader)?;
            (relative, follows) = (PathBuf::from(slot.name()), false);
            in_folder = Some(slot);
        }
        let dir = match &in_folder {
            Some(slot) => Dir::from_std_file(slot.dir()?),
            None => mounted.dir.try_clone()?,
        };
        let base = dir.try_clone()?.into_std_file();
        let way = (&base, relative.as_os_str(), follows);
        let labelled = quota.labels().map(|labels| labels.opening(way, how, reader)).transpose()?;
        let machine = (writable && mounted.is_of_machine()).then(|| MountSink::new(&mounted.at, permit.clone()));
        if machine.as_ref().is_some_and(|machine| !machine.admits(reader.get())) {
            return Err(Errno::Denied.into());
        }
        let there = match dir.metadata(&relative) {
            Ok(found) if found.is_dir() => return Err(Errno::IsADirectory.into()),
            // Opening a pipe or a device that a person left there could block a thread for ever.
            Ok(found) if !found.is_file() => return Err(Errno::NotPlain.into()),
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error.into()),
        };
        let charge = (!there && writable).then(|| quota.entry().map_err(IoError::Limit)).transpose()?;
        let opening = match writable {
            true => opening(&base, &relative, how.empties, quota),
            false => Ok(Opening::Plain),
        };
        let opening = match opening {
            Ok(opening) => opening,
            Err(error) => {
                if let Some(charge) = charge {
                    charge.give_back();
                }
                return Err(error);
            }
        };
        let open = |fresh: bool| {
            let mut options = OpenOptions::new();
            options
                .read(readable)
                .write(writable)
                .create(how.makes && !how.is_first)
                .create_new(fresh)
                .truncate(how.empties)
                .custom_flags(i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0));
            dir.open_with(&relative, &options)
        };
        // Only a file that this call creates can belong to nobody else.
        let mut fresh = writable && !there;
        let opened = match open(fresh || how.is_first) {
            Err(error) if fresh && !how.is_first && error.kind() == io::ErrorKind::AlreadyExists => {
                fresh = false;
                open(false)
            }
            opened => opened,
        };
        if let Some(entry) = in_folder {
            entry.finish(opened.is_ok()).map_err(|error| IoError::of_overlay(error, quota))?;
        }
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                if let Some(charge) = charge {
                    charge.give_back();
                }
                if let Some(labelled) = labelled {
                    labelled.failed(reader);
                }
                return Err(error.into());
            }
        };
        drop(charge);
        if !file.metadata()?.is_file() {
            return Err(Errno::NotPlain.into());
        }
        let file = file.into_std();
        if let (Opening::Fresh, Some(work)) = (opening, quota.transaction()) {
            work.opened(&file);
        }
        if let Some(labelled) = labelled {
            labelled.opened(&file, way, (fresh, how.empties), reader)?;
        }
        let mut published = self.published.label_of(&file);
        if let Some(overlay) = &mounted.overlay {
            published = published.join(overlay.label());
        }
        let opened = Channel::File(Arc::new(OpenFile {
            file,
            published,
            append: mode == Mode::Append,
            readable,
            writable,
            position: Mutex::new(0),
            quota: quota.clone(),
            machine,
            tainted: Mutex::default(),
        }));
        opened.held_by(reader);
        Ok(opened)
    }

    pub(super) fn find(&self, path: &str) -> Result<(&MountPoint, PathBuf), IoError> {
        let path = lexical(path).ok_or(Errno::Invalid)?;
        let under = self.mounted.iter().filter_map(|m| Some((m, path.strip_prefix(&m.at).ok()?.to_owned())));
        let (mounted, relative) = under.max_by_key(|(m, _)| m.at.len()).ok_or(Errno::NotFound)?;
        if relative.as_os_str().is_empty() {
            return Err(Errno::IsADirectory.into());
        }
        Ok((mounted, relative))
    }
}

/// The place in a folder where a file is to be opened.
fn open_in_folder(
    overlay: &Arc<Overlay>,
    path: &Path,
    (writes, how): (bool, OpenMode),
    quota: &Arc<Quota>,
    reader: &LabelCell,
) -> Result<PendingOpen<Arc<Quota>>, IoError> {
    let access = FileAccess { writes, makes: how.makes, is_first: how.is_first, empties: how.empties };
    let mut label = overlay.label();
    let mut moment = quota.labels().map(|labels| labels.now());
    let slot = overlay.open_entry(from_root(path), access, quota, &mut label);
    if let (Some(labels), Some(moment)) = (quota.labels(), &mut moment) {
        label = label.join(labels.since(moment));
    }
    reader.join(label);
    slot.map_err(|error| IoError::of_overlay(error, quota))
}

/// Keeps the content of a file that is about to be emptied, if the work can be undone.
fn opening(dir: &File, path: &Path, empties: bool, quota: &Quota) -> Result<Opening, IoError> {
    let Some(work) = quota.transaction() else { return Ok(Opening::Plain) };
    match target(dir, path, true) {
        Some((dir, name)) => work.opening(&dir, &name, empties).map_err(|refusal| IoError::of_undo(refusal, quota)),
        // The later call that opens it returns the same error.
        None => Ok(Opening::Plain),
    }
}

/// An absolute path without `.` and `..`, resolved without following links, as the shell's `cd` does.
fn lexical(path: &str) -> Option<PathBuf> {
    if !path.starts_with('/') || path.contains('\0') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    Some(Path::new("/").join(parts.join("/")))
}

/// The error for a directory of this machine that cannot be opened.
pub(super) fn unusable(at: &str, path: &Path, error: &io::Error, is_folder: bool) -> String {
    let whose = match at {
        "/" | "/work" | "/tmp" | SKILLS_MOUNT | SHARED => "",
        _ if is_folder => "; the session has it open as a folder, and `kiso diff --close` closes it",
        _ => "; [exec.mounts] in config.toml names it",
    };
    format!("the directory {} for {at} cannot be opened: {error}{whose}", path.display())
}
