//! Briefs: written by the reasoner for `act` tasks, derived for all others.

use super::*;

#[test]
fn the_brief_of_an_act_task_is_written_and_carried_out() {
    let mut live = Live::planned(vec![skill(false), act(false), act(false), msg()]);
    live.done();
    let Step::Reason(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.goal.as_str(), ask.attempt, &ask.correction, &ask.task), ("draw", 1, &None, &act(false)));
    assert_eq!(
        ask.plan,
        [
            "1. [done] skill chart: skill chart",
            "2. [planned] act: find the pressure",
            "3. [planned] act: find the pressure",
            "4. [planned] msg: tell"
        ]
    );
    assert_eq!((ask.evidence.len(), ask.evidence[0].text.as_str()), (1, "it worked"));
    let event = live.feed(briefed("look in b.csv"));
    assert_eq!(way(&event), []);
    let Step::Start { task: 1, brief } = live.run.next_step() else { panic!() };
    assert_eq!((brief.number, brief.of, brief.task.kind), (2, 4, TaskKind::Act));
    let event = live.start();
    assert_eq!(way(&event), [(Node::Reasoning, Why::Ready, Node::Action)]);
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    let mut told = execution_brief("look in b.csv");
    told.is_step = true;
    assert!(told.text().ends_with("\nYour text at the end is not the reply: it goes to the steps that follow."));
    assert_eq!((ask.task, &ask.brief, ask.round, ask.of, ask.direct), (1, &told, 0, 10, false));
}

#[test]
fn tasks_that_are_ready_have_no_reasoner() {
    let exec = task(json!({"type": "exec", "detail": "ls"}));
    for ready in [skill(false), exec, msg(), act(true)] {
        let live = Live::planned(vec![ready, msg()]);
        assert_eq!(live.next(), "start");
    }
    // One of several acts has the planner's own brief.
    let own = Task { brief: Some("it is in b.csv".to_owned()), ..act(false) };
    let mut live = Live::planned(vec![own, act(false), msg()]);
    live.start();
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.brief.context.discovery, ["it is in b.csv"]);
    live.feed(acted("1 bar", Vec::new()));
    assert_eq!(live.next(), "reason");
}

/// The actor is told that its text is the last message, and no worker writes it again.
#[test]
fn the_last_message_behind_an_act_is_what_its_actor_wrote() {
    let mut live = Live::planned(vec![act(true), msg()]);
    live.start();
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    // The goal is in the message: the brief of the only work does not repeat it.
    let text = ask.brief.text();
    assert_eq!((ask.brief.goal.as_str(), ask.brief.reply.as_deref()), ("", Some("")));
    assert!(
        text.starts_with("Success:") && text.ends_with("\nYour text at the end is the reply to the user"),
        "{text}"
    );
    let mut live = Live::planned(vec![skill(false), act(false), msg()]);
    live.done();
    live.start();
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.brief.goal.as_str(), ask.brief.reply.as_deref()), ("draw", Some("tell")));
    let mut live = Live::planned(vec![act(true), msg()]);
    live.start();
    live.feed(acted("It is 1 bar.", Vec::new()));
    live.feed(ok());
    live.start();
    let written = |live: &Live| {
        let Step::Execute { brief, .. } = live.run.next_step() else { panic!() };
        brief.written
    };
    assert_eq!(written(&live).as_deref(), Some("It is 1 bar."));
    // If a fix follows it, it is not the last message; the same for a message with a schema.
    let mut live = Live::planned(vec![act(true), msg()]);
    live.start();
    live.feed(acted("It is 1 bar.", Vec::new()));
    live.feed(fix(&[skill(false)]));
    live.done();
    live.start();
    assert_eq!(written(&live), None);
    let mut live = Live::planned(vec![act(true), Task { model: Some("reviewer".to_owned()), ..msg() }]);
    live.start();
    live.feed(acted("It is 1 bar.", Vec::new()));
    live.feed(ok());
    live.start();
    assert_eq!(written(&live), None);
}

#[test]
fn an_unusable_brief_goes_back_and_then_the_plans_own_words_do() {
    let mut live = Live::planned(vec![act(true), act(true), msg()]);
    for attempt in 1..=3 {
        let event = live.feed(unbriefed());
        assert_eq!(way(&event), [(Node::Reasoning, Why::NoBrief, Node::Reasoning)]);
        let Step::Reason(ask) = live.run.next_step() else { panic!() };
        assert_eq!((ask.attempt, ask.correction), (attempt + 1, Some(correction())));
    }
    let event = live.feed(unbriefed());
    assert_eq!((limit_names(&event), way(&event)), (vec!["max_parse_retries"], vec![]));
    let notice = live.take_notice();
    assert!(notice.contains("no brief for task 1") && notice.contains("after 4 attempts"), "{notice}");
    live.start();
    let Step::Act(ask) = live.run.next_step() else { panic!() };
    assert_eq!(ask.brief.action, "find the pressure");
    assert_eq!((ask.brief.goal.as_str(), ask.brief.success), ("draw", vec!["a number".to_owned()]));
    live.feed(acted("1 bar", Vec::new()));
    live.feed(ok());
    live.brief();
    live.feed(acted("2 bar", Vec::new()));
    live.feed(ok());
    live.done();
    assert_eq!(live.finish().ending, Ending::Done);
}

#[test]
fn a_reasoner_without_a_model_is_done_without() {
    let mut live = Live::planned(vec![act(false), act(false), msg()]);
    live.feed(unbriefed());
    let event = live.feed(model_failed("timed out"));
    assert!(event.limits.is_empty());
    assert!(live.take_notice().contains("(timed out)"));
    assert_eq!(live.next(), "start");
}

#[test]
fn each_task_has_its_own_attempts_and_its_own_brief() {
    let limits = Limits { max_parse_retries: 1, ..Limits::default() };
    let mut live = Live::planned_with(limits, vec![act(false), act(false), msg()]);
    live.feed(unbriefed());
    live.brief();
    live.feed(acted("1 bar", Vec::new()));
    let Step::Reason(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.attempt, &ask.correction), (1, &None));
    let refused = "?\nThis could not be used:\nthere is no JSON object".to_owned();
    assert_eq!(ask.lane, [refused, execution_brief("look").text()], "what the reasoner wrote before");
    assert_eq!(whys(&live.feed(unbriefed())), [Why::NoBrief]);
}

#[test]
fn the_reasoner_hears_what_the_critic_did_not_accept_and_what_skills_need() {
    let mut live = Live::at_planner(Limits::default());
    let StepResult::Planned { plan, chatter, secrets, call, .. } = plan(vec![act(true), act(true), msg()]) else {
        panic!()
    };
    let skill_environment = vec!["chart: needs api_key".to_owned()];
    let (instructions, planned) = (Vec::new(), skill_environment.clone());
    live.feed(StepResult::Planned { plan, chatter, secrets, skill_environment: planned, instructions, call });
    live.brief();
    live.feed(acted("1 bar", Vec::new()));
    live.feed(verdict(json!({"status": "needs_fix", "reason": "in which unit?", "inject": [act(false)]})));
    let Step::Reason(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.feedback, ask.skill_environment), (vec!["in which unit?".to_owned()], skill_environment));
}
