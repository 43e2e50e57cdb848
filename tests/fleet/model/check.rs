//! The protocol's properties hold in every state, and each of its rules is needed.

use fleet_model::{Flaw, Fleet, Size};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::collections::BTreeSet;
use std::io::Write;

/// Prints directly to standard error, because the output of a passed test is hidden.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Checks every state.
#[track_caller]
fn holds(size: Size) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = Fleet { size, flaw: None }.checker().symmetry().threads(threads).spawn_dfs().join();
    say(&format!("{} states, up to {} steps: {size:?}", checker.unique_state_count(), checker.max_depth()));
    assert!(checker.is_done());
    let found = checker.discoveries();
    for property in checker.model().properties() {
        match (property.expectation, found.get(property.name)) {
            (Expectation::Sometimes, None) => assert!(is_out_of_reach(size, property.name), "never: {}", property.name),
            (Expectation::Sometimes, Some(_)) => {}
            (_, Some(path)) => panic!("not always: {}\n{path}\n{:#?}", property.name, path.last_state()),
            (_, None) => {}
        }
    }
}

/// Properties that cannot be reached with a model of this size.
fn is_out_of_reach(size: Size, name: &str) -> bool {
    match name {
        "an append is in the log, and another copy is on its way" => size.retries == 0,
        "an effect of a former owner is tried and refused" => size.messages == 1,
        "the log is forgotten under one who takes over" => size.bases == 0,
        "a former owner comes with an older base" => size.bases < 2,
        _ => false,
    }
}

#[test]
fn two_members_with_all_that_can_happen() {
    holds(Size { members: 2, messages: 2, epochs: 2, crashes: 1, retries: 1, beats: 1, bases: 0 });
}

#[test]
fn two_members_that_take_turns() {
    holds(Size { members: 2, messages: 2, epochs: 3, crashes: 0, retries: 0, beats: 0, bases: 0 });
    holds(Size { members: 2, messages: 1, epochs: 3, crashes: 1, retries: 1, beats: 1, bases: 0 });
}

#[test]
fn three_members() {
    holds(Size { members: 3, messages: 2, epochs: 2, crashes: 1, retries: 0, beats: 0, bases: 0 });
    holds(Size { members: 3, messages: 2, epochs: 2, crashes: 0, retries: 1, beats: 0, bases: 0 });
    holds(Size { members: 3, messages: 1, epochs: 3, crashes: 1, retries: 0, beats: 1, bases: 0 });
}

#[test]
fn copies_that_take_the_place_of_the_log() {
    holds(Size { members: 2, messages: 2, epochs: 2, crashes: 0, retries: 0, beats: 0, bases: 1 });
    holds(Size { members: 2, messages: 1, epochs: 3, crashes: 0, retries: 0, beats: 0, bases: 2 });
    holds(Size { members: 3, messages: 1, epochs: 2, crashes: 1, retries: 0, beats: 0, bases: 2 });
}

#[test]
#[ignore = "it takes minutes, and .ci/long runs it"]
fn more_at_once() {
    holds(Size { members: 3, messages: 2, epochs: 3, crashes: 0, retries: 0, beats: 0, bases: 0 });
    holds(Size { members: 3, messages: 2, epochs: 2, crashes: 1, retries: 1, beats: 1, bases: 0 });
    holds(Size { members: 3, messages: 1, epochs: 3, crashes: 1, retries: 1, beats: 1, bases: 0 });
    holds(Size { members: 2, messages: 2, epochs: 2, crashes: 0, retries: 0, beats: 0, bases: 2 });
    holds(Size { members: 2, messages: 1, epochs: 2, crashes: 1, retries: 1, beats: 1, bases: 2 });
}

/// Each rule that can be left out, and the properties that this breaks.
const NEEDED: &[(Flaw, &[&str])] = &[
    (Flaw::OwnerWithoutCompareAndSet, &["each epoch is one member's"]),
    (Flaw::NoCompareAndSet, &["epochs in the log never go back", "the newest owner has every message with a 202"]),
    (Flaw::AnswerBeforeAcknowledgement, &["what has a 202 is in the log"]),
    (
        Flaw::NoEpochRecord,
        &["the newest owner has every message with a 202", "the newest owner has every reply that was told"],
    ),
    (Flaw::NewerEpochIgnored, &["epochs in the log never go back"]),
    (Flaw::RetryTakesNewPlace, &["a commit is in the log once"]),
    (Flaw::MessageWithoutKey, &["no message has its effect twice", "the newest owner has every reply that was told"]),
    (
        Flaw::KeepsOwnStore,
        &["a reply that was told is in the log", "a message has one reply in the log", "nobody is told two replies"],
    ),
    (Flaw::OlderBase, &["the base is the log before it, and nothing else of it is forgotten"]),
    (Flaw::GapIgnored, &["the newest owner has every message with a 202"]),
    (Flaw::NoLeaseCheck, &["an effect starts at the owner"]),
    (Flaw::NoFencing, &["the sink takes no effect of an epoch before one it has seen"]),
    (Flaw::RunsAgain, &["no message has its effect twice"]),
];

#[test]
fn without_one_of_its_rules_something_breaks() {
    for (flaw, broken) in NEEDED {
        let (messages, retries, bases) = match flaw {
            Flaw::OlderBase | Flaw::GapIgnored => (1, 0, 2),
            Flaw::RetryTakesNewPlace => (2, 1, 0),
            _ => (2, 0, 0),
        };
        let size = Size { members: 2, messages, epochs: 2, crashes: 1, retries, beats: 0, bases };
        let all = HasDiscoveries::AllOf(broken.iter().copied().collect());
        // Breadth first, so that the paths to each are short.
        let checker = Fleet { size, flaw: Some(*flaw) }.checker().finish_when(all).spawn_bfs().join();
        let found = checker.discoveries();
        for name in *broken {
            let path = found.get(name).unwrap_or_else(|| panic!("{flaw:?} does not break this: {name}"));
            let steps = path.clone().into_actions();
            say(&format!("{flaw:?}: not always: {name}, after {} steps", steps.len()));
            println!("{steps:#?}");
        }
    }
}

/// A property that no flaw breaks may be trivially true.
#[test]
fn every_property_can_be_broken() {
    let size = Size { members: 2, messages: 1, epochs: 1, crashes: 0, retries: 0, beats: 0, bases: 0 };
    let properties = Fleet { size, flaw: None }.properties().into_iter();
    let always: BTreeSet<&str> = properties
        .filter(|property| property.expectation == Expectation::Always)
        .map(|property| property.name)
        .collect();
    let broken: BTreeSet<&str> = NEEDED.iter().flat_map(|(_, broken)| broken.iter().copied()).collect();
    assert_eq!(always, broken);
}
