//! A table of attacks on the real binary and a real daemon. `tests/attacks/*.toml` describe each attempt and what must hold, one
//! file for each category. `just attack` runs them and prints the table; the ordinary tests run them, too.
//!
//! A thread requests the daemon's `/health` all the time. With `KISO_HEALTH_LIMIT_MS`, which `just attack` sets to 1000, a slower
//! response fails; without it none does, since the machine may be busy. `KISO_ATTACK=substring` runs only the cases whose name
//! contains it.
//!
//! After every case, the daemon is the same process, nothing outside its home has changed, the listener that nothing may reach
//! received nothing, and the session of the case can be deleted with all its contents.

pub(crate) mod archive;
mod case;
mod health;
mod target;

use crate::harness::root;
use case::{Case, Outcome};
use health::Health;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use target::{LONG, SHORT, Target};

/// The files of `tests/attacks`, in the order of the table in docs/security.md.
const CATEGORIES: [&str; 8] =
    ["guests", "command-lines", "components", "archives", "network-forms", "messages", "names", "terminals"];

fn cases() -> BTreeMap<&'static str, Vec<Case>> {
    CATEGORIES.into_iter().map(|category| (category, case::load(category))).collect()
}

#[test]
fn every_attempt_ends_as_it_must() {
    let wanted = std::env::var("KISO_ATTACK").unwrap_or_default();
    let limit = std::env::var("KISO_HEALTH_LIMIT_MS").ok();
    let limit = limit.map(|text| Duration::from_millis(text.parse().expect("KISO_HEALTH_LIMIT_MS is a number")));
    let all = cases();
    let (quick, patient) = (Target::start(SHORT), Target::start(LONG));
    let health = Health::watch([&quick, &patient].map(|target| target.served.address.clone()));
    let broken = Mutex::new(Vec::new());
    let times = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        // A category acts as one client: its cases run in order, in parallel with other categories.
        for (category, cases) in &all {
            let (health, broken, times, wanted) = (&health, &broken, &times, &wanted);
            let (quick, patient) = (&quick, &patient);
            scope.spawn(move || {
                let began = Instant::now();
                for (number, case) in cases.iter().enumerate().filter(|(_, case)| case.name.contains(wanted)) {
                    health.during(category, &case.name);
                    let target = if case.holds.meets_a_limit_in_time() { patient } else { quick };
                    // A case that panics fails; the other cases still run.
                    let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        let outcome = target.attempt(category, number, case);
                        let broken = case.holds.broken(&outcome, &|text| target.fill(text));
                        broken.map(|why| format!("{why}\n{outcome}"))
                    }));
                    let why = tried.unwrap_or_else(|panic| Some(words_of(&*panic)));
                    if let Some(why) = why {
                        let log = target.served.log();
                        let errors: Vec<_> = log.lines().filter(|line| line.contains("ERROR")).collect();
                        let why = format!("{why}\nerrors that the daemon has logged so far: {errors:#?}");
                        broken.lock().unwrap().push(format!("## {category}: {}\n{}\n{why}", case.name, case.attempts));
                    }
                }
                health.during(category, "");
                times.lock().unwrap().insert(*category, began.elapsed());
            });
        }
    });
    let slowest = health.end();
    print!("{}", table(&all, &times.into_inner().unwrap(), &slowest));
    [quick, patient].iter().for_each(Target::assert_whole);
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "{} attempts did not end as they must\n\n{}", broken.len(), broken.join("\n\n"));
    if let Some(limit) = limit {
        assert!(slowest.took <= limit, "/health took {:?} while this was tried: {}", slowest.took, slowest.during);
    }
}

fn table(
    all: &BTreeMap<&'static str, Vec<Case>>,
    times: &BTreeMap<&'static str, Duration>,
    slowest: &health::Slowest,
) -> String {
    let mut text = format!("\n{:<16}{:>6}{:>10}\n", "category", "cases", "seconds");
    for category in CATEGORIES {
        let (cases, took) = (all[category].len(), times[category].as_secs_f64());
        writeln!(text, "{category:<16}{cases:>6}{took:>10.1}").unwrap();
    }
    writeln!(text, "{:<16}{:>6}", "all", all.values().map(Vec::len).sum::<usize>()).unwrap();
    let health::Slowest { took, during, asked } = slowest;
    writeln!(text, "\n/health was asked {asked} times; its slowest answer took {took:.0?}, beside {during}").unwrap();
    text
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

/// A case that always holds proves nothing: each must fail for an outcome without any output, for a silent success and for a
/// silent failure.
#[test]
fn every_case_can_fail() {
    for (category, cases) in cases() {
        let mut names = std::collections::BTreeSet::new();
        for case in &cases {
            assert!(names.insert(&case.name), "{category}: two cases are called {:?}", case.name);
            for (exit, status) in [(None, None), (Some(0), Some(200)), (Some(1), Some(500))] {
                let empty = Outcome { exit, status, ..Outcome::default() };
                let broken = case.holds.broken(&empty, &|text| text.to_owned());
                assert!(broken.is_some(), "{category}: {:?} holds even with {empty:?}", case.name);
            }
        }
    }
}

/// The table under "Attacks" in docs/security.md has the numbers of cases in the files.
#[test]
fn the_documented_counts_are_those_of_the_files() {
    let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (_, section) = text.split_once("\n## Attacks\n").expect("docs/security.md has the section");
    let section = section.split("\n## ").next().unwrap();
    let all = cases();
    let mut expected = 0;
    for category in CATEGORIES {
        let row = section.lines().find(|line| line.starts_with(&format!("| {category} |")));
        let row = row.unwrap_or_else(|| panic!("docs/security.md has no row for {category}"));
        let count: usize =
            row.trim_end_matches(" |").rsplit("| ").next().unwrap().parse().expect("a count stands last");
        assert_eq!(count, all[category].len(), "docs/security.md miscounts {category}");
        expected += count;
    }
    let row = section.lines().find(|line| line.starts_with("| all |")).expect("docs/security.md has a row for all");
    assert!(row.ends_with(&format!("| {expected} |")), "docs/security.md: {row:?} is not {expected}");
}
