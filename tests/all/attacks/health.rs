//! Requests `/health` all the time, and records the slowest response and the case that ran then.

use crate::served::ask;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(super) struct Slowest {
    pub took: Duration,
    /// The case of each category that ran during the request.
    pub during: String,
    pub asked: usize,
}

pub(super) struct Health {
    now: Arc<Mutex<BTreeMap<String, String>>>,
    over: Arc<AtomicBool>,
    watcher: JoinHandle<Slowest>,
}

impl Health {
    /// Requests each address in turn.
    pub(super) fn watch(addresses: [String; 2]) -> Health {
        let (now, over) = (Arc::new(Mutex::new(BTreeMap::new())), Arc::new(AtomicBool::new(false)));
        let (beside, ends) = (now.clone(), over.clone());
        let watcher = std::thread::spawn(move || {
            let mut slowest = Slowest::default();
            for address in addresses.iter().cycle() {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                let during: BTreeMap<String, String> = beside.lock().unwrap().clone();
                let began = Instant::now();
                let answer = ask(address, None, "GET", "/health", None).expect("the daemon answers");
                assert_eq!(answer.status, 200, "{answer:?}");
                slowest.asked += 1;
                if began.elapsed() > slowest.took {
                    slowest.took = began.elapsed();
                    let during = during.iter().filter(|(_, name)| !name.is_empty());
                    slowest.during =
                        during.map(|(category, name)| format!("{category}: {name}")).collect::<Vec<_>>().join("; ");
                }
                std::thread::sleep(PAUSE);
            }
            slowest
        });
        Health { now, over, watcher }
    }

    /// Records the case that a category runs now.
    pub(super) fn during(&self, category: &str, name: &str) {
        self.now.lock().unwrap().insert(category.to_owned(), name.to_owned());
    }

    pub(super) fn end(self) -> Slowest {
        self.over.store(true, Ordering::Relaxed);
        self.watcher.join().expect("/health was answered every time")
    }
}
