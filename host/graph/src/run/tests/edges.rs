//! Tests that all edges are used, and that there are no others.

use super::*;
use std::collections::HashSet;

/// Every edge, listed a second time.
pub(super) const EDGES: &[(Node, Why, Node)] = &[
    (Node::Input, Why::Admitted, Node::Retrieval),
    (Node::Retrieval, Why::Low, Node::Output),
    (Node::Retrieval, Why::Medium, Node::Action),
    (Node::Retrieval, Why::High, Node::Planner),
    (Node::Planner, Why::NoPlan, Node::Planner),
    (Node::Planner, Why::PlanningFailed, Node::Output),
    (Node::Planner, Why::Planned, Node::Reasoning),
    (Node::Reasoning, Why::NoBrief, Node::Reasoning),
    (Node::Reasoning, Why::Ready, Node::Action),
    (Node::Reasoning, Why::NeedsApproval, Node::Approval),
    (Node::Action, Why::NeedsApproval, Node::Approval),
    (Node::Approval, Why::TasksAnswered, Node::Reasoning),
    (Node::Approval, Why::CallsAnswered, Node::Action),
    (Node::Action, Why::RoundsLeft, Node::Action),
    (Node::Action, Why::RoundsSpent, Node::Action),
    (Node::Action, Why::PlanNeeded, Node::Planner),
    (Node::Action, Why::TaskEnded, Node::Critic),
    (Node::Critic, Why::NoVerdict, Node::Critic),
    (Node::Critic, Why::TasksRemain, Node::Reasoning),
    (Node::Critic, Why::NeedsFix, Node::Reasoning),
    (Node::Critic, Why::Replan, Node::Planner),
    (Node::Critic, Why::PlanExhausted, Node::Output),
    (Node::Critic, Why::ReplansExhausted, Node::Output),
    (Node::Output, Why::CycleIncomplete, Node::Input),
    (Node::Output, Why::CycleComplete, Node::End),
    (Node::Retrieval, Why::LimitReached, Node::Output),
    (Node::Planner, Why::LimitReached, Node::Output),
    (Node::Reasoning, Why::LimitReached, Node::Output),
    (Node::Action, Why::LimitReached, Node::Output),
    (Node::Critic, Why::LimitReached, Node::Output),
    (Node::Input, Why::Cancelled, Node::Output),
    (Node::Retrieval, Why::Cancelled, Node::Output),
    (Node::Planner, Why::Cancelled, Node::Output),
    (Node::Reasoning, Why::Cancelled, Node::Output),
    (Node::Approval, Why::Cancelled, Node::Output),
    (Node::Action, Why::Cancelled, Node::Output),
    (Node::Critic, Why::Cancelled, Node::Output),
    (Node::Output, Why::Cancelled, Node::Output),
];

const NODES: [Node; 9] = [
    Node::Input,
    Node::Retrieval,
    Node::Planner,
    Node::Reasoning,
    Node::Approval,
    Node::Action,
    Node::Critic,
    Node::Output,
    Node::End,
];

const WHYS: [Why; 26] = [
    Why::Admitted,
    Why::Low,
    Why::Medium,
    Why::High,
    Why::NoPlan,
    Why::PlanningFailed,
    Why::Planned,
    Why::NoBrief,
    Why::Ready,
    Why::NeedsApproval,
    Why::TasksAnswered,
    Why::CallsAnswered,
    Why::RoundsLeft,
    Why::RoundsSpent,
    Why::PlanNeeded,
    Why::TaskEnded,
    Why::NoVerdict,
    Why::TasksRemain,
    Why::NeedsFix,
    Why::Replan,
    Why::PlanExhausted,
    Why::ReplansExhausted,
    Why::LimitReached,
    Why::Cancelled,
    Why::CycleIncomplete,
    Why::CycleComplete,
];

#[test]
fn there_are_these_edges_and_no_others() {
    // The lists above are complete: they have the order of the declarations, and these are the last variants.
    assert!(NODES.iter().enumerate().all(|(at, &node)| node as usize == at));
    assert!(WHYS.iter().enumerate().all(|(at, &why)| why as usize == at));
    match (Node::End, Why::CycleComplete) {
        // A new variant does not compile here until it is added to the lists.
        (
            Node::Input
            | Node::Retrieval
            | Node::Planner
            | Node::Reasoning
            | Node::Approval
            | Node::Action
            | Node::Critic
            | Node::Output
            | Node::End,
            Why::Admitted
            | Why::Low
            | Why::Medium
            | Why::High
            | Why::NoPlan
            | Why::PlanningFailed
            | Why::Planned
            | Why::NoBrief
            | Why::Ready
            | Why::NeedsApproval
            | Why::TasksAnswered
            | Why::CallsAnswered
            | Why::RoundsLeft
            | Why::RoundsSpent
            | Why::PlanNeeded
            | Why::TaskEnded
            | Why::NoVerdict
            | Why::TasksRemain
            | Why::NeedsFix
            | Why::Replan
            | Why::PlanExhausted
            | Why::ReplansExhausted
            | Why::LimitReached
            | Why::Cancelled
            | Why::CycleIncomplete
            | Why::CycleComplete,
        ) => {}
    }
    for from in NODES {
        for why in WHYS {
            let expected = EDGES.iter().find(|edge| (edge.0, edge.1) == (from, why)).map(|edge| edge.2);
            assert_eq!(edge(from, why), expected, "{from} {why:?}");
        }
    }
}

#[test]
fn the_straight_way() {
    let mut live = Live::new("draw a.csv", Limits::default(), Policy::default());
    assert_eq!(live.run.node(), Node::Input);
    assert_eq!(live.run.next_step(), Step::Admit { texts: vec!["draw a.csv".to_owned()] });
    let event = live.feed(admitted("draw a.csv"));
    assert_eq!(way(&event), [(Node::Input, Why::Admitted, Node::Retrieval)]);
    assert_eq!(live.run.next_step(), Step::Retrieve { goal: None });
    assert_eq!(way(&live.feed(retrieved(&["a.csv"]))), []);
    assert_eq!(live.run.next_step(), Step::Route { message: "draw a.csv".to_owned() });
    let event = live.feed(routed(Effort::High));
    assert_eq!(way(&event), [(Node::Retrieval, Why::High, Node::Planner)]);
    let event = live.feed(plan(vec![skill(true), msg()]));
    assert_eq!(way(&event), [(Node::Planner, Why::Planned, Node::Reasoning)]);
    let Step::Start { task: 0, brief } = live.run.next_step() else { panic!() };
    assert_eq!((brief.goal.as_str(), brief.expect.as_deref(), brief.number, brief.of), ("draw", Some("a chart"), 1, 2));
    let event = live.done();
    assert_eq!(way(&live.log[4]), [(Node::Reasoning, Why::Ready, Node::Action)]);
    assert_eq!(way(&event), [(Node::Action, Why::TaskEnded, Node::Critic)]);
    let Step::Review(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.task, ask.attempt, ask.goal.as_str(), ask.report.text.as_str()), (0, 1, "draw", "it worked"));
    let event = live.feed(ok());
    assert_eq!(way(&event), [(Node::Critic, Why::TasksRemain, Node::Reasoning)]);
    let Step::Start { task: 1, brief } = live.run.next_step() else { panic!() };
    assert_eq!((brief.number, brief.evidence.len()), (2, 1));
    let event = live.execute(|report| report.text = " Here it is.\n".to_owned());
    assert_eq!(event.say.as_deref(), Some("Here it is."));
    assert_eq!(
        way(&event),
        [(Node::Action, Why::TaskEnded, Node::Critic), (Node::Critic, Why::PlanExhausted, Node::Output)]
    );
    let outcome = live.finish();
    assert_eq!((outcome.ending, outcome.reply.as_str()), (Ending::Done, "Here it is."));
    assert_eq!(way(&live.log[9]), [(Node::Output, Why::CycleComplete, Node::End)]);
}

#[test]
fn every_edge_is_taken() {
    let mut taken = HashSet::new();
    let mut collect = |live: Live| taken.extend(live.log.iter().flat_map(way));
    let none = Limits { max_replan_depth: 0, ..Limits::default() };

    // The route of a plan, with an invalid answer at every node and a fix.
    let mut live = Live::at_planner(Limits::default());
    live.feed(unplanned());
    live.feed(plan(vec![act(true), act(true), skill(true), msg()]));
    live.feed(unbriefed());
    live.brief();
    live.round(&[find("1", "x")], "y");
    live.feed(acted("1 bar", Vec::new()));
    live.feed(unreviewed());
    live.feed(fix(&[skill(true)]));
    live.done();
    live.feed(ok());
    live.brief();
    live.feed(acted("2 bar", Vec::new()));
    live.feed(ok());
    live.done();
    live.feed(replan("no"));
    live.take_notice();
    live.feed(model_failed("gone"));
    live.deliver(&["and b.csv"]);
    live.feed(StepResult::Cancelled);
    live.finish();
    collect(live);
    let mut live = Live::planned_with(none, vec![skill(true), msg()]);
    live.done();
    live.feed(replan("no"));
    collect(live);

    // A loop whose only round is over, with and without a plan.
    let one = Limits { max_tool_call_rounds: 1, ..Limits::default() };
    let mut live = Live::planned_with(one, vec![act(false), msg()]);
    live.brief();
    live.round(&[find("1", "x")], "y");
    collect(live);
    let mut live = Live::medium(one);
    live.round(&[find("1", "x")], "y");
    collect(live);

    // A person is asked before a task and before calls, and the run is cancelled meanwhile.
    let wanted = || StepResult::ApprovalWanted { card: fits::card(1) };
    let given = || StepResult::ApprovalGiven { answer: fits::accepts(&[1]) };
    for answer in [given(), StepResult::Cancelled] {
        let mut live = Live::planned(vec![skill(true), msg()]);
        live.feed(wanted());
        live.feed(answer);
        collect(live);
    }
    // The same during a task, which then starts again.
    for answer in [given(), StepResult::Cancelled] {
        let mut live = Live::planned(vec![skill(true), msg()]);
        live.start();
        live.feed(wanted());
        assert!(live.run.pending().is_none());
        live.feed(answer);
        collect(live);
    }
    let mut live = Live::planned(vec![act(false), msg()]);
    live.brief();
    live.feed(acted("", vec![find("1", "x")]));
    live.feed(wanted());
    live.feed(given());
    collect(live);

    // The short routes, and the last edge of a plan.
    for effort in [Effort::Low, Effort::Medium] {
        let mut live = Live::at_router(Limits::default());
        live.feed(routed(effort));
        collect(live);
    }
    let mut live = Live::planned(vec![msg()]);
    live.done();
    live.finish();
    collect(live);

    // Limits and cancellation, wherever possible.
    for end in [stopped(), StepResult::Cancelled] {
        for mut live in ending::everywhere() {
            if live.run.clone().accept(end.clone()).is_ok() {
                live.feed(end.clone());
                collect(live);
            }
        }
    }
    assert_eq!(taken, EDGES.iter().copied().collect());
}
