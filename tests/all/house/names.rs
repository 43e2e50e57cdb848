//! The names of the host's public types are unique nouns. No type of a skill, public or private, has a vague name.

use super::circles::code;
use super::{host_sources, sources};
use crate::harness::root;
use std::collections::{BTreeMap, BTreeSet};

/// Names of more than one public type, each with its reason.
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

/// Files whose types use the words of another project's interface, with its owner.
const FOREIGN: &[(&str, &str)] = &[
    ("host/gateway/src/error/openai.rs", "OpenAI's"),
    ("host/gateway/src/openai", "OpenAI's, which also calls messages, models and answers so"),
];

/// Participles that do not end in "ed".
const PARTICIPLES: &[&str] = &[
    "Begun", "Bound", "Done", "Drawn", "Found", "Given", "Gone", "Heard", "Held", "Kept", "Known", "Left", "Lost",
    "Made", "Read", "Said", "Seen", "Sent", "Shown", "Spelt", "Spent", "Taken", "Told", "Written",
];

/// Names that fit any type, and so describe none.
const VAGUE: &[&str] = &["Asked", "At", "Doors", "Found", "Given", "Of", "Patience", "Place", "Told", "Wanted"];

/// The public types of the host and its crates, except foreign ones: name and files.
fn public_types() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, path) in host_sources() {
        let is_foreign = FOREIGN.iter().any(|(place, _)| file.starts_with(place));
        if is_foreign || file.ends_with("tests.rs") || file.contains("/tests/") {
            continue;
        }
        let (public, _) = types_of(&code(&std::fs::read_to_string(&path).unwrap()));
        for name in public {
            found.entry(name).or_default().insert(file.clone());
        }
    }
    found
}

/// The types that a file defines: public ones, including those public within the crate, and private ones.
fn types_of(code: &str) -> (Vec<String>, Vec<String>) {
    let (mut public, mut private) = (Vec::new(), Vec::new());
    for line in code.lines() {
        let mut words = line.split_whitespace().peekable();
        let is_public = words.next_if(|word| *word == "pub" || word.starts_with("pub(")).is_some();
        // `pub(in crate::a) struct X` has an additional word.
        let mut words = words.skip_while(|word| is_public && word.ends_with(')'));
        if !words.next().is_some_and(|word| ["struct", "enum", "trait", "type", "union"].contains(&word)) {
            continue;
        }
        // A macro's `$name` is skipped.
        let name = words.next().unwrap_or_default().split(|c: char| !c.is_ascii_alphanumeric()).next();
        let found = if is_public { &mut public } else { &mut private };
        found.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    (public, private)
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

/// Whether a name is only a participle: `Refused`, not `RefusedRequest` or `LimitReached`.
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
fn a_type_of_a_skill_has_no_vague_name() {
    let mut vague = Vec::new();
    for path in sources(&root().join("skills"), ".rs") {
        let (public, private) = types_of(&code(&std::fs::read_to_string(&path).unwrap()));
        let names = public.into_iter().chain(private).filter(|name| VAGUE.contains(&name.as_str()));
        vague.extend(names.map(|name| format!("{}: {name}", path.strip_prefix(root()).unwrap().display())));
    }
    assert!(vague.is_empty(), "name each after what it is: {vague:#?}");
}

#[test]
fn types_and_participles_are_told_from_others() {
    let code = "pub struct A(u8);\npub(crate) enum B<T> {\n    pub fn c() {}\n    pub(in crate::d) trait D {}\nstruct E;\npub type F = u8;\npub struct $G;";
    let (public, private) = types_of(code);
    assert_eq!(public, ["A", "B", "D", "F"]);
    assert_eq!(private, ["E"]);
    for participle in ["Heard", "Refused", "Opened"] {
        assert!(is_participle(participle), "{participle}");
    }
    for noun in ["Feed", "Need", "RefusedRequest", "LimitReached", "Bed"] {
        assert!(!is_participle(noun), "{noun}");
    }
}
