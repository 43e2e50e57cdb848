//! A completely compromised model against the real program: a part of `tests/attacks/taken-over`, which is written in Python
//! because AgentDojo is.

use crate::harness::{KISO, missing_tool, root};
use std::process::Command;

/// One of this many pairs of tasks: about a minute beside other tests.
const EVERY: &str = "80";

#[test]
fn a_model_that_is_taken_over_causes_no_effect_that_nobody_asked_for() {
    let mut command = Command::new("python3");
    command.arg(root().join("tests/attacks/taken-over")).args(["--kiso", KISO, "--every", EVERY, "--at-once", "4"]);
    let Ok(output) = command.output() else {
        missing_tool("AgentDojo against kiso", "there is no python3");
        return;
    };
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if told.contains("!!! SKIPPED") {
        missing_tool("AgentDojo against kiso", &told);
        return;
    }
    assert!(output.status.success(), "{said}\n{told}");
    // Every pass was played, and attacks were tried in each.
    for pass in ["honest", "refuse, plan", "refuse, loop", "sensible, plan", "sensible, loop"] {
        assert_eq!(said.lines().filter(|line| line.starts_with(pass)).count(), 4, "{said}");
    }
}
