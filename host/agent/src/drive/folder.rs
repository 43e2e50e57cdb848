//! Folders of a session: accepting, discarding and undoing the changes of its runs.

use super::shared::SharedFailure;
use super::undo::UndoFailure;
use super::{DriveError, RunExecutor};
use crate::tool::deliver::{DeliveredFile, DeliveryError, DeliveryRequest};
use kiso_base::home::{FolderRefusal, HomeLock, SessionFolder, SessionName};
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::effect::overlay::{AcceptError, Acceptance, FolderDifference, FolderSelection, HunkError, Overlay};
use kiso_sandbox::effect::undo::{UndoError, UndoKind};
use std::io;
use std::path::Path;

/// Why a request about a folder failed.
#[derive(Debug, thiserror::Error)]
pub enum FolderFailure {
    #[error("the session {session} has no folder open; open one with `kiso --dir PATH`")]
    NoFolder { session: SessionName },
    #[error("the session {session} has no folder at {at}")]
    OtherFolder { session: SessionName, at: String },
    #[error("the folder {at} is for reading only; an administrator can accept its changes")]
    ReadOnly { at: String },
    #[error("the folder {at} has changes that wait; accept or discard them first")]
    HasChanges { at: String },
    #[error("{} cannot be opened: {error}", .folder.path.display())]
    Unusable { folder: SessionFolder, error: io::Error },
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    #[error(transparent)]
    Refused(#[from] FolderRefusal),
    #[error(transparent)]
    Accept(#[from] AcceptError),
    #[error(transparent)]
    Hunks(HunkError),
    #[error(transparent)]
    Rest(#[from] UndoFailure),
}

/// A folder of a session, with its changes.
#[derive(Debug)]
pub struct FolderView {
    pub folder: SessionFolder,
    pub overlay: Overlay,
    pub difference: FolderDifference,
    /// Whether the caller may accept changes into the folder.
    may_accept: bool,
}

/// An acceptance that was undone or redone.
#[derive(Debug)]
pub struct RevertedAcceptance {
    pub folder: SessionFolder,
    pub acceptance: Acceptance,
}

/// The folders of an idle session: no run works there as long as this value exists.
#[derive(Debug)]
pub struct RestingFolders {
    views: Vec<FolderView>,
    _lock: HomeLock,
}

impl RestingFolders {
    pub fn iter(&self) -> impl Iterator<Item = &FolderView> {
        self.views.iter()
    }
}

impl RunExecutor {
    /// Returns the folders of a session with their changes, for an administrator; only the folder at the task path `at`, if that
    /// is given.
    pub async fn folders(&self, session: &SessionName, at: Option<&str>) -> Result<RestingFolders, FolderFailure> {
        self.folders_for(session, at, CallerScope::Admin).await
    }

    /// Returns the folders of a session that a caller may see, with their changes.
    pub async fn folders_for(
        &self,
        session: &SessionName,
        at: Option<&str>,
        caller: CallerScope,
    ) -> Result<RestingFolders, FolderFailure> {
        let lock = self.lock_at_rest(session).await?;
        self.open_folders(session, (at, caller), lock).await
    }

    /// The same; `None` while a run works in the session.
    pub async fn folders_if_at_rest(
        &self,
        session: &SessionName,
        caller: CallerScope,
    ) -> Result<Option<RestingFolders>, FolderFailure> {
        // An unused session has no folders, and must not get a directory.
        if self.home.folders(session).is_ok_and(|folders| folders.is_empty()) {
            return Err(FolderFailure::NoFolder { session: session.clone() });
        }
        match self.lock_soon(session).await {
            Err(UndoFailure::AtWork { .. }) => Ok(None),
            lock => self.open_folders(session, (None, caller), lock?).await.map(Some),
        }
    }

    async fn open_folders(
        &self,
        session: &SessionName,
        (at, caller): (Option<&str>, CallerScope),
        lock: HomeLock,
    ) -> Result<RestingFolders, FolderFailure> {
        self.undo.quiet(session).await;
        let folders = self.home.folders(session).map_err(|error| UndoFailure::from(DriveError::from(error)))?;
        let config = self.newest_config();
        // An administrator also sees folders that runs can no longer see, so that their changes can be settled.
        let seen = |folder: SessionFolder| match caller {
            CallerScope::Admin => Some(folder),
            CallerScope::User => config.accessible_folder(folder, caller),
        };
        let mut folders: Vec<_> = folders.into_iter().filter_map(seen).collect();
        if folders.is_empty() {
            return Err(FolderFailure::NoFolder { session: session.clone() });
        }
        if let Some(at) = at {
            folders.retain(|folder| folder.at == at);
            if folders.is_empty() {
                return Err(FolderFailure::OtherFolder { session: session.clone(), at: at.to_owned() });
            }
        }
        let (home, of) = (self.home.clone(), session.clone());
        let views = tokio::task::spawn_blocking(move || {
            let labels = FileLabels::of_session(&home, &of);
            let view = |folder: SessionFolder| {
                let opened = Overlay::open(&home, &of, &folder);
                let looked = opened.and_then(|overlay| Ok((overlay.difference(&labels)?, overlay)));
                match looked {
                    Ok((difference, overlay)) => {
                        let may_accept = folder.write || caller == CallerScope::Admin;
                        Ok(FolderView { folder, overlay, difference, may_accept })
                    }
                    Err(error) => Err(FolderFailure::Unusable { folder, error }),
                }
            };
            folders.into_iter().map(view).collect::<Result<Vec<_>, _>>()
        });
        let views = views.await.map_err(|error| AcceptError::Io(io::Error::other(error)))??;
        Ok(RestingFolders { views, _lock: lock })
    }

    /// Returns the number of pending changes in the folders that a caller may see, by the folder's path for tasks. The caller of
    /// this function holds the session's lock.
    pub async fn waiting_changes(&self, session: &SessionName, caller: CallerScope) -> Vec<(String, usize)> {
        let folders = self.newest_config().visible_folders(&self.home, session, caller).unwrap_or_default();
        let (home, of) = (self.home.clone(), session.clone());
        let look = move || {
            let labels = FileLabels::of_session(&home, &of);
            let changes = |folder: &SessionFolder| {
                let overlay = Overlay::open(&home, &of, folder)?;
                Ok::<_, io::Error>(overlay.difference(&labels)?.changes.len())
            };
            let counted = folders.into_iter().map(|folder| (changes(&folder).unwrap_or(0), folder.at));
            counted.filter(|(changes, _)| *changes > 0).map(|(changes, at)| (at, changes)).collect()
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    /// Applies changes to the folder. Replaced and deleted files are kept for undo.
    pub fn accept(
        &self,
        session: &SessionName,
        view: &FolderView,
        selection: &FolderSelection,
    ) -> Result<Acceptance, FolderFailure> {
        if !view.may_accept {
            return Err(FolderFailure::ReadOnly { at: view.folder.at.clone() });
        }
        let accepted = view.overlay.accept(&view.difference, selection)?;
        tracing::info!(%session, at = view.folder.at, changes = accepted.changes, "changes to a folder were accepted");
        self.tools.skills().measure_anew(session);
        Ok(accepted)
    }

    /// Applies some hunks of a file to the folder: their numbers, and the revision of the list that contains them.
    pub fn accept_hunks(
        &self,
        session: &SessionName,
        view: &FolderView,
        path: &Path,
        hunks: (&[usize], &str),
    ) -> Result<Acceptance, FolderFailure> {
        if !view.may_accept {
            return Err(FolderFailure::ReadOnly { at: view.folder.at.clone() });
        }
        let accepted = view.overlay.accept_hunks(&view.difference, path, hunks)?;
        tracing::info!(%session, at = view.folder.at, "hunks of a changed file were accepted");
        self.tools.skills().measure_anew(session);
        Ok(accepted)
    }

    /// Discards changes. Returns their number.
    pub fn discard(
        &self,
        session: &SessionName,
        view: &FolderView,
        selection: &FolderSelection,
    ) -> Result<usize, FolderFailure> {
        let discarded = view.overlay.discard(&view.difference, selection)?;
        self.tools.skills().measure_anew(session);
        Ok(discarded)
    }

    /// Opens a folder of `[folders]` in an idle session.
    pub async fn open_listed_folder(
        &self,
        session: &SessionName,
        caller: CallerScope,
        name: &str,
    ) -> Result<SessionFolder, FolderFailure> {
        let _lock = self.lock_at_rest(session).await?;
        Ok(self.newest_config().open_listed_folder(&self.home, session, (caller, name), None)?)
    }

    /// Copies a file of an idle session to a folder of `[folders]`, or to the files that all sessions share.
    pub async fn deliver(
        &self,
        session: &SessionName,
        request: DeliveryRequest,
    ) -> Result<DeliveredFile, FolderFailure> {
        if request.is_shared() {
            let (home, of, limit_mib) = (self.home.clone(), session.clone(), self.config.engine.shared_mib);
            let (_, shared) = self
                .change_shared(session, move |work| {
                    Overlay::drop_unshared(&home, &of).map_err(AcceptError::from)?;
                    request.share(&home, &of, &Label::session(), work, limit_mib)
                })
                .await?;
            return Ok(shared?);
        }
        let _lock = self.lock_at_rest(session).await?;
        let (home, config, of) = (self.home.clone(), self.newest_config(), session.clone());
        let delivered = tokio::task::spawn_blocking(move || request.deliver(&home, &config, &of)).await;
        Ok(delivered.map_err(|error| AcceptError::Io(io::Error::other(error)))??)
    }

    /// Closes a folder that has no changes.
    pub fn close_folder(&self, session: &SessionName, view: &FolderView) -> Result<(), FolderFailure> {
        if !view.difference.changes.is_empty() {
            return Err(FolderFailure::HasChanges { at: view.folder.at.clone() });
        }
        view.overlay.sweep_acceptances(i64::MAX).map_err(AcceptError::from)?;
        let closed = self.home.close_folder(session, &view.folder.at);
        Ok(closed.map_err(|error| UndoFailure::from(DriveError::from(error)))?)
    }

    /// Undoes the newest acceptance of a session, or redoes the last one that was undone, if no newer change of its workspace can
    /// be reverted first. `None` if there is no such acceptance.
    pub async fn revert_acceptance(
        &self,
        session: &SessionName,
        caller: CallerScope,
        kind: UndoKind,
        force: bool,
    ) -> Result<Option<RevertedAcceptance>, FolderFailure> {
        if self.home.folders(session).map_or(true, |folders| folders.is_empty()) {
            return Ok(None);
        }
        let entries = self.undo_entries(session).await?;
        let newest_work =
            entries.iter().filter(|entry| entry.header.kind == kind).map(|entry| entry.header.at_ms).max();
        let folders = match self.folders_for(session, None, caller).await {
            Err(FolderFailure::NoFolder { .. }) => return Ok(None),
            folders => folders?,
        };
        let mut newest: Option<(&FolderView, Acceptance)> = None;
        for view in folders.iter().filter(|view| view.may_accept) {
            let all = view.overlay.acceptances().map_err(AcceptError::from)?;
            let wanted = all.into_iter().filter(|one| one.is_undone == (kind == UndoKind::Redo));
            for one in wanted {
                if newest.as_ref().is_none_or(|(_, known)| known.changed_ms < one.changed_ms) {
                    newest = Some((view, one));
                }
            }
        }
        let Some((view, one)) = newest.filter(|(_, one)| newest_work.is_none_or(|work| work < one.changed_ms)) else {
            return Ok(None);
        };
        let acceptance = match kind {
            UndoKind::Undo => {
                let undone = view.overlay.undo_acceptance(one.number, force)?;
                // Runs do not work in a folder for deliveries, so no changes may stay pending there.
                if view.folder.deliveries && undone.waits {
                    let labels = FileLabels::of_session(&self.home, session);
                    let waiting = view.overlay.difference(&labels).map_err(AcceptError::from)?;
                    view.overlay.discard(&waiting, &FolderSelection::All)?;
                }
                Acceptance { waits: undone.waits && !view.folder.deliveries, ..undone }
            }
            UndoKind::Redo => view.overlay.redo_acceptance(one.number)?,
        };
        Ok(Some(RevertedAcceptance { folder: view.folder.clone(), acceptance }))
    }
}

impl From<HunkError> for FolderFailure {
    fn from(error: HunkError) -> Self {
        match error {
            HunkError::Accept(error) => Self::Accept(error),
            error => Self::Hunks(error),
        }
    }
}

impl From<SharedFailure> for FolderFailure {
    fn from(failure: SharedFailure) -> Self {
        match failure {
            SharedFailure::Share(error) => Self::Delivery(error.into()),
            SharedFailure::Undo(failure) => Self::Rest(failure),
            SharedFailure::Drive(error) => Self::Rest(error.into()),
        }
    }
}

impl From<UndoError> for FolderFailure {
    fn from(error: UndoError) -> Self {
        Self::Rest(UndoFailure::Undo(error))
    }
}
