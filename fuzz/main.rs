//! Fuzzing on stable Rust: generated, structured inputs, five targets, one driver.
//!
//! ```text
//! cargo test --package kiso --test fuzz                     some thousands of each, as part of the ordinary tests
//! KISO_FUZZ=1000000 cargo test --config 'profile.dev.opt-level=2' --package kiso --test fuzz
//! KISO_FUZZ_TARGET=plans KISO_FUZZ_SEED=7 KISO_FUZZ_AT=1234 cargo test --package kiso --test fuzz
//! ```
//!
//! The second command is the long lane, `.ci/long`. It uses the same build target and directory and optimises only the host, so
//! that wasmtime and Cranelift, which every profile optimises, are not built a second time. The third command repeats one input:
//! an input depends only on the seed, the target and its number, and a failure prints all three.
//!
//! An execution fails when it panics, when it uses more than 5 s of processor time (in the ordinary tests a minute), when it does
//! not end within a minute, or when the memory of its process grows by more than 512 MiB. A watchdog checks this; it prints the
//! input and aborts. A target also fails when fewer than a fifth of its inputs get past the parser: then the grammar is out of
//! date. If inputs come from several sources, the share of each is printed below the target's.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../tests/all/harness.rs"]
#[allow(dead_code, unused_imports, reason = "the integration tests use all of it")]
mod harness;
#[path = "../tests/all/served.rs"]
#[allow(dead_code, reason = "the integration tests use all of it")]
mod served;

mod components;
mod dice;
mod plans;
mod shell;
mod smith;
mod tables;
mod watch;
mod wire;

use dice::Dice;
use std::time::Instant;
use watch::Watch;

/// A fuzz target. Its input is bytes, so that every input can be printed and saved.
trait Target {
    fn name(&self) -> &'static str;

    /// Number of inputs that are run together because starting costs more than running one.
    fn together(&self) -> u64 {
        1
    }

    /// Number of inputs in the ordinary tests. A target with 0 runs only in the long lane.
    fn ordinary(&self) -> u64;

    fn make(&mut self, dice: &mut Dice) -> Vec<u8>;

    /// Runs the inputs. Returns how many got past the parser, or the failure. A panic is a failure, too.
    fn run(&mut self, inputs: &[Vec<u8>]) -> Result<u64, String>;

    /// The sources of the target's inputs, if it has several.
    fn sources(&self) -> Vec<Source> {
        Vec::new()
    }

    /// The process whose memory is watched, if it is not this one.
    fn process(&self) -> Option<u32> {
        None
    }
}

/// A source of some of a target's inputs.
#[derive(Debug, Clone, Copy)]
struct Source {
    name: &'static str,
    inputs: u64,
    past: u64,
}

/// The default seed. It is fixed, so that the ordinary tests run the same inputs everywhere.
const SEED: u64 = 12;

/// Percentage of all inputs that must get past the parser.
const PAST_PARSER: f64 = 20.0;

fn main() {
    // Arguments of the test harness: a part of a name, and options that are ignored here.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if std::env::args().any(|arg| arg == "--list") {
        return;
    }
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
    };
    let count = number("KISO_FUZZ");
    let seed = number("KISO_FUZZ_SEED").unwrap_or(SEED);
    let at = number("KISO_FUZZ_AT");
    let only = std::env::var("KISO_FUZZ_TARGET").ok();
    let all: [fn() -> Box<dyn Target>; 5] = [
        || Box::new(shell::Shell::new()),
        || Box::new(components::Components::new()),
        || Box::new(plans::Plans),
        || Box::new(wire::Wire::new()),
        || Box::new(tables::Tables::new()),
    ];
    let names = ["shell", "components", "plans", "wire", "tables"];
    if let Some(only) = &only {
        assert!(names.contains(&only.as_str()), "KISO_FUZZ_TARGET={only} is none of {names:?}");
    }
    println!(
        "{:<12}{:>10}{:>10}{:>9}{:>12}{:>10}  seed {seed}",
        "target", "inputs", "past", "share", "inputs/s", "MiB more"
    );
    for (name, new) in names.into_iter().zip(all) {
        let listed = wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
        if listed && only.as_ref().is_none_or(|only| only == name) {
            let target = new();
            assert_eq!(target.name(), name);
            fuzz(target, seed, count, at);
        }
    }
}

/// Runs one target to its end. Ends the process on a failure.
fn fuzz(mut target: Box<dyn Target>, seed: u64, count: Option<u64>, at: Option<u64>) {
    let together = target.together();
    let (first, end) = match at {
        Some(at) => (at, at + 1),
        None => (0, count.unwrap_or_else(|| target.ordinary())),
    };
    if first == end {
        return;
    }
    let watch = Watch::start(target.name(), target.process(), count.is_some());
    let (began, mut past, mut next) = (Instant::now(), 0, first);
    while next < end {
        let numbers = next..(next + together).min(end);
        let inputs: Vec<Vec<u8>> =
            numbers.clone().map(|number| target.make(&mut Dice::new(seed, target.name(), number))).collect();
        if at.is_some() {
            println!("{}", String::from_utf8_lossy(&inputs[0]));
        }
        match attempt(&mut *target, &watch, seed, next, &inputs) {
            Ok(accepted) => past += accepted,
            // Finds the input that failed.
            Err(why) => {
                for (number, input) in numbers.zip(&inputs) {
                    if let Err(why) = attempt(&mut *target, &watch, seed, number, std::slice::from_ref(input)) {
                        watch.fail(seed, number, input, &why);
                    }
                }
                watch.fail(seed, next, &inputs.concat(), &format!("{why}, and no single input does that"));
            }
        }
        next += together;
    }
    let (inputs, seconds) = (end - first, began.elapsed().as_secs_f64());
    let percent = |past: u64, inputs: u64| past as f64 * 100.0 / inputs.max(1) as f64;
    let share = percent(past, inputs);
    let grown = watch.end();
    println!("{:<12}{inputs:>10}{past:>10}{share:>8.1}%{:>12.0}{grown:>10}", target.name(), inputs as f64 / seconds);
    for Source { name, inputs, past } in target.sources() {
        println!("  {name:<10}{inputs:>10}{past:>10}{:>8.1}%", percent(past, inputs));
    }
    if at.is_none() && share < PAST_PARSER {
        eprintln!("{}: only {share:.1} % of its inputs get past the parser", target.name());
        std::process::exit(1);
    }
}

fn attempt(target: &mut dyn Target, watch: &Watch, seed: u64, number: u64, inputs: &[Vec<u8>]) -> Result<u64, String> {
    watch.begin(seed, number, inputs);
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target.run(inputs)));
    watch.done();
    ran.unwrap_or_else(|_| Err("it panicked".to_owned()))
}
