//! Random runs.

use super::dice::{Dice, answer, spec};
use super::*;
use crate::lane::MAX_ENTRIES;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Number of seeds, each of which is a run; `KISO_RUNS` changes it. This many take about ten seconds.
const SEEDS: u64 = 25_000;

/// The states that the runs have reached.
#[derive(Debug, Default)]
struct Seen {
    edges: Vec<(Node, Why, Node)>,
    limits: BTreeSet<String>,
    steps: BTreeSet<&'static str>,
    refused: u64,
    interrupted: u64,
    events: usize,
    longest: usize,
}

impl Seen {
    fn log(&mut self, log: &[Event]) {
        for event in log {
            for edge in way(event) {
                if !self.edges.contains(&edge) {
                    self.edges.push(edge);
                }
            }
            for limit in &event.limits {
                if !self.limits.contains(&limit.limit) {
                    self.limits.insert(limit.limit.clone());
                }
            }
        }
        self.events += log.len();
        self.longest = self.longest.max(log.len());
    }

    fn add(&mut self, other: Self) {
        self.edges.extend(other.edges);
        self.limits.extend(other.limits);
        self.steps.extend(other.steps);
        self.refused += other.refused;
        self.interrupted += other.interrupted;
        self.events += other.events;
        self.longest = self.longest.max(other.longest);
    }
}

/// Maximum events of a run with these limits.
fn bound(limits: &Limits) -> usize {
    let many = |limit: u32| usize::try_from(limit).unwrap();
    let answers = many(limits.max_parse_retries) + 1;
    // A round consists of an answer, the start of its calls, their results, and a summary.
    let rounds = 4 * many(limits.max_tool_call_rounds) + 2;
    // A task consists of a brief with its notice, its start, its work, and a review with its notice.
    let task = (answers + 1) + 1 + rounds + (answers + 1);
    // The medium route has a task without a plan.
    let plan = answers + 1 + limits.max_tasks.max(1) * task;
    let cycle = 3 + rounds + (many(limits.max_replan_depth) + 1) * plan + 2;
    (many(limits.max_cycles) + 1) * cycle
}

/// Continues a run to its end.
fn drive(dice: &mut Dice, live: &mut Live, seen: &mut Seen) {
    let limits = live.run.spec().limits;
    loop {
        let step = live.run.next_step();
        seen.steps.insert(step.name());
        if dice.one_in(24) {
            seen.refused += refuse(dice, live, &step);
        }
        if step == Step::Ended {
            return;
        }
        live.feed(answer(dice, &step, &limits));
        assert!(live.log.len() <= bound(&limits), "it does not end");
    }
}

/// Submits a result that does not answer `step`.
fn refuse(dice: &mut Dice, live: &mut Live, step: &Step) -> u64 {
    let mut wrong = fits::malformed(step, &live.run.spec().limits);
    if wrong.is_empty() || dice.one_in(2) {
        wrong = fits::one_of_each();
        wrong.retain(|result| !fits::fits(step.name(), result.name()));
    }
    let wrong = wrong.swap_remove(dice.below(wrong.len()));
    live.refuse(wrong);
    1
}

/// Executes a run and checks all conditions.
fn check(dice: &mut Dice, seen: &mut Seen) {
    let spec = spec(dice);
    let mut live = Live { run: Run::new(spec.clone()), log: Vec::new() };
    drive(dice, &mut live, seen);
    live.audit();
    lanes(&live.run);

    // A run that was rebuilt in the middle continues in the same way.
    let cut = dice.below(live.log.len() + 1);
    let mut again = Run::replay(spec.clone(), &live.log[..cut]).unwrap();
    let torn = again.clone();
    for event in &live.log[cut..] {
        assert_eq!(again.accept(event.result.clone()).as_ref(), Ok(event));
    }
    assert_eq!(again, live.run);
    if dice.one_in(32) {
        live.replay();
        Live { run: torn.clone(), log: live.log[..cut].to_vec() }.replay();
    }

    // The same after a crash, when started work is not repeated.
    let started = matches!(torn.next_step(), Step::Execute { .. } | Step::Call { .. });
    if started || dice.one_in(16) {
        let mut live = Live { run: torn, log: live.log[..cut].to_vec() };
        let event = live.run.interrupt(false).unwrap();
        assert_eq!(live.run.interrupt(false), Ok(None), "once is enough");
        seen.interrupted += u64::from(event.is_some());
        live.log.extend(event);
        drive(dice, &mut live, seen);
        live.audit();
        seen.log(&live.log);
    }
    seen.log(&live.log);
}

/// Checks the lanes of a run.
fn lanes(run: &Run) {
    let entries = run.lane.entries();
    let shared = entries.iter().filter(|entry| matches!(entry, Entry::Shared(..))).count();
    assert!(entries.len() <= MAX_ENTRIES && shared <= 3);
    assert!(!run.planner_lane.seeded(&run.lane).any(|entry| matches!(entry, Entry::User(_))));
    let turns = run.action_lane.turns().len();
    assert!(turns <= (MAX_BATCH + 2) * run.spec.limits.max_tool_call_rounds as usize + 1, "{turns} turns");
}

/// Prints the seed of a failed run.
struct Blame(u64);

impl Drop for Blame {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it was seed {}", self.0);
        }
    }
}

fn check_seed(seed: u64, seen: &mut Seen) {
    let blame = Blame(seed);
    check(&mut Dice::Seed(blame.0), seen);
}

#[test]
fn many_runs_end_within_their_limits() {
    let seeds = std::env::var("KISO_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let total = Mutex::new(Seen::default());
    std::thread::scope(|scope| {
        for first in 0..threads {
            let total = &total;
            scope.spawn(move || {
                let mut seen = Seen::default();
                for seed in (first..seeds).step_by(threads as usize) {
                    check_seed(seed, &mut seen);
                }
                total.lock().unwrap().add(seen);
            });
        }
    });
    // The random runs have reached all edges and steps.
    let seen = total.into_inner().unwrap();
    let missed: Vec<_> = edges::EDGES.iter().filter(|edge| !seen.edges.contains(edge)).collect();
    assert!(missed.is_empty(), "{missed:?}");
    let limits = [
        "max_cost_cents_per_run",
        "max_cycles",
        "max_parse_retries",
        "max_replan_depth",
        "max_review_depth",
        "max_tasks",
        "max_tokens_per_day",
        "max_tokens_per_run",
        "max_tool_call_rounds",
    ];
    assert!(seen.limits.iter().eq(limits), "{:?}", seen.limits);
    assert_eq!(seen.steps.len(), 18, "{:?}", seen.steps);
    assert!(seen.refused > seeds / 5 && seen.interrupted > seeds / 50, "{seen:?}");
    assert!(seen.events as u64 > 8 * seeds && seen.longest > 100, "{seen:?}");
}

proptest! {
    /// The same for choices that shrink to a minimal failure.
    #[test]
    fn any_choices_lead_to_an_end(choices in prop::collection::vec(any::<u16>(), 0..200)) {
        check(&mut Dice::Given(choices.into_iter()), &mut Seen::default());
    }
}
