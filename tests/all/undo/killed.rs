//! Processes that are killed during a run, and during an undo: all or nothing.

use super::random::Random;
use super::tree::Tree;
use super::{home, line, tree};
use crate::harness::Home;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Starts kiso and kills it after this time. Returns whether it had ended before.
fn killed(home: &Home, args: &[&str], after: Duration) -> bool {
    let mut child = home.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kiso starts");
    std::thread::sleep(after);
    let ended = child.try_wait().unwrap().is_some();
    let _ = child.kill();
    child.wait().unwrap();
    ended
}

/// Duration of a command on this machine.
fn time(home: &Home, args: &[&str]) -> Duration {
    let began = Instant::now();
    home.kiso(args);
    began.elapsed()
}

const ROUNDS: usize = 12;

#[test]
fn a_run_that_is_killed_anywhere_is_done_once_or_not_at_all() {
    let mut random = Random::seeded();
    let script = random.script(30) + "; echo once >> done";
    let message = format!("$ {script}");
    let whole = home("[exec]\ntimeout_s = 600\n");
    let takes = time(&whole, &["run", &message]);
    let whole = tree(&whole);
    let mut middles = 0;
    for round in 0..ROUNDS {
        let home = home("[exec]\ntimeout_s = 600\n");
        let before = tree(&home);
        let share = random.below(1_000) as u32;
        killed(&home, &["run", &message], takes * share / 1_000);
        let now = tree(&home);
        middles += usize::from(now != before && now != whole);
        if round % 2 == 0 {
            // The run is resumed, and does the interrupted task again.
            let resumed = home.kiso(&["run", "--resume", "last"]);
            let found = tree(&home);
            if resumed.code == 0 || found == whole {
                whole.assert_same(&found);
            } else {
                before.assert_same(&found);
            }
        } else {
            // The run is cancelled.
            home.kiso(&["cancel", "last"]);
            line(&home, "true").ok();
            let found = tree(&home);
            assert!(found == before || found == whole, "half of it is there: {:?}", found.names());
        }
    }
    println!("{middles} of {ROUNDS} were killed between their first change and their last");
}

#[test]
fn an_undo_that_is_killed_anywhere_has_done_all_or_nothing() {
    let mut random = Random::seeded();
    let home = home("[exec]\ntimeout_s = 600\n");
    let before = tree(&home);
    line(&home, "mkdir many; seq 1 2000 | split -l 1 -a 3 - many/f; echo new > a; mv d e; rm link").ok();
    let after = tree(&home);
    let takes = time(&home, &["undo"]).max(time(&home, &["undo", "--redo"]));
    after.assert_same(&tree(&home));
    let is = |what: &Tree| tree(&home) == *what;
    let (mut at, mut halves) = (after.clone(), 0);
    for _ in 0..ROUNDS * 2 {
        let (option, to) = if at == after { ("--yes", &before) } else { ("--redo", &after) };
        killed(&home, &["undo", option], takes * (200 + random.below(800) as u32) / 1_000);
        halves += usize::from(!is(&before) && !is(&after));
        // The next run in the session finds everything complete.
        line(&home, "true").ok();
        let found = tree(&home);
        assert!(found == at || found == *to, "half of undo {option}");
        at = found;
    }
    println!("{halves} were killed in the middle");
    home.kiso(&["undo", if at == after { "--yes" } else { "--redo" }]).ok();
}
