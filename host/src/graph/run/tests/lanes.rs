//! What the nodes of a run remember.

use super::*;
use crate::graph::lane::SharedKind;

fn texts(live: &Live, wanted: impl Fn(&Entry) -> bool) -> Vec<&str> {
    live.run.lane().entries().iter().filter(|entry| wanted(entry)).map(Entry::text).collect()
}

#[test]
fn shared_contexts_are_replaced_and_never_appended() {
    let mut live = Live::new("draw a.csv", Limits::default(), Policy::default());
    for cycle in 0..3 {
        live.feed(admitted("draw a.csv"));
        let (files, memory) = (vec![format!("{cycle}.csv")], vec![format!("likes {cycle}")]);
        live.feed(StepResult::Retrieved { files, memory, credentials: Vec::new() });
        live.feed(routed(Effort::High));
        let StepResult::Planned { plan, chatter, secrets, call, .. } = plan(vec![skill(false), msg()]) else {
            panic!()
        };
        let skill_environment = vec![format!("chart {cycle}")];
        live.feed(StepResult::Planned { plan, chatter, secrets, skill_environment, call });
        for (kind, text) in [
            (SharedKind::Environment, format!("{cycle}.csv")),
            (SharedKind::ObservationalMemory, format!("likes {cycle}")),
            (SharedKind::SkillEnvironment, format!("chart {cycle}")),
        ] {
            let of_kind = texts(&live, |entry| matches!(entry, Entry::Shared(other, _) if *other == kind));
            assert_eq!(of_kind, [text]);
        }
        live.done();
        live.done();
        live.deliver(&["and?"]);
    }
    // What is gone is not shown as it was.
    live.feed(admitted("and?"));
    live.feed(retrieved(&[]));
    assert_eq!(live.run.lane().shared(SharedKind::Environment), None);
}

#[test]
fn the_graph_lane_tells_the_run_and_only_what_the_critic_did_not_accept() {
    let mut live = Live::planned(vec![skill(true), skill(true), msg()]);
    live.done();
    live.feed(verdict(json!({"status": "ok", "reason": "splendid work"})));
    live.done();
    live.feed(verdict(json!({"status": "needs_fix", "reason": "too small", "inject": [skill(true)]})));
    live.done();
    live.feed(replan("wrong file"));
    assert_eq!(texts(&live, |entry| matches!(entry, Entry::Feedback(_))), ["too small", "wrong file"]);
    assert!(!serde_json::to_string(live.run.lane()).unwrap().contains("splendid"));
    live.told();
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.feedback, ["too small", "wrong file"]);
    live.feed(plan(vec![msg()]));
    live.done();
    live.deliver(&[]);
    let kinds = live.run.lane().entries().iter().map(|entry| match entry {
        Entry::User(_) => 'u',
        Entry::Assistant(_) => 'a',
        Entry::Brief(_) => 'b',
        Entry::Evidence(_) => 'e',
        Entry::Feedback(_) => 'f',
        Entry::Shared(..) => 's',
    });
    // A message to the user is neither a brief nor evidence; the reply is what it became.
    assert_eq!(kinds.collect::<String>(), "usbebefbefa");
    assert_eq!(texts(&live, |entry| matches!(entry, Entry::User(_))), ["draw a.csv"]);
}

#[test]
fn the_planners_lane_has_what_it_said_and_no_message_of_the_user() {
    let mut live = Live::at_planner(Limits::default());
    let StepResult::Planned { plan, secrets, skill_environment, call, .. } = plan(vec![skill(false), msg()]) else {
        panic!()
    };
    let chatter = "I will draw it.".to_owned();
    live.feed(StepResult::Planned { plan, chatter, secrets, skill_environment, call });
    live.failed();
    live.told();
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    let [said] = &ask.lane[..] else { panic!("{:?}", ask.lane) };
    assert!(said.starts_with("I will draw it.\nPlan: draw\n- skill chart"), "{said}");
    // Also not of a later cycle.
    live.feed(super::plan(vec![msg()]));
    live.done();
    live.deliver(&["also b.csv"]);
    live.feed(admitted("also b.csv"));
    live.feed(retrieved(&["b.csv"]));
    live.feed(routed(Effort::High));
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.lane.len(), 2);
    let lane: Vec<_> = live.run.planner_lane.replay(&live.run.lane).collect();
    assert!(!lane.is_empty() && !lane.iter().any(|entry| matches!(entry, Entry::User(_))));
    assert!(!format!("{lane:?}").contains("a.csv"), "an environment that is fresh in the prompt is not replayed");
    assert!(!format!("{lane:?}").contains("also b.csv"));
}

#[test]
fn the_action_lane_is_that_of_one_task() {
    let mut live = Live::planned(vec![act(false), act(true), msg()]);
    live.brief();
    live.round(&[find("1", "x")], "y");
    live.feed(acted("1 bar", Vec::new()));
    live.brief();
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.lane, ActionLane::default());
    live.feed(acted("2 bar", Vec::new()));
    let Step::Review(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.transcript, ["Assistant: 2 bar"]);
}
