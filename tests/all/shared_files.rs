//! The files that all sessions share: a task's files appear for all when it ends, with their labels, and an undo removes them.

use crate::harness::{Home, guest, wait_until};
use crate::served::{Served, ask};
use serde_json::json;
use std::fs;

fn home() -> Home {
    let home = Home::new();
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 20\n");
    home
}

#[track_caller]
fn line(home: &Home, session: &str, line: &str) -> String {
    home.kiso(&["run", "--session", session, &format!("$ {line}")]).ok().stdout.clone()
}

/// The paths of the shared files.
fn paths(home: &Home) -> Vec<String> {
    let files = home.kiso(&["--json", "files"]).ok().json_lines();
    files.iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn one_session_reads_what_another_wrote_and_an_undo_takes_it_back() {
    let home = home();
    line(&home, "a", "echo milk >> /shared/list.txt; mkdir /shared/d; echo x > /shared/d/y");
    let read = line(
        &home,
        "b",
        "cat /shared/list.txt; echo eggs >> /shared/list.txt; mv /shared/d/y /shared/z; rmdir /shared/d",
    );
    assert!(read.contains("milk"), "{read}");
    assert_eq!(paths(&home), ["list.txt", "z"]);
    home.kiso(&["files", "get", "list.txt"]).ok().prints(&["milk\neggs"]);
    home.kiso(&["files", "get", "/shared/z"]).ok().prints(&["x"]);

    home.kiso(&["undo", "--session", "b"]).ok().prints(&["restore /shared/list.txt", "create  /shared/d/y"]);
    assert_eq!(paths(&home), ["d", "d/y", "list.txt"]);
    home.kiso(&["undo", "--redo", "--session", "b"]).ok();
    assert_eq!(paths(&home), ["list.txt", "z"]);
    // A file that another session has changed since is not undone silently.
    home.kiso(&["undo", "--session", "a"]).exit(1).says(&["/shared/list.txt was changed since"]);
    home.kiso(&["undo", "--session", "b"]).ok();
    home.kiso(&["undo", "--session", "a"]).ok();
    assert_eq!(paths(&home), Vec::<String>::new());
    home.kiso(&["undo", "--redo", "--session", "b"]).exit(1).says(&["/shared/list.txt was changed since"]);
}

#[test]
fn lines_of_the_shell_and_the_file_tools_reach_them() {
    let home = home();
    home.kiso(&["shell", "-c", "echo by hand > /shared/h; cat /shared/h"]).ok().prints(&["by hand"]);
    assert_eq!(paths(&home), ["h"]);
    assert!(line(&home, "a", "data summary /shared/h 2>&1 || cat /shared/h").contains("by hand"));
}

#[test]
fn a_file_that_two_sessions_change_at_once_is_kept_twice() {
    let home = home();
    let slow = "echo a > /shared/x.txt; touch /work/begun; until [ -e /shared/go ]; do sleep 0.02; done";
    let ran = std::thread::scope(|scope| {
        let first = scope.spawn(|| home.kiso(&["run", "--session", "a", &format!("$ {slow}")]));
        wait_until("the first line works", || home.work("a").join("begun").exists());
        // Nobody sees the file before its task has ended.
        assert_eq!(paths(&home), Vec::<String>::new());
        line(&home, "b", "echo b > /shared/x.txt; touch /shared/go");
        first.join().unwrap()
    });
    ran.prints(&["/shared/x.txt", "another conversation changed it meanwhile", "x (a).txt"]);
    assert_eq!(paths(&home), ["go", "x (a).txt", "x.txt"]);
    home.kiso(&["files", "get", "x.txt"]).ok().prints(&["b"]);
    home.kiso(&["files", "get", "x (a).txt"]).ok().prints(&["a"]);
}

#[test]
fn what_is_cut_off_leaves_nothing_there() {
    let home = home();
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 1\n");
    home.kiso(&["run", "$ echo v > /shared/limit; while :; do :; done"]);
    assert_eq!(paths(&home), Vec::<String>::new());

    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 60\n");
    let mut running = home.command(&["run", "$ echo v >> /shared/killed; touch /work/begun; sleep 3"]).spawn().unwrap();
    wait_until("the line works", || home.work("default").join("begun").exists());
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(paths(&home), Vec::<String>::new());
    // A repeated task starts without the earlier files.
    line(&home, "default", "true");
    let again = home.kiso(&["files", "get", "killed"]);
    assert!(again.stdout == "v\n" || again.stderr.contains("no shared file"), "{again:?}");
}

#[test]
fn files_come_in_and_go_out_by_hand() {
    let home = home();
    let report = home.dir.path().join("report.txt");
    fs::write(&report, "figures\n").unwrap();
    let report = report.to_str().unwrap();
    home.kiso(&["files"]).ok().says(&["no shared files yet"]);
    home.kiso(&["files", "add", report, "--to", "work/2026"]).ok().prints(&["added /shared/work/2026/report.txt"]);
    home.kiso(&["files", "add", report, "--to", "/shared/work/2026"]).exit(2).says(&["--replace"]);
    home.kiso(&["files", "add", report, "--to", "work/2026/report.txt"]).exit(2).says(&["in the place of one"]);
    home.kiso(&["files", "add", report, "--to", "../x"]).exit(2).says(&["a path below /shared"]);
    assert!(line(&home, "a", "cat /shared/work/2026/report.txt").contains("figures"));
    // Other people may have written a file's content.
    let listed = home.kiso(&["--json", "files", "list", "work"]).ok().json_lines();
    assert_eq!(listed.last().unwrap()["label"]["integrity"], "attached");

    let out = home.dir.path().join("out");
    fs::create_dir(&out).unwrap();
    home.kiso(&["files", "get", "work/2026/report.txt", out.to_str().unwrap()]).ok();
    assert_eq!(fs::read_to_string(out.join("report.txt")).unwrap(), "figures\n");
    home.kiso(&["files", "get", "work/2026/report.txt", out.to_str().unwrap()]).exit(1).says(&["exists"]);
    home.kiso(&["files", "get", "work"]).exit(2).says(&["is a directory"]);
    home.kiso(&["files", "get", "none"]).exit(2).says(&["no shared file is at /shared/none"]);

    home.kiso(&["files", "remove", "none", "--yes"]).exit(2);
    home.kiso(&["files", "remove", "work", "--yes"]).ok();
    assert_eq!(paths(&home), Vec::<String>::new());
    home.kiso(&["undo"]).ok();
    assert_eq!(paths(&home), ["work", "work/2026", "work/2026/report.txt"]);
}

/// The permissions of a skill cover only the files of one session.
#[test]
fn installed_skills_do_not_see_them() {
    let home = home();
    home.kiso(&["skill", "add", guest("probe").to_str().unwrap(), "--grant", "all"]).ok();
    line(&home, "a", "echo mine > /shared/x; echo here > /work/y");
    let ran = home.kiso(&["shell", "--session", "a", "-c", "probe read /work/y; probe read /shared/x"]);
    ran.exit(1).prints(&["here"]).says(&["/shared/x: "]);
    assert!(!ran.stdout.contains("mine"), "{ran:?}");
}

#[test]
fn there_is_a_limit_and_what_is_beyond_it_is_not_taken() {
    let home = home();
    home.config("model = \"reflex\"\n[engine]\nshared_mib = 1\n");
    line(&home, "a", "head -c 600000 /dev/zero > /shared/one");
    let ran = home.kiso(&["run", "--session", "a", "$ head -c 600000 /dev/zero > /shared/two"]);
    ran.exit(1).says(&["shared_mib"]);
    assert_eq!(paths(&home), ["one"]);
    line(&home, "a", "rm /shared/one; head -c 600000 /dev/zero > /shared/two");
    assert_eq!(paths(&home), ["two"]);
}

/// Files of a session with scope `chat` are not labelled as the owner's.
#[test]
fn files_of_a_chat_token_are_another_persons() {
    let home = home();
    let token = home.kiso(&["--json", "token", "add", "phone", "--scope", "chat"]).ok().json_lines();
    let token = token[0]["token"].as_str().unwrap().to_owned();
    line(&home, "mine", "echo secret > /shared/mine.txt");
    let mut served = Served::start(&home);
    served.token = Some(token.clone());
    let body =
        json!({ "session": "theirs", "text": "$ cat /shared/mine.txt; echo pay > /shared/theirs.txt" }).to_string();
    let sent = ask(&served.address, Some(&token), "POST", "/msg", Some(&body)).unwrap().expect(202);
    let reply = served.reply(sent["message"].as_i64().unwrap());
    assert!(reply.contains("secret"), "{reply}");
    drop(served);
    let files = home.kiso(&["--json", "files"]).ok().json_lines();
    let integrity = |path: &str| {
        let file = files.iter().find(|file| file["path"] == path).unwrap();
        file["label"]["integrity"].as_str().unwrap().to_owned()
    };
    assert_eq!((integrity("mine.txt").as_str(), integrity("theirs.txt").as_str()), ("user", "person"));
}
