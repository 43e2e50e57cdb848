mod prompts;
mod talk;

use super::conversation::NewMessage;
use super::*;
use kiso_graph::outcome::{Ending, Outcome};
use kiso_graph::plan;
use kiso_graph::reflection::Status;
use kiso_graph::run::{Policy, Run, RunSpec, Segment};
use kiso_graph::step::{Step, ToolResult};
use kiso_llm::Model;
use kiso_llm::scripted::ScriptedModel;
use kiso_plan::attached::AttachedFiles;
use kiso_plan::call::ToolCall;
use kiso_plan::code::ErrorCode;
use kiso_plan::limits::{Limits, Usage};
use kiso_plan::plan::{CallerScope, Catalog, Task, TaskKind, Violation};
use kiso_plan::prompt::{ChatMessage, Column, ColumnKind, FileCard};
use kiso_plan::report::{FileNote, TaskReport, TaskStatus};
use serde_json::Value;

/// A catalog with every skill, which accepts any arguments.
struct AnySkill;

impl Catalog for AnySkill {
    fn check(&self, _skill: &str, args: &Value) -> Result<Value, Vec<Violation>> {
        Ok(args.clone())
    }

    fn check_some(&self, _tool: &str, _args: &Value) -> Result<(), Vec<Violation>> {
        Ok(())
    }

    fn check_schema(&self, _schema: &Value) -> Result<(), String> {
        Ok(())
    }
}

fn run(message: &str) -> Run {
    Run::new(RunSpec {
        id: "r1".to_owned(),
        session: "s1".to_owned(),
        message: message.to_owned(),
        joined: Vec::new(),
        caller: CallerScope::User,
        limits: Limits::default(),
        policy: Policy::default(),
        segment: Segment::default(),
        label: Default::default(),
        context: Default::default(),
        shown: Default::default(),
    })
}

fn completion(text: &str) -> Completion {
    Completion { text: text.to_owned(), model: "test:m".to_owned(), ..Completion::default() }
}

/// A complete run with real prompts and a scripted model: an invalid plan, a fix by the reviewer, a step that determines its own
/// calls, a reply.
#[tokio::test(flavor = "current_thread")]
async fn a_message_becomes_a_reply() {
    let script = r#"
        [[call]]
        role = "router"
        expect_contains = "plot sea.csv"
        reply = '''{"effort": "high", "categories": ["data", "magic"], "tool_need": 0.9, "goal": "a chart of the sea",
            "durable": false}'''
        usage = { input_tokens = 1, output_tokens = 1 }
        [[call]]
        role = "planner"
        expect_contains = "plot sea.csv"
        reply = '''Let me see. <FINAL_PRD>{"goal": "a chart", "tasks": [{"type": "msg", "detail": "done"}]}'''
        [[call]]
        role = "planner"
        expect_contains = "tasks[0]: the last task must be a msg with notify: true"
        reply = '''<FINAL_PRD>{"goal": "a chart", "tasks": [
            {"type": "skill", "skill": "chart", "args": {"file": "sea.csv"}, "expect": "two lines", "review": true},
            {"type": "act", "detail": "find the deepest place", "expect": "a number"},
            {"type": "act", "detail": "look again", "expect": "a number", "brief": "the table is short"},
            {"type": "skill", "skill": "chart", "args": {"file": "sea.csv"}},
            {"type": "msg", "detail": "tell where it is", "notify": true}]}</FINAL_PRD>'''
        [[call]]
        role = "reviewer"
        expect_contains = "two lines"
        reply = '''{"status": "needs_fix", "reason": "one line only",
            "inject": [{"type": "skill", "skill": "chart", "args": {"file": "sea.csv", "width": 400}}]}'''
        [[call]]
        role = "reasoner"
        expect_contains = "find the deepest place"
        reply = '''{"goal": "a chart", "required": [], "delta": "the depth", "success": ["a number"],
            "context": {"discovery": [], "credentials": [], "artifacts": ["sea.csv"], "blockers": []}, "action": "look for the smallest depth in sea.csv"}'''
        [[call]]
        role = "actor"
        expect_contains = "look for the smallest depth in sea.csv"
        calls = [{ name = "table", args = { file = "sea.csv" } }]
        usage = { input_tokens = 20, output_tokens = 2 }
        [[call]]
        role = "actor"
        reply = "10935 m"
        [[call]]
        role = "actor"
        expect_contains = "the table is short"
        reply = "still 10935 m"
        [[call]]
        role = "worker"
        expect_contains = "10935 m"
        reply = "The chart is drawn."
        usage = { input_tokens = 10, output_tokens = 5 }
    "#;
    let model = ScriptedModel::parse("s.toml", script).unwrap();
    let mut run = run("plot sea.csv");
    let limits = Limits::default();
    let mut given = Pieces::default();
    let mut talk = String::new();
    let nobody = &mut |_: &str| {};
    loop {
        let result = match run.next_step() {
            Step::Admit { texts } => admitted(&texts.join("\n")),
            Step::Retrieve { .. } => {
                let card = FileCard { path: "sea.csv".to_owned(), bytes: 9, ..FileCard::default() };
                let found = retrieval::retrieve(vec![card], Vec::new(), Vec::new(), AttachedFiles::default());
                given.environment = Some(found.environment);
                found.result
            }
            Step::Route { message } => {
                let names = ["data".to_owned(), "web".to_owned()];
                let lines = vec!["data: tables".to_owned(), "web: pages".to_owned()];
                let known = Pieces { categories: Some(lines), ..Pieces::default() };
                let request = router::request(built_in_prompt(Role::Router), &message, &[], &[], &known, "b0");
                router::call(&model, &request, &message, &names).await.result
            }
            Step::Plan(ask) => {
                assert_eq!(ask.categories, ["data"], "only what there is");
                let request =
                    planner::request(&prompt::in_form(built_in_prompt(Role::Planner), true), &given, &run, &ask, "b1");
                let mut hear = |piece: &str| talk.push_str(piece);
                planner::call(&model, &request, &AnySkill, &limits, &mut hear).await.result
            }
            Step::Reason(ask) => {
                let readiness = vec!["file sea.csv".to_owned()];
                let (system, message) = (built_in_prompt(Role::Reasoner), run.message());
                let request = reasoner::request(system, message, &ask, readiness, "", "b2");
                reasoner::read(&model.complete(&request, nobody).await.unwrap())
            }
            Step::Start { task, .. } => StepResult::Started { task },
            Step::Execute { task, brief } if brief.task.kind == TaskKind::Msg => {
                let request =
                    worker::request(built_in_prompt(Role::Worker), &given, run.message().into(), &brief, "b3");
                let (report, call) = worker::call(&model, &request, &brief.task, nobody).await;
                StepResult::Executed { task, report: Box::new(report), call }
            }
            Step::Execute { task, brief } => {
                let mut report = TaskReport::new(brief.task, TaskStatus::Done, "drew it");
                report.files.push(file("pub/sea.svg"));
                StepResult::Executed { task, report: Box::new(report), call: None }
            }
            Step::Act(ask) => {
                let (system, known) = (built_in_prompt(Role::Actor), Pieces::default());
                let request = actor::request(system, &known, run.message().into(), &ask, Vec::new(), "b4");
                actor::read(model.complete(&request, nobody).await.unwrap(), &AttachedFiles::default())
            }
            Step::StartCalls { .. } => StepResult::CallsStarted,
            Step::Call { calls } => {
                StepResult::Called { results: calls.iter().map(|call| found(call, "-10935")).collect() }
            }
            Step::Review(ask) => {
                let request = reviewer::request(built_in_prompt(Role::Reviewer), &run, &ask, &[], None, "b5");
                match reviewer::read(&model.complete(&request, nobody).await.unwrap(), &AnySkill, &limits, true) {
                    reviewer::Reviewing::Decided(result) => *result,
                    look => panic!("{look:?}"),
                }
            }
            Step::Tell { text } => StepResult::Told { text },
            Step::Finish(outcome) => {
                StepResult::Finished { reply: output::reply(&outcome), arrived: Vec::new(), gone: Vec::new() }
            }
            Step::Ended => break,
            step @ (Step::Approve { .. } | Step::Assess(_) | Step::Compress(_) | Step::Converse { .. }) => {
                panic!("{step:?}")
            }
        };
        run.accept(result).unwrap();
    }
    let outcome = run.outcome().unwrap();
    assert_eq!(outcome.ending, Ending::Done);
    assert_eq!(outcome.reply, "The chart is drawn.\n\nFiles:\n- pub/sea.svg (image/svg+xml, 2.5 kB)");
    assert_eq!((talk.trim(), model.remaining(), run.usage().total()), ("Let me see.", 0, 39));
}

fn admitted(message: &str) -> StepResult {
    let (message, tags, categories) = (message.to_owned(), Vec::new(), Vec::new());
    let (unknown, instructions) = (Vec::new(), Default::default());
    StepResult::Admitted { message, tags, pill: None, categories, unknown, archived: None, instructions }
}

fn found(call: &ToolCall, text: &str) -> ToolResult {
    ToolResult { status: Status::Ok, text: text.to_owned(), millis: 1, ..ToolResult::blank(call) }
}

#[tokio::test(flavor = "current_thread")]
async fn a_model_that_does_not_answer_is_a_result() {
    let model = ScriptedModel::parse("s.jsonl", "").unwrap();
    let mut run = run("plot sea.csv");
    run.accept(admitted("plot sea.csv")).unwrap();
    run.accept(retrieval::retrieve(Vec::new(), Vec::new(), Vec::new(), AttachedFiles::default()).result).unwrap();
    // A router without an answer is not a failure: the message gets all tools.
    let Step::Route { message } = run.next_step() else { panic!() };
    let request = router::request("", &message, &[], &[], &Pieces::default(), "b");
    let found = router::call(&model, &request, &message, &[]).await;
    assert!(
        matches!(&found.result, StepResult::Routed { trouble: Some(why), call: None, .. } if why.contains("exhausted"))
    );
    run.accept(found.result).unwrap();
    let Step::Plan(ask) = run.next_step() else { panic!() };
    let request = planner::request("", &Pieces::default(), &run, &ask, "b");
    let planning = planner::call(&model, &request, &AnySkill, &Limits::default(), &mut |_: &str| {}).await;
    let StepResult::ModelFailed { message } = planning.result else { panic!() };
    assert!(message.contains("exhausted"));
    let task = msg();
    let (report, call) = worker::call(&model, &request, &task, &mut |_: &str| {}).await;
    assert_eq!((report.status, call), (TaskStatus::Failed, None));
    assert_eq!(report.error.unwrap().code, ErrorCode::ModelFailed);
}

#[tokio::test(flavor = "current_thread")]
async fn an_empty_text_is_a_failure() {
    let model = ScriptedModel::parse("s.jsonl", r#"{"role": "worker", "reply": " \n"}"#).unwrap();
    let request = request(Role::Worker, "", &Pieces::default(), "b");
    let (report, call) = worker::call(&model, &request, &msg(), &mut |_: &str| {}).await;
    assert_eq!(report.error.unwrap().code, ErrorCode::EmptyAnswer);
    assert!(call.is_some());
}

#[test]
fn secrets_go_beside_the_result() {
    let text = r#"{"goal": "g", "secrets": {"token": "ghp_abc123"},
        "tasks": [{"type": "msg", "detail": "d", "notify": true}]}"#;
    let planning = planner::read(&completion(text), &AnySkill, &Limits::default());
    assert!(!serde_json::to_string(&planning.result).unwrap().contains("ghp_abc123"));
    assert!(serde_json::to_string(&planning.result).unwrap().contains(r#""secrets":["token"]"#));
    assert_eq!(planning.secrets.into_iter().next(), Some(("token".to_owned(), "ghp_abc123".to_owned())));
    // The secrets of a refused plan may be right, and the next plan need not repeat them.
    let planning = planner::read(&completion(&text.replace("\"msg\"", "\"mail\"")), &AnySkill, &Limits::default());
    assert!(matches!(planning.result, StepResult::Unplanned { .. }));
    assert_eq!(planning.secrets.names(), ["token"]);
}

#[test]
fn a_prompt_fits_the_context_of_its_model() {
    let long = |n: usize| ChatMessage::new("user", format!("message {n} {}", "word ".repeat(400)));
    let all = Pieces {
        messages: Some((0..20).map(long).collect()),
        new_message: Some("and now?".to_owned()),
        ..Pieces::default()
    };
    let whole = request(Role::Planner, &prompt::in_form(built_in_prompt(Role::Planner), true), &all, "b0undary");
    assert_eq!(fit(whole.clone(), "b0undary", 32_000), whole);
    let small = fit(whole.clone(), "b0undary", 4_096);
    assert_eq!(small.max_tokens, 1_024);
    let taken = [&small.system, &small.user].map(|text| kiso_plan::estimate::tokens(text)).iter().sum::<usize>();
    assert!(taken + 1_024 <= 4_096 * 9 / 10, "{taken} tokens");
    assert!(
        small.user.contains("message 19 ") && small.user.contains("message 18 ") && small.user.contains("and now?")
    );
    assert!(!small.user.contains("message 0 ") && small.user.contains("more left out"));
}

#[test]
fn the_environment_is_what_is_near_and_visible() {
    let card = |path: &str| FileCard {
        path: path.to_owned(),
        bytes: 1,
        columns: Some(vec![Column { name: "x".to_owned(), kind: ColumnKind::Number }; 60]),
        ..FileCard::default()
    };
    let mut files: Vec<_> = (0..200).map(|n| card(&format!("deep/{n:03}.csv"))).collect();
    files.extend([card("b.csv"), card(".git/config"), card("deep/.hidden"), card("a.csv")]);
    let found = retrieval::environment(files);
    let paths: Vec<_> = found.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((paths.len(), &paths[..3]), (100, &["a.csv", "b.csv", "deep/000.csv"][..]));
    assert_eq!(found[0].columns.as_ref().unwrap().len(), 50);
}

fn msg() -> Task {
    serde_json::from_value(serde_json::json!({"type": "msg", "detail": "d", "notify": true})).unwrap()
}

fn file(path: &str) -> FileNote {
    let media_type = "image/svg+xml".to_owned();
    FileNote { path: path.to_owned(), media_type, bytes: 2_500, title: None, link: None }
}

#[test]
fn files_that_the_reply_does_not_mention_are_listed() {
    let reply = |text: &str, files: Vec<FileNote>| {
        output::reply(&Outcome { files, ..Outcome::in_words(Ending::Done, text.to_owned()) })
    };
    assert_eq!(reply("Nothing.", Vec::new()), "Nothing.");
    assert_eq!(reply("See `pub/a.svg`.", vec![file("pub/a.svg")]), "See `pub/a.svg`.");
    let mut titled = file("pub/b.svg");
    titled.title = Some("Rain".to_owned());
    titled.link = Some("/pub/7".to_owned());
    assert_eq!(reply("See /pub/7.", vec![titled.clone()]), "See /pub/7.");
    assert_eq!(
        reply("See pub/a.svg and pub/b.svgz.", vec![file("pub/a.svg"), titled]),
        "See pub/a.svg and pub/b.svgz.\n\nFiles:\n- pub/b.svg: Rain (image/svg+xml, 2.5 kB) /pub/7"
    );
    // A file name without its directory counts if only one file has it.
    assert_eq!(reply("**a.svg** is drawn.", vec![file("pub/a.svg")]), "**a.svg** is drawn.");
    let two = vec![file("pub/x/a.svg"), file("pub/y/a.svg")];
    assert!(
        reply("a.svg is drawn.", two)
            .ends_with("Files:\n- pub/x/a.svg (image/svg+xml, 2.5 kB)\n- pub/y/a.svg (image/svg+xml, 2.5 kB)")
    );
    let plain = FileNote { media_type: "application/octet-stream".to_owned(), ..file("pub/notes") };
    assert_eq!(
        reply("The notes are in order.", vec![plain]),
        "The notes are in order.\n\nFiles:\n- pub/notes (2.5 kB)"
    );
}

#[test]
fn a_task_may_ask_for_the_model_of_another_role() {
    assert_eq!(worker::model_role(&msg()), Role::Worker);
    assert_eq!(worker::model_role(&Task { model: Some("reviewer".to_owned()), ..msg() }), Role::Reviewer);
}

#[test]
fn an_answer_that_was_cut_off_is_told_before_what_follows_from_it() {
    let whole = completion("{");
    let usage = Usage { output_tokens: 7, ..Usage::default() };
    let cut = Completion { stop: Stop::Length, usage, ..whole.clone() };
    let found = [kiso_plan::plan::Violation::new("", "this is not JSON")];
    assert_eq!(violations(&whole, &found).len(), 1);
    assert_eq!(
        violations(&cut, &found)[0],
        "the answer was cut off after 7 tokens; max_output_tokens in [model_settings.\"test:m\"] raises the limit, up \
         to a quarter of context_budget; answer shorter"
    );
    assert_eq!(cut_off(&whole), None);
    assert!(cut_off(&cut).unwrap().starts_with("\n\n[This text was cut off after 7 tokens; "));
}

/// This applies to every role: a grammar also cuts off the commands of a reviewer.
#[test]
fn a_command_that_fills_what_was_sent_is_not_whole() {
    let (limits, catalog) = (Limits::default(), AnySkill);
    let sent = |role: Role| {
        let request = Request { max_tokens: 2_000, ..Request::new(role, String::new(), String::new()) };
        let request = Request { answer: form(role), ..request };
        let Answer::Json(schema) = bounded(formed(request, 50, true)).answer else { panic!() };
        schema
    };
    for (role, list) in [(Role::Planner, "tasks"), (Role::Reviewer, "inject")] {
        let schema = sent(role);
        let most = most_of_command(&schema, list).unwrap() as usize;
        for (length, schema, refused) in [
            (most, Some(schema.clone()), true),
            (most - 1, Some(schema.clone()), false),
            (most + 1, Some(schema), false),
            (most, None, false),
        ] {
            let task = serde_json::json!({ "type": "exec", "detail": "x".repeat(length) });
            let text = match role {
                Role::Planner => serde_json::json!({ "goal": "g", "reply": "r", "tasks": [task] }),
                _ => serde_json::json!({ "status": "needs_fix", "inject": [task] }),
            };
            let answer = Completion { schema, ..completion(&text.to_string()) };
            let result = match role {
                Role::Planner => planner::read(&answer, &catalog, &limits).result,
                _ => match reviewer::read(&answer, &catalog, &limits, true) {
                    reviewer::Reviewing::Decided(result) => *result,
                    look => panic!("{look:?}"),
                },
            };
            let told = match result {
                StepResult::Unplanned { correction, .. } | StepResult::Unreviewed { correction, .. } => {
                    correction.violations.concat()
                }
                _ => String::new(),
            };
            let expected = format!("{list}[0].detail: fills the {most} characters that it may have");
            assert_eq!(told.starts_with(&expected), refused, "{role} {length}: {told}");
        }
    }
}

#[test]
fn a_call_that_was_cut_off_says_where_and_keeps_nothing_of_its_arguments() {
    let call = |id: &str, args: &str| ToolCall::new(id, "exec", args);
    let calls = vec![call("1", "{}"), call("2", "{\"command\": \"cat > a <<EOF")];
    let usage = Usage { output_tokens: 7, ..Usage::default() };
    let cut = Completion { calls, cut: true, stop: Stop::Length, usage, ..completion("") };
    let StepResult::Acted { text, calls, .. } = actor::read(cut, &AttachedFiles::default()) else { panic!() };
    assert_eq!(
        (text.as_str(), &calls[0].cut, calls[1].args.as_str()),
        ("", &None, "{\"cut_off_after_characters\":26}")
    );
    let why = calls[1].cut.as_deref().unwrap();
    assert!(
        why.starts_with("the answer was cut off after 7 tokens; max_output_tokens in [model_settings.\"test:m\"]"),
        "{why}"
    );
}
