//! The commands other than runs and skills: their output, and the arguments in their help.

use crate::harness::Home;
use crate::served::Served;
use serde_json::Value;

#[test]
fn doctor_looks_at_everything() {
    let home = Home::new();
    home.add("echo");
    let ran = home.kiso(&["doctor"]);
    ran.ok().prints(&[
        "ok   home",
        "ok   config",
        "ok   disk",
        "ok   clock",
        "ok   store",
        "ok   models",
        "ok   exec: the shell and",
        "ok   skill data",
        "ok   skill echo",
    ]);
    std::fs::write(home.path().join("skills/echo/kiso.toml"), "nonsense").unwrap();
    home.kiso(&["doctor"]).exit(1).prints(&["FAIL skill", "add it again"]);
    let objects = home.kiso(&["--json", "doctor"]).json_lines();
    assert!(objects.iter().any(|o| o["ok"] == false && o["detail"].as_str().unwrap().contains("echo")));
}

/// doctor checks whether the daemon answers, not only whether something listens.
#[test]
fn doctor_asks_the_daemon_and_looks_at_the_machine() {
    let home = Home::new();
    let port = crate::harness::own_port();
    let free = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    home.config(&format!("model = \"reflex\"\n[gateway]\nport = {port}\n"));
    let taken = format!("warn port: no daemon is running, and 127.0.0.1:{port} is not available");
    home.kiso(&["doctor"]).ok().prints(&[&taken, "memory: ", "pages of ", "ok   socket: "]);
    drop(free);
    let served = crate::served::Served::spawn(home.command(&["--json", "serve"]));
    let answers = format!("ok   port: the daemon (process {}) answers on 127.0.0.1:{port}", served.pid());
    home.kiso(&["doctor"]).ok().prints(&[&answers]);
    home.config("model = \"reflex\"\n[gateway]\nport = 9\n");
    home.kiso(&["doctor"]).ok().prints(&["warn port: a daemon runs", "--port"]);
    let rows = home.kiso(&["--json", "doctor"]).ok().json_lines();
    let row = rows.iter().find(|row| row["what"] == "port").unwrap();
    assert_eq!((&row["ok"], &row["warn"]), (&true.into(), &true.into()));
}

#[test]
fn doctor_notices_that_the_clock_was_put_back_and_that_a_socket_cannot_be() {
    let home = Home::new();
    home.kiso(&["run", "--session", "a", "$ echo"]).ok();
    let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    store.execute("UPDATE sessions SET active_ms = active_ms + 86400000", ()).unwrap();
    home.kiso(&["doctor"]).ok().prints(&["warn clock jump: the last message is 86"]);
    let long = home.dir.path().join("x".repeat(100));
    let ran = home.kiso_with(&["doctor"], |command| {
        command.env("KISO_HOME", &long);
    });
    ran.exit(1).prints(&["FAIL socket: ", "choose a shorter --home"]);
}

#[test]
fn doctor_says_when_the_store_is_no_database() {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    for file in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(home.path().join(file));
    }
    std::fs::write(home.path().join("store.db"), vec![7u8; 8192]).unwrap();
    let ran = home.kiso(&["doctor"]);
    assert_ne!(ran.code, 0);
    ran.prints(&["FAIL store"]);
}

/// Scripts and units may set an empty value for the default.
#[test]
fn an_empty_kiso_home_is_as_good_as_none() {
    let home = Home::new();
    let user = home.dir.path().join("user");
    home.kiso_with(&["--home", "named", "run", "$ true"], |command| _ = command.env("KISO_HOME", "")).ok();
    assert!(home.dir.path().join("named/store.db").exists());
    home.kiso_with(&["run", "$ true"], |command| _ = command.env("KISO_HOME", "").env("HOME", &user)).ok();
    assert!(user.join(".kiso/store.db").exists());
}

#[test]
fn completions_are_printed_for_each_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        home.kiso(&["completions", shell]).ok().prints(&["kiso", "KISO_COMPLETE"]);
    }
    home.kiso(&["completions", "tcl"]).exit(2);
}

/// Completion in bash: the candidates while the last of these words is typed.
#[test]
fn bash_completes_commands_options_sessions_and_skills() {
    let home = Home::new();
    home.add("echo");
    for session in ["garden", "garage"] {
        home.kiso(&["run", "--session", session, "$ true"]).ok();
    }
    // A file name from somebody else is not offered as a session.
    std::fs::create_dir(home.path().join("sessions/ga$(touch harm)")).unwrap();
    let kiso = std::path::Path::new(env!("CARGO_BIN_EXE_kiso")).parent().unwrap();
    let path = std::env::join_paths(
        [kiso.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let offered = |words: &[&str]| -> Vec<String> {
        let script = r#"source <(kiso completions bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
            _clap_complete_kiso kiso "${!#}"; printf '%s\n' "${COMPREPLY[@]}""#;
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", script, "bash"]).args(words).current_dir(&home.dir);
        let output = bash.env("PATH", path.as_ref().unwrap()).env("KISO_HOME", home.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).filter(|name| !name.is_empty()).collect()
    };
    assert_eq!(offered(&["kiso", "sess"]), ["session"]);
    assert_eq!(offered(&["kiso", "doctor", "--off"]), ["--offline"]);
    assert_eq!(offered(&["kiso", "session", "show", "gar"]), ["garage", "garden"]);
    assert_eq!(offered(&["kiso", "run", "--session", "gard"]), ["garden"]);
    assert_eq!(offered(&["kiso", "session", "archive", "garden", "gara"]), ["garage"]);
    assert_eq!(offered(&["kiso", "skill", "info", "e"]), ["echo"]);
    assert_eq!(offered(&["kiso", "skill", "info", "f"]), ["feed", "fetch"]);
    assert_eq!(offered(&["kiso", "skill", "new", "ec"]), <[&str; 0]>::default());
    // A completion does not create a missing home.
    assert_eq!(offered(&["kiso", "--home", "nowhere", "session", "show", "g"]), <[&str; 0]>::default());
    assert!(!home.dir.path().join("nowhere").exists());
}

/// With ratios to another run, here of the same machine. The times are not checked.
#[test]
fn a_machine_is_measured_without_a_compiler() {
    let home = Home::new();
    let figures = home.kiso(&["--json", "bench", "--seconds", "0"]);
    let first = figures.stdout.clone();
    let figures = figures.ok().json_lines();
    let names: Vec<_> = figures.iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    let wanted = [
        "program",
        "start",
        "first_line",
        "line",
        "command",
        "pipeline",
        "call",
        "message",
        "idle_memory",
        "work_memory",
    ];
    assert_eq!(names, wanted);
    for figure in &figures {
        assert!(
            figure["minimum"].as_u64().unwrap() > 0 && figure["median"].as_u64() >= figure["minimum"].as_u64(),
            "{figure}"
        );
    }
    let program = std::fs::metadata(env!("CARGO_BIN_EXE_kiso")).unwrap().len();
    assert_eq!(figures[0]["median"], program);
    // The caller's home is not touched either.
    assert!(!home.path().exists());
    home.file("first.json", first);
    let table = home.kiso(&["bench", "--seconds", "0", "--against", "first.json"]);
    table.ok().prints(&["| what | minimum | median | against the other |", "| the program on disk |", "| 1.00 × |"]);
    home.file("none.json", "{}");
    home.kiso(&["bench", "--against", "none.json"]).exit(2).says(&["none.json", "kiso --json bench"]);
    home.kiso(&["bench", "--program", "/nonexistent/kiso"]).exit(1).says(&["/nonexistent/kiso"]);
}

#[test]
fn help_names_exit_codes_and_every_command() {
    let home = Home::new();
    home.kiso(&["--help"]).ok().prints(&[
        "Exit codes: 0 done",
        "run",
        "skill",
        "trace",
        "config",
        "doctor",
        "completions",
        "chat",
        "--home",
        "KISO_HOME",
    ]);
    home.kiso(&["skill", "--help"])
        .ok()
        .prints(&["add", "list", "info", "run", "grant", "remove", "new", "build", "test", "pack"]);
    home.kiso(&["config", "--help"]).ok().prints(&["show", "check", "preset"]);
    home.kiso(&["nonsense"]).exit(2).says(&["nonsense"]);
}

#[test]
fn listings_have_a_json_form() {
    let home = Home::new();
    let skills = home.kiso(&["skill", "list", "--json"]).json_lines();
    let names: Vec<&str> = skills.iter().map(|s| s["skill"].as_str().unwrap()).collect();
    assert_eq!(names, ["chart", "data", "document", "feed", "fetch", "search"]);
    // The same shape as over HTTP.
    let served = Served::start(&home);
    let mut listed = served.get("/skills")["items"].take();
    listed.as_array_mut().unwrap().iter_mut().for_each(|skill| skill["type"] = "skill".into());
    assert_eq!(Value::from(skills), listed);
    let error = home.kiso(&["skill", "info", "nothing", "--json"]).json();
    assert_eq!((error["type"].as_str(), error["code"].as_str()), (Some("error"), Some("usage")));
}

/// A guest's text on a terminal is plain text.
#[test]
fn control_characters_of_a_guest_do_not_reach_the_terminal() {
    let home = Home::new();
    home.add("echo");
    let ran = home.kiso(&["skill", "run", "echo", "text=a\u{1b}[31mred\u{7}"]);
    assert!(!ran.ok().stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'), "{:?}", ran.stdout);
}

/// Slash commands answered at once in other interfaces are also answered by `kiso run`: no plan is made for them.
#[test]
fn a_slash_command_is_answered_by_run() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[commands]\nnew = \"Forget what we talked about\"\nshout = \"Say it\"\n[pills.shout]\ntemplate = \"$ echo loud {input}\"\n");
    let run = |message: &str| home.kiso(&["run", "--session", "s", message]);
    run("/help").ok().prints(&["/new", "Forget what we talked about", "/shout"]);
    assert_eq!(home.kiso(&["trace", "last"]).code, 2, "nothing has run");
    run("/model planner reflex").ok().prints(&["The model of this session is now reflex"]);
    assert!(home.kiso(&["session", "export", "s"]).ok().stdout.contains("\"role_models\":{\"planner\":\"reflex\"}"));
    run("/model planner nonsense").ok().prints(&["was not changed"]);
    let status = run("/status").ok().stdout.clone();
    assert!(status.contains("nothing is running") && !status.contains("up for"), "{status}");
    run("/cancel").ok().prints(&["Nothing is running"]);
    run("/hepl").exit(2).prints(&["no command /hepl", "/new"]);
    run("/shout it").ok().prints(&["loud it"]);
    run("/trace").ok().prints(&["loud it"]);
    let file = home.file("a.txt", "a");
    home.kiso(&["run", "--file", file.to_str().unwrap(), "/help"]).exit(2).says(&["takes no files"]);
    let lines = home.kiso(&["--json", "run", "--session", "s", "/skills"]).ok().json_lines();
    assert_eq!((lines.len(), &lines[0]["type"], &lines[0]["session"]), (1, &"answered".into(), &"s".into()));
}

/// `/cancel` ends a run without a process, like `kiso cancel`.
#[test]
fn a_slash_command_stops_what_was_cut_off() {
    let home = Home::new();
    home.config("model = \"reflex\"\n");
    home.kiso(&["run", "--session", "s", "$ echo one"]).ok();
    let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    store.execute("UPDATE runs SET status = 'running', ended_ms = NULL, outcome = NULL", ()).unwrap();
    home.kiso(&["run", "--session", "s", "/cancel"]).ok().prints(&["Stopping the current run."]);
    home.kiso(&["run", "--session", "s", "/cancel"]).ok().prints(&["Nothing is running"]);
}
