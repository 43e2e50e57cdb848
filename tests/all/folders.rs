//! A person's folder, opened in a session: it changes only when its user accepts the difference.

mod difference;

use crate::chat::piped;
use crate::harness::{Home, Ran};
use crate::served::Served;
use crate::undo::random::Random;
use crate::undo::tree::Tree;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Desk {
    home: Home,
    folder: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let home = Home::new();
        home.config("model = \"reflex\"\n");
        let folder = home.dir.path().join("desk");
        fs::create_dir_all(folder.join("sub/deep")).unwrap();
        fs::write(folder.join("a.txt"), "one\ntwo\n").unwrap();
        fs::write(folder.join("sub/b.txt"), "b\n").unwrap();
        fs::write(folder.join("sub/deep/c.txt"), "c\n").unwrap();
        std::os::unix::fs::symlink("sub/b.txt", folder.join("link")).unwrap();
        Self { home, folder }
    }

    /// Runs a command line in the folder.
    #[track_caller]
    fn line(&self, line: &str) -> Ran {
        self.home.kiso(&["run", "--dir", self.folder.to_str().unwrap(), &format!("$ {line}")])
    }

    fn tree(&self) -> Tree {
        Tree::read(&self.folder)
    }

    fn changes(&self) -> Vec<Value> {
        self.home.kiso(&["--json", "diff"]).json_lines()
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.folder.join(path)).unwrap()
    }
}

#[test]
fn a_folder_changes_when_its_difference_is_accepted_and_is_put_back_by_undo() {
    let desk = Desk::new();
    let before = desk.tree();
    let ran = desk.line("pwd; cat a.txt link; sed -i s/one/ONE/ a.txt; rm sub/b.txt; mkdir new; echo n > new/f; mv sub/deep deeper; cat deeper/c.txt a.txt");
    ran.ok().prints(&["/project", "one", "b\n", "c\n", "ONE"]);
    ran.says(&["waiting", "kiso diff"]);
    before.assert_same(&desk.tree());

    // Other people may have written the folder's files.
    let trace = desk.home.kiso(&["--json", "trace", "last"]).ok().stdout.clone();
    assert!(trace.contains(r#""integrity":"attached""#), "{trace}");
    let shown = desk.home.kiso(&["diff", "--patch"]);
    shown.ok().prints(&[
        "/project",
        "M  a.txt",
        "-one",
        "+ONE",
        "A  new/",
        "A  new/f",
        "D  sub/b.txt",
        "R  sub/deep → deeper/",
    ]);
    let kinds: Vec<_> = desk.changes().iter().map(|change| change["change"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["changed", "moved", "added", "added", "deleted"]);

    desk.home.kiso(&["diff", "--accept"]).ok().says(&["5 changes accepted", "kiso undo"]);
    assert_eq!(desk.read("a.txt"), "ONE\ntwo\n");
    assert_eq!(desk.read("deeper/c.txt"), "c\n");
    assert!(!desk.folder.join("sub/b.txt").exists() && !desk.folder.join("sub/deep").exists());
    assert!(desk.changes().is_empty());
    let after = desk.tree();

    desk.home.kiso(&["undo"]).ok().prints(&["5 changes", "undone"]);
    before.assert_same(&desk.tree());
    desk.home.kiso(&["undo", "--redo"]).ok().prints(&["redone"]);
    after.assert_same(&desk.tree());
    // Work continues on top of the accepted state.
    desk.line("echo three >> a.txt; cat a.txt").ok().prints(&["ONE\ntwo\nthree"]);
    desk.home.kiso(&["diff", "--discard"]).ok().says(&["1 change discarded"]);
    after.assert_same(&desk.tree());
    desk.home.kiso(&["diff", "--close"]).ok().says(&["is closed"]);
    desk.home.kiso(&["run", "$ pwd; ls /project"]).prints(&["/work"]);
    desk.home.kiso(&["diff"]).exit(2).says(&["no folder open", "--dir"]);
}

#[test]
fn a_run_in_a_folder_is_undone_before_it_was_accepted() {
    let desk = Desk::new();
    let before = desk.tree();
    desk.line("echo x >> a.txt; rm -r sub; mkdir sub; echo y > sub/y").ok();
    let first = desk.changes().len();
    desk.line("mv a.txt z.txt; rm link").ok();
    assert!(desk.changes().len() > first);
    desk.home.kiso(&["undo", "--dry-run"]).ok().prints(&["/project/", "would be undone"]);
    desk.home.kiso(&["undo"]).ok().prints(&["was undone"]);
    assert_eq!(desk.changes().len(), first);
    desk.home.kiso(&["undo"]).ok();
    assert!(desk.changes().is_empty(), "{:?}", desk.changes());
    desk.home.kiso(&["shell", "-c", "cat sub/deep/c.txt link a.txt"]).ok().prints(&["c\nb\none\ntwo"]);
    before.assert_same(&desk.tree());
}

#[test]
fn undo_goes_back_through_runs_and_acceptances_in_their_order() {
    let desk = Desk::new();
    let original = desk.tree();
    let undo = || desk.home.kiso(&["undo"]);
    desk.line("echo first > new; sed -i s/one/ONE/ a.txt").ok();
    desk.home.kiso(&["diff", "--accept"]).ok();
    let first = desk.tree();
    desk.line("echo second >> new; rm sub/b.txt").ok();
    desk.home.kiso(&["diff", "--accept"]).ok();
    let second = desk.tree();

    undo().ok().prints(&["2 changes", "undone"]).says(&["wait again", "kiso undo --redo"]);
    first.assert_same(&desk.tree());
    assert_eq!(desk.changes().len(), 2);
    undo().ok().prints(&["was undone"]);
    assert!(desk.changes().is_empty());
    undo().ok().prints(&["2 changes", "undone"]).says(&["wait again"]);
    original.assert_same(&desk.tree());
    assert_eq!(desk.changes().len(), 2);
    undo().ok().prints(&["was undone"]);
    assert!(desk.changes().is_empty());
    undo().exit(2).says(&["nothing to undo"]);

    let redo = || desk.home.kiso(&["undo", "--redo"]);
    redo().ok().prints(&["was redone"]);
    assert_eq!(desk.changes().len(), 2);
    redo().ok().prints(&["2 changes", "redone"]);
    first.assert_same(&desk.tree());
    redo().ok().prints(&["was redone"]);
    redo().ok().prints(&["2 changes", "redone"]);
    second.assert_same(&desk.tree());
    assert!(desk.changes().is_empty());

    // Later changes are not accepted with it.
    undo().ok();
    desk.line("echo other > other").ok();
    redo().exit(1).says(&["other changes wait in the folder"]);
    assert!(!desk.folder.join("other").exists());
}

#[test]
fn a_run_whose_changes_were_accepted_in_part_says_which_command_comes_first() {
    let desk = Desk::new();
    let before = desk.tree();
    desk.line("echo x >> a.txt; echo new > new").ok();
    desk.home.kiso(&["diff", "--accept", "a.txt"]).ok();
    let refused = desk.home.kiso(&["undo", "last"]);
    refused
        .exit(1)
        .says(&["changes to /project were accepted after this run; undo that acceptance first: `kiso undo`"]);
    desk.home.kiso(&["undo"]).ok().says(&["`kiso undo --redo` accepts them again"]);
    before.assert_same(&desk.tree());
    desk.home.kiso(&["undo"]).exit(1).says(&["`kiso undo --redo` accepts them again, and `kiso diff --discard` drops"]);
    desk.home.kiso(&["diff", "--discard"]).ok().says(&["1 change discarded"]);
    desk.home.kiso(&["undo", "--redo"]).ok();
    assert_eq!(desk.read("a.txt"), "one\ntwo\nx\n");
}

#[test]
fn the_chat_says_what_waits_in_the_folder_after_a_run() {
    let desk = Desk::new();
    let lines = "$ echo x > new; rm sub/b.txt\n$ cat new\n$ rm a.txt\n";
    let ran = piped(&desk.home, &["chat", "--dir", desk.folder.to_str().unwrap()], lines);
    let said: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("/diff accept applies")).collect();
    // One message for each number of changes.
    assert_eq!(said.len(), 2, "{ran:?}");
    assert!(said[0].contains("2 changes to ") && said[0].contains("desk wait: /diff shows them"), "{ran:?}");
    assert!(said[1].contains("3 changes to "), "{ran:?}");
    assert!(!desk.folder.join("new").exists());
    piped(&desk.home, &["chat"], "/diff accept\n").ok();
    assert_eq!(desk.read("new"), "x\n");
}

/// Losses that users of other agents have reported: each is a run that causes exactly that.
#[test]
fn losses_that_others_had_are_none_before_and_after_accepting() {
    let many = |folder: &Path, name: &str, count: usize| {
        fs::create_dir_all(folder.join(name)).unwrap();
        for number in 0..count {
            fs::write(folder.join(name).join(format!("{number}.pdf")), format!("{name} {number}")).unwrap();
        }
    };
    for (line, lost) in [
        ("rm -rf /project/* $UNSET/*", 900),
        ("mkdir sorted; for d in photos papers; do mv $d/*.pdf sorted/; done; rm -r sorted", 800),
        ("for f in papers/*.pdf; do echo migrated > $f; done; rm -r photos", 800),
        ("find . -name '*.pdf' -delete; find . -type d -empty -delete", 800),
    ] {
        let desk = Desk::new();
        many(&desk.folder, "photos", 400);
        many(&desk.folder, "papers", 400);
        many(&desk.folder, "other", 100);
        let before = desk.tree();
        desk.line(line);
        before.assert_same(&desk.tree());
        let shown = desk.home.kiso(&["diff"]);
        assert!(shown.ok().stdout.contains("D  ") || shown.stdout.contains("M  "), "{line}: {shown:?}");
        // Deletions of many files are not applied without a review.
        desk.home.kiso(&["run", "--apply", "$ true"]).ok().says(&["waiting"]);
        assert!(desk.folder.join("photos/0.pdf").exists(), "{line}");
        desk.home.kiso(&["diff", "--accept"]).ok();
        let kept = desk.tree().names().len();
        assert!(kept + lost < 2_000, "{line}");
        desk.home.kiso(&["undo"]).ok();
        // A change applied without a review is the earlier acceptance, so undo reverts it.
        desk.home.kiso(&["undo"]);
        before.assert_same(&desk.tree());
    }
}

#[test]
fn accepting_that_is_killed_at_any_moment_is_complete_or_leaves_everything() {
    let desk = Desk::new();
    for number in 0..300 {
        fs::write(desk.folder.join(format!("sub/{number}")), number.to_string()).unwrap();
    }
    desk.line(
        "for f in sub/*; do [ -f $f ] && echo changed > $f; done; rm -r sub/deep; mv sub moved; mkdir x; seq 9 > x/y",
    )
    .ok();
    let before = desk.tree();
    let mut random = Random::seeded();
    let mut ends = [0, 0];
    for _ in 0..12 {
        let mut accepting = Command::new(crate::harness::KISO)
            .args(["diff", "--accept"])
            .env("KISO_HOME", desk.home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20 + random.below(300)));
        let _ = accepting.kill();
        let _ = accepting.wait();
        // The next command completes it.
        let changes = desk.changes();
        let is_complete = changes.is_empty();
        ends[usize::from(is_complete)] += 1;
        if is_complete {
            assert_eq!(desk.read("moved/7"), "changed\n");
            desk.home.kiso(&["undo"]).ok();
            before.assert_same(&desk.tree());
            desk.home.kiso(&["undo", "--redo"]).ok();
            break;
        }
        before.assert_same(&desk.tree());
    }
    println!("left {} times, complete {} times", ends[0], ends[1]);
    if ends[1] == 0 {
        desk.home.kiso(&["diff", "--accept"]).ok();
    }
    assert_eq!(desk.read("moved/7"), "changed\n");
}

#[test]
fn changes_are_accepted_file_by_file_and_a_changed_folder_is_never_overwritten() {
    let desk = Desk::new();
    desk.line("echo ours > a.txt; echo ours > sub/b.txt; echo ours > new.txt").ok();
    fs::write(desk.folder.join("a.txt"), "the user's own words\n").unwrap();
    fs::write(desk.folder.join("new.txt"), "the user's own\n").unwrap();
    let refused = desk.home.kiso(&["diff", "--accept"]);
    refused.exit(1).says(&["a.txt was changed in the folder since", "new.txt was made in the folder since"]);
    assert_eq!(desk.read("sub/b.txt"), "b\n");
    desk.home.kiso(&["diff"]).exit(1).prints(&["CANNOT BE ACCEPTED"]);
    desk.home.kiso(&["diff", "--accept", "sub/b.txt"]).ok().says(&["1 change accepted"]);
    assert_eq!(desk.read("sub/b.txt"), "ours\n");
    assert_eq!(desk.read("a.txt"), "the user's own words\n");
    desk.home.kiso(&["diff", "--discard", "/project/a.txt", "new.txt"]).ok().says(&["2 changes discarded"]);
    assert!(desk.changes().is_empty());
    desk.home.kiso(&["diff", "--accept", "nothing"]).exit(2).says(&["no change is at nothing"]);
}

#[test]
fn credentials_in_a_folder_are_shown_by_name_only() {
    let desk = Desk::new();
    fs::write(desk.folder.join(".env"), "TOKEN=very-secret-1\n").unwrap();
    fs::create_dir(desk.folder.join(".ssh")).unwrap();
    fs::write(desk.folder.join(".ssh/config"), "very-secret-2\n").unwrap();
    fs::write(desk.folder.join("server.key"), "-----BEGIN PRIVATE KEY-----\nvery-secret-3\n").unwrap();
    std::os::unix::fs::symlink(".env", desk.folder.join("other-name")).unwrap();
    let line = "ls -a; cat .env .ssh/config server.key other-name; cp .env copy; grep -r secret . ; cat < .env; mv .env moved; cat moved; ln server.key twin; cat twin";
    let ran = desk.line(line);
    assert!(!format!("{ran:?}").contains("very-secret"), "{ran:?}");
    ran.prints(&[".env", "server.key", "--with-secrets"]);
    // Under another name the content would be shown, also after the move was applied.
    desk.line("mv .env plain; mv .ssh keys; true").ok();
    assert!(desk.changes().iter().all(|change| change["change"] != "moved"), "{:?}", desk.changes());
    desk.line("rm .env").ok();
    assert!(!desk.home.kiso(&["diff", "--patch"]).stdout.contains("very-secret"));
    desk.home.kiso(&["run", "--apply", "$ true"]).ok();
    assert!(desk.folder.join(".env").exists(), "a deletion of credentials is looked at");
    let path = desk.folder.to_str().unwrap();
    desk.home
        .kiso(&["shell", "--session", "other", "--dir", path, "--with-secrets", "-c", "cat .env"])
        .ok()
        .prints(&["very-secret-1"]);
}

#[test]
fn folders_that_are_never_opened_and_paths_that_are_kisos_own() {
    let desk = Desk::new();
    let open = |args: &[&str]| desk.home.kiso(&[&["shell"], args, &["-c", "true"]].concat());
    let keys = desk.home.dir.path().join(".ssh");
    fs::create_dir(&keys).unwrap();
    let (keys, folder) = (keys.to_str().unwrap(), desk.folder.to_str().unwrap());
    open(&["--dir", "/"]).exit(2).says(&["the whole machine"]);
    open(&["--dir", desk.home.path().to_str().unwrap(), "--force"]).exit(2).says(&["kiso's own home"]);
    open(&["--dir", keys]).exit(2).says(&["holds keys", "--force"]);
    open(&["--dir", keys, "--force"]).ok();
    open(&["--dir", "/nowhere"]).exit(2).says(&["is not a directory"]);
    for at in ["/work", "/tmp/x", "/usr", "project", "/a/../b"] {
        open(&["--session", "x", "--dir", folder, "--at", at]).exit(2).says(&["cannot be the path of a folder"]);
    }
    open(&["--session", "x", "--at", "/app"]).exit(2);
    desk.home
        .kiso(&[
            "shell",
            "--session",
            "y",
            "--dir",
            folder,
            "--at",
            "/srv/app",
            "-c",
            "pwd; cat /srv/app/a.txt; ls /srv",
        ])
        .ok()
        .prints(&["/srv/app\none\ntwo\napp"]);
}

/// Runs the same command lines in a folder and in the workspace: both trees are equal, and so is the folder after accepting.
#[test]
fn random_command_lines_in_a_folder_do_as_in_the_workspace() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 600\n");
    let folder = home.dir.path().join("desk");
    fs::create_dir(&folder).unwrap();
    let mut random = Random::seeded();
    for round in 0..6 {
        let program = random.script(25);
        let work = format!("cd /work\n{program}");
        home.kiso(&["shell", "-c", &work]);
        let in_folder = format!("cd /project\n{program}");
        home.kiso(&["shell", "--dir", folder.to_str().unwrap(), "-c", &in_folder]);
        if round % 2 == 1 {
            home.kiso(&["diff", "--accept"]);
            let (expected, found) = (Tree::read(&home.work("default")).without("pub"), Tree::read(&folder));
            expected.assert_same(&found);
        }
    }
}

/// Over HTTP, as the page does it.
#[test]
fn a_difference_is_shown_and_accepted_over_http_by_administrators_alone() {
    let desk = Desk::new();
    desk.line("true").ok();
    let token = desk.home.kiso(&["--json", "token", "add", "desk", "--scope", "admin"]).json();
    let mut served = Served::start(&desk.home);
    served.token = Some(token["token"].as_str().unwrap().to_owned());
    served.reply(served.send("default", "$ echo ours > a.txt; mv sub/deep deeper; rm sub/b.txt"));
    let listed = served.folders("default");
    let folder = &listed["items"][0];
    assert_eq!(
        (folder["at"].as_str(), folder["write"].as_bool(), folder["more"].as_u64()),
        (Some("/project"), Some(true), Some(0))
    );
    let changes: Vec<_> = folder["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["change"].as_str().unwrap(), one["path"].as_str().unwrap()))
        .collect();
    assert_eq!(changes, [("changed", "a.txt"), ("moved", "deeper"), ("deleted", "sub/b.txt")]);
    let sides = served.get("/sessions/default/folders/change?at=/project&path=a.txt");
    assert_eq!((&sides["before"], &sides["after"]), (&json!("one\ntwo\n"), &json!("ours\n")));
    served.request("GET", "/sessions/default/folders/change?at=/project&path=none", None).expect(404);
    let post = |path: &str, body: Value| {
        served.request("POST", &format!("/sessions/default/folders/{path}"), Some(&body.to_string()))
    };
    post("accept", json!({ "at": "/other" })).expect(404);
    post("accept", json!({ "at": "/project", "paths": ["none"] })).expect(404);
    let accepted = post("accept", json!({ "at": "/project", "paths": ["a.txt"] })).expect(200);
    assert_eq!(accepted["changes"], 1);
    assert_eq!(desk.read("a.txt"), "ours\n");
    post("undo", json!({})).expect(200);
    assert_eq!(desk.read("a.txt"), "one\ntwo\n");
    assert_eq!(post("discard", json!({ "at": "/project" })).expect(200)["changes"], 2);
    assert_eq!(served.folders("default")["items"][0]["changes"], json!([]));
    assert_eq!(served.folders("nobody")["items"], json!([]));
    // In a channel, it is a command.
    assert_eq!(served.command("default", "/diff"), "No changes are waiting.");
    served.reply(served.send("default", "$ echo again > a.txt"));
    assert!(served.command("default", "/diff").contains("M  a.txt"));
    assert!(served.command("default", "/diff accept").contains("1 change applied to /project"));
    assert_eq!(desk.read("a.txt"), "again\n");
    assert!(served.command("default", "/undo").contains("What was applied to /project"));
    assert_eq!(desk.read("a.txt"), "one\ntwo\n");
    // Other users neither see nor change it, also not by a command.
    served.reply(served.send("default", "$ echo once more > a.txt"));
    let token = desk.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    served.token = Some(token["token"].as_str().unwrap().to_owned());
    served.request("GET", "/sessions/default/folders", None).refuses(404, "not_found");
    // Also in a session that they started.
    crate::crash::store(&desk.home)
        .execute("UPDATE sessions SET owner = 'token ' || (SELECT handle FROM tokens WHERE name = 'guest')", ())
        .unwrap();
    for command in ["/diff", "/diff accept", "/diff discard"] {
        assert_eq!(served.command("default", command), "This session has no folder open that you may see.");
    }
    assert_eq!(served.folders("default")["items"], json!([]));
    for verb in ["accept", "discard"] {
        let path = format!("/sessions/default/folders/{verb}");
        served.request("POST", &path, Some(r#"{"at": "/project"}"#)).refuses(404, "not_found");
    }
    served.request("POST", "/sessions/default/folders/undo", Some("{}")).refuses(404, "not_found");
    assert_eq!(desk.read("a.txt"), "one\ntwo\n");
}
