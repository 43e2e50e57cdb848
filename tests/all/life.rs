//! The life of a daemon from outside: notifications to systemd, the content of the log, reloading the configuration, and the
//! unit.

use crate::harness::{Home, everywhere, missing_tool, wait_until};
use crate::served::Served;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(config);
    home
}

/// The socket of `NOTIFY_SOCKET`.
struct Systemd(UnixDatagram);

impl Systemd {
    fn new(home: &Home) -> Systemd {
        let socket = UnixDatagram::bind(home.dir.path().join("notify")).unwrap();
        // A guard against a daemon that sends nothing; no test waits for it to pass.
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Systemd(socket)
    }

    fn serve(&self, home: &Home, watchdog: Option<Duration>) -> Served {
        Served::start_with(home, &[], |command| {
            command.env("NOTIFY_SOCKET", home.dir.path().join("notify"));
            if let Some(limit) = watchdog {
                command.env("WATCHDOG_USEC", limit.as_micros().to_string());
            }
        })
    }

    /// The next message.
    #[track_caller]
    fn hear(&self) -> String {
        let mut bytes = [0; 4_096];
        let length = self.0.recv(&mut bytes).expect("the daemon says something");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// The next message that begins with this word.
    #[track_caller]
    fn hear_of(&self, word: &str) -> String {
        loop {
            let heard = self.hear();
            if heard.starts_with(word) {
                return heard;
            }
        }
    }
}

#[test]
fn systemd_hears_of_beginning_reload_and_end() {
    let home = home(QUICK);
    let systemd = Systemd::new(&home);
    let mut served = systemd.serve(&home, None);
    if everywhere::is_so() {
        assert_eq!(systemd.hear().trim_end(), "READY=1\nSTATUS=stands by");
    }
    let ready = systemd.hear();
    assert!(ready.starts_with("READY=1\n"), "{ready}");
    assert!(ready.contains(&served.address), "{ready}");
    assert_eq!(served.get("/health")["status"], "ok");
    served.signal(Signal::HUP);
    let reloading = systemd.hear();
    let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("it says which signal it answers");
    assert!(time.trim().parse::<u64>().is_ok_and(|usec| usec > 0), "{reloading}");
    assert!(systemd.hear().starts_with("READY=1\n"));
    served.signal(Signal::TERM);
    let stopping = systemd.hear();
    // The 60 seconds of daemon.shutdown_timeout_s, and some for the store.
    assert!(stopping.starts_with("STOPPING=1\n") && stopping.contains("EXTEND_TIMEOUT_USEC=75000000\n"), "{stopping}");
    assert_eq!(served.ended(), 0);
}

/// Without WATCHDOG_USEC there are no watchdog messages: the test above would receive them.
#[test]
fn the_watchdog_hears_of_a_store_that_answers_and_of_no_other() {
    let home = home(QUICK);
    let systemd = Systemd::new(&home);
    let served = systemd.serve(&home, Some(Duration::from_millis(200)));
    for _ in 0..3 {
        systemd.hear_of("WATCHDOG=1");
    }
    let other = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    const STALLED: &str = "queue or store did not answer";
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The writer waits for the lock, and no message is sent until it is free. A busy machine may have caused earlier stalls.
    let stalls = || served.log().matches(STALLED).count();
    served.logs(STALLED, stalls() + 2);
    systemd.0.set_nonblocking(true).unwrap();
    while systemd.0.recv(&mut [0; 64]).is_ok() {}
    systemd.0.set_nonblocking(false).unwrap();
    served.logs(STALLED, stalls() + 1);
    systemd.0.set_nonblocking(true).unwrap();
    let error = systemd.0.recv(&mut [0; 64]).expect_err("it is not alive");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    systemd.0.set_nonblocking(false).unwrap();
    other.execute_batch("ROLLBACK").unwrap();
    systemd.hear_of("WATCHDOG=1");
    assert_eq!(served.terminate(), 0);
}

/// A line that waits for the file `go`.
const WAITING: &str =
    "$ touch began; while [ ! -e go ]; do sleep 0.02; done; head -c 2000000 /dev/zero > big && echo end";

/// Waits until a run executes [`WAITING`].
fn until_it_works(home: &Home) {
    let began = home.work("main").join("began");
    wait_until("the run to begin", || began.exists());
    std::fs::remove_file(began).unwrap();
}

#[test]
fn a_second_signal_ends_at_once_and_what_was_taken_is_answered_later() {
    let home = home(QUICK);
    let mut served = Served::start(&home);
    let message = served.send("main", WAITING);
    until_it_works(&home);
    served.signal(Signal::TERM);
    served.logs("send the signal again to stop immediately", 1);
    // It still runs, and HUP does not stop it; the second TERM does.
    served.signal(Signal::HUP);
    served.signal(Signal::TERM);
    assert_eq!(served.ended(), 130);
    std::fs::write(home.work("main").join("go"), "").unwrap();
    let served = Served::start(&home);
    served.reply(message);
    assert_eq!(served.terminate(), 0);
}

#[test]
fn a_configuration_that_is_wrong_changes_nothing_and_is_told_line_by_line() {
    let home = home(QUICK);
    let served = Served::start(&home);
    home.config("model = \"reflex\"\n[daemon]\nmax_queued = 0\n[exec]\ntimeuot_s = 3\n");
    served.signal(Signal::HUP);
    let log = served.logs("the configuration is unchanged", 1);
    assert!(log.contains("config.toml:3:14: daemon.max_queued = 0 is out of range"), "{log}");
    assert!(log.contains("config.toml:5:1: unknown key exec.timeuot_s: did you mean timeout_s?"), "{log}");
    // A model with a missing key is valid in the file, but is noticed before anything changes.
    home.config(
        "model = \"lab:x\"\n[providers.lab]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9\"\nkey_env = \"NO_KEY\"\n",
    );
    served.signal(Signal::HUP);
    let log = served.logs("the configuration is unchanged", 2);
    assert!(log.contains("NO_KEY"), "{log}");
    std::fs::remove_file(home.path().join("config.toml")).unwrap();
    served.signal(Signal::HUP);
    assert!(served.logs("the configuration is unchanged", 3).contains("config.toml is gone"));
    assert!(!home.path().join("config.toml").exists(), "nobody asked for the defaults");
    assert_eq!(served.command("main", "/model"), "The model of this session is reflex.");
    served.reply(served.send("main", "$ echo still here"));
}

#[test]
fn a_configuration_that_is_right_holds_for_what_begins() {
    let home = home(QUICK);
    let served = Served::start(&home);
    let under_way = served.send("main", WAITING);
    until_it_works(&home);
    home.config(
        "model = \"lab:big\"\n[daemon]\ndebounce_ms = 10\nmax_queued = 1\n[exec]\nwrite_mib = 1\n\
         [gateway]\nmax_body_kib = 1\nport = 1\n[log]\nlevel = \"debug\"\n\
         [providers.lab]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n",
    );
    home.kiso(&["config", "reload"]).ok().prints(&[&format!("process {}", served.pid())]);
    let log = served.logs("after a restart of kiso: gateway.port", 1);
    assert!(
        log.contains("in effect now: daemon.debounce_ms, daemon.max_queued, log.level, gateway.max_body_kib"),
        "{log}"
    );
    assert!(log.contains("for new runs: model, exec.write_mib, [providers]"), "{log}");
    assert!(served.command("main", "/models").contains("lab:big: a context of 16000 tokens, the default"));
    let large = json!({ "session": "main", "text": "x".repeat(2_000) }).to_string();
    served.request("POST", "/msg", Some(&large)).refuses(413, "too_large");
    // It writes more than the new limit of one MiB: a run that started earlier keeps its 256.
    std::fs::write(home.work("main").join("go"), "").unwrap();
    let whole = served.reply(under_way);
    assert!(whole.contains("end") && !whole.contains("write_mib"), "{whole}");

    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 10\n[exec]\nwrite_mib = 1\n");
    home.kiso(&["config", "reload"]).ok();
    served.logs("in effect now", 2);
    served.logs("for new runs", 2);
    let cut = served.reply(served.send("main", "$ head -c 2000000 /dev/zero > big && echo end"));
    assert!(cut.contains("write_mib"), "{cut}");
    assert_eq!(served.terminate(), 0);
}

#[test]
fn config_reload_says_what_is_in_the_way() {
    let home = home(QUICK);
    home.kiso(&["config", "reload"]).exit(1).says(&["no daemon is running for"]);
    let served = Served::start(&home);
    home.config("model = 3\n");
    home.kiso(&["config", "reload"]).exit(3).says(&["config.toml:1:9: model must be a string"]);
    assert!(!served.log().contains("config.toml"), "the daemon was not asked");
    std::fs::remove_file(home.path().join("config.toml")).unwrap();
    home.kiso(&["config", "reload"]).exit(3).says(&["config.toml is gone"]);
    assert!(!home.path().join("config.toml").exists());
    let row = home.config(QUICK).kiso(&["--json", "config", "reload"]).json();
    assert_eq!((&row["type"], row["pid"].as_u64()), (&json!("reloading"), Some(served.pid().into())));
}

/// Skills are added and removed while the daemon runs.
#[test]
fn skills_that_are_added_are_there_without_a_restart() {
    let home = home(QUICK);
    let served = Served::start(&home);
    assert!(!served.command("main", "/skills").contains("echo"));
    home.add("echo");
    assert!(served.command("main", "/skills").contains("echo"), "{}", served.command("main", "/skills"));
    home.kiso(&["skill", "remove", "echo"]).ok();
    assert!(!served.command("main", "/skills").contains("echo"));
}

/// Secrets are put in wrong places, and the daemon reports the errors.
#[test]
fn no_secret_stands_in_the_log() {
    const PLANTED: [(&str, &str); 5] = [
        ("KISO_SKILL_SEARCH_API_KEY", "planted-skill-7f3a"),
        ("LAB_KEY", "planted-lab-\"91c2"),
        ("password", "Planted-Pass-55d0"),
        ("github_token", "ghp_planted1a2b3c4d"),
        ("kiso_token", "kiso_0a1b2c3d4e5f_0123456789abcdef0123456789abcdef0123456789abcdef"),
    ];
    for format in ["text", "json"] {
        let config = "model = \"reflex\"\n[models]\nworker = \"lab:x\"\ntitler = \"lab:x\"\n[llm]\nmax_attempts = 1\n\
                      [providers.lab]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey_env = \"LAB_KEY\"\n\
                      [daemon]\ndebounce_ms = 20\n";
        let home = home(&config.replace("\"91", "-91"));
        let (lab, skill) = (PLANTED[1].1.replace('"', "-"), PLANTED[0].1);
        let served = Served::start_with(&home, &["--log", format], |command| {
            command.env("KISO_LOG", "trace").env("LAB_KEY", &lab).env("KISO_SKILL_SEARCH_API_KEY", skill);
        });
        let said = format!("write a poem; my password is {}", PLANTED[2].1);
        served.reply(served.send("main", &said));
        // A token that does not belong to this home.
        let mut stranger = served.ask_with(PLANTED[4].1, "/sessions");
        stranger.truncate(12);
        assert_eq!(stranger, "HTTP/1.1 401");
        let values = [skill, &lab, PLANTED[2].1, PLANTED[3].1, PLANTED[4].1];
        for value in values {
            // The error contains the invalid text.
            home.config(&format!("[log]\nlevel = {}\n", json!(value)));
            served.signal(Signal::HUP);
            served.logs("the configuration is unchanged", values.iter().position(|v| *v == value).unwrap() + 1);
        }
        let log = served.log();
        for ((name, _), value) in PLANTED.iter().zip(values) {
            assert!(!log.contains(value), "{name} stands in the log:\n{log}");
            assert!(log.contains(&format!("[secret {name}]")), "{name}:\n{log}");
        }
        assert!(log.to_lowercase().contains("trace"), "not everything was logged:\n{log}");
        for line in log.lines().filter(|_| format == "json") {
            let row: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(row["type"], "log");
        }
        assert_eq!(served.terminate(), 0);
    }
}

/// Titles are shown unencrypted in lists of sessions, and exports leave the home.
#[test]
fn titles_and_exports_keep_no_credentials() {
    let home = home("model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n");
    let (by_form, by_name) = ("sk-proj-Plover32Plover32Plover32Plover32Plover32", "late-key-5532-x");
    home.kiso(&["run", "--session", "trip", &format!("$ echo {by_name}")]).ok();
    let with_key = |args: &[&str]| {
        home.kiso_with(args, |command| {
            command.env("KISO_SKILL_SEARCH_API_KEY", by_name);
        })
    };
    let title = format!("use {by_form} and {by_name}");
    let renamed = with_key(&["session", "rename", "trip", &title]);
    renamed.ok().prints(&["trip is now titled use [secret "]);
    // A text that was stored before it was known to be a secret.
    assert!(home.kiso(&["session", "export", "trip"]).ok().stdout.contains(by_name), "nobody knows it yet");
    let out = home.dir.path().join("trip.jsonl");
    with_key(&["session", "export", "trip", "--output", out.to_str().unwrap()]).ok();
    let written = std::fs::read_to_string(&out).unwrap();
    let printed = with_key(&["session", "export", "trip"]).ok().stdout.clone();
    let served = Served::start_with(&home, &[], |command| {
        command.env("KISO_SKILL_SEARCH_API_KEY", by_name);
    });
    let change = json!({ "title": format!("again {by_form} and {by_name}") }).to_string();
    let changed = served.request("PATCH", "/sessions/trip", Some(&change)).expect(200);
    let sent = served.request("GET", "/sessions/trip/export", None).body;
    let listed = home.kiso(&["session", "list"]).ok().stdout.clone();
    for (what, text) in [
        ("the title", renamed.stdout.clone()),
        ("a file", written),
        ("standard output", printed),
        ("HTTP", sent),
        ("the title over HTTP", changed.to_string()),
        ("the list", listed),
    ] {
        assert!(text.contains("[secret ") && !text.contains(by_form) && !text.contains(by_name), "{what}: {text}");
    }
    assert_eq!(served.terminate(), 0);
}

/// Keys of providers, secrets of skills and the home's key, as passed by systemd.
#[test]
fn credentials_of_systemd_stand_in_for_variables_and_for_the_key() {
    let home = Home::new();
    let dir = home.dir.path().join("credentials");
    home.file("credentials/kiso.key", [7; 32]);
    home.file("credentials/LAB_KEY", "lab-key-5531\n");
    let with = |args: &[&str]| {
        home.kiso_with(args, |command| {
            command.env("CREDENTIALS_DIRECTORY", &dir);
        })
    };
    let text = "$ echo it works # my password is Hunter-5530-x";
    with(&["run", "--session", "a", text]).ok();
    assert!(!home.path().join("key").exists(), "it does not lie beside the store");
    with(&["run", "--session", "a", "$ echo again"]).ok().prints(&["again"]);
    // A command without the credential does not create another key.
    home.kiso(&["skill", "list"]).exit(3).says(&["has its key in a systemd credential"]);
    assert!(!home.path().join("key").exists());
    home.file("home/key", [8; 32]);
    std::fs::set_permissions(home.path().join("key"), PermissionsExt::from_mode(0o600)).unwrap();
    with(&["skill", "list"]).exit(3).says(&["are different keys"]);
    std::fs::remove_file(home.path().join("key")).unwrap();
    home.file("credentials/kiso.key", [7; 31]);
    with(&["skill", "list"]).exit(3).says(&["has 31 bytes, not 32"]);
    home.file("credentials/kiso.key", [7; 32]);
    let config = "model = \"lab:x\"\n[providers.lab]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey_env = \"LAB_KEY\"\n";
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    with(&["doctor", "--offline"]).ok().prints(&["ok   model lab:x: not called"]);
}

/// A `systemctl` that records its arguments.
fn fake_systemctl(home: &Home, version: u32, fails: &str) -> impl Fn(&mut Command) + use<> {
    let asked = home.dir.path().join("asked");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'systemd {version} ({version}.9-1)'; exit 0; fi\n\
         echo \"$*\" >> {}\ncase \"$*\" in {fails}) echo 'Failed to connect to bus' >&2; exit 1;; *is-active*) echo active;; esac\n",
        asked.display()
    );
    let file = home.file("bin/systemctl", script);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    let dir = home.dir.path().to_owned();
    move |command| {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", dir.join("bin").display())).env("XDG_CONFIG_HOME", dir.join("config"));
    }
}

#[test]
fn the_unit_is_installed_and_taken_away() {
    let home = home(QUICK);
    let systemctl = fake_systemctl(&home, 257, "nothing");
    let unit = home.dir.path().join("config/systemd/user/kiso.service");
    home.kiso_with(&["service", "status"], &systemctl).prints(&["is not installed"]);
    let installed = home.kiso_with(&["service", "install"], &systemctl);
    installed.ok().prints(&[
        &format!("{} written", unit.display()),
        "systemctl --user daemon-reload\nsystemctl --user enable kiso.service\nsystemctl --user restart kiso.service\n",
        "loginctl enable-linger",
    ]);
    let text = std::fs::read_to_string(&unit).unwrap();
    let home_path = home.path().canonicalize().unwrap();
    assert!(text.contains("\nType=notify-reload\n"), "{text}");
    assert!(text.contains(&format!("--home \"{}\" serve\n", home_path.display())), "{text}");
    assert_eq!(home.kiso_with(&["service", "install", "--print"], &systemctl).ok().stdout, text);
    home.kiso_with(&["service", "install"], &systemctl).ok().prints(&["is there already"]);
    home.kiso_with(&["service", "status"], &systemctl).ok().prints(&["is up to date", "active"]);
    let row = home.kiso_with(&["--json", "service", "status"], &systemctl).json();
    assert_eq!((&row["type"], &row["installed"], &row["state"]), (&json!("service"), &json!(true), &json!("active")));
    home.kiso_with(&["service", "uninstall"], &systemctl).ok().prints(&["disable --now kiso.service", "removed"]);
    assert!(!unit.exists());
    home.kiso_with(&["service", "uninstall"], &systemctl).ok().prints(&["is not there"]);
    let asked = std::fs::read_to_string(home.dir.path().join("asked")).unwrap();
    assert_eq!(asked.lines().last(), Some("--user daemon-reload"));
}

#[test]
fn what_stands_in_the_way_of_a_unit_is_told() {
    let home = home(QUICK);
    let empty = home.dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let nothing = |command: &mut Command| {
        command.env("PATH", &empty).env("XDG_CONFIG_HOME", home.dir.path());
    };
    home.kiso_with(&["service", "install"], nothing).exit(1).says(&["there is no systemctl here", "kiso serve"]);
    assert!(!home.dir.path().join("systemd").exists(), "nothing is left behind");
    // A unit can still be printed for another machine, in a form that every systemd supports.
    let printed = home.kiso_with(&["service", "install", "--print"], nothing);
    printed.ok().prints(&["\nType=notify\nExecReload=/bin/kill -HUP $MAINPID\n"]);
    let fails = fake_systemctl(&home, 252, "*enable*");
    home.kiso_with(&["service", "install"], &fails)
        .exit(1)
        .says(&["`systemctl --user enable kiso.service` failed: Failed to connect to bus"]);
    let silent = fake_systemctl(&home, 252, "*show-environment*");
    std::fs::remove_file(home.dir.path().join("config/systemd/user/kiso.service")).unwrap();
    home.kiso_with(&["service", "install"], &silent)
        .exit(1)
        .says(&["systemd does not answer (Failed to connect to bus)", "--system"]);
    assert!(!home.dir.path().join("config/systemd/user/kiso.service").exists(), "nothing is half done");
    home.kiso(&["service", "install", "--system", "--user", "a b", "--print"]).exit(2).says(&["not a valid user name"]);
    home.kiso(&["service", "install", "--user", "bob"]).exit(2);
    home.kiso(&["service", "install", "--system", "--home", "/srv/x", "--print"]).exit(2).says(&["--user"]);
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let home = home(QUICK);
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return missing_tool("the units", "there is no systemd-analyze");
    }
    for (args, name) in
        [(&["service", "install", "--print"][..], "user"), (&["service", "install", "--system", "--print"], "system")]
    {
        let text = home.kiso(args).ok().stdout.clone();
        let file = home.file(&format!("{name}/kiso.service"), text);
        let verify =
            Command::new("systemd-analyze").args(["verify", &format!("--{name}")]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&verify.stderr).into_owned();
        let about: Vec<_> = said.lines().filter(|line| line.contains("kiso.service")).collect();
        assert!(about.is_empty(), "{name}: {about:#?}");
    }
}
