//! A daemon with a full disk: filled by a guest, which leaves a part of it, and by something else.

use crate::harness::{Home, skipped};
use crate::served::Served;
use serde_json::json;
use std::process::Command;

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

/// A mount namespace with a small file system, and the daemon of a home in it.
fn on_a_small_disk(home: &Home, config: &str, size: &str) -> Option<Served> {
    let disk = home.dir.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let unshare = || {
        let mut command = Command::new("unshare");
        match rustix::process::geteuid().is_root() {
            true => command.arg("--mount"),
            false => command.args(["--user", "--map-current-user", "--keep-caps", "--mount"]),
        };
        command
            .args(["sh", "-ec", "mount -t tmpfs -o size=$2,mode=700 none \"$1\"; shift 2; exec \"$@\"", "sh"])
            .args([disk.as_os_str(), size.as_ref()]);
        command
    };
    if !unshare().arg("true").output().is_ok_and(|tried| tried.status.success()) {
        return None;
    }
    let serve = home.command(&["--json", "serve", "--port", "0"]);
    let mut command = unshare();
    command.args([
        "sh",
        "-ec",
        "mkdir -m 700 \"$KISO_HOME\"; printf %s \"$CONFIG\" > \"$KISO_HOME/config.toml\"; exec \"$@\"",
        "sh",
    ]);
    command.arg(serve.get_program()).args(serve.get_args());
    command.env("KISO_HOME", disk.join("home")).env("CONFIG", config).current_dir(home.dir.path());
    Some(Served::spawn(command))
}

/// Accepted messages are answered once there is room again; other messages are refused, and the daemon keeps running.
#[test]
fn a_full_disk_refuses_what_comes_and_loses_nothing() {
    let home = Home::new();
    let Some(served) = on_a_small_disk(&home, QUICK, "16m") else {
        return skipped("a full disk", "nothing can be mounted here");
    };
    served.reply(served.send("before", "$ echo before"));
    let inside = std::path::PathBuf::from(format!("/proc/{}/root", served.pid()));
    let filler = inside.join(home.dir.path().join("disk/filler").strip_prefix("/").unwrap());
    let mut file = std::fs::File::create(&filler).unwrap();
    let full = loop {
        if let Err(error) = std::io::Write::write_all(&mut file, &[0; 4_096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    // The database's log has some preallocated room.
    let body = json!({ "session": "main", "text": format!("$ echo it is done; # {}", "x".repeat(20_000)) }).to_string();
    let mut accepted = Vec::new();
    loop {
        let answer = served.request("POST", "/msg", Some(&body));
        if answer.status == 507 {
            answer.refuses(507, "disk_full");
            break;
        }
        accepted.push(answer.expect(202)["message"].as_i64().unwrap());
        assert!(accepted.len() < 1_000, "the disk is full");
    }
    let health = served.request("GET", "/health", None);
    health.refuses(503, "not_ready");
    assert!(health.body.contains("are free where kiso's home is"), "{health:?}");
    assert_eq!(served.get("/health/details")["status"], "not_ready");
    served.logs("the disk is full", 1);
    // A process that another test starts at this moment may inherit the open file, which would keep its room for a while.
    file.set_len(0).unwrap();
    drop(file);
    std::fs::remove_file(&filler).unwrap();
    accepted.push(served.send("after", "$ echo it is done"));
    for message in accepted {
        let reply = served.reply(message);
        assert!(reply.contains("it is done") || reply.contains("interrupted"), "{reply}");
    }
    assert_eq!(served.terminate(), 0);
}

/// The part of the disk that guests must leave is enough for kiso itself.
#[test]
fn a_guest_that_fills_the_disk_leaves_room_for_messages_replies_and_undo() {
    let home = Home::new();
    let Some(served) = on_a_small_disk(&home, QUICK, "128m") else {
        return skipped("a guest that fills the disk", "nothing can be mounted here");
    };
    assert!(served.reply(served.send("main", "$ echo kept > notes.txt; echo done")).contains("done"));
    assert!(served.reply(served.send("main", "$ rm notes.txt; echo gone")).contains("gone"));
    let fill = "$ for n in $(seq 40); do head -c 5M /dev/zero > $n || exit 1; done; echo over";
    let told = served.reply(served.send("other", fill));
    assert!(told.contains("reserve_mib there says") && !told.contains("over"), "{told}");
    // The failed command's output was rolled back, so smaller files fill the disk and stay.
    for size in ["32M", "8M", "2M", "512K"] {
        for n in 0..4 {
            served.reply(served.send("other", &format!("$ head -c {size} /dev/zero > {size}-{n}")));
        }
    }
    assert!(served.reply(served.send("main", "$ echo here")).contains("here"), "messages are taken and answered");
    assert_eq!(served.get("/health")["status"], "ok");
    // The last run only printed something, so undo asks for the earlier one by name.
    let named = served.command("main", "/undo");
    let undone = served.command("main", named.split('`').nth(1).unwrap_or_else(|| panic!("{named}")));
    assert!(undone.contains("undone"), "{undone}");
    assert!(served.reply(served.send("main", "$ cat notes.txt")).contains("kept"));
    assert_eq!(served.terminate(), 0);
}
