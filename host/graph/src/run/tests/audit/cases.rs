//! Tests that the audit detects errors.

use super::*;

/// A long run that reaches its limits without exceeding them: a replan, a fix, an invalid answer at every node, two rounds, a
/// cycle.
fn full() -> Live {
    let limits = Limits {
        max_parse_retries: 1,
        max_review_depth: 2,
        max_replan_depth: 1,
        max_tasks: 4,
        max_tool_call_rounds: 2,
        max_cycles: 1,
        ..Limits::default()
    };
    let mut live = Live::at_planner(limits);
    live.feed(unplanned());
    live.feed(plan(vec![act(true), act(true), msg()]));
    live.feed(unbriefed());
    live.brief();
    live.round(&[find("1", "x")], "y");
    live.round(&[find("2", "y")], "y");
    live.feed(assessed("✅ GOAL ACHIEVED"));
    live.feed(unreviewed());
    live.feed(fix(&[skill(true)]));
    live.done();
    live.feed(replan("no"));
    live.take_notice();
    live.feed(plan(vec![msg()]));
    live.done();
    live.deliver(&["and b.csv"]);
    live.feed(admitted("and b.csv"));
    live.feed(retrieved(&[]));
    live.feed(routed(Effort::Medium));
    live.feed(acted("There.", Vec::new()));
    live.finish();
    live
}

#[test]
fn the_audit_sees_one_too_many() {
    let live = full();
    let spec = live.run.spec();
    for (name, change) in [
        ("max_parse_retries", Limits { max_parse_retries: 0, ..spec.limits }),
        ("max_review_depth", Limits { max_review_depth: 1, ..spec.limits }),
        ("max_replan_depth", Limits { max_replan_depth: 0, ..spec.limits }),
        ("max_tasks", Limits { max_tasks: 3, ..spec.limits }),
        ("max_tool_call_rounds", Limits { max_tool_call_rounds: 1, ..spec.limits }),
        ("max_cycles", Limits { max_cycles: 0, ..spec.limits }),
    ] {
        // The log itself says that the lower limit is in force.
        let mut log = live.log.clone();
        let named = log.iter_mut().flat_map(|event| &mut event.limits).filter(|limit| limit.limit == name);
        named.for_each(|limit| limit.value -= 1);
        assert!(audit(&RunSpec { limits: change, ..spec.clone() }, &log).is_err(), "{name}");
    }
    let mut log = live.log.clone();
    for event in &mut log {
        if let StepResult::Reviewed { call, .. } = &mut event.result {
            *call = Call { usage: Usage { cost_micros: 10_000, ..call.usage }, ..paid(1) };
        }
    }
    assert_eq!(audit(spec, &log).map(|sum| (sum.tokens, sum.micros)), Ok((0, 20_000)));
    let limits = Limits { max_cost_cents_per_run: 1, ..spec.limits };
    assert!(audit(&RunSpec { limits, ..spec.clone() }, &log).is_err());
}

#[test]
fn the_audit_misses_every_event_but_those_that_only_tell() {
    let live = full();
    for gone in 0..live.log.len() {
        let mut log = live.log.clone();
        let event = log.remove(gone);
        let unseen = matches!(event.result, StepResult::Retrieved { .. } | StepResult::Told { .. })
            || matches!(event.result, StepResult::Unplanned { .. } | StepResult::Unbriefed { .. })
            || matches!(event.result, StepResult::Unreviewed { .. });
        assert_eq!(audit(live.run.spec(), &log).is_ok(), unseen, "{event:?}");
    }
    for cut in 0..live.log.len() {
        assert!(audit(live.run.spec(), &live.log[..cut]).is_err(), "{cut}");
    }
}
