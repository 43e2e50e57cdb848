//! The route of a message.

use super::*;

fn pill(effort: Effort) -> StepResult {
    StepResult::Admitted {
        message: "Summarize: draw a.csv".to_owned(),
        tags: Vec::new(),
        pill: Some(PillUse { name: "sum".to_owned(), effort, categories: vec!["web".to_owned()] }),
        categories: Vec::new(),
        unknown: Vec::new(),
        archived: None,
        instructions: Default::default(),
    }
}

fn tagged(message: &str, categories: &[&str]) -> StepResult {
    StepResult::Admitted {
        message: message.to_owned(),
        tags: categories.iter().map(|&tag| tag.to_owned()).collect(),
        pill: None,
        categories: categories.iter().map(|&tag| tag.to_owned()).collect(),
        unknown: Vec::new(),
        archived: None,
        instructions: Default::default(),
    }
}

fn needs(effort: Effort, tool_need: u8, categories: &[&str]) -> StepResult {
    let StepResult::Routed { routing, by, .. } = routed(effort) else { panic!() };
    let categories = categories.iter().map(|&category| category.to_owned()).collect();
    let routing = Routing { tool_need, categories, ..routing };
    StepResult::Routed { routing, by, memory: None, secrets: Vec::new(), trouble: None, call: None }
}

#[test]
fn the_router_decides_between_three_ways() {
    for (effort, why, to, next) in [
        (Effort::Low, Why::Low, Node::Output, "converse"),
        (Effort::Medium, Why::Medium, Node::Action, "act"),
        (Effort::High, Why::High, Node::Planner, "plan"),
    ] {
        let mut live = Live::at_router(Limits::default());
        assert_eq!(live.run.routing(), None);
        let event = live.feed(routed(effort));
        assert_eq!(way(&event), [(Node::Retrieval, why, to)]);
        assert_eq!((live.next(), live.run.routing().map(|routing| routing.effort)), (next, Some(effort)));
    }
}

#[test]
fn conversation_is_answered_without_anything_else() {
    let mut live = Live::at_router(Limits::default());
    live.feed(routed(Effort::Low));
    assert_eq!(live.run.next_step(), Step::Converse { message: "draw a.csv".to_owned() });
    let text = "✅ GOAL ACHIEVED\nHello. ".to_owned();
    let event = live.feed(StepResult::Conversed { text, call: paid(3) });
    assert_eq!((event.say.as_deref(), way(&event)), (Some("Hello."), vec![]));
    let outcome = live.finish();
    assert_eq!((outcome.ending, outcome.reply.as_str()), (Ending::Done, "Hello."));
    assert_eq!(live.run.board(), []);
}

#[test]
fn conversation_that_says_nothing_fails_and_says_so() {
    for (result, why) in [
        (StepResult::Conversed { text: " \n".to_owned(), call: paid(3) }, "answered with nothing"),
        (model_failed("no route to host"), "no route to host"),
    ] {
        let mut live = Live::at_router(Limits::default());
        live.feed(routed(Effort::Low));
        live.feed(result);
        let outcome = live.finish();
        assert!(matches!(&outcome.ending, Ending::Failed { reason } if reason.contains(why)));
        assert!(outcome.reply.contains(why));
    }
}

#[test]
fn small_talk_takes_the_fast_path_unless_it_may_not() {
    let fast = |admit: StepResult, policy: Policy| {
        let mut live = Live::new("hello", Limits::default(), policy);
        live.feed(admit);
        let event = live.feed(retrieved(&[]));
        (whys(&event), live.next())
    };
    assert_eq!(fast(admitted("hello"), Policy::default()), (vec![Why::Low], "converse"));
    assert_eq!(fast(admitted("draw a.csv"), Policy::default()), (vec![], "route"));
    assert_eq!(fast(admitted("hello"), Policy { fast_path: false, ..Policy::default() }), (vec![], "route"));
    assert_eq!(fast(tagged("hello", &["web"]), Policy::default()), (vec![], "route"), "a tag wants a tool");
}

#[test]
fn a_pill_takes_the_routers_place() {
    for (effort, why, next) in
        [(Effort::Low, Why::Low, "converse"), (Effort::Medium, Why::Medium, "act"), (Effort::High, Why::High, "plan")]
    {
        let mut live = Live::new("!sum draw a.csv", Limits::default(), Policy::default());
        live.feed(pill(effort));
        assert_eq!(live.run.message(), "Summarize: draw a.csv");
        let event = live.feed(retrieved(&[]));
        assert_eq!((whys(&event), live.next()), (vec![why], next));
        let routing = live.run.routing().unwrap();
        assert_eq!(
            (routing.categories.as_slice(), routing.goal.as_str()),
            (&["web".to_owned()][..], live.run.message())
        );
    }
}

#[test]
fn tags_add_categories_to_those_of_the_router() {
    for (effort, by_router, expected) in [
        (Effort::Medium, &["data"][..], &["data", "web"][..]),
        (Effort::Medium, &["web", "data"], &["web", "data"]),
        // The router did not choose categories; the user did.
        (Effort::High, &[], &["web"]),
        (Effort::Low, &[], &[]),
    ] {
        let mut live = Live::new("#web rain", Limits::default(), Policy::default());
        live.feed(tagged("rain in 2026", &["web"]));
        live.feed(retrieved(&[]));
        live.feed(needs(effort, 90, by_router));
        assert_eq!(live.run.routing().unwrap().categories, expected);
        match live.run.next_step() {
            Step::Act(ask) => assert_eq!(ask.categories, expected),
            Step::Plan(ask) => assert_eq!(ask.categories, expected),
            step => assert_eq!(step.name(), "converse"),
        }
    }
}

#[test]
fn a_low_need_for_tools_is_conversation_unless_a_tag_wants_them() {
    for (need, tags, next) in [(29, &[][..], "converse"), (30, &[], "act"), (0, &["web"], "act")] {
        let mut live = Live::new("rain in 2026", Limits::default(), Policy::default());
        live.feed(tagged("rain in 2026", tags));
        live.feed(retrieved(&[]));
        live.feed(needs(Effort::Medium, need, &[]));
        assert_eq!(live.next(), next, "{need} {tags:?}");
    }
    let policy = Policy { tool_need_threshold: 0, ..Policy::default() };
    let mut live = Live::new("rain in 2026", Limits::default(), policy);
    live.feed(admitted("rain in 2026"));
    live.feed(retrieved(&[]));
    live.feed(needs(Effort::High, 0, &[]));
    assert_eq!(live.next(), "plan");
}

#[test]
fn a_router_that_fails_means_a_plan_with_every_tool() {
    let mut live = Live::at_router(Limits::default());
    let result = StepResult::Routed {
        routing: Routing::unknown("draw a.csv"),
        by: RoutedBy::Default,
        memory: None,
        secrets: Vec::new(),
        trouble: Some("effort: missing".to_owned()),
        call: Some(paid(4)),
    };
    let event = live.feed(result);
    assert_eq!(whys(&event), [Why::High]);
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.directive.as_str(), ask.categories.is_empty()), ("draw a.csv", true));
    assert_eq!(live.run.usage().total(), 4);
    // The driver converts a model's failure into this; the state machine takes no other answer.
    let mut live = Live::at_router(Limits::default());
    assert!(live.refuse(model_failed("gone")).contains("model_failed is not one"));
    let StepResult::Routed { routing, .. } = routed(Effort::Low) else { panic!() };
    let by = RoutedBy::Pill;
    let refused =
        live.refuse(StepResult::Routed { routing, by, memory: None, secrets: Vec::new(), trouble: None, call: None });
    assert!(refused.contains("no pill"));
}

#[test]
fn the_planner_works_from_the_routers_goal() {
    let mut live = Live::at_planner(Limits::default());
    let Step::Plan(ask) = live.run.next_step() else { panic!() };
    assert_eq!((ask.directive.as_str(), ask.categories.as_slice()), ("a chart", &["data".to_owned()][..]));
    assert_eq!((live.run.message(), live.run.goal()), ("draw a.csv", ""));
    live.feed(plan(vec![msg()]));
    assert_eq!(live.run.goal(), "draw");
}

#[test]
fn the_brief_of_the_medium_route_names_the_credentials() {
    let mut live = Live::new("fetch my invoices", Limits::default(), Policy::default());
    live.feed(admitted("fetch my invoices"));
    let (files, memory, credentials) = (Vec::new(), Vec::new(), vec!["api_key".to_owned()]);
    live.feed(StepResult::Retrieved { files, memory, credentials, attached: AttachedFiles::default() });
    let StepResult::Routed { routing, by, trouble, call, .. } = routed(Effort::Medium) else { panic!() };
    // The router found a new secret and a known one.
    let secrets = vec!["token".to_owned(), "api_key".to_owned()];
    live.feed(StepResult::Routed { routing, by, memory: None, secrets, trouble, call });
    let Step::Act(ask) = live.run.next_step() else { panic!("{:?}", live.run.next_step()) };
    assert_eq!(ask.brief.context.credentials, ["api_key", "token"]);
}
