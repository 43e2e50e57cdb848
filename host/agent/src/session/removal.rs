//! Deletes a session: its data in the store, and the files of its workspace.

use kiso_base::home::{Home, HomeError, HomeLock, Leftover, MovedSession, SessionName};
use kiso_store::store::{Deletion, Store, StoreError};

/// Why a session was not deleted. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum NotRemoved {
    #[error("there is no session {session}")]
    Unknown { session: SessionName },
    /// The session itself, or a subagent that it spawned.
    #[error("a message waits or is being worked on in the session {session}: wait for its answer, or cancel it first")]
    AtWork { session: SessionName },
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Deleted sessions.
#[derive(Debug)]
pub struct Removal {
    /// The requested session, followed by the subagents that it spawned.
    pub sessions: Vec<SessionName>,
    /// Files that could not be removed. A daemon tries again.
    pub left: Vec<Leftover>,
}

/// Deletes the session permanently, with the subagents that it spawned. Works with and without a daemon: whoever works in the
/// session holds its lock.
///
/// `told` is called with the sessions after they were removed from the store, and before their files are removed, which may take
/// long.
///
/// The files are moved aside before the rows are deleted: after a crash between the two, a session without files remains, which
/// can be deleted again. Files without a session would be found by the next session of that name.
pub async fn remove(
    home: &Home,
    store: &Store,
    session: &SessionName,
    told: impl FnOnce(&[SessionName]),
) -> Result<Removal, NotRemoved> {
    let unknown = || NotRemoved::Unknown { session: session.clone() };
    let wanted = session.clone();
    let (tree, busy) = store.read(move |view| Ok((view.session_tree(&wanted)?, view.at_work_below(&wanted)?))).await?;
    if tree.is_empty() {
        return Err(unknown());
    }
    // Checked before any file is moved: whoever processes a waiting message would recreate the directory, so that the files could
    // not be moved back. The transaction below checks again.
    if let Some(session) = busy {
        return Err(NotRemoved::AtWork { session });
    }
    let (locks, aside) = put_aside(home, &tree)?;
    let wanted = session.clone();
    let deleted = store.write(move |tx| tx.delete_session(&wanted)).await;
    match deleted {
        Ok(Deletion::Done(gone)) => {
            told(&gone);
            drop(locks);
            // A workspace may be large, and an SD card slow.
            let left = tokio::task::spawn_blocking(move || discard(aside)).await.unwrap_or_default();
            Ok(Removal { sessions: gone, left })
        }
        kept => {
            put_back(aside);
            drop(locks);
            match kept? {
                Deletion::AtWork(session) => Err(NotRemoved::AtWork { session }),
                _ => Err(unknown()),
            }
        }
    }
}

/// Completes interrupted deletions and tasks: a session that is still in the store gets its files back, and unneeded files are
/// removed in the background. Must be called before any run starts.
pub async fn sweep(home: &Home, store: &Store) -> Result<(), StoreError> {
    let mut files = Vec::new();
    for (session, aside) in home.left_aside() {
        let wanted = session.clone();
        if store.read(move |view| view.has_session(&wanted)).await? && !home.session_dir(&session).exists() {
            put_back(vec![aside]);
        } else {
            files.push(aside);
        }
    }
    let (sweeping, home) = (home.clone(), home.clone());
    // Waited for, because it takes the locks of sessions for a moment.
    let _ = tokio::task::spawn_blocking(move || sweeping.sweep_scratch()).await;
    tokio::task::spawn_blocking(move || {
        discard(files);
        empty_trash(&home);
    });
    Ok(())
}

/// Retries to remove files that could not be removed. May take long.
pub fn empty_trash(home: &Home) {
    for left in home.empty_trash() {
        tracing::warn!("{left}");
    }
}

/// Removes moved files; returns those that could not be removed, which are retried later.
fn discard(files: Vec<MovedSession>) -> Vec<Leftover> {
    let left: Vec<_> = files.into_iter().filter_map(|directory| directory.remove().err()).collect();
    for left in &left {
        tracing::warn!("files of a deleted session are left: {left}");
    }
    left
}

/// Takes the lock of every session of the tree, and then moves its directory aside; all of them or none.
fn put_aside(home: &Home, tree: &[SessionName]) -> Result<(Vec<HomeLock>, Vec<MovedSession>), NotRemoved> {
    let mut locks = Vec::new();
    for session in tree {
        match home.lock_session(session) {
            Ok(lock) => locks.push(lock),
            Err(HomeError::Busy { .. }) => return Err(NotRemoved::AtWork { session: session.clone() }),
            Err(error) => return Err(error.into()),
        }
    }
    let mut aside = Vec::new();
    for session in tree {
        match home.put_aside(session) {
            Ok(directory) => aside.extend(directory),
            Err(error) => {
                put_back(aside);
                return Err(error.into());
            }
        }
    }
    Ok((locks, aside))
}

fn put_back(aside: Vec<MovedSession>) {
    for directory in aside {
        if let Err(error) = directory.put_back() {
            tracing::error!("a session is without its files: {error}");
        }
    }
}
