//! The use that calls make of a skill's grant, as `kiso skill audit` shows it.
//!
//! At a call's end, each capability returns the guest's use of it. It is bounded in the call and in the store. Only new kinds of
//! use are written at once, so a skill that is called a hundred times in a second does not cause a hundred commits.

use super::{Skills, lock};
use kiso_base::clock::now_ms;
use kiso_plan::report::LimitUse;
use kiso_store::secret::Secrets;
use kiso_store::store::{MORE, SkillUse, Store, UsedThing};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

/// Entries of one capability that are kept for a call.
const MAX_THINGS: usize = 64;

/// Bytes of an entry's name.
const MAX_NAME: usize = 300;

/// How long repeated use records are batched before they are written.
const GATHERED: Duration = Duration::from_secs(2);

/// The use of one capability: how, and with what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapabilityUse {
    things: BTreeSet<(String, String)>,
    /// Whether there were more entries than are kept.
    more: bool,
}

impl CapabilityUse {
    /// Adds one, such as `("GET", "example.org")`.
    pub fn add(&mut self, how: &str, name: &str) {
        let known = (how.to_owned(), name.to_owned());
        if name.len() > MAX_NAME || (self.things.len() >= MAX_THINGS && !self.things.contains(&known)) {
            self.more = true;
        } else {
            self.things.insert(known);
        }
    }

    /// Records that there was more use than can be listed.
    pub fn leave_open(&mut self) {
        self.more = true;
    }

    /// Whether there was more use than is listed.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// The names that were used in this way.
    pub fn names<'a>(&'a self, how: &'a str) -> impl Iterator<Item = &'a str> {
        self.things.iter().filter(move |(known, _)| known == how).map(|(_, name)| name.as_str())
    }

    /// Everything, as how and name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.things.iter().map(|(how, name)| (how.as_str(), name.as_str()))
    }

    /// Whether it was used in this way.
    pub fn has(&self, how: &str) -> bool {
        self.names(how).next().is_some()
    }
}

/// The same for every capability, by its key in manifests and grants.
pub(super) type GrantUse = BTreeMap<&'static str, CapabilityUse>;

/// The use of a call that has ended.
#[derive(Debug, Clone, Default)]
pub struct CallUse {
    pub limits: LimitUse,
    pub grant: GrantUse,
}

/// The recorded use of one capability by all calls.
pub(super) fn of_capability(used: &SkillUse, capability: &str) -> CapabilityUse {
    let mut all = CapabilityUse::default();
    for thing in used.things.iter().filter(|thing| thing.capability == capability) {
        match thing.how.as_str() {
            MORE => all.more = true,
            how => drop(all.things.insert((how.to_owned(), thing.name.clone()))),
        }
    }
    all
}

/// The records that are not written yet, for each skill that was called in the last moments.
#[derive(Debug, Default)]
pub(super) struct UseLedger(Mutex<HashMap<String, PendingUse>>);

#[derive(Debug, Default)]
struct PendingUse {
    /// The records written since the first of these calls: they are not written again.
    told: BTreeSet<(String, String, String)>,
    memory_bytes: u64,
    longest_ms: u64,
    waiting: SkillUse,
}

impl PendingUse {
    fn is_new(&self, used: &SkillUse) -> bool {
        let key = |thing: &UsedThing| (thing.capability.clone(), thing.how.clone(), thing.name.clone());
        used.memory_bytes > self.memory_bytes
            || used.longest_ms > self.longest_ms.saturating_mul(2)
            || used.things.iter().any(|thing| !self.told.contains(&key(thing)))
    }

    fn add(&mut self, used: SkillUse) {
        self.told.extend(used.things.iter().map(|t| (t.capability.clone(), t.how.clone(), t.name.clone())));
        self.memory_bytes = self.memory_bytes.max(used.memory_bytes);
        self.longest_ms = self.longest_ms.max(used.longest_ms);
        let waiting = &mut self.waiting;
        if waiting.calls == 0 {
            *waiting = used;
            return;
        }
        waiting.calls += used.calls;
        waiting.failed += used.failed;
        waiting.last_ms = used.last_ms;
        waiting.memory_bytes = waiting.memory_bytes.max(used.memory_bytes);
        waiting.longest_ms = waiting.longest_ms.max(used.longest_ms);
        waiting.written_bytes = waiting.written_bytes.max(used.written_bytes);
        waiting.total_ms += used.total_ms;
        for thing in used.things {
            match waiting.things.iter_mut().find(|known| {
                (&known.capability, &known.how, &known.name) == (&thing.capability, &thing.how, &thing.name)
            }) {
                Some(known) => known.calls += thing.calls,
                None => waiting.things.push(thing),
            }
        }
    }
}

impl UseLedger {
    /// Writes the waiting records.
    pub(super) fn write(&self, store: &Store) {
        let pending = std::mem::take(&mut *lock(&self.0));
        for (skill, pending) in pending.into_iter().filter(|(_, pending)| pending.waiting.calls > 0) {
            store.post(move |tx| tx.add_skill_use(&skill, &pending.waiting));
        }
    }

    /// Records the use of a call, and writes it if something in it is new. Returns whether it is the first record for a while.
    fn take(&self, store: &Store, skill: &str, used: SkillUse) -> bool {
        let mut all = lock(&self.0);
        let first = all.is_empty();
        let pending = all.entry(skill.to_owned()).or_default();
        if pending.waiting.calls > 0 && pending.waiting.digest != used.digest {
            // The skill was replaced meanwhile, so the use of the earlier one is dropped.
            *pending = PendingUse::default();
        }
        let new = pending.is_new(&used);
        pending.add(used);
        if new {
            let (skill, waiting) = (skill.to_owned(), std::mem::take(&mut pending.waiting));
            store.post(move |tx| tx.add_skill_use(&skill, &waiting));
        }
        first
    }
}

impl Skills {
    /// Writes the waiting records, because the process is about to end.
    pub fn write_uses(&self) {
        self.0.uses.write(&self.0.store);
    }

    /// Records the use of a skill by a call, without values of secrets.
    pub(super) fn record_use(&self, skill: &str, digest: &str, used: &CallUse, failed: bool, secrets: &Secrets) {
        let thing = |capability: &str, how: &str, name: &str| UsedThing {
            capability: capability.to_owned(),
            how: how.to_owned(),
            name: secrets.redact(name),
            calls: 1,
        };
        let mut things = Vec::new();
        for (capability, of) in &used.grant {
            things.extend(of.iter().map(|(how, name)| thing(capability, how, name)));
            things.extend(of.more.then(|| thing(capability, MORE, "")));
        }
        let (now, LimitUse { millis, memory_bytes, written_bytes, .. }) = (now_ms(), used.limits);
        let used = SkillUse {
            digest: digest.to_owned(),
            calls: 1,
            failed: failed.into(),
            first_ms: now,
            last_ms: now,
            memory_bytes,
            longest_ms: millis,
            written_bytes,
            total_ms: millis,
            things,
        };
        let first = self.0.uses.take(&self.0.store, skill, used);
        if first && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let inner = std::sync::Arc::downgrade(&self.0);
            runtime.spawn(async move {
                tokio::time::sleep(GATHERED).await;
                if let Some(inner) = inner.upgrade() {
                    inner.uses.write(&inner.store);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(ms: u64, host: &str) -> SkillUse {
        let thing = UsedThing { capability: "http".into(), how: "GET".into(), name: host.into(), calls: 1 };
        SkillUse {
            digest: "d".into(),
            calls: 1,
            last_ms: 1,
            longest_ms: ms,
            total_ms: ms,
            things: vec![thing],
            ..SkillUse::default()
        }
    }

    #[test]
    fn what_says_nothing_new_waits_and_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let ledger = UseLedger::default();
        // Posted records are written before later writes.
        let calls = || {
            store.write_blocking(|_| Ok(())).unwrap();
            store.read_blocking(|view| view.skill_use("x")).unwrap().map_or(0, |used| used.calls)
        };
        assert!(ledger.take(&store, "x", used(10, "a")));
        assert_eq!(calls(), 1);
        for _ in 0..5 {
            assert!(!ledger.take(&store, "x", used(9, "a")));
        }
        assert_eq!(calls(), 1);
        ledger.take(&store, "x", used(9, "b"));
        assert_eq!(calls(), 7, "another host is new, and what waited goes with it");
        ledger.take(&store, "x", used(9, "b"));
        ledger.write(&store);
        assert_eq!(calls(), 8);
        let found = store.read_blocking(|view| view.skill_use("x")).unwrap().unwrap();
        assert_eq!(found.things.iter().map(|thing| thing.calls).collect::<Vec<_>>(), [6, 2]);
    }

    #[test]
    fn a_call_tells_no_more_than_so_many_things() {
        let mut all = CapabilityUse::default();
        (0..2 * MAX_THINGS).for_each(|n| all.add("GET", &n.to_string()));
        assert!(all.has_more() && all.iter().count() == MAX_THINGS);
        let mut long = CapabilityUse::default();
        long.add("read", &"x".repeat(MAX_NAME + 1));
        assert!(long.has_more() && !long.has("read"));
    }
}
