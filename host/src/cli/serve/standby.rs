//! The work of a standby member: it fetches the home's skills, and compiles them for its own machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::super::Failure;
use kiso_base::config::Config;
use kiso_base::home::Home;
use kiso_fleet::bus::Bus;
use kiso_fleet::standby::StandbyFiles;
use kiso_sandbox::skill::{Quiet, Skills};
use kiso_store::store::Store;

/// How often to check the owner's files: as often as the owner saves them.
const LOOK: Duration = Duration::from_secs(5);

/// Continues until the home is taken over, or is no longer waited for. Blocks the caller's thread.
pub(super) fn prepare(bus: &Bus, home: &Home, config: &Config, taken: watch::Receiver<bool>) {
    let store = home.cache_dir().join("standby.db");
    follow(bus, home, config, taken, &store);
    for ending in ["", "-wal", "-shm"] {
        let mut path = store.as_os_str().to_owned();
        path.push(ending);
        let _ = std::fs::remove_file(path);
    }
}

fn follow(bus: &Bus, home: &Home, config: &Config, mut taken: watch::Receiver<bool>, store: &Path) {
    let Some(mut files) = StandbyFiles::new(bus, home) else { return };
    while !*taken.borrow() {
        match files.refresh() {
            Ok(true) => {
                // Compilation is cancelled with its future.
                let compiled = bus.runtime().block_on(async {
                    tokio::select! {
                        compiled = compile(home, config, store) => Some(compiled),
                        _ = taken.wait_for(|taken| *taken) => None,
                    }
                });
                match compiled {
                    Some(Ok(0)) => {}
                    Some(Ok(skills)) => tracing::info!("skills compiled for this machine: {skills}"),
                    Some(Err(error)) => tracing::warn!("the skills could not be compiled ahead: {}", error.message),
                    None => return,
                }
            }
            Ok(false) => {}
            Err(error) => tracing::warn!("the home's own files could not be had ahead: {error}"),
        }
        let waited =
            bus.runtime().block_on(async { tokio::time::timeout(LOOK, taken.wait_for(|taken| *taken)).await.is_ok() });
        if waited {
            return;
        }
    }
}

/// Compiles installed skills that are not compiled yet. Returns how many skills are compiled.
async fn compile(home: &Home, config: &Config, store: &Path) -> Result<usize, Failure> {
    // During standby, the home's own store belongs to another machine. Compiling writes to neither store.
    let skills = Skills::new(home.clone(), config.clone(), Store::open(store)?, Arc::new(Quiet));
    let mut compiled = 0;
    for skill in skills.list().into_iter().flatten().filter(|skill| !skill.is_bundled()) {
        match skills.warm(&skill).await {
            Ok(()) => compiled += 1,
            Err(error) => tracing::warn!("{error}"),
        }
    }
    Ok(compiled)
}
