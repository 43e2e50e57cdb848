//! The action loop.

use super::*;
use crate::banner::Banner;
use crate::lane::ActionTurn;

/// A run whose only work is an `act` task, before the first answer of its actor.
fn looping(limits: Limits, review: bool) -> Live {
    let mut live = Live::planned_with(limits, vec![act(review), msg()]);
    live.brief();
    live
}

fn rounds(max_tool_call_rounds: u32) -> Limits {
    Limits { max_tool_call_rounds, ..Limits::default() }
}

fn asked(live: &Live) -> (u32, u32) {
    let Step::Act(ask) = live.run.next_step() else { panic!("{:?}", live.run.next_step()) };
    (ask.round, ask.of)
}

#[test]
fn calls_are_committed_then_made_then_shown() {
    let mut live = looping(Limits::default(), false);
    let calls = vec![find("1", "x"), find("2", "y")];
    let event = live.feed(acted("Let me look.", calls.clone()));
    assert_eq!((way(&event), live.run.next_step()), (vec![], Step::StartCalls { calls: calls.clone() }));
    live.feed(StepResult::CallsStarted);
    assert_eq!(live.run.next_step(), Step::Call { calls: calls.clone() });
    let results = vec![tool_result(&calls[0], "one"), tool_result(&calls[1], "two")];
    let event = live.feed(StepResult::Called { results });
    assert_eq!(way(&event), [(Node::Action, Why::RoundsLeft, Node::Action)]);
    assert_eq!(asked(&live), (1, 10));
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    // Successful calls need no remarks.
    let [said, one, two] = ask.lane.turns() else { panic!("{:?}", ask.lane) };
    assert_eq!(*said, ActionTurn::Assistant { text: "Let me look.".to_owned(), calls });
    assert_eq!((one.text().as_str(), two.text().as_str()), ("Tool find [ok]: one", "Tool find [ok]: two"));
    assert!(live.run.ledger().text().contains("find"));
    let event = live.feed(acted("1 bar", Vec::new()));
    assert_eq!(whys(&event), [Why::TaskEnded, Why::TasksRemain]);
    let report = live.run.reports().next().unwrap();
    assert_eq!((report.status, report.text.as_str(), report.millis), (TaskStatus::Done, "1 bar", 10));
}

#[test]
fn files_of_the_calls_are_those_of_the_task() {
    let mut live = looping(Limits::default(), false);
    for (id, bytes) in [("1", 1), ("2", 3)] {
        let call = find(id, id);
        live.feed(acted("", vec![call.clone()]));
        live.feed(StepResult::CallsStarted);
        let result = ToolResult { files: vec![file("a.svg", bytes)], ..tool_result(&call, "") };
        live.feed(StepResult::Called { results: vec![result] });
    }
    live.feed(acted("1 bar", Vec::new()));
    assert_eq!(live.run.reports().next().unwrap().files, [file("a.svg", 3)]);
}

#[test]
fn an_empty_answer_takes_a_round_and_is_told_so() {
    let mut live = looping(rounds(2), false);
    // A text with only a banner counts as empty, too.
    for (round, text, why) in [(1, " \n", Why::RoundsLeft), (2, "✅ GOAL ACHIEVED", Why::RoundsSpent)] {
        let event = live.feed(acted(text, Vec::new()));
        assert_eq!(whys(&event), [why]);
        let (Step::Act(ask) | Step::Assess(ask)) = live.run.next_step() else { panic!() };
        assert!(ask.round == round && ask.lane.turns().last().unwrap().text().contains("Your answer was empty"));
    }
    assert_eq!(live.next(), "assess");
}

#[test]
fn banners_are_taken_out_of_every_answer_but_the_assessment() {
    let mut live = looping(Limits::default(), false);
    live.feed(acted("✅ GOAL ACHIEVED\n1 bar", Vec::new()));
    assert_eq!(live.run.reports().next().unwrap().text, "1 bar");
}

#[test]
fn the_third_equal_batch_is_not_called() {
    let mut live = looping(Limits::default(), false);
    live.round(&[find("1", "x")], "y");
    live.round(&[find("2", "x")], "y");
    let event = live.feed(acted("Again.", vec![find("3", "x")]));
    assert_eq!(whys(&event), [Why::TaskEnded, Why::Replan]);
    let report = live.run.reports().next().unwrap();
    let error = report.error.as_ref().unwrap();
    assert_eq!((report.status, &error.code), (TaskStatus::Failed, &ErrorCode::Loop));
    assert!(error.message.contains("find") && error.message.contains("3 times in a row"), "{}", error.message);
    assert!(live.take_notice().contains("3 times in a row"));
    // Another batch in between ends the sequence.
    let mut live = looping(Limits::default(), false);
    for (id, what) in ["x", "x", "y", "x", "x"].into_iter().enumerate() {
        live.round(&[find(&id.to_string(), what)], "");
    }
    assert_eq!(asked(&live), (5, 10));
    // Another task starts a new sequence.
    let mut live = Live::planned(vec![act(true), act(true), msg()]);
    for _ in 0..2 {
        live.brief();
        live.round(&[find("1", "x")], "");
        live.round(&[find("2", "x")], "");
        assert!(matches!(live.run.next_step(), Step::Act(ask) if ask.lane.turns().len() == 4));
        live.feed(acted("1 bar", Vec::new()));
        live.feed(ok());
    }
    assert_eq!(live.next(), "start");
}

#[test]
fn a_batch_has_its_bounds() {
    let mut live = looping(Limits::default(), false);
    let calls: Vec<_> = (0..MAX_BATCH + 5).map(|n| find(&n.to_string(), "x")).collect();
    live.feed(acted("", calls.clone()));
    let Step::StartCalls { calls: started } = live.run.next_step() else { panic!() };
    assert_eq!(started, calls[..MAX_BATCH]);
    // The lane contains the calls that are made, because each of them gets a result.
    let turns = live.run.action_lane.turns();
    assert!(matches!(&turns[0], ActionTurn::Assistant { calls, .. } if calls.len() == MAX_BATCH));
    live.feed(StepResult::CallsStarted);
    live.feed(StepResult::Called { results: started.iter().map(|call| tool_result(call, "")).collect() });
    let Some(ActionTurn::Reflection { text }) = live.run.action_lane.turns().last() else { panic!() };
    assert!(text.contains("The last 5 calls of that answer were not made: one answer may have 16."), "{text}");
}

#[test]
fn results_must_be_those_of_the_calls() {
    let mut live = looping(Limits::default(), false);
    let calls = vec![find("1", "x"), find("2", "y")];
    live.feed(acted("", calls.clone()));
    assert!(live.refuse(StepResult::Called { results: Vec::new() }).contains("start_calls"));
    live.feed(StepResult::CallsStarted);
    let [one, two] = [tool_result(&calls[0], ""), tool_result(&calls[1], "")];
    let renamed = ToolResult { name: "other".to_owned(), ..two.clone() };
    for results in [vec![], vec![one.clone()], vec![two.clone(), one.clone()], vec![one.clone(), renamed]] {
        assert!(live.refuse(StepResult::Called { results }).contains("other calls"));
    }
    live.feed(StepResult::Called { results: vec![one, two] });
}

#[test]
fn a_lane_over_its_budget_is_compressed_before_the_next_answer() {
    let policy = Policy { lane_tokens: 1_000, ..Policy::default() };
    let mut live = Live::new("draw a.csv", Limits::default(), policy);
    for result in [admitted("draw a.csv"), retrieved(&[]), routed(Effort::Medium)] {
        live.feed(result);
    }
    let long = "lorem ipsum ".repeat(200);
    live.round(&[find("1", "a")], &long);
    live.round(&[find("2", "b")], &long);
    assert_eq!(live.next(), "act", "the last two exchanges stay as they are");
    live.round(&[find("3", "c")], "short");
    let Step::Compress(ask) = live.run.next_step() else { panic!("{:?}", live.run.next_step()) };
    assert_eq!((ask.source.len(), ask.tokens), (2, 166));
    assert!(ask.source[0].contains("\"a\"") && ask.source[1].contains("lorem"));
    let compressed = |reference: &str| StepResult::Compressed {
        reference: reference.to_owned(),
        summary: "a was found".to_owned(),
        calls: vec![paid(7), paid(2)],
    };
    live.feed(compressed("context-1"));
    assert_eq!((live.run.usage().total(), live.next()), (9, "act"));
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    let texts: Vec<_> = ask.lane.turns().iter().map(ActionTurn::text).collect();
    assert!(texts[0].contains("ref:context-1") && texts[0].contains("a was found"), "{}", texts[0]);
    assert!(texts.len() == 5 && texts[1].contains("\"b\""));
    // The next summary does not contain the previous one.
    live.round(&[find("4", "d")], &long);
    let Step::Compress(ask) = live.run.next_step() else { panic!("{:?}", live.run.next_step()) };
    assert!(ask.source[0].contains("\"b\"") && !ask.source.iter().any(|text| text.contains("context-1")));
    live.feed(compressed("context-2"));
    live.feed(acted("1 bar", Vec::new()));
    assert_eq!(live.finish().reply, "1 bar");
}

#[test]
fn at_the_round_limit_the_actor_assesses_itself() {
    let shown = |banner: Banner| format!("{banner}\n\nwell");
    let two = format!("{}\nwell\n{}", Banner::Achieved, Banner::NotAchieved);
    for (text, banner) in [
        (shown(Banner::Achieved), Banner::Achieved),
        (shown(Banner::PartiallyAchieved), Banner::PartiallyAchieved),
        (shown(Banner::NotAchieved), Banner::NotAchieved),
        ("well".to_owned(), Banner::NotAchieved),
        (two, Banner::NotAchieved),
    ] {
        let mut live = looping(rounds(2), false);
        live.round(&[find("1", "x")], "");
        assert_eq!(asked(&live), (1, 2));
        live.round(&[find("2", "y")], "");
        assert!(live.refuse(acted("1 bar", Vec::new())).contains("assess"));
        let event = live.feed(assessed(&text));
        assert_eq!(limit_names(&event), ["max_tool_call_rounds"]);
        let report = live.run.reports().next().unwrap();
        assert_eq!(report.text, shown(banner), "{text}");
        let achieved = banner == Banner::Achieved;
        assert_eq!(report.status == TaskStatus::Done, achieved);
        assert_eq!(whys(&event)[1], if achieved { Why::TasksRemain } else { Why::Replan });
        if !achieved {
            let error = report.error.as_ref().unwrap();
            assert_eq!((&error.code, error.limit.as_deref()), (&ErrorCode::Limit, Some("max_tool_call_rounds")));
            assert!(live.take_notice().contains("limits.max_tool_call_rounds in config.toml"));
        }
    }
}

#[test]
fn without_rounds_there_is_only_the_assessment() {
    let live = looping(rounds(0), false);
    assert_eq!(live.next(), "assess");
}

#[test]
fn an_actor_without_a_model_fails_its_task() {
    let mut live = looping(Limits::default(), false);
    live.round(&[find("1", "x")], "");
    let event = live.feed(model_failed("timed out"));
    assert_eq!(whys(&event), [Why::TaskEnded, Why::Replan]);
    let report = live.run.reports().next().unwrap();
    assert_eq!((&report.error.as_ref().unwrap().code, report.millis), (&ErrorCode::ModelFailed, 5));
    assert!(live.take_notice().contains("timed out"));
    // If it had to assess itself, the host writes the banner.
    let mut live = looping(rounds(0), false);
    let event = live.feed(model_failed("timed out"));
    assert_eq!(limit_names(&event), ["max_tool_call_rounds"]);
    let text = &live.run.reports().next().unwrap().text;
    assert!(text.starts_with(Banner::NotAchieved.text()) && text.contains("timed out"), "{text}");
}

#[test]
fn the_critic_reads_the_whole_transcript_of_an_act_task() {
    let mut live = looping(Limits::default(), true);
    live.round(&[find("1", "x")], "0.98 atm");
    live.feed(acted("1 bar", Vec::new()));
    let Step::Review(ask) = live.run.next_step() else { panic!() };
    let texts: Vec<&str> = ask.transcript.iter().map(|turn| turn.text.as_str()).collect();
    let [called, tool, said] = texts[..] else { panic!("{texts:?}") };
    assert!(called.contains("calls find {\"what\":\"x\"}") && tool == "Tool find [ok]: 0.98 atm");
    assert_eq!(said, "Assistant: 1 bar");
    assert_eq!((ask.report.text.as_str(), ask.report.task.expect.as_deref()), ("1 bar", Some("a number")));
    // The lane of another task is empty.
    live.feed(fix(&[skill(true)]));
    live.done();
    assert!(matches!(live.run.next_step(), Step::Review(ask) if ask.transcript.is_empty()));
    // A reviewer cannot override an assessment.
    let mut live = looping(rounds(0), true);
    live.feed(assessed("well"));
    live.feed(ok());
    live.done();
    assert!(matches!(live.finish().ending, Ending::Failed { .. }));
}

#[test]
fn the_medium_route_replies_with_what_its_actor_says() {
    let mut live = Live::medium(Limits::default());
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.task, ask.direct, ask.categories.as_slice()), (0, true, &["data".to_owned()][..]));
    assert_eq!(ask.brief.text(), "", "the message says it all");
    live.round(&[find("1", "x")], "y");
    let event = live.feed(acted(" There it is. ", Vec::new()));
    assert_eq!(
        way(&event),
        [(Node::Action, Why::TaskEnded, Node::Critic), (Node::Critic, Why::PlanExhausted, Node::Output)]
    );
    assert_eq!(event.say.as_deref(), Some("There it is."));
    let outcome = live.finish();
    assert_eq!((outcome.ending, outcome.reply.as_str()), (Ending::Done, "There it is."));
}

/// The round limit does not end work that a plan may finish; the second time, it does.
#[test]
fn the_medium_route_goes_to_the_planner_once() {
    let mut live = Live::medium(rounds(1));
    live.feed(acted("I look.", vec![find("1", "x")]));
    live.feed(StepResult::CallsStarted);
    let result = ToolResult { files: vec![file("a.svg", 1)], ..tool_result(&find("1", "x"), "y") };
    let event = live.feed(StepResult::Called { results: vec![result] });
    assert_eq!(way(&event), [(Node::Action, Why::PlanNeeded, Node::Planner)]);
    assert_eq!(limit_names(&event), ["max_tool_call_rounds"]);
    assert!(live.take_notice().contains("so I am making a plan"));
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    let replan = ask.replan.unwrap();
    assert!(replan.failure.report.text.contains("calls find") && replan.history.is_empty(), "{replan:?}");
    live.feed(plan(vec![skill(false), msg()]));
    live.done();
    live.done();
    // In a later cycle of the turn, the round limit ends the work.
    live.deliver(&["and?"]);
    live.feed(admitted("and?"));
    live.feed(retrieved(&[]));
    live.feed(routed(Effort::Medium));
    live.round(&[find("1", "x")], "y");
    let event = live.feed(assessed("I looked everywhere."));
    assert_eq!(whys(&event), [Why::TaskEnded, Why::PlanExhausted]);
    assert_eq!(event.say, None);
    let outcome = live.finish();
    assert!(outcome.reply.starts_with("❌ GOAL NOT ACHIEVED\n\nI looked everywhere."), "{}", outcome.reply);
    assert!(outcome.reply.contains("limits.max_tool_call_rounds"));
    assert!(matches!(outcome.ending, Ending::Failed { .. }));
    assert_eq!(outcome.files, [file("a.svg", 1)]);
}

#[test]
fn the_actor_is_told_when_few_rounds_are_left() {
    let mut live = looping(rounds(5), false);
    let last = |live: &Live| live.run.action_lane.turns().last().unwrap().text();
    live.round(&[find("1", "a")], "y");
    assert_eq!(last(&live), "Tool find [ok]: y");
    live.round(&[find("2", "b")], "y");
    assert_eq!(last(&live), "[TOOL REFLECTION]\nRounds of tool calls left: 3.");
}

#[test]
fn the_medium_route_fails_without_a_model() {
    let mut live = Live::medium(Limits::default());
    live.feed(model_failed("timed out"));
    assert_eq!(live.finish().reply, "timed out");
}
