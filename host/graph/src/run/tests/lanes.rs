//! The lanes of a run's nodes.

use super::*;
use crate::lane::SharedKind;

fn texts(live: &Live, wanted: impl Fn(&Entry) -> bool) -> Vec<&str> {
    live.run.lane().entries().iter().filter(|entry| wanted(entry)).map(Entry::text).collect()
}

#[test]
fn shared_contexts_are_replaced_and_never_appended() {
    let mut live = Live::new("draw a.csv", Limits::default(), Policy::default());
    for cycle in 0..3 {
        live.feed(admitted("draw a.csv"));
        let (files, memory) = (vec![format!("{cycle}.csv")], vec![format!("likes {cycle}")]);
        live.feed(StepResult::Retrieved { files, memory, credentials: Vec::new(), attached: AttachedFiles::default() });
        live.feed(routed(Effort::High));
        let StepResult::Planned { plan, chatter, secrets, call, .. } = plan(vec![skill(false), msg()]) else {
            panic!()
        };
        let skill_environment = vec![format!("chart {cycle}")];
        let instructions = Vec::new();
        live.feed(StepResult::Planned { plan, chatter, secrets, skill_environment, instructions, call });
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
    // Removed content is not shown.
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
    live.take_notice();
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
    // A message to the user is neither a brief nor evidence; it became the reply.
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
    let instructions = Vec::new();
    live.feed(StepResult::Planned { plan, chatter, secrets, skill_environment, instructions, call });
    live.failed();
    live.take_notice();
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    let [said] = &ask.lane[..] else { panic!("{:?}", ask.lane) };
    assert!(said.starts_with("I will draw it.\nPlan: draw\n- skill chart"), "{said}");
    // The same for a later cycle.
    live.feed(super::plan(vec![msg()]));
    live.done();
    live.deliver(&["also b.csv"]);
    live.feed(admitted("also b.csv"));
    live.feed(retrieved(&["b.csv"]));
    live.feed(routed(Effort::High));
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.lane.len(), 2);
    let lane = &live.run.planner_lane;
    let lane = (lane.own(), lane.seeded(&live.run.lane).collect::<Vec<_>>());
    assert!(!lane.0.is_empty() && !lane.1.iter().any(|entry| matches!(entry, Entry::User(_))));
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
    assert!(ask.transcript.len() == 1 && ask.transcript[0].text == "Assistant: 2 bar", "{:?}", ask.transcript);
}

/// Rule: "lane is seeded from graph messages on first namespace initialization"; both nodes read "assistant only".
#[test]
fn the_lanes_are_seeded_with_what_the_run_replied_before() {
    let talk = |live: &mut Live| {
        live.feed(routed(Effort::Low));
        live.feed(StepResult::Conversed { text: "Hello.".to_owned(), call: Call::default() });
    };
    let act = |live: &mut Live| {
        live.feed(routed(Effort::Medium));
        live.feed(acted("Hello.", Vec::new()));
    };
    for (way, evidence) in [(&talk as &dyn Fn(&mut Live), 0), (&act, 1)] {
        let mut live = Live::at_router(Limits::default());
        way(&mut live);
        live.deliver(&["draw b.csv"]);
        live.feed(admitted("draw b.csv"));
        live.feed(retrieved(&[]));
        live.feed(routed(Effort::High));
        let Step::Plan(ask) = live.run.next_step() else { panic!() };
        assert_eq!((ask.replies, ask.lane.len()), (vec!["Hello.".to_owned()], 0));
        live.feed(plan(vec![super::act(false), super::act(false), msg()]));
        let Step::Reason(ask) = live.run.next_step() else { panic!() };
        // The reply of an action is its report, which is evidence.
        assert_eq!((ask.evidence.len(), ask.lane.len()), (evidence, 0));
        assert_eq!(ask.replies, if evidence == 0 { vec!["Hello.".to_owned()] } else { Vec::new() });
        live.replay();
    }
}

/// Once: a later reply is among the messages.
#[test]
fn a_lane_is_seeded_when_its_node_is_first_asked() {
    let mut live = Live::planned(vec![msg()]);
    live.done();
    live.deliver(&["also b.csv"]);
    live.feed(admitted("also b.csv"));
    live.feed(retrieved(&[]));
    live.feed(routed(Effort::High));
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.replies.len(), ask.lane.len()), (0, 1));
}

#[test]
fn what_could_not_be_used_stays_in_the_lane_of_its_node() {
    let mut live = Live::at_planner(Limits::default());
    live.feed(unplanned());
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert!(ask.lane.is_empty() && ask.correction.is_some(), "the last answer stands in the correction alone");
    live.feed(unplanned());
    let refused = "?\nThis could not be used:\nthere is no JSON object";
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.lane, [refused]);
    live.feed(plan(vec![act(true), act(true), msg()]));
    live.feed(unbriefed());
    live.brief();
    live.feed(acted("1 bar", Vec::new()));
    live.feed(replan("in which unit?"));
    live.take_notice();
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.lane.len(), &ask.lane[..2]), (3, &[refused.to_owned(), refused.to_owned()][..]));
    live.feed(plan(vec![act(false), act(false), msg()]));
    let Step::Reason(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.lane, [refused.to_owned(), execution_brief("look").text()]);
}

/// Rule: "PlanRetrieval refreshes" observational memory, and the "user directive is the PlanRetrieval goal".
#[test]
fn memory_is_looked_up_for_the_goal() {
    let mut live = Live::new("draw a.csv", Limits::default(), Policy::default());
    live.feed(admitted("draw a.csv"));
    assert_eq!(live.run.next_step(), Step::Retrieve { goal: None }, "the router finds it");
    live.feed(retrieved(&[]));
    let StepResult::Routed { routing, by, secrets, trouble, call, .. } = routed(Effort::High) else { panic!() };
    let memory = Some(vec!["charts are blue".to_owned()]);
    live.feed(StepResult::Routed { routing, by, memory, secrets, trouble, call });
    assert_eq!(live.run.lane().shared(SharedKind::ObservationalMemory), Some("charts are blue"));
    live.feed(plan(vec![act(false), act(false), msg()]));
    let Step::Reason(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.memory, ["charts are blue"]);
    live.replay();

    let mut live = Live::new("what is a tide?", Limits::default(), Policy::default());
    live.feed(admitted("what is a tide?"));
    assert_eq!(live.run.next_step(), Step::Retrieve { goal: Some("what is a tide?".to_owned()) });
}

/// The routing in an event of an older log has no memory: the memory from retrieval counts.
#[test]
fn a_log_of_before_keeps_what_retrieval_found() {
    let mut live = Live::new("draw a.csv", Limits::default(), Policy::default());
    live.feed(admitted("draw a.csv"));
    let (memory, credentials) = (vec!["charts are blue".to_owned()], Vec::new());
    live.feed(StepResult::Retrieved { files: Vec::new(), memory, credentials, attached: AttachedFiles::default() });
    let old = r#"{"kind": "routed", "by": "router", "routing": {"effort": "medium", "tool_need": 90, "goal": "g", "durable": false}}"#;
    live.feed(serde_json::from_str(old).unwrap());
    assert_eq!(live.run.lane().shared(SharedKind::ObservationalMemory), Some("charts are blue"));
    // The actor has no other source for it.
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.memory, ["charts are blue"]);
    live.replay();
}
