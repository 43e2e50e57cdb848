//! Undo: restores the workspace as it was before a run, whatever the run did, and whatever happens meanwhile.

mod killed;
pub(crate) mod random;
pub(crate) mod tree;

use self::tree::Tree;
use crate::harness::{Home, Ran};
use crate::served::{Answer, Served};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const SESSION: &str = "default";

/// A home whose session has files in its workspace.
fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(&format!("model = \"reflex\"\n{config}"));
    line(&home, "mkdir -p d; echo one > a; echo two > d/b; ln -s a link; ln d/b twin");
    home
}

#[track_caller]
fn line(home: &Home, line: &str) -> Ran {
    home.kiso(&["run", &format!("$ {line}")])
}

fn tree(home: &Home) -> Tree {
    Tree::read(&home.work(SESSION))
}

#[test]
fn a_run_is_undone_and_redone() {
    let home = home("");
    let before = tree(&home);
    line(&home, "echo more >> a; sed -i s/two/TWO/ d/b; rm link; mv d e; mkdir -p x/y; echo new > x/y/z; ln a hard")
        .ok();
    let after = tree(&home);
    assert_ne!(before, after);
    home.kiso(&["undo", "--dry-run"]).ok().prints(&["restore a", "delete  x/y/z", "create  link", "would be undone"]);
    assert_eq!(tree(&home), after, "a dry run changes nothing");
    home.kiso(&["undo"]).ok().prints(&["was undone"]);
    before.assert_same(&tree(&home));
    home.kiso(&["undo", "--redo"]).ok().prints(&["was redone"]);
    after.assert_same(&tree(&home));
    home.kiso(&["undo"]).ok();
    before.assert_same(&tree(&home));
    // The previous run is the next to undo.
    home.kiso(&["undo"]).ok();
    assert_eq!(tree(&home).names(), ["pub"]);
    home.kiso(&["undo"]).exit(2).says(&["there is nothing to undo", "kiso undo --list"]);
    let listed = home.kiso(&["undo", "--list", "--json"]);
    let listed = listed.json_lines();
    assert_eq!(listed.iter().map(|line| line["kind"].as_str().unwrap()).collect::<Vec<_>>(), ["redo", "redo"]);
    assert!(home.kiso(&["doctor", "--offline"]).stdout.contains("to undo runs"));
}

/// After a run without changes, undo names the earlier run instead of undoing it without a confirmation.
#[test]
fn an_earlier_run_is_not_undone_unasked() {
    let home = Home::new();
    home.kiso(&["run", "$ echo one > a"]).ok();
    let first = home.kiso(&["undo", "--list", "--json"]).json_lines()[0]["run"].as_str().unwrap().to_owned();
    home.kiso(&["run", "$ cat a"]).ok();
    let asked = ["changed no files", "Undo run", first.as_str(), "pass --yes"];
    home.kiso(&["undo"]).exit(2).says(&asked);
    home.kiso(&["run", "/undo"]).ok().prints(&["Nothing was changed", &format!("`/undo {first}`")]);
    assert_eq!(home.work("default").join("a").metadata().unwrap().len(), 4, "it is still there");
    home.kiso(&["undo", "--yes"]).ok().prints(&["delete  a", "was undone"]);
    // A named run needs no confirmation, and a run that was undone does not count as one without changes.
    home.kiso(&["undo", "--redo"]).ok();
    home.kiso(&["undo", &first]).ok().prints(&["was undone"]);
    home.kiso(&["run", "$ echo two > b"]).ok();
    home.kiso(&["run", "$ echo three > c"]).ok();
    home.kiso(&["undo"]).ok().prints(&["delete  c"]);
    home.kiso(&["undo"]).ok().prints(&["delete  b"]);
}

#[test]
fn a_run_that_changes_nothing_leaves_nothing_to_undo() {
    let home = home("");
    let kept = || std::fs::read_dir(home.path().join("sessions/default/undo")).unwrap().count();
    let before = kept();
    line(&home, "cat a; grep one a; ls -R; echo x > /tmp/y; rm /tmp/y; echo").ok();
    assert_eq!(kept(), before);
}

#[test]
fn one_of_the_tasks_of_a_run_is_where_it_goes_back_to() {
    let home = home("");
    let plan = json!({ "goal": "three", "tasks": [
        { "type": "exec", "detail": "echo 1 > one" },
        { "type": "exec", "detail": "echo 2 > two; echo 2 >> one" },
        { "type": "exec", "detail": "echo 3 > three; rm one" },
        { "type": "msg", "detail": "say it", "notify": true },
    ] });
    let routing = json!({ "effort": "high", "categories": [], "tool_need": 1, "goal": "three", "durable": false });
    let replies = [
        ("router", json!({ "text": routing.to_string() })),
        ("planner", json!({ "text": plan.to_string() })),
        ("worker", json!({ "text": "Done." })),
    ];
    let server = crate::crash::serve(&home, &replies, "");
    home.kiso(&["run", "Make three files, please, each with its number in it."]).ok();
    server.finish();
    home.config("model = \"reflex\"");
    let read = |name: &str| std::fs::read_to_string(home.work(SESSION).join(name)).ok();
    home.kiso(&["undo", "last", "--task", "3"]).ok().prints(&["create  one", "delete  three"]);
    assert_eq!((read("one").as_deref(), read("two").as_deref(), read("three")), (Some("1\n2\n"), Some("2\n"), None));
    home.kiso(&["undo", "last", "--task", "2"]).ok();
    assert_eq!((read("one").as_deref(), read("two")), (Some("1\n"), None));
    home.kiso(&["undo", "--redo", "last"]).ok();
    assert_eq!((read("one"), read("two").as_deref(), read("three").as_deref()), (None, Some("2\n"), Some("3\n")));
    // They were redone together.
    home.kiso(&["undo", "last", "--task", "3"]).exit(2).says(&["were redone together"]);
    home.kiso(&["undo"]).ok();
    assert_eq!((read("one"), read("two")), (None, None));
}

#[test]
fn what_somebody_changed_since_is_not_overwritten_unasked() {
    let home = home("");
    line(&home, "echo changed > a; mkdir new; echo x > new/x; rm twin").ok();
    let work = home.work(SESSION);
    std::fs::write(work.join("a"), "by hand\n").unwrap();
    std::fs::write(work.join("new/mine"), "by hand\n").unwrap();
    std::fs::write(work.join("twin"), "another\n").unwrap();
    let by_hand = tree(&home);
    let refused = home.kiso(&["undo"]);
    refused.exit(1).says(&["a was changed since", "new/mine was added since", "twin was made since", "--force"]);
    by_hand.assert_same(&tree(&home));
    home.kiso(&["undo", "--dry-run"]).exit(1).prints(&["but     a was changed since"]);
    let forced = home.kiso(&["undo", "--force"]);
    forced.ok().says(&["new stays, because other files are in it"]);
    let read = |name: &str| std::fs::read_to_string(work.join(name)).unwrap();
    assert_eq!((read("a"), read("twin"), read("new/mine")), ("one\n".into(), "two\n".into(), "by hand\n".into()));
    assert!(!work.join("new/x").exists());
    // Nothing that existed is lost.
    home.kiso(&["undo", "--redo"]).ok();
    assert_eq!((read("a"), read("twin"), read("new/x")), ("by hand\n".into(), "another\n".into(), "x\n".into()));
}

#[test]
fn a_later_run_that_changed_the_same_file_stands_in_the_way() {
    let home = home("");
    line(&home, "echo first > a; echo first > only").ok();
    let first = home.kiso(&["undo", "--list", "--json"]).json_lines()[0]["run"].as_str().unwrap().to_owned();
    line(&home, "echo second > a").ok();
    let both = tree(&home);
    home.kiso(&["undo", &first]).exit(1).says(&["a was changed since"]);
    both.assert_same(&tree(&home));
    // Undoing in order works, and changes of others to other files do not matter.
    home.kiso(&["undo"]).ok();
    line(&home, "echo elsewhere > other").ok();
    home.kiso(&["undo", &first]).ok();
    assert_eq!(tree(&home).names(), ["a", "d", "d/b", "link", "other", "pub", "twin"]);
}

#[test]
fn what_is_too_large_to_keep_is_told_before_it_is_changed() {
    let home = home("[undo]\nmax_mib = 1\n");
    let big = home.work(SESSION).join("big");
    std::fs::write(&big, vec![7; 3 << 20]).unwrap();
    // Only the length has to be saved.
    line(&home, "echo end >> big; truncate -s 4M big2").ok();
    home.kiso(&["undo"]).ok();
    assert_eq!(std::fs::metadata(&big).unwrap().len(), 3 << 20);
    let ran = line(&home, "echo gone > a; rm big; echo after");
    ran.ok();
    assert!(!big.exists());
    let shown = ran.stdout.clone() + &ran.stderr + &home.kiso(&["trace", "last"]).stdout;
    assert!(
        shown.contains("the change of big cannot be undone: 3 MiB do not fit into the 1 MiB of [undo] max_mib"),
        "{shown}"
    );
    home.kiso(&["undo"]).exit(1).says(&["big was not kept"]);
    assert_eq!(std::fs::read_to_string(home.work(SESSION).join("a")).unwrap(), "gone\n");
    home.kiso(&["undo", "--force"]).ok();
    assert_eq!(std::fs::read_to_string(home.work(SESSION).join("a")).unwrap(), "one\n");

    home.config("model = \"reflex\"\n[undo]\nmax_mib = 1\ntoo_large = \"refuse\"\n");
    std::fs::write(&big, vec![7; 3 << 20]).unwrap();
    let before = tree(&home);
    let refused = line(&home, "echo gone > a; rm big; echo after > after");
    assert_ne!(refused.code, 0);
    assert!((refused.stdout.clone() + &refused.stderr).contains("could not be undone"), "{refused:?}");
    before.assert_same(&tree(&home));

    home.config("model = \"reflex\"\n[undo]\nmax_mib = 0\n");
    line(&home, "rm big; echo x > a").ok();
    let listed = home.kiso(&["undo", "--list", "--json"]).json_lines().len();
    line(&home, "echo y > a").ok();
    assert_eq!(home.kiso(&["undo", "--list", "--json"]).json_lines().len(), listed, "nothing more is kept");
}

/// If there is not enough room, the oldest runs are removed completely.
#[test]
fn the_oldest_run_makes_room_for_the_newest() {
    let home = home("[undo]\nmax_mib = 1\n");
    for n in 0..4 {
        line(&home, &format!("head -c 400000 /dev/zero > f{n}")).ok();
    }
    for n in 0..4 {
        line(&home, &format!("rm f{n}")).ok();
    }
    let listed = home.kiso(&["undo", "--list", "--json"]).json_lines();
    let bytes: u64 = listed.iter().map(|line| line["bytes"].as_u64().unwrap()).sum();
    assert_eq!(bytes, 800_000, "{listed:#?}");
    home.kiso(&["undo"]).ok().prints(&["create  f3"]);
    home.kiso(&["undo"]).ok().prints(&["create  f2"]);
}

#[test]
fn what_a_limit_cut_off_leaves_nothing_behind() {
    let home = home("");
    let before = tree(&home);
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 5\n");
    let cut = line(&home, "echo half > a; rm -r d; echo new > new; while :; do :; done");
    assert_ne!(cut.code, 0);
    assert!((cut.stdout.clone() + &cut.stderr).contains("by the whole command line were undone"), "{cut:?}");
    before.assert_same(&tree(&home));
    home.config("model = \"reflex\"\n");
    // The next line is not affected.
    line(&home, "echo whole > a").ok();
    assert_eq!(std::fs::read_to_string(home.work(SESSION).join("a")).unwrap(), "whole\n");
}

#[test]
fn names_of_any_bytes_and_deep_trees_come_back() {
    let home = home("");
    let work = home.work(SESSION);
    let odd = work.join("odd").join(OsStr::from_bytes(b"\xff\xfe name \n"));
    std::fs::create_dir_all(&odd).unwrap();
    std::fs::write(odd.join(OsStr::from_bytes(b"f\xc3")), "odd").unwrap();
    let deep = work.join(vec!["n"; 60].join("/"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("bottom"), "deep").unwrap();
    let before = tree(&home);
    line(
        &home,
        "mv odd elsewhere; mv n m; echo x > m/n/n/new; mv elsewhere /tmp/gone; rm -r m; echo 'ä\"\\' > 'ä\"\\'",
    )
    .ok();
    assert!(!tree(&home).names().iter().any(|name| name.starts_with('n') || name.starts_with("odd")));
    let after = tree(&home);
    home.kiso(&["undo"]).ok();
    before.assert_same(&tree(&home));
    home.kiso(&["undo", "--redo"]).ok();
    after.assert_same(&tree(&home));
}

#[test]
fn ten_thousand_files_come_back() {
    let home = home("[engine]\nmax_files = 30000\n[exec]\ntimeout_s = 600\n");
    let many = home.work(SESSION).join("many");
    std::fs::create_dir(&many).unwrap();
    for n in 0..10_000 {
        std::fs::write(many.join(format!("f{n}")), n.to_string()).unwrap();
    }
    let before = tree(&home);
    line(&home, "rm -rf many").ok();
    assert!(!many.exists());
    home.kiso(&["undo"]).ok().prints(&["10001 paths"]);
    before.assert_same(&tree(&home));
    home.kiso(&["undo", "--redo"]).ok();
    assert!(!many.exists());
}

/// A guest's links are not followed, neither when files are saved nor when they are restored.
#[test]
fn a_link_in_a_files_place_is_not_followed() {
    let home = home("");
    let secret = home.file("secret", "mine\n");
    line(&home, "echo changed > a; echo x > d/b").ok();
    let work = home.work(SESSION);
    std::fs::remove_file(work.join("a")).unwrap();
    std::os::unix::fs::symlink(&secret, work.join("a")).unwrap();
    std::fs::remove_dir_all(work.join("d")).unwrap();
    std::os::unix::fs::symlink(secret.parent().unwrap(), work.join("d")).unwrap();
    home.kiso(&["undo"]).exit(1);
    home.kiso(&["undo", "--force"]);
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "mine\n");
    assert!(!secret.parent().unwrap().join("b").exists());
}

#[test]
fn a_writable_mount_is_left_as_it_is_and_said_to_be_outside() {
    let home = home("");
    let outside = home.file("mount/f", "before\n");
    let dir = outside.parent().unwrap().display().to_string();
    home.config(&format!("model = \"reflex\"\n[exec.mounts.\"/out\"]\npath = {dir:?}\nwrite = true\n"));
    line(&home, "echo after > /out/f; echo new > a").ok();
    home.kiso(&["undo"]).ok();
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "after\n");
    assert_eq!(std::fs::read_to_string(home.work(SESSION).join("a")).unwrap(), "one\n");
}

#[test]
fn a_command_in_the_chat_undoes_and_redoes() {
    let home = home("");
    let before = tree(&home);
    line(&home, "echo new > a; echo x > `echo x`").ok();
    let after = tree(&home);
    home.kiso(&["run", "/undo"]).ok().prints(&["was undone", "restore `a`", "delete `x`", "`/redo` takes this back"]);
    before.assert_same(&tree(&home));
    std::fs::write(home.work(SESSION).join("a"), "by hand").unwrap();
    home.kiso(&["run", "/redo"]).ok().prints(&["Nothing was changed", "a was changed since", "`/redo force`"]);
    home.kiso(&["run", "/redo force"]).ok().prints(&["was redone"]);
    assert_eq!(tree(&home).names(), after.names());
    home.kiso(&["run", "/undo nosuchrun"]).ok().prints(&["no run"]);
    home.kiso(&["run", "/undo a b"]).ok().prints(&["/undo takes one run"]);
}

#[test]
fn programs_undo_over_http_unless_a_run_is_at_work() {
    let home = home("");
    let before = tree(&home);
    let served = Served::start(&home);
    served.reply(served.send(SESSION, "$ echo new > a; rm -r d"));
    let run = newest(&served);
    let listed = served.get(&format!("/sessions/{SESSION}/undo"));
    assert_eq!((&listed["items"][0]["kind"], &listed["items"][0]["run"]), (&json!("undo"), &json!(run)));
    assert_eq!(listed["items"][0]["tasks"], json!([1]));
    let plan = served.get(&format!("/runs/{run}/undo"));
    assert_eq!(plan["changes"][0], json!({ "path": "a", "change": "restore" }));
    served.request("GET", &format!("/runs/{run}/undo?task=0"), None).expect(400);
    post(&served, &format!("/runs/{run}/undo"), &json!({ "task": 0 })).expect(400);
    let undone = post(&served, &format!("/runs/{run}/undo"), &json!({})).expect(200);
    assert_eq!(undone["changes"].as_array().unwrap().len(), 3);
    before.assert_same(&tree(&home));
    post(&served, &format!("/runs/{run}/undo"), &json!({})).expect(404);
    post(&served, "/runs/nosuchrun/undo", &json!({})).expect(404);
    std::fs::write(home.work(SESSION).join("a"), "by hand").unwrap();
    let refused = post(&served, &format!("/runs/{run}/redo"), &json!({})).expect(409);
    assert_eq!(refused["error"]["code"], "changed_since");
    post(&served, &format!("/runs/{run}/redo"), &json!({ "force": true })).expect(200);
    assert!(!home.work(SESSION).join("d").exists());
    // While a run works in the session, nothing is undone.
    let lock = std::fs::File::open(home.path().join("sessions/default/lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let busy = post(&served, &format!("/runs/{run}/undo"), &json!({ "force": true })).expect(409);
    assert_eq!(busy["error"]["code"], "at_work");
    home.kiso(&["undo"]).exit(1).says(&["a run is working in the session"]);
    // Undo waits for a run whose reply was just sent.
    let undone = std::thread::scope(|scope| {
        let asked = scope.spawn(|| post(&served, &format!("/runs/{run}/undo"), &json!({ "force": true })));
        served.get("/health");
        drop(lock);
        asked.join().expect("it is answered")
    });
    undone.expect(200);
    home.kiso(&["session", "delete", SESSION, "--yes"]).ok();
    assert!(!home.path().join("sessions/default").exists());
}

fn post(served: &Served, path: &str, body: &Value) -> Answer {
    served.request("POST", path, Some(&body.to_string()))
}

fn newest(served: &Served) -> String {
    let runs: Value = served.get(&format!("/runs?session={SESSION}&limit=1"));
    runs["items"][0]["id"].as_str().unwrap().to_owned()
}
