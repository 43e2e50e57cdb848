//! Limits on the number of sessions and on all bytes together; deletion removes everything and makes room.

use crate::harness::{Home, wait_until};
use crate::served::Served;
use serde_json::json;
use std::path::Path;

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(&format!("{QUICK}{config}"));
    home
}

fn say(session: &str, text: &str) -> String {
    json!({ "session": session, "text": text }).to_string()
}

/// Creates nested directories with a path longer than the system accepts.
fn nest(at: &Path, levels: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut dir = openat(rustix::fs::CWD, at, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&dir, "deep", Mode::RWXU).unwrap();
        dir = openat(&dir, "deep", flags, Mode::empty()).unwrap();
    }
}

#[test]
fn there_are_no_more_sessions_than_may_be() {
    let home = home("[limits]\nmax_sessions = 3\n[schedule]\nmin_interval_s = 1\n");
    home.kiso(&["schedule", "add", "tick", "0 0 1 1 *", "$ echo tock"]).ok();
    let served = Served::start(&home);
    for session in ["one", "two", "three"] {
        assert!(served.reply(served.send(session, "$ echo here")).contains("here"));
    }
    // Every way to create a session is refused.
    let refused = served.request("POST", "/msg", Some(&say("four", "$ echo here")));
    refused.refuses(507, "too_many_sessions");
    assert!(refused.body.contains("limits.max_sessions"), "{refused:?}");
    served.request("PUT", "/sessions/four/files/a", Some("x")).refuses(507, "too_many_sessions");
    let call = json!({ "session": "four", "args": { "file": "none.csv" } }).to_string();
    served.request("POST", "/skills/data/call", Some(&call)).refuses(507, "too_many_sessions");
    home.kiso(&["schedule", "run", "tick"]).exit(5).says(&["there are 3 sessions already"]);
    home.kiso(&["run", "-s", "four", "$ echo here"]).exit(5).says(&["there are 3 sessions already", "session delete"]);
    assert!(!home.path().join("sessions/four").exists(), "nothing of it was made");
    // Existing sessions still work.
    assert!(served.reply(served.send("two", "$ echo again")).contains("again"));
    served.request("PUT", "/sessions/two/files/a", Some("x")).expect(201);
    home.kiso(&["session", "delete", "three", "--yes"]).ok();
    assert!(served.reply(served.send("four", "$ echo room")).contains("room"));
    served.request("POST", "/msg", Some(&say("five", "$ echo here"))).refuses(507, "too_many_sessions");
    // The configuration is reloaded without a restart.
    home.config(&format!("{QUICK}[limits]\nmax_sessions = 4\n"));
    home.kiso(&["config", "reload"]).ok();
    // The daemon reloads it a moment later.
    wait_until("room for a fifth session", || served.request("PUT", "/sessions/five/files/a", Some("x")).status == 201);
    assert!(served.reply(served.send("five", "$ echo more")).contains("more"));
}

#[test]
fn all_sessions_together_hold_no_more_than_may_be() {
    // Guests may use all but a sixteenth of it.
    let home = home("[limits]\nhome_mib = 68\n");
    let served = Served::start(&home);
    let fill = |mib: u64, name: &str| format!("$ head -c {} /dev/zero > {name}; echo filled", mib << 20);
    assert!(served.reply(served.send("one", &fill(40, "f"))).contains("filled"));
    let told = served.reply(served.send("two", &fill(40, "f")));
    assert!(told.contains("all sessions and the store together") && told.contains("home_mib"), "{told}");
    served.reply(served.send("two", "$ rm -f f"));
    // Uploads count, too, and so do the files of another process.
    served.request("PUT", "/sessions/three/files/u", Some(&"x".repeat(10 << 20))).expect(201);
    home.kiso(&["run", "-s", "four", &fill(20, "f")])
        .exit(5)
        .says(&["all sessions and the store together", "home_mib"]);
    // The files of that command were rolled back, so there is as much room as before. Then the home is filled up.
    home.kiso(&["run", "-s", "four", &fill(13, "f")]).ok();
    let refused = served.request("PUT", "/sessions/five/files/u", Some(&"x".repeat(900 << 10)));
    refused.refuses(507, "home_full");
    served.request("GET", "/status/five", None).refuses(404, "not_found");
    // Deleting makes room, a session as well as a file.
    home.kiso(&["session", "delete", "four", "--yes"]).ok();
    assert!(served.reply(served.send("one", "$ rm f; echo gone")).contains("gone"));
    assert_eq!(served.request("DELETE", "/sessions/three/files/u", None).status, 204);
    served.request("PUT", "/sessions/three/files/u", Some(&"x".repeat(900 << 10))).expect(201);
    assert!(served.reply(served.send("two", &fill(40, "f"))).contains("filled"));
    home.kiso(&["session", "delete", "two", "--yes"]).ok();
    assert!(served.reply(served.send("one", &fill(40, "f"))).contains("filled"));
}

/// Guests fill their share of `limits.home_mib`. The part that kiso itself needs is not available to them.
#[test]
fn guests_leave_room_for_messages_replies_and_undo() {
    let home = home("[limits]\nhome_mib = 64\n");
    let served = Served::start(&home);
    assert!(served.reply(served.send("default", "$ echo kept > notes.txt; echo done")).contains("done"));
    assert!(served.reply(served.send("default", "$ rm notes.txt; echo gone")).contains("gone"));
    let told = served.reply(served.send("other", "$ head -c 62M /dev/zero > f; echo over"));
    assert!(told.contains("all sessions and the store together") && told.contains("reserve_mib there says"), "{told}");
    assert!(served.reply(served.send("other", "$ head -c 58M /dev/zero > f; echo fits")).contains("fits"));
    assert!(served.reply(served.send("default", "$ echo here")).contains("here"), "messages are taken and answered");
    assert_eq!(served.get("/health")["status"], "ok");
    home.kiso(&["undo", "--yes"]).ok().prints(&["was undone"]);
    assert!(served.reply(served.send("default", "$ cat notes.txt")).contains("kept"));
}

#[test]
fn a_full_home_takes_no_message_and_can_be_emptied() {
    let home = home("");
    home.kiso(&["run", "-s", "large", &format!("$ head -c {} /dev/zero > f", 70 << 20)]).ok();
    home.config(&format!("{QUICK}[limits]\nhome_mib = 64\n"));
    home.kiso(&["run", "$ echo here"]).exit(5).says(&["storage limit reached", "home_mib"]);
    let served = Served::start(&home);
    served.request("POST", "/msg", Some(&say("main", "$ echo here"))).refuses(507, "home_full");
    home.kiso(&["session", "delete", "large", "--yes"]).ok();
    assert!(served.reply(served.send("main", "$ echo here")).contains("here"));
}

/// `--file` is subject to the quota of the session and of the home, as a task or an upload is.
#[test]
fn a_file_that_is_copied_in_needs_room_as_any_other() {
    let home = home("[limits]\nhome_mib = 72\n[engine]\nworkspace_mib = 40\n");
    let large = home.file("large.bin", "x".repeat(30 << 20));
    let small = home.file("small.bin", "x".repeat(1 << 20));
    let (large, small) = (large.to_str().unwrap(), small.to_str().unwrap());
    let copy = |session: &str, files: &[&str]| {
        let mut line = vec!["run", "-s", session];
        files.iter().for_each(|file| line.extend(["--file", file]));
        line.push("$ ls");
        home.kiso(&line)
    };
    copy("one", &[large]).ok();
    // Copying the same file again replaces it, and needs room for both until then.
    copy("one", &[small]).ok();
    let full = copy("one", &[small, home.file("other.bin", "x".repeat(20 << 20)).to_str().unwrap()]);
    full.exit(5).says(&["other.bin does not fit", "the session's workspace would hold more than its 40 MiB"]);
    assert!(!home.work("one").join("other.bin").exists(), "nothing of it was copied");
    // The limit for all sessions applies to every command that copies.
    let full = copy("two", &[large]);
    let refused = ["large.bin does not fit", "all sessions and the store together", "home_mib"];
    full.ok();
    copy("three", &[large]).exit(5).says(&refused);
    home.kiso(&["shell", "-s", "three", "--file", large, "-c", "ls"]).exit(5).says(&refused);
    assert!(!home.work("three").join("large.bin").exists());
    assert!(!home.kiso(&["session", "list"]).ok().stdout.contains("three"), "nothing was done in it");
    // Copied files count for later commands and for a daemon.
    let served = Served::start(&home);
    let told = served.reply(served.send("four", &format!("$ head -c {} /dev/zero > f", 30 << 20)));
    assert!(told.contains("all sessions and the store together"), "{told}");
    home.kiso(&["session", "delete", "two", "--yes"]).ok();
    copy("three", &[small]).ok();
}

/// Directories from an older kiso that are deeper than the longest path and the limit of open files.
#[test]
fn a_session_is_deleted_however_deep_it_is() {
    let home = home("");
    let made = home.kiso(&["run", "-s", "deep", "$ mkdir d; echo x > d/f"]);
    made.ok();
    nest(&home.work("deep").join("d"), 6_000);
    home.kiso(&["session", "delete", "deep", "--yes"]).ok().prints(&["deleted deep"]);
    let left: Vec<_> = std::fs::read_dir(home.path().join("sessions")).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| entry.file_name() == "default"), "{left:?}");
    // A new session of that name starts empty, and can be deleted.
    home.kiso(&["run", "-s", "deep", "$ ls"]).ok();
    home.kiso(&["session", "delete", "deep", "--yes"]).ok();
    home.kiso(&["doctor", "--offline"]).ok();
}

/// A crash in the middle of a task, and one in the middle of a deletion.
#[test]
fn what_crashes_leave_is_swept_and_shown_until_then() {
    let home = home("");
    home.kiso(&["run", "-s", "main", "$ echo here"]).ok();
    let sessions = home.path().join("sessions");
    let scratch = sessions.join("main/tmp/1-0");
    std::fs::create_dir_all(&scratch).unwrap();
    nest(&scratch, 3_000);
    let trash = sessions.join(".trash-1-0");
    std::fs::create_dir(&trash).unwrap();
    nest(&trash, 3_000);
    home.kiso(&["doctor", "--offline"]).ok().prints(&["leftovers", ".trash-1-0", "still to be removed"]);
    let _served = Served::start(&home);
    let left = || std::fs::read_dir(&sessions).unwrap().any(|entry| entry.unwrap().file_name() != "main");
    wait_until("nothing to be left over", || !left() && !scratch.exists());
    assert!(!home.kiso(&["doctor", "--offline"]).stdout.contains("leftovers"));
}

/// Uploads and commands that write while others delete are never refused for lack of room.
#[test]
fn deleting_while_writing_takes_no_room() {
    let home = home("");
    let served = Served::start(&home);
    served.request("PUT", "/sessions/main/files/a", Some("x")).expect(201);
    let churn = "$ for i in $(seq 150); do mkdir -p d/a/b; echo x > d/a/b/f; rm -rf d; done; echo churned";
    let message = served.send("main", churn);
    wait_until("the churn to run", || served.get("/status/main")["running"].is_string());
    let mut puts = 0;
    while served.get("/status/main")["running"].is_string() {
        let put = served.request("PUT", "/sessions/main/files/in/b?replace=true", Some("xx"));
        put.expect(201);
        puts += 1;
    }
    assert!(served.reply(message).contains("churned") && puts > 0);
}
