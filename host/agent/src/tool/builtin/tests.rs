use super::*;
use kiso_plan::plan::TaskKind;
use kiso_sandbox::skill::Quiet;
use kiso_store::store::{MessageRole, NewFact, TaskRow, TaskState};
use std::sync::Arc;

struct House {
    _dir: tempfile::TempDir,
    tools: Builtins,
    at: CallContext,
}

fn house() -> House {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store.db")).unwrap();
    let home = kiso_base::home::Home::open(&dir.path().join("home")).unwrap();
    let session = SessionName::parse("s").unwrap();
    let at = CallContext {
        context_budget: 16_000,
        label: Default::default(),
        read: Default::default(),
        session,
        run: None,
        subagent: false,
        caller: CallerScope::User,
        call: (0, 0),
        meanings: Vec::new(),
        result_tokens: 2_000,
    };
    let skills = Skills::new(home.clone(), Config::default(), store.clone(), Arc::new(Quiet));
    let tools = Builtins::new(store, Config::default(), Vault::open(&home), skills);
    House { _dir: dir, tools, at }
}

impl House {
    async fn call(&self, name: &str, args: Value) -> Result<String, String> {
        self.tools.call(name, &args, &self.at).await.map_err(|fault| fault.to_string())
    }
}

#[test]
fn every_tool_has_a_name_that_all_providers_take_and_a_checked_schema() {
    let tools = house().tools;
    let specs = tools.specs();
    let names: Vec<&str> = specs.iter().map(|(spec, _)| spec.name.as_str()).collect();
    for name in names.iter().chain(&[crate::tool::EXEC]) {
        assert!(kiso_sandbox::skill::is_kept_free(name), "a skill could have a tool of the name {name}");
    }
    let wanted = [
        "scratchpad",
        "memory_search",
        "memory_save",
        "memory_core_get",
        "memory_core_update",
        "message_search",
        "message_read",
        "docs_search",
        "docs_list",
        "docs_read",
        "skill_list",
        "skill_read",
        "task_status",
        "subagent_spawn",
        "subagent_status",
        "subagent_cancel",
        "schedule_add",
        "schedule_list",
        "schedule_remove",
    ];
    assert_eq!(names, wanted);
    for (spec, category) in specs {
        assert!(["scratchpad", "memory", "docs", "skills", "status", "subagents", "schedule"].contains(&category));
        assert!(spec.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        assert_eq!(spec.parameters["type"], "object");
        ArgsSchema::new(spec.parameters.clone()).unwrap();
        assert!(tools.has(&spec.name) && !spec.description.is_empty());
    }
}

#[tokio::test]
async fn wrong_names_and_arguments_are_told_with_the_way_out() {
    let house = house();
    let fault = house.call("memory_saev", json!({})).await.unwrap_err();
    assert!(fault.contains("near: memory_save"), "{fault}");
    let fault = house.call("scratchpad", json!({ "kye": "a", "limit": 0 })).await.unwrap_err();
    for part in ["action: is required", "kye: is not an argument; did you mean `key`?", "limit: 0 is less"] {
        assert!(fault.contains(part), "{fault}");
    }
    assert!(house.call("memory_search", json!("text")).await.unwrap_err().contains("must be an object"));
    assert!(
        house
            .call("scratchpad", json!({ "action": "save", "key": "a b", "text": "x" }))
            .await
            .unwrap_err()
            .contains("is not a key")
    );
}

#[tokio::test]
async fn what_is_saved_is_read_listed_and_searched() {
    let house = house();
    assert!(house.call("scratchpad", json!({ "action": "list" })).await.unwrap().contains("is empty"));
    let text = (1..=500).map(|n| format!("line {n}\n")).collect::<String>();
    let saved = house.call("scratchpad", json!({ "action": "save", "key": "ref:log", "text": text })).await.unwrap();
    assert_eq!(saved, format!("Saved {} bytes as ref:log.", text.len()));
    let part =
        house.call("scratchpad", json!({ "action": "read", "key": "log", "offset": 7, "limit": 7 })).await.unwrap();
    assert_eq!(part, format!("[characters 7 to 14 of {}; go on with offset 14]\nline 2\n", text.len()));
    let end = house
        .call("scratchpad", json!({ "action": "read", "key": "ref:log", "offset": text.len() - 5 }))
        .await
        .unwrap();
    assert!(end.contains("the end]\n 500\n"), "{end}");
    assert_eq!(house.call("scratchpad", json!({ "action": "read", "key": "log" })).await.unwrap(), text);
    let beyond = house.call("scratchpad", json!({ "action": "read", "key": "log", "offset": 999_999 })).await.unwrap();
    assert!(beyond.contains("none from 999999 on"), "{beyond}");
    let hits = house.call("scratchpad", json!({ "action": "search", "text": "LINE 499" })).await.unwrap();
    assert_eq!(hits, "ref:log line 499: line 499");
    assert!(
        house.call("scratchpad", json!({ "action": "search", "text": "nothing" })).await.unwrap().contains("No line")
    );
    let fault = house.call("scratchpad", json!({ "action": "read", "key": "lgo" })).await.unwrap_err();
    assert!(fault.contains("near: ref:log"), "{fault}");
    assert!(house.call("scratchpad", json!({ "action": "list" })).await.unwrap().starts_with("ref:log ("));
    // "ref:log" names the entry here and must not be replaced by its text.
    assert_eq!(Builtins::names_entry("scratchpad"), Some("key"));
    assert_eq!(Builtins::names_entry("memory_save"), None);
    let fault = house.call("scratchpad", json!({ "action": "read" })).await.unwrap_err();
    assert!(fault.contains("key: action read needs it"), "{fault}");
}

/// A requested part is shown completely, so that it is not archived as a copy of its source.
#[tokio::test]
async fn what_is_read_has_room_in_a_result() {
    let mut house = house();
    house.at.result_tokens = 100;
    for (text, most) in [("x".repeat(9_000), 320), ("ü".repeat(9_000), 80)] {
        house.call("scratchpad", json!({ "action": "save", "key": "log", "text": text })).await.unwrap();
        let part = house.call("scratchpad", json!({ "action": "read", "key": "log" })).await.unwrap();
        assert!(kiso_plan::estimate::tokens(&part) <= 100, "{part}");
        assert!(part.contains("go on with offset ") && part.chars().count() > most, "{part}");
    }
}

#[tokio::test]
async fn the_keys_of_the_host_are_not_written_by_a_model() {
    let house = house();
    for key in ["run_step_ledger", "ref:tool-3", "input-1", "tool-9223372036854775807"] {
        let fault =
            house.call("scratchpad", json!({ "action": "save", "key": key, "text": "mine" })).await.unwrap_err();
        assert!(fault.contains("is written by kiso alone") && fault.contains("another key"), "{fault}");
    }
    assert!(house.call("scratchpad", json!({ "action": "list" })).await.unwrap().contains("is empty"));
}

#[tokio::test]
async fn memory_is_searched_saved_and_changed_but_not_by_subagents() {
    let mut house = house();
    assert!(house.call("memory_search", json!({ "query": "oslo" })).await.unwrap().contains("No facts or passages"));
    let saved = house.call("memory_save", json!({ "text": "The office in Oslo closes at five." })).await.unwrap();
    assert!(saved.contains("1 passages"), "{saved}");
    assert!(
        house
            .call("memory_save", json!({ "text": "the office in Oslo closes at five." }))
            .await
            .unwrap()
            .contains("already")
    );
    let fact = NewFact { text: "Ada lives in Oslo".into(), source: "user".into(), session: None, confidence: 80 };
    house.tools.store.write(move |tx| tx.add_fact(&fact, 1)).await.unwrap();
    let found = house.call("memory_search", json!({ "query": "oslo?" })).await.unwrap();
    assert_eq!(found, "fact (80 %): Ada lives in Oslo\n---\nmemory_save: The office in Oslo closes at five.");
    house.call("memory_core_update", json!({ "patch": { "user": "Ada" } })).await.unwrap();

    house.at.subagent = true;
    assert!(house.call("memory_core_get", json!({})).await.unwrap().contains("\"user\": \"Ada\""));
    assert!(house.call("memory_search", json!({ "query": "oslo" })).await.is_ok());
    for (name, args) in [("memory_save", json!({ "text": "x" })), ("memory_core_update", json!({ "patch": {} }))] {
        let fault = house.call(name, args).await.unwrap_err();
        assert!(fault.contains("not for subagents"), "{fault}");
    }
    house.at.subagent = false;
    let fault = house.call("memory_core_update", json!({ "patch": { "a": "x".repeat(20_000) } })).await.unwrap_err();
    assert!(fault.contains("may have 16384"), "{fault}");
    assert!(house.call("memory_core_update", json!({ "patch": [] })).await.is_err());
}

#[tokio::test]
async fn the_documentation_is_found_and_read() {
    let house = house();
    let list = house.call("docs_list", json!({})).await.unwrap();
    assert!(list.contains("shell.md: ") && list.contains("\n  - `kiso trace`"), "{list}");
    let found = house.call("docs_search", json!({ "query": "kiso trace json", "limit": 3 })).await.unwrap();
    assert!(found.contains("json.md: `kiso trace`"), "{found}");
    assert!(house.call("docs_search", json!({ "query": "xyzzyplugh" })).await.unwrap_err().contains("docs_list"));
    assert!(house.call("docs_search", json!({ "query": "\"'*" })).await.is_err());
    let page = house.call("docs_read", json!({ "page": "json", "limit": 20 })).await.unwrap();
    assert!(page.contains("# JSON output") && page.contains("go on with offset 20"), "{page}");
    let fault = house.call("docs_read", json!({ "page": "jsno.md" })).await.unwrap_err();
    assert!(fault.contains("there are json.md"), "{fault}");
    assert!(house.call("docs_read", json!({ "page": "../README.md" })).await.is_err());
}

#[tokio::test]
async fn the_tasks_of_the_run_are_shown() {
    let mut house = house();
    assert!(house.call("task_status", json!({})).await.unwrap_err().contains("no run"));
    let session = house.at.session.clone();
    let run = house.tools.store.write(move |tx| tx.create_run(&session, "go", 1)).await.unwrap();
    house.at.run = Some(run.clone());
    assert!(house.call("task_status", json!({})).await.unwrap().contains("no tasks"));
    let row = |id: u32, status, output: Option<&str>, error: Option<&str>| TaskRow {
        id,
        position: id,
        kind: TaskKind::Skill,
        label: format!("skill s{id}"),
        task: "{}".to_owned(),
        status,
        output: output.map(str::to_owned),
        error: error.map(str::to_owned),
        started_ms: None,
        ended_ms: None,
    };
    let long = "word\n".repeat(1_000);
    let rows = [
        row(0, TaskState::Done, Some(&long), None),
        row(1, TaskState::Failed, Some("partly"), Some("no network")),
        row(2, TaskState::Planned, None, None),
    ];
    house.tools.store.write(move |tx| tx.put_tasks(&run, &rows)).await.unwrap();
    let shown = house.call("task_status", json!({})).await.unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("1. skill s0 [done] output: word word") && lines[0].ends_with('…'), "{shown}");
    assert_eq!(lines[1..], ["2. skill s1 [failed] error: no network", "3. skill s2 [planned]"]);
}

#[tokio::test]
async fn a_call_spawns_one_subagent_and_only_its_tree_may_stop_it() {
    let mut house = house();
    let at = house.at.session.clone();
    let run = house.tools.store.write(move |tx| tx.create_run(&at, "begin", 1)).await.unwrap();
    house.at.run = Some(run);
    let args = json!({ "name": "tide", "message": "what is a tide?", "inject_into": "self" });
    let id = |said: &str| said.split(' ').nth(2).unwrap().to_owned();
    let first = house.call("subagent_spawn", args.clone()).await.unwrap();
    assert!(first.contains("waits for `kiso serve`"), "nobody attends to this store: {first}");
    let again = house.call("subagent_spawn", args.clone()).await.unwrap();
    assert!(again.contains("was begun before") && id(&again) == id(&first), "{again}");
    house.at.call = (0, 1);
    let other = id(&house.call("subagent_spawn", args.clone()).await.unwrap());
    assert_ne!(other, id(&first));
    let all = house.call("subagent_status", json!({})).await.unwrap();
    assert_eq!(all, format!("{other} [waiting]\n{} [waiting]", id(&first)));

    let stop = json!({ "id": other });
    let here = std::mem::replace(&mut house.at.session, SessionName::parse("stranger").unwrap());
    assert!(house.call("subagent_cancel", stop.clone()).await.unwrap_err().contains("there is no subagent"));
    let told =
        house.call("subagent_spawn", json!({ "name": "a", "message": "b", "inject_into": "s" })).await.unwrap_err();
    assert!(told.contains("is not of this conversation"), "{told}");
    house.at.session = here;
    assert!(house.call("subagent_cancel", stop.clone()).await.unwrap().contains("is stopped"));
    assert!(house.call("subagent_cancel", stop.clone()).await.unwrap().contains("had already ended"));
    let shown = house.call("subagent_status", stop).await.unwrap();
    assert!(shown.contains("[cancelled]: The run was cancelled"), "{shown}");
    let told = house.tools.store.read(|view| view.last_messages(&SessionName::parse("s").unwrap(), 10)).await.unwrap();
    assert_eq!(told.len(), 1, "nobody is told of what was cancelled");
}

#[tokio::test]
async fn a_subagent_cannot_change_the_schedule() {
    let mut house = house();
    let add = json!({ "name": "tide", "when": "@daily", "message": "what is a tide?" });
    house.at.subagent = true;
    let fault = house.call("schedule_add", add.clone()).await.unwrap_err();
    assert!(fault.contains("not for subagents"), "{fault}");
    house.at.subagent = false;
    assert!(house.call("schedule_add", add).await.unwrap().contains("It comes while `kiso serve` runs"));
    house.at.subagent = true;
    assert!(house.call("schedule_list", json!({})).await.unwrap().contains("tide  @daily"));
    assert!(house.call("schedule_remove", json!({ "name": "tide" })).await.unwrap_err().contains("not for subagents"));
}

#[tokio::test]
async fn a_callers_model_knows_the_schedules_of_its_sessions_alone() {
    let mut house = house();
    let add = |name: &str| json!({ "name": name, "when": "@daily", "message": "what is a tide?" });
    house.call("schedule_add", add("tide")).await.unwrap();
    let theirs = SessionName::parse("theirs").unwrap();
    let (owner, claimed) = (kiso_store::store::SessionOwner::from_token("phone"), theirs.clone());
    house.tools.store.write(move |tx| tx.claim_session(&owner, &claimed, 100, 0)).await.unwrap();
    let here = std::mem::replace(&mut house.at.session, theirs);
    assert_eq!(house.call("schedule_list", json!({})).await.unwrap(), "There are no schedules.");
    assert!(house.call("schedule_add", add("tide")).await.unwrap_err().contains("of another caller"));
    let removed = house.call("schedule_remove", json!({ "name": "tide" })).await.unwrap_err();
    assert!(removed.contains("there is no schedule"), "{removed}");
    house.call("schedule_add", add("ebb")).await.unwrap();
    let listed = house.call("schedule_list", json!({})).await.unwrap();
    assert!(listed.contains("ebb  @daily") && !listed.contains("tide  @daily"), "{listed}");
    house.at.session = here;
    let listed = house.call("schedule_list", json!({})).await.unwrap();
    assert!(listed.contains("tide  @daily") && !listed.contains("ebb  @daily"), "{listed}");
}

#[tokio::test]
async fn a_user_finds_the_messages_of_the_conversation_alone() {
    let mut house = house();
    let add = |session: &'static str, text: &'static str| {
        house.tools.store.write(move |tx| {
            tx.add_message(&SessionName::parse(session).unwrap(), MessageRole::User, text, 1_700_000_000_000, None)
        })
    };
    let (own, other) =
        (add("s", "the tower has 120 steps").await.unwrap(), add("t", "a tower of paper").await.unwrap());
    let found = house.call("message_search", json!({ "query": "tower" })).await.unwrap();
    assert!(found.contains("120 steps") && !found.contains("paper"), "{found}");
    assert!(found.starts_with(&format!("message {own}, user, session s, 2023-11-1")), "{found}");
    assert!(house.call("memory_search", json!({ "query": "tower" })).await.unwrap().contains("120 steps"));
    let read = house.call("message_read", json!({ "message": own, "offset": 4, "limit": 5 })).await.unwrap();
    assert!(read.ends_with("go on with offset 9]\ntower"), "{read}");
    for refused in [json!({ "message": other }), json!({ "message": 99 })] {
        let fault = house.call("message_read", refused).await.unwrap_err();
        assert!(fault.contains("message_search gives the numbers"), "{fault}");
    }
    let fault = house.call("message_search", json!({ "query": "tower", "session": "t" })).await.unwrap_err();
    assert!(fault.contains("not of this conversation"), "{fault}");
    house.at.caller = CallerScope::Admin;
    assert!(house.call("message_search", json!({ "query": "tower" })).await.unwrap().contains("paper"));
    let of_one = house.call("message_search", json!({ "query": "tower", "session": "t" })).await.unwrap();
    assert!(!of_one.contains("120 steps"), "{of_one}");
    assert!(house.call("message_read", json!({ "message": other })).await.unwrap().contains("paper"));
}

#[tokio::test]
async fn skills_are_listed_and_read_about() {
    let house = house();
    let list = house.call("skill_list", json!({})).await.unwrap();
    assert!(list.lines().any(|line| line.starts_with("chart (chart): Draw a line, bar or scatter chart")), "{list}");
    let page = house.call("skill_read", json!({ "skill": "chart" })).await.unwrap();
    for part in [
        "# chart 0.1.0 (chart)",
        "Draws a line, bar",
        "## chart",
        "\"bins\"",
        "plot {y} from {file}",
        "workspace: write",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let fault = house.call("skill_read", json!({ "skill": "chrat" })).await.unwrap_err();
    assert!(fault.contains("skill_list shows the skills"), "{fault}");
}

#[test]
fn a_page_and_a_list_end_where_they_say() {
    let text = "für ".repeat(1_000);
    for (limit, tokens) in [(100_000, 200), (100_000, 64), (10, 200), (100_000, 2_000)] {
        let shown = page(&text, 4, limit, tokens);
        assert!(estimate::tokens(&shown) <= tokens, "{shown}");
        let (line, part) = shown.split_once('\n').unwrap();
        let next = 4 + part.chars().count();
        assert!(part.chars().count() <= limit && text[5..].starts_with(part), "{shown}");
        match next < 4_000 {
            true => assert_eq!(line, format!("[characters 4 to {next} of 4000; go on with offset {next}]")),
            false => assert_eq!(line, "[characters 4 to 4000 of 4000, the end]"),
        }
    }
    assert_eq!(page("short", 0, 100, 64), "short");
    let lines = |count: usize, tokens| lines_within((0..count).map(|n| format!("line {n}")), tokens);
    assert_eq!(lines(2, 100), "line 0\nline 1");
    let shown = lines(900, 100);
    assert!(estimate::tokens(&shown) <= 100, "{shown}");
    let left = 900 - (shown.lines().count() - 1);
    assert!(shown.ends_with(&format!("\n[{left} more lines left out: ask for less]")), "{shown}");
    assert!(lines(900, 1).starts_with("line 0\n[899 more"));
}
