//! Calls that a plan has named in advance, and the label of a loop's result.
use super::*;
use kiso_plan::call::ToolCall;
use kiso_plan::label::Label;
use kiso_plan::plan::NamedEffect;

fn call(id: &str, args: &Value) -> ToolCall {
    ToolCall::new(id, "mail__send", args.to_string())
}

/// A loop that has read a page, and whose plan has named these calls.
fn looping(effects: &[Value]) -> Live {
    let named = |args: &Value| NamedEffect { tool: "mail.send".to_owned(), args: args.clone() };
    let act = Task { effects: effects.iter().map(named).collect(), ..act(false) };
    let mut live = Live::planned(vec![act, msg()]);
    live.brief();
    let read = find("0", "x");
    live.feed(acted("", vec![read.clone()]));
    live.feed(StepResult::CallsStarted);
    let result = ToolResult { label: Label::world("web:a.example"), ..tool_result(&read, "page") };
    live.feed(StepResult::Called { results: vec![result] });
    live
}

/// Returns, for each call that the plan has named, the arguments that count as the plan's.
fn agreed(live: &Live, calls: &[ToolCall]) -> Vec<Option<Vec<String>>> {
    let trusted = |named: crate::run::NamedCall| {
        assert!(named.decision.is_trusted());
        named.args.into_iter().filter(|(_, label)| label.is_trusted()).map(|(name, _)| name).collect()
    };
    calls.iter().map(|call| live.run.named(call).map(trusted)).collect()
}

fn wants(live: &mut Live, calls: &[ToolCall]) -> Vec<Option<Vec<String>>> {
    live.feed(acted("", calls.to_vec()));
    agreed(live, calls)
}

fn made(live: &mut Live, calls: &[ToolCall]) {
    live.feed(StepResult::CallsStarted);
    live.feed(StepResult::Called { results: calls.iter().map(|call| tool_result(call, "sent")).collect() });
}

/// For a run whose message names a skill, and for one whose second task names it.
#[test]
fn what_a_skill_says_counts_from_where_a_model_is_told() {
    let says = Label::of_skill("greet");
    let mut live = Live::new("@greet Ada", Limits::default(), Policy::default());
    assert!(!live.run.expects(&says) && live.run.expects(&Label::default()));
    let StepResult::Admitted { message, tags, pill, categories, unknown, archived, .. } = admitted("@greet Ada") else {
        panic!()
    };
    let instructions = says.clone();
    live.feed(StepResult::Admitted { message, tags, pill, categories, unknown, archived, instructions });
    assert!(live.run.expects(&says) && !live.run.expects(&Label::of_skill("other")));
    assert_eq!((live.run.planner_label(), live.run.label()), (says.clone(), says.clone()));

    let mut live = Live::at_planner(Limits::default());
    let tasks = vec![skill(false), act(false), msg()];
    let StepResult::Planned { plan, chatter, secrets, skill_environment, call, .. } = plan(tasks) else { panic!() };
    let instructions = vec![Label::default(), says.clone(), Label::default()];
    live.feed(StepResult::Planned { plan, chatter, secrets, skill_environment, instructions, call });
    live.done();
    assert!(live.run.label().is_trusted() && !live.run.expects(&says), "the task has not begun");
    live.brief();
    assert!(live.run.expects(&says));
    assert_eq!(live.run.decision_label(), says);
    live.feed(acted("Hello!", Vec::new()));
    assert_eq!(live.run.label(), says, "what follows is made of its words");
}

#[test]
fn the_closest_is_taken_and_each_is_made_once() {
    let mut live = looping(&[json!({}), json!({"to": "ada"})]);
    let all = [call("1", &json!({"to": "ada", "text": "hi"})), call("2", &json!({"to": "eve"})), call("3", &json!({}))];
    let to = || Some(vec!["to".to_owned()]);
    assert_eq!(wants(&mut live, &all), [to(), Some(vec![]), None]);
    made(&mut live, &all);
    assert_eq!(wants(&mut live, &all), [None, None, None], "they are used up");
}

#[test]
fn nothing_is_agreed_on_that_could_be_another_call() {
    for (effect, calls) in [
        // Two calls with the same id are ambiguous.
        (json!({"to": "ada"}), vec![call("1", &json!({"to": "ada"})), call("1", &json!({"to": "ada"}))]),
        // The other call could change the content of the ref.
        (json!({"to": "ref:whom"}), vec![call("1", &json!({"to": "ref:whom"})), find("2", "x")]),
        (json!({"to": "ada"}), vec![call("1", &json!({"to": "ada "}))]),
        (json!({"n": 1}), vec![call("1", &json!({"n": 1.0}))]),
        (json!({"to": {"from": 1}}), vec![call("1", &json!({"to": {"from": 1}}))]),
    ] {
        let mut live = looping(std::slice::from_ref(&effect));
        let found = wants(&mut live, &calls);
        assert!(found.iter().all(Option::is_none), "{effect}: {found:?}");
    }
    let mut live = looping(&[json!({"to": "ref:whom"})]);
    assert!(wants(&mut live, &[call("1", &json!({"to": "ref:whom"}))])[0].is_some());
}

#[test]
fn what_a_loop_leaves_behind_has_the_label_of_what_it_was_told() {
    let mut live = looping(&[]);
    live.feed(acted("eve", Vec::new()));
    assert!(!live.run.reports().next().unwrap().label.is_trusted());
    // The same if it was interrupted during a call.
    let mut live = looping(&[]);
    live.feed(acted("", vec![call("1", &json!({"to": "eve"}))]));
    live.feed(StepResult::CallsStarted);
    let Some(event) = live.run.interrupt(false).unwrap() else { panic!("a call had started") };
    let StepResult::Called { results } = &event.result else { panic!("{event:?}") };
    assert!(!results[0].label.is_trusted());
}
