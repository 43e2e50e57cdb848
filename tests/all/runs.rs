//! Whole runs on the command line: from a message to the created file.

use crate::harness::{Home, Ran, root};
use serde_json::{Value, json};
use std::process::Stdio;

fn example(name: &str) -> String {
    root().join("examples").join(name).to_str().unwrap().to_owned()
}

/// The first command of README.md works as written.
#[test]
fn the_readmes_first_command_computes_draws_and_reviews() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let block = readme.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let message = block.rsplit('\'').nth(1).expect("the command ends with its message");
    assert!(block.contains("cargo run"), "{block}");
    let home = Home::new();
    let ran = home.kiso(&["run", "--file", &example("weather.csv"), message]);
    ran.ok().says(&[
        "Plan:",
        "1. data",
        "2. chart",
        "3. $ tail",
        "✓ skill data",
        "✓ skill chart",
        "✓ $ tail",
        "review ok",
    ]);
    assert_eq!(ran.stderr.matches("review ok").count(), 3, "all three are reviewed: {}", ran.stderr);
    assert!(!ran.stderr.contains("compiling"), "what the binary brings was compiled with it: {}", ran.stderr);
    ran.prints(&["2024-07-06,Lisbon,28.7"]);
    let published = home.work("default").join("pub");
    let files: Vec<_> = std::fs::read_dir(published).unwrap().flatten().map(|e| e.path()).collect();
    let find = |ending: &str| {
        files
            .iter()
            .find(|p| p.extension().is_some_and(|e| e == ending))
            .unwrap_or_else(|| panic!("no {ending}: {files:?}"))
    };
    let svg = std::fs::read_to_string(find("svg")).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains("Oslo") && svg.contains("Lisbon") && svg.contains("<title"),
        "{svg}"
    );
    let png = std::fs::read(find("png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 10_000);
    ran.prints(&["pub/", ".svg", ".png", "2024-07"]);
}

/// The chart shows the means of the data, which this test computes from the file.
#[test]
fn the_numbers_are_right() {
    let home = Home::new();
    home.kiso(&[
        "run",
        "--file",
        &example("weather.csv"),
        "data file=weather.csv compute=mean(temperature_c) group=month(date),city save=means.csv",
    ])
    .ok();
    let text = std::fs::read_to_string(example("weather.csv")).unwrap();
    let july: Vec<f64> = text
        .lines()
        .filter(|l| l.starts_with("2024-07") && l.contains("Oslo"))
        .map(|l| l.split(',').nth(2).unwrap().parse().unwrap())
        .collect();
    let mean = july.iter().sum::<f64>() / july.len() as f64;
    let saved = std::fs::read_to_string(home.work("default").join("means.csv")).unwrap();
    let line = saved.lines().find(|l| l.starts_with("2024-07,Oslo,")).unwrap();
    let found: f64 = line.split(',').nth(2).unwrap().parse().unwrap();
    assert!((found - mean).abs() < 1e-9, "{found} {mean}");
    assert_eq!(saved.lines().count(), 25);
}

#[test]
fn plain_words_over_any_columns_and_files() {
    let home = Home::new();
    home.kiso(&["run", "--file", &example("market.csv"), "plot close over day from market.csv"])
        .ok()
        .prints(&["close-over-day.svg"]);
    let heights = home.file("heights.csv", "name,body height,weight\nAnn,170,60\nBob,182,81\nCid,165,70\n");
    let ran = home.kiso(&[
        "run",
        "--file",
        heights.to_str().unwrap(),
        "scatter plot of weight against body height in heights.csv",
    ]);
    ran.ok().prints(&["scatter", ".png"]);
    home.kiso(&["run", "show heights.csv where weight > 65"]).ok().prints(&["Bob", "Cid"]);
    home.kiso(&["run", "what columns does heights.csv have?"]).ok().prints(&["body height", "number"]);
}

#[test]
fn what_is_not_understood_is_said_and_ends_with_1() {
    let home = Home::new();
    let ran = home.kiso(&["run", "write a sonnet about my cat"]);
    ran.exit(1).prints(&["not a language model", "was not understood"]);
    home.kiso(&["run", "hello"]).ok().prints(&["reflex"]);
}

/// `kiso run … | head -1`: the work is done, and the next message gets its own reply.
#[test]
fn a_run_goes_on_when_nobody_reads_its_reply() {
    let home = Home::new();
    for json in [false, true] {
        let mut command = home.command(&["run", "$ seq 3; echo done > ended\n$ cat ended"]);
        if json {
            command.arg("--json");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::new(&["run"], child.wait_with_output().unwrap());
        ran.ok();
        assert!(!ran.stderr.contains("error"), "{ran:?}");
        let runs = home.kiso(&["--json", "trace", "last"]);
        let outcome = runs.ok().json_lines().into_iter().find(|line| line["type"] == "run").unwrap();
        assert_eq!(outcome["status"], "done", "{outcome}");
        let next = home.kiso(&["run", "$ echo second"]);
        next.ok().prints(&["second"]);
        assert!(!next.stderr.contains("cut off") && !next.stdout.contains("ended"), "{next:?}");
    }
}

/// On a full disk, an error must tell the reader of the output file that the reply is missing.
#[test]
#[cfg(target_os = "linux")]
fn a_reply_that_cannot_be_written_is_an_error_and_the_run_is_done() {
    let home = Home::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = home.kiso_with(&["run", "$ echo one > ended"], |command| {
        command.stdout(full);
    });
    ran.exit(1).says(&["cannot write to standard output"]);
    assert_eq!(std::fs::read_to_string(home.work("default").join("ended")).unwrap(), "one\n");
    let next = home.kiso(&["run", "$ cat ended"]);
    next.ok();
    assert!(!next.stderr.contains("cut off"), "{next:?}");
}

#[test]
fn a_search_that_finds_nothing_is_an_answer_and_a_failure_says_why() {
    let home = Home::new();
    home.kiso(&["run", "$ printf 'a\\nb\\n' > one; printf 'a\\nc\\n' > two"]).ok();
    for line in ["grep -q x one", "cat one | grep x", "test -f missing", "[ 1 = 2 ]", "cmp -s one two"] {
        home.kiso(&["run", &format!("$ {line}")]).ok().prints(&[line, "exit code 1"]);
    }
    home.kiso(&["run", "$ diff one two"]).ok().prints(&["< b", "> c", "exit code 1"]);
    let failed = home.kiso(&["run", "$ frobnicate --all"]);
    failed.exit(1).prints(&["exit code 127", "frobnicate: command not found"]);
    failed.says(&["frobnicate: command not found"]);
    assert!(!failed.stdout.contains("given up"), "{}", failed.stdout);
    let failed = home.kiso(&["run", "$ ls one; grep x nowhere"]);
    failed.exit(1).prints(&["one", "nowhere"]);
    home.kiso(&["run", "$ set -e; grep -q x one; echo yes"]).exit(1);
}

#[test]
fn json_has_one_documented_object_per_line() {
    let home = Home::new();
    let ran = home.kiso(&["--json", "run", "--file", &example("market.csv"), "plot close over day from market.csv"]);
    let objects = ran.ok().json_lines();
    assert_eq!(ran.stderr, "", "with --json standard error is quiet");
    let types: Vec<&str> = objects.iter().map(|o| o["type"].as_str().unwrap()).collect();
    let milestones: Vec<&str> = types.iter().copied().filter(|kind| !["thought", "token"].contains(kind)).collect();
    assert_eq!(milestones, ["begun", "routed", "plan", "task", "review", "task", "say", "ended"]);
    assert!(types.contains(&"thought") && types.contains(&"token"), "{types:?}");
    let docs = std::fs::read_to_string(root().join("docs/json.md")).unwrap();
    for object in &objects {
        let kind = object["type"].as_str().unwrap();
        let row = docs
            .lines()
            .find(|l| l.starts_with(&format!("| `{kind}` |")))
            .unwrap_or_else(|| panic!("{kind} is not documented"));
        for member in object.as_object().unwrap().keys().filter(|k| *k != "type") {
            assert!(row.contains(&format!("`{member}`")), "{kind}.{member} is not documented");
        }
    }
    let ended = objects.last().unwrap();
    assert_eq!(ended["outcome"]["ending"], "done");
    let svg = ended["files"][0]["host_path"].as_str().unwrap();
    assert!(std::path::Path::new(svg).exists(), "{svg}");
}

/// The JSON objects in a source file: type and literal members of each.
fn objects(source: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for at in source.match_indices("json!({").map(|(at, macro_)| at + macro_.len() - 1) {
        let (mut depth, mut words, mut keys) = (0, Vec::new(), Vec::new());
        let mut rest = source[at..].chars().peekable();
        while let Some(next) = rest.next() {
            match next {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth -= 1,
                '"' => {
                    let word: String = rest.by_ref().take_while(|c| *c != '"').collect();
                    if depth == 1 && rest.peek() == Some(&':') {
                        keys.push(word);
                    } else if depth == 1 {
                        words.push(word);
                    }
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        if keys.first().is_some_and(|key| key == "type") && !words.is_empty() {
            found.push((words[0].clone(), keys.split_off(1)));
        }
    }
    found
}

/// Every line that a command prints with `--json`, found in the code that prints it.
#[test]
fn every_object_is_documented_with_all_its_members() {
    let docs = std::fs::read_to_string(root().join("docs/json.md")).unwrap();
    let (mut pending, mut kinds) =
        (vec![root().join("host/src/cli"), root().join("host/agent/src/session")], Vec::new());
    while let Some(dir) = pending.pop() {
        for path in std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                // Messages to an editor follow its protocol, which has its own documentation.
                if path.file_name() != Some("acp".as_ref()) {
                    pending.push(path);
                }
                continue;
            }
            // docs/socket.md describes the messages between a measuring kiso and the measured one.
            if path.ends_with("bench/running.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            // Objects shared with HTTP get their type where they are printed.
            for kind in text.split("typed(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(docs.contains(&format!("| `{kind}`")), "{}: {kind} is not documented", path.display());
                kinds.push(kind.to_owned());
            }
            for (kind, members) in objects(text) {
                let rows: Vec<_> =
                    docs.lines().filter(|l| l.starts_with('|') && l.contains(&format!("| `{kind}`"))).collect();
                for member in members {
                    let known = rows.iter().any(|row| row.contains(&format!("`{member}`")));
                    assert!(known, "{}: {kind}.{member} is not documented", path.display());
                }
                assert!(!rows.is_empty(), "{}: {kind} is not documented", path.display());
                kinds.push(kind);
            }
        }
    }
    for kind in ["begun", "thought", "token", "calls", "tool", "limit", "ended", "call", "check"] {
        assert!(kinds.iter().any(|known| known == kind), "{kind} was not found: {kinds:?}");
    }
}

#[test]
fn a_trace_shows_a_run_after_the_fact() {
    let home = Home::new();
    home.kiso(&["run", "--file", &example("market.csv"), "plot close over day from market.csv"]).ok();
    let trace = home.kiso(&["trace", "last"]);
    trace.ok().prints(&[
        "message: plot close over day",
        "retrieval: 1 file in",
        "planner (reflex",
        "chart",
        "expects:",
        "reviewer (reflex",
        "host calls",
        "component ",
        "done after",
    ]);
    let listed = home.kiso(&["trace"]).ok().stdout.clone();
    let id = listed.split_whitespace().next().unwrap();
    home.kiso(&["trace", &id[..8]]).ok().prints(&[id]);
    home.kiso(&["trace", "zzzz"]).exit(2).says(&["zzzz"]);
    let objects = home.kiso(&["--json", "trace", "last"]).json_lines();
    assert_eq!(objects[0]["type"], "run");
    let kinds: Vec<&str> = objects[1..].iter().map(|o| o["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "spec",
            "admitted",
            "retrieved",
            "routed",
            "planned",
            "started",
            "executed",
            "reviewed",
            "started",
            "executed",
            "finished"
        ]
    );
}

/// A scripted model that answers from a file; the run is real.
fn scripted(home: &Home, calls: &[(&str, Value)], message: &str) -> Ran {
    let lines: String = calls
        .iter()
        .map(|(role, reply)| {
            let reply = reply.as_str().map_or_else(|| reply.to_string(), str::to_owned);
            json!({ "role": role, "reply": reply }).to_string() + "\n"
        })
        .collect();
    let script = home.file("script.jsonl", lines);
    home.config(&format!("model = \"scripted:{}\"\n", script.display()));
    home.kiso(&["run", "--file", &example("weather.csv"), message])
}

fn plan(tasks: &[Value]) -> Value {
    json!(format!("<FINAL_PRD>{}</FINAL_PRD>", json!({ "goal": "look at the weather", "tasks": tasks })))
}

fn data(args: Value) -> Value {
    json!({ "type": "skill", "skill": "data", "args": args, "review": true, "expect": "a table" })
}

fn message() -> Value {
    json!({ "type": "msg", "detail": "say what came out", "notify": true })
}

#[test]
fn a_plan_that_cannot_be_used_goes_back_with_every_violation() {
    let home = Home::new();
    let broken = plan(&[data(json!({ "limit": 0 })), json!({ "type": "skill", "skill": "dta", "args": {} })]);
    let good = plan(&[data(json!({ "file": "weather.csv", "describe": true })), message()]);
    let calls = [
        ("planner", json!("no plan here")),
        ("planner", broken),
        ("planner", good),
        ("reviewer", json!({ "status": "ok" })),
        ("worker", json!("The table has six columns.")),
    ];
    let ran = scripted(&home, &calls, "what is in it?");
    ran.ok().prints(&["six columns"]).says(&[
        "tasks[0].args.file: is required",
        "tasks[0].args.limit: 0 is less than the minimum of 1",
        "tasks[1].skill",
        "did you mean `data`?",
    ]);
}

#[test]
fn planning_that_fails_says_so_word_for_word() {
    let home = Home::new();
    let calls: Vec<_> = (0..4).map(|_| ("planner", json!("I would rather not."))).collect();
    let ran = scripted(&home, &calls, "anything");
    ran.exit(1).prints(&["Planning failed: could not parse planner response after 4 attempts."]);
}

#[test]
fn needs_fix_injects_tasks_and_the_run_goes_on() {
    let home = Home::new();
    let fix = json!({ "status": "needs_fix", "inject": [data(json!({ "file": "weather.csv", "limit": 2 }))] });
    let calls = [
        ("planner", plan(&[data(json!({ "file": "weather.csv", "describe": true })), message()])),
        ("reviewer", fix),
        ("reviewer", json!({ "status": "ok" })),
        ("worker", json!("Two rows.")),
    ];
    let ran = scripted(&home, &calls, "show two rows");
    ran.ok().prints(&["Two rows."]).says(&["review needs_fix", "review ok"]);
    assert_eq!(ran.stderr.matches("✓ skill data").count(), 2, "{}", ran.stderr);
}

#[test]
fn replan_tells_the_user_why_and_plans_anew() {
    let home = Home::new();
    let calls = [
        ("planner", plan(&[data(json!({ "file": "none.csv" })), message()])),
        ("reviewer", json!({ "status": "replan", "reason": "the file has another name" })),
        ("planner", plan(&[data(json!({ "file": "weather.csv", "limit": 1 })), message()])),
        ("reviewer", json!({ "status": "ok" })),
        ("worker", json!("One row.")),
    ];
    let ran = scripted(&home, &calls, "show a row");
    ran.ok().prints(&["One row."]).says(&["✗ skill data", "none.csv", "the file has another name", "✓ skill data"]);
}

#[test]
fn a_limit_that_ends_the_work_ends_the_command_with_5() {
    let home = Home::new();
    home.add("hostile");
    let task = json!({ "type": "skill", "skill": "hostile", "args": { "mode": "write" } });
    let replan = plan(&[task.clone(), message()]);
    let blocked = json!(format!("{}", json!({ "goal": "g", "blocked": "it writes too much", "tasks": [message()] })));
    let calls = [("planner", replan), ("planner", blocked), ("worker", json!("It did not work."))];
    let ran = scripted(&home, &calls, "fill the disk");
    ran.exit(5).says(&["64 MiB", "write_mib"]);
}

/// Secrets in a message are in no file of the home afterwards.
#[test]
fn a_secret_in_a_plan_is_written_nowhere() {
    let home = Home::new();
    const SECRET: &str = "ghp-7Qx29-not-to-be-found";
    let planned = json!(format!(
        "<FINAL_PRD>{}</FINAL_PRD>",
        json!({ "goal": "g", "secrets": { "token": SECRET }, "tasks": [data(json!({ "file": "weather.csv", "limit": 1 })), message()] })
    ));
    let calls =
        [("planner", planned), ("reviewer", json!({ "status": "ok" })), ("worker", json!(format!("I used {SECRET}.")))];
    let ran = scripted(&home, &calls, &format!("do it with the token {SECRET}"));
    ran.ok();
    assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:?}");
    let mut pending = vec![home.path()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            if entry.path().is_dir() {
                pending.push(entry.path());
            } else {
                let bytes = std::fs::read(entry.path()).unwrap();
                let found = bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes());
                assert!(!found, "{} holds the secret", entry.path().display());
            }
        }
    }
}

/// The planner does not see a credential that the host took out of the message; it gets the name that the skill uses.
#[test]
fn a_credential_gets_the_name_that_a_skill_asks_for() {
    let home = Home::new();
    home.add("hostile");
    home.kiso(&["skill", "grant", "hostile", "--secret", "api_key"]).ok();
    let plan = |given: &str| {
        let task = json!({ "type": "skill", "skill": "hostile", "args": { "mode": "secrets" } });
        let plan = json!({ "goal": "g", "secrets": { "api_key": given }, "tasks": [task, message()] });
        json!(format!("<FINAL_PRD>{plan}</FINAL_PRD>"))
    };
    for (given, found) in [("[secret other_token]", "api_key: not-found"), ("[secret github_token]", "api_key: ok")] {
        let calls = [("planner", plan(given)), ("worker", json!("It is done."))];
        scripted(&home, &calls, "try it with my token ghp_7Qx29aB31kLmN04pQrStUvWxYz012345").ok();
        home.kiso(&["trace", "last"]).ok().prints(&[found]);
    }
}

/// Ctrl-C ends a run at once, and the run is recorded as cancelled.
#[test]
fn an_interrupted_run_is_recorded_as_cancelled() {
    let home = Home::new();
    home.add("hostile");
    let mut child = home.command(&["--json", "run", "hostile mode=slow amount=8000"]);
    child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let planned = lines.by_ref().map_while(Result::ok).any(|l| l.contains("\"type\":\"plan\""));
    assert!(planned);
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    home.kiso(&["trace", "last"]).ok().prints(&["cancelled"]);
}

/// Leaves a run as a kill does, with unreadable events.
fn cut_off(home: &Home, spoil: &str) {
    let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    store
        .execute_batch(&format!("UPDATE runs SET status = 'running', ended_ms = NULL, outcome = NULL; {spoil}"))
        .unwrap();
}

#[test]
fn a_run_that_cannot_be_taken_up_again_stands_in_nobodys_way() {
    let home = Home::new();
    home.kiso(&["run", "$ echo one"]).ok();
    cut_off(&home, "UPDATE events SET body = '{}' WHERE seq = 2");
    let ran = home.kiso(&["run", "$ echo two"]);
    ran.ok().prints(&["two"]).says(&["resuming it first", "cannot be resumed"]);
    home.kiso(&["trace"]).ok().prints(&["failed", "done"]);
    home.kiso(&["run", "$ echo three"]).ok();
    cut_off(
        &home,
        "DELETE FROM events WHERE seq = 1 AND run = (SELECT max(num) FROM runs); UPDATE runs SET status = 'done', ended_ms = 1 WHERE num < 3",
    );
    home.kiso(&["cancel", "last"]).ok().prints(&["is given up"]);
    home.kiso(&["cancel", "last"]).exit(2).says(&["has already ended (failed)"]);
}

#[test]
fn a_run_that_was_cut_off_is_finished_first() {
    let home = Home::new();
    home.kiso(&["run", "$ echo one"]).ok();
    cut_off(&home, "DELETE FROM events WHERE seq > 4; DELETE FROM messages WHERE role = 'assistant'");
    let ran = home.kiso(&["run", "$ echo two"]);
    let out = ran.ok().stdout.clone();
    assert!(out.find("one") < out.find("two"), "{out}");
    home.kiso(&["run", "--resume", "last"]).exit(1).says(&["it has ended (done)"]);
    home.kiso(&["run", "--resume", "zzzz"]).exit(2);
    home.kiso(&["run"]).exit(2);
}
