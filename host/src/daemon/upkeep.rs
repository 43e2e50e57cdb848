//! Upkeep: maintenance of the store while it is idle.
//!
//! Runs after the start and then once an hour, as soon as nothing has happened for a minute: it deletes what `[retention]`
//! says is old, trims the feed, gives free pages back, and moves the log into the file. It works in small transactions, with
//! pauses as long as they take, so that a message that arrives meanwhile waits for a few milliseconds at most. A daemon that
//! is never idle does it once a day anyway. Then it tries again to remove files of deleted sessions that could not be
//! removed before.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use kiso_agent::drive::RunExecutor;
use kiso_agent::session::removal;
use kiso_base::clock::now_ms;
use kiso_base::config::Retention;
use kiso_base::home::Home;
use kiso_store::store::{AT_EACH_START, AT_ONCE, Store, StoreError, THOROUGH, Tx, check_unopened};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Interval between checks whether the daemon is idle.
const LOOK: Duration = Duration::from_secs(60);

/// Milliseconds from one upkeep to the next. Data is deleted after days, so the exact time does not matter.
const EVERY_MS: i64 = 60 * MINUTE_MS;

/// Notices of the feed deleted in one transaction; a notice has about twenty bytes.
const NOTICES: u32 = 1_000;

/// Messages indexed in one transaction.
const MESSAGES: u32 = 100;

/// Free pages given back in one transaction: 1 MiB of the usual 4 KiB; each is first moved to the end.
const PAGES: u32 = 256;

/// Free bytes below which no pages are given back, however small the store is: they are used again soon.
const SPARE: u64 = 4 << 20;

/// Checks the store before a daemon opens it. A damaged store is an error and is not changed. A large one is checked later,
/// by [`check_behind`].
pub fn check_before_start(home: &Home) -> Result<(), StoreError> {
    let most = if home.daemon_died() { AT_ONCE } else { AT_EACH_START };
    check_unopened(&home.store_path(), most).map(drop)
}

/// Checks the store more closely while the daemon works.
pub(super) async fn check_behind(store: Store) {
    match store.check(THOROUGH).await {
        Ok(()) => tracing::debug!("the store is whole"),
        Err(StoreError::Closed) => {}
        Err(error) => tracing::error!("{error}"),
    }
}

/// Indexes messages of a store that was written before the index existed, in small steps.
pub(super) async fn index_messages(store: Store, ending: watch::Receiver<bool>) {
    let steps = Steps { store: &store, ending: &ending };
    match steps.all(|tx| tx.index_messages(MESSAGES)).await {
        Ok(0) | Err(StoreError::Closed) => {}
        Ok(messages) => tracing::info!(messages, "messages from before are in the index"),
        Err(error) => tracing::warn!("messages from before are not all in the index yet: {error}"),
    }
}

/// Does the upkeep until the daemon ends.
pub(super) async fn look_after(drive: RunExecutor, mut ending: watch::Receiver<bool>) {
    let store = drive.store.clone();
    let mut due_ms = now_ms();
    loop {
        let now = now_ms();
        let done = match is_time(&store, due_ms, now).await {
            Ok(true) => upkeep(&store, &drive.newest_config().retention, now, &ending).await.map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        match done {
            Ok(Some(done)) => {
                tracing::debug!(?done, "upkeep of the store");
                due_ms = now + EVERY_MS;
                let (home, drive) = (drive.home.clone(), drive.clone());
                // Awaited, because two at once would conflict.
                let clean = move || {
                    removal::empty_trash(&home);
                    drive.sweep_undo(now);
                };
                let _ = tokio::task::spawn_blocking(clean).await;
            }
            Ok(None) => {}
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::warn!("the upkeep of the store was put off: {error}");
                due_ms = now + EVERY_MS;
            }
        }
        tokio::select! {
            _ = ending.wait_for(|ending| *ending) => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

async fn is_time(store: &Store, due_ms: i64, now_ms: i64) -> Result<bool, StoreError> {
    if now_ms < due_ms {
        return Ok(false);
    }
    let rest = store.read(move |view| view.is_at_rest(now_ms - MINUTE_MS)).await?;
    Ok(rest || now_ms - due_ms > DAY_MS)
}

/// Counts of the deleted data.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Done {
    /// Rows of prompts, traces and sessions.
    forgotten: u64,
    notices: u64,
    /// Pages given back from the file.
    pages: u64,
}

async fn upkeep(
    store: &Store,
    keep: &Retention,
    now_ms: i64,
    ending: &watch::Receiver<bool>,
) -> Result<Done, StoreError> {
    let steps = Steps { store, ending };
    let before = |days: u64| (days > 0).then(|| now_ms - i64::try_from(days).unwrap_or(i64::MAX / DAY_MS) * DAY_MS);
    let mut done = Done::default();
    if let Some(before) = before(keep.prompts_days) {
        done.forgotten += steps.all(move |tx| tx.forget_prompts(before).map(|n| n as u64)).await?;
    }
    if let Some(before) = before(keep.traces_days) {
        done.forgotten += steps.all(move |tx| tx.forget_traces(before).map(|n| n as u64)).await?;
    }
    if let Some(before) = before(keep.sessions_days) {
        done.forgotten += steps.all(move |tx| tx.forget_sessions(before).map(|n| n as u64)).await?;
    }
    let notices = u32::try_from(keep.feed_entries).unwrap_or(u32::MAX);
    done.notices = steps.all(move |tx| tx.trim_feed(notices, NOTICES).map(|n| n as u64)).await?;
    let space = store.read(|view| view.space()).await?;
    // Space that is used again soon is not worth the writes.
    if space.free > SPARE.max(space.bytes / 4) {
        let enough = SPARE.max(space.bytes / 10);
        done.pages = steps
            .all(move |tx| match tx.space()?.free > enough {
                true => tx.give_back(PAGES),
                false => Ok(0),
            })
            .await?;
    }
    if done != Done::default() {
        let store = store.clone();
        let moved = tokio::task::spawn_blocking(move || store.checkpoint()).await;
        moved.unwrap_or(Err(StoreError::Closed))?;
    }
    Ok(done)
}

struct Steps<'a> {
    store: &'a Store,
    ending: &'a watch::Receiver<bool>,
}

impl Steps<'_> {
    /// Repeats a small step until it finds nothing more to do or the daemon ends. Returns the total.
    async fn all<F>(&self, work: F) -> Result<u64, StoreError>
    where
        F: Fn(&Tx<'_>) -> Result<u64, StoreError> + Copy + Send + 'static,
    {
        let mut sum = 0;
        while !*self.ending.borrow() {
            let began = Instant::now();
            let done = self.store.write(move |tx| work(tx)).await?;
            if done == 0 {
                break;
            }
            sum += done;
            // Leaves half of the time to others.
            tokio::time::sleep(began.elapsed()).await;
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::home::SessionName;
    use kiso_store::store::{MessageRole, Prompt, RunStatus};

    fn session() -> SessionName {
        SessionName::parse("s").unwrap()
    }

    fn store(dir: &tempfile::TempDir) -> Store {
        Store::open(&dir.path().join("store.db")).unwrap()
    }

    /// Adds a run of that time with a large prompt.
    async fn ran(store: &Store, at_ms: i64, bytes: usize) {
        let write = store.write(move |tx| {
            let run = tx.create_run(&session(), "do it", at_ms)?;
            tx.append_event(&run, 0, at_ms, "spec", "{}")?;
            tx.put_prompt(&run, &Prompt { seq: 0, nth: 0, role: "planner".into(), text: "p".repeat(bytes) })?;
            tx.add_message(&session(), MessageRole::Assistant, "done", at_ms, Some(&run))?;
            tx.finish_run(&run, RunStatus::Done, at_ms, "{}")
        });
        write.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_kept_is_what_the_configuration_says() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir);
        for n in 0..60 {
            ran(&store, 1_000 + n, 200_000).await;
        }
        ran(&store, 20 * DAY_MS, 100).await;
        let (_ending, ended) = watch::channel(false);
        let at = |prompts_days, traces_days, sessions_days, feed_entries, now_ms| {
            let keep = Retention { prompts_days, traces_days, sessions_days, feed_entries };
            let (store, ended) = (store.clone(), ended.clone());
            async move { upkeep(&store, &keep, now_ms, &ended).await.unwrap() }
        };
        let now = 31 * DAY_MS;
        assert_eq!(at(0, 0, 0, 1_000_000, now).await, Done::default(), "0 is for ever");
        assert_eq!(at(32, 32, 32, 1_000_000, now).await, Done::default(), "nothing is that old");
        let bytes = store.read(|view| view.space()).await.unwrap().bytes;
        let done = at(30, 0, 0, 1_000_000, now).await;
        assert_eq!((done.forgotten, done.notices), (60, 0));
        let space = store.read(|view| view.space()).await.unwrap();
        assert!(done.pages > 2_000 && space.bytes < bytes / 2, "{done:?} {space:?}");
        assert_eq!(std::fs::metadata(store.path()).unwrap().len(), space.bytes, "the log is in the file");
        assert_eq!(at(0, 30, 0, 1_000_000, now).await.forgotten, 60, "their events");
        let gone = at(0, 0, 12, 1_000_000, now).await.forgotten;
        assert_eq!(gone, 0, "a session is as old as its last message");
        let gone = at(0, 0, 10, 1_000_000, now).await.forgotten;
        assert!(gone > 120, "{gone}");
        assert!(at(0, 0, 0, 100, now).await.notices > 50);
        assert_eq!(store.read(|view| Ok(view.feed_end()? - view.feed_start()? + 1)).await.unwrap(), 100);
    }

    #[tokio::test]
    async fn it_waits_until_nothing_happens_but_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir);
        ran(&store, DAY_MS, 10).await;
        let is_time = |due_ms, now_ms| {
            let store = store.clone();
            async move { is_time(&store, due_ms, now_ms).await.unwrap() }
        };
        assert!(!is_time(DAY_MS, DAY_MS + 1_000).await, "a message came a second ago");
        assert!(is_time(DAY_MS, DAY_MS + 61_000).await);
        assert!(!is_time(2 * DAY_MS, DAY_MS + 61_000).await, "it is not due");
        store.write(|tx| tx.create_run(&session(), "go on", DAY_MS)).await.unwrap();
        assert!(!is_time(DAY_MS, DAY_MS + 61_000).await, "a run is under way");
        assert!(is_time(DAY_MS, 3 * DAY_MS).await, "it was put off for a day");
    }
}
