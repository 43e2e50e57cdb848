//! The names of the host's public types: one thing each, and a noun.

use super::circles::code;
use super::sources;
use crate::harness::root;
use std::collections::{BTreeMap, BTreeSet};

/// Names that stand for more than one public type, each with its reason.
const TWICE: &[(&str, &str)] = &[
    ("Body", "of a request, and of a piece of a prompt"),
    ("Channel", "a way in and out for people, and what a process reads or writes, as its WIT calls it"),
    ("Entry", "of a run's log, and of its lane"),
    ("Event", "as the graph makes it, and the row of the store that keeps it sealed"),
    ("Job", "the row of the store, and what the interface says of it"),
    ("Line", "of a shell, and of the socket's protocol"),
    (
        "Message",
        "the row of the store, what the interface says of it, and what both formats of models are written from",
    ),
    ("Meter", "of what models use in a run, and of what a guest uses in a call"),
    ("Prompt", "the row of the store, and what the interface says of it"),
    ("Refusal", "of a request by the gateway, and of one of its own by a provider"),
    ("Run", "the pure machine, and the row of the store"),
    ("Secrets", "of the process, and those that a message brings along"),
    ("Status", "of a session, of a tool's call and of a review, each a word that is on record or on the wire"),
    ("Subscription", "of a client that follows, and of a channel in the outbox"),
    ("TaskState", "of a task in the pure machine, and of its row in the store, which has words of its own"),
];

/// Where types have the words of somebody else's interface, each with whose it is.
const FOREIGN: &[(&str, &str)] = &[
    ("host/src/gateway/error/openai.rs", "OpenAI's"),
    ("host/src/gateway/openai", "OpenAI's, which also calls messages, models and answers so"),
];

/// Participles that are not told by their ending.
const PARTICIPLES: &[&str] = &[
    "Begun", "Bound", "Done", "Drawn", "Found", "Given", "Gone", "Heard", "Held", "Kept", "Known", "Left", "Lost",
    "Made", "Read", "Said", "Seen", "Sent", "Shown", "Spelt", "Spent", "Taken", "Told", "Written",
];

/// The public types of the host and of its crates, in its own words: name and file.
fn public_types() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in
        ["host/src", "host/plan/src", "host/reflex/src"].iter().flat_map(|dir| sources(&root().join(dir), ".rs"))
    {
        let file = path.strip_prefix(root()).unwrap().display().to_string();
        let is_foreign = FOREIGN.iter().any(|(place, _)| file.starts_with(place));
        if is_foreign || file.ends_with("tests.rs") || file.contains("/tests/") {
            continue;
        }
        for name in types_of(&code(&std::fs::read_to_string(&path).unwrap())) {
            found.entry(name).or_default().insert(file.clone());
        }
    }
    found
}

/// The public types that a file defines, also those that are public within the crate only.
fn types_of(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in code.lines() {
        let mut words = line.split_whitespace();
        if !words.next().is_some_and(|word| word == "pub" || word.starts_with("pub(")) {
            continue;
        }
        // `pub(in crate::a) struct X` has a word more.
        let mut words = words.skip_while(|word| word.ends_with(')'));
        if !words.next().is_some_and(|word| ["struct", "enum", "trait", "type", "union"].contains(&word)) {
            continue;
        }
        // A macro's `$name` is none.
        let name = words.next().unwrap_or_default().split(|c: char| !c.is_ascii_alphanumeric()).next();
        found.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    found
}

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let found = public_types();
    let twice: BTreeMap<_, _> = found.iter().filter(|(_, files)| files.len() > 1).collect();
    println!("{} names, {} of them twice", found.len(), twice.len());
    let new: Vec<_> = twice.iter().filter(|(name, _)| !TWICE.iter().any(|(known, _)| known == *name)).collect();
    assert!(new.is_empty(), "name each after what it is, or say in tests/all/house/names.rs why not: {new:#?}");
    let gone: Vec<_> = TWICE.iter().filter(|(name, _)| !twice.keys().any(|found| found == name)).collect();
    assert!(gone.is_empty(), "they stand once by now: {gone:?}");
}

/// Whether a name is a participle and no more: `Refused`, not `RefusedRequest` or `LimitReached`.
fn is_participle(name: &str) -> bool {
    let ends = name.ends_with("ed") && !name.ends_with("eed") && name.len() > 4;
    PARTICIPLES.contains(&name) || ends && !name[1..].contains(|c: char| c.is_ascii_uppercase())
}

#[test]
fn a_public_type_is_called_by_a_noun() {
    let participles: BTreeMap<_, _> = public_types().into_iter().filter(|(name, _)| is_participle(name)).collect();
    assert!(participles.is_empty(), "what was done to it is not what it is: {participles:#?}");
}

#[test]
fn types_and_participles_are_told_from_others() {
    let code = "pub struct A(u8);\npub(crate) enum B<T> {\n    pub fn c() {}\n    pub(in crate::d) trait D {}\nstruct E;\npub type F = u8;\npub struct $G;";
    assert_eq!(types_of(code), ["A", "B", "D", "F"]);
    for participle in ["Heard", "Refused", "Opened"] {
        assert!(is_participle(participle), "{participle}");
    }
    for noun in ["Feed", "Need", "RefusedRequest", "LimitReached", "Bed"] {
        assert!(!is_participle(noun), "{noun}");
    }
}
