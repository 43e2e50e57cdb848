//! Deleting a session: what the store has of it, and the files of its workspace.

use kiso_base::home::{Home, HomeError, HomeLock, Leftover, MovedSession, SessionName};
use kiso_store::store::{Deletion, Store, StoreError};

/// Why a session was not deleted. Nothing of it was then changed.
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

/// Sessions that were deleted.
#[derive(Debug)]
pub struct Removal {
    /// The one that was meant, and then the subagents that it spawned.
    pub sessions: Vec<SessionName>,
    /// Files of them that could not be removed. A daemon tries again.
    pub left: Vec<Leftover>,
}

/// Deletes the session for good, with the subagents that it spawned. Works beside a daemon and without one: whoever works in
/// the session holds its lock.
///
/// `told` hears of them as soon as the store has none of them, and before their files are removed, which may take long.
///
/// The files go out of the way before the rows do: after a crash between the two, a session without files is left, which can
/// be deleted again; files without a session would be found by the next one of that name.
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
    // Before any file is moved: whoever takes up the message that waits would make the directory anew, and the files could
    // not be put back. The transaction below asks again.
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
            // A workspace may be large, and a card slow.
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

/// Brings to an end what deletions and tasks were cut off at: a session that is still in the store gets its files back, and
/// what nothing needs is removed, behind what follows. Before any run begins.
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
    // Waited for: it takes the locks of sessions, each for a moment.
    let _ = tokio::task::spawn_blocking(move || sweeping.sweep_scratch()).await;
    tokio::task::spawn_blocking(move || {
        discard(files);
        empty_trash(&home);
    });
    Ok(())
}

/// Tries once more to remove what could not be removed. It may take long.
pub fn empty_trash(home: &Home) {
    for left in home.empty_trash() {
        tracing::warn!("{left}");
    }
}

/// Removes what is out of the way; returns what could not be removed and waits for the next time.
fn discard(files: Vec<MovedSession>) -> Vec<Leftover> {
    let left: Vec<_> = files.into_iter().filter_map(|directory| directory.remove().err()).collect();
    for left in &left {
        tracing::warn!("files of a deleted session are left: {left}");
    }
    left
}

/// Takes the lock of every session of the tree, and then its directory out of the way; all of them or none.
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
