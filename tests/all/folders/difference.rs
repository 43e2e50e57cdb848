//! Display of differences: git repositories, many similar changes, hunks, and both sides of a file.

use super::Desk;
use crate::harness::missing_tool;
use crate::served::Served;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs git without the user's settings. Returns `None` if git is missing.
fn git(dir: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH")?).env("HOME", "/nonexistent");
    for (name, value) in [
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.org"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.org"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
    ] {
        command.env(name, value);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            missing_tool("git", &error.to_string());
            return None;
        }
    };
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_git_repository_is_one_change_and_is_accepted_as_a_whole() {
    let desk = Desk::new();
    let folder = desk.folder.clone();
    if git(&folder, &["init", "-q", "-b", "main"]).is_none() {
        return;
    }
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "First"]);
    git(&folder, &["branch", "old"]);
    // The same repository with another commit, as a run would create it.
    let other = desk.home.work("default").join("other");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    assert!(Command::new("cp").arg("-a").args([&folder, &other]).status().unwrap().success());
    git(&other, &["checkout", "-q", "-b", "fix"]);
    for text in ["Mend the first line", "Mend the second line\u{1b}[31m"] {
        fs::write(other.join("a.txt"), text).unwrap();
        git(&other, &["commit", "-q", "-a", "-m", text]);
    }
    git(&other, &["branch", "-D", "-q", "old"]);
    let before = desk.tree();
    desk.line("cp -r /work/other/.git .; rm .git/refs/heads/old .git/logs/refs/heads/old; cp /work/other/a.txt .").ok();
    let shown = desk.home.kiso(&["diff", "--patch"]);
    shown.ok().prints(&[
        "G  .git  (2 commits on branch fix; branch old deleted; branch fix checked out; ",
        "Mend the second line",
        "Mend the first line",
        "M  a.txt",
    ]);
    shown.says(&["2 changes"]);
    assert!(!shown.stdout.contains("objects") && !shown.stdout.contains('\u{1b}'), "{shown:?}");
    let changes = desk.changes();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert_eq!((&changes[0]["change"], &changes[0]["commits"]), (&json!("repository"), &json!(2)));
    // Deleting a branch needs a review.
    desk.home.kiso(&["run", "--apply", "$ true"]).ok().says(&["1 change applied", "1 change to"]);
    assert_eq!(git(&folder, &["log", "--format=%s", "-1"]).unwrap(), "First\n");
    desk.home.kiso(&["undo"]).ok();
    desk.home.kiso(&["diff", "--accept", ".git/refs/heads/fix"]).ok().says(&["1 change accepted"]);
    assert_eq!(git(&folder, &["log", "--format=%s", "-1", "fix~1"]).unwrap(), "Mend the first line\n");
    assert_eq!(git(&folder, &["branch", "--format=%(refname:short)"]).unwrap(), "fix\nmain\n");
    git(&folder, &["fsck", "--strict"]);
    desk.home.kiso(&["undo"]).ok();
    before.assert_same(&desk.tree());
    // Programs that git would run are listed.
    desk.line("echo 'echo pwned' > .git/hooks/post-checkout").ok();
    desk.home.kiso(&["diff", "--patch"]).ok().prints(&["hooks/post-checkout added", "+echo pwned"]);
    desk.home.kiso(&["run", "--apply", "$ true"]).ok().says(&["waiting"]);
    assert!(!folder.join(".git/hooks/post-checkout").exists());
}

#[test]
fn many_alike_changes_are_one_line() {
    let desk = Desk::new();
    let downloads = desk.folder.join("downloads");
    fs::create_dir(&downloads).unwrap();
    for number in 0..150 {
        for ending in ["pdf", "jpg"] {
            fs::write(downloads.join(format!("{number:03}.{ending}")), ending).unwrap();
        }
    }
    desk.line("mkdir pdf jpg many; mv downloads/*.pdf pdf; mv downloads/*.jpg jpg; for n in $(seq 30); do echo $n > many/$n; done; rm a.txt")
        .ok();
    let shown = desk.home.kiso(&["diff"]);
    shown.ok().prints(&[
        "R  150 files  downloads/*.jpg → jpg/  (000.jpg, 001.jpg, 002.jpg, …)",
        "A  many/  (30 files; ",
        "R  150 files  downloads/*.pdf → pdf/",
        "D  a.txt",
    ]);
    assert!(shown.stdout.lines().count() < 10, "{shown:?}");
    assert!(desk.home.kiso(&["diff", "--all"]).ok().stdout.lines().count() > 330);
    assert!(desk.changes().len() > 330);

    let token = desk.home.kiso(&["--json", "token", "add", "desk", "--scope", "admin"]).json();
    let mut served = Served::start(&desk.home);
    served.token = Some(token["token"].as_str().unwrap().to_owned());
    let listed = served.get("/sessions/default/folders");
    let changes = listed["items"][0]["changes"].as_array().unwrap().clone();
    assert!(changes.len() < 8, "{changes:?}");
    let group = changes.iter().find(|change| change["from"] == "downloads" && change["path"] == "pdf").unwrap();
    assert_eq!(
        (&group["group"]["files"], &group["group"]["endings"]),
        (&json!(150), &json!([{ "ending": "pdf", "files": 150 }]))
    );
    let each = served.get("/sessions/default/folders?all=true");
    assert!(each["items"][0]["changes"].as_array().unwrap().len() > 330);
    let accept = |body: Value| served.request("POST", "/sessions/default/folders/accept", Some(&body.to_string()));
    accept(json!({ "at": "/project", "groups": ["none"] })).expect(404);
    accept(json!({ "at": "/project", "groups": [], "paths": ["a.txt"] })).expect(400);
    // The directory that contains them is new, so it is accepted with them.
    let accepted = accept(json!({ "at": "/project", "groups": [group["group"]["id"]] })).expect(200);
    assert_eq!(accepted["changes"], 151);
    assert!(desk.folder.join("pdf/149.pdf").exists() && downloads.join("000.jpg").exists());
}

/// A file of 40 lines, of which a run has changed two.
fn with_hunks() -> (Desk, String) {
    let desk = Desk::new();
    let text: String = (1..=40).map(|number| format!("line {number}\n")).collect();
    fs::write(desk.folder.join("long.txt"), &text).unwrap();
    desk.line("sed -i 's/^line 3$/third/; s/^line 30$/thirtieth/' long.txt").ok();
    (desk, text)
}

#[test]
fn hunks_of_a_file_are_accepted_by_their_numbers() {
    let (desk, text) = with_hunks();
    let accept = |args: &[&str]| desk.home.kiso(&[&["diff", "--accept"], args].concat());
    accept(&["long.txt", "--hunk", "1"])
        .exit(2)
        .says(&["list the hunks of long.txt first", "kiso diff --patch long.txt"]);
    let shown = desk.home.kiso(&["diff", "--patch"]);
    shown.ok().prints(&["@@ -1,6 +1,6 @@  hunk 1", "-line 3", "+third", "@@ -27,7 +27,7 @@  hunk 2", "+thirtieth"]);
    accept(&["long.txt", "--hunk", "3"]).exit(2).says(&["has 2 hunks, not a hunk 3"]);
    accept(&["--hunk", "1"]).exit(2).says(&["PATH of one file"]);
    accept(&["long.txt", "a.txt", "--hunk", "1"]).exit(2);
    desk.home.kiso(&["diff", "--hunk", "1"]).exit(2);
    assert_eq!(desk.read("long.txt"), text);
    accept(&["long.txt", "--hunk", "2"]).ok().says(&["1 change accepted"]);
    assert_eq!(desk.read("long.txt"), text.replace("line 30\n", "thirtieth\n"));
    let left = desk.home.kiso(&["diff", "--patch"]);
    assert!(left.ok().stdout.contains("hunk 1") && !left.stdout.contains("hunk 2"), "{left:?}");
    desk.home.kiso(&["undo"]).ok();
    assert_eq!(desk.read("long.txt"), text);
    desk.home.kiso(&["diff"]).ok().prints(&["M  long.txt"]);

    // The numbers refer to the last list.
    desk.home.kiso(&["diff", "--patch"]).ok();
    desk.line("sed -i 's/^line 15$/fifteenth/' long.txt").ok();
    accept(&["long.txt", "--hunk", "2"]).exit(1).says(&["has changed since its hunks were listed"]);
    desk.home.kiso(&["diff", "--patch"]).ok().prints(&["hunk 3"]);
    fs::write(desk.folder.join("long.txt"), "the user's own words\n").unwrap();
    accept(&["long.txt", "--hunk", "2"]).exit(1).says(&["was changed in the folder since"]);
    assert_eq!(desk.read("long.txt"), "the user's own words\n");
    desk.home.kiso(&["diff", "--discard"]).ok();
    // Files with one hunk, or without hunks.
    desk.line("printf 'a\\0b' > a.txt; rm sub/b.txt; echo new > new.txt").ok();
    desk.home.kiso(&["diff", "--patch"]).ok();
    accept(&["a.txt", "--hunk", "1"]).exit(2).says(&["list the hunks"]);
    accept(&["sub/b.txt", "--hunk", "1"]).exit(2).says(&["only changed files have hunks"]);
    accept(&["new.txt", "--hunk", "1"]).exit(2).says(&["only changed files have hunks"]);
}

#[test]
fn both_sides_and_hunks_are_there_over_http() {
    let (desk, text) = with_hunks();
    let webp = |text: &str| format!("RIFF\0\0\0\0WEBP{text}");
    fs::write(desk.folder.join("photo.webp"), webp("before")).unwrap();
    fs::write(desk.folder.join("page.html"), "<script>alert(1)</script>").unwrap();
    fs::write(desk.folder.join("key.pem"), "-----BEGIN PRIVATE KEY-----\nvery-secret\n").unwrap();
    desk.line("printf 'RIFF\\0\\0\\0\\0WEBPafter' > photo.webp; echo '<b>' > page.html; rm key.pem; head -c 20000000 /dev/zero > big.bin").ok();
    let token = desk.home.kiso(&["--json", "token", "add", "desk", "--scope", "admin"]).json();
    let token = token["token"].as_str().unwrap().to_owned();
    let mut served = Served::start(&desk.home);
    served.token = Some(token.clone());
    let side = |path: &str, side: &str| {
        served.ask_with(&token, &format!("/sessions/default/folders/side?at=/project&path={path}&side={side}"))
    };
    for (name, text) in [("before", webp("before")), ("after", webp("after"))] {
        let answer = side("photo.webp", name);
        let lower = answer.to_lowercase();
        assert!(answer.contains(" 200 ") && answer.ends_with(&text), "{answer:?}");
        for header in ["content-type: image/webp", "x-content-type-options: nosniff", "; sandbox", "inline;"] {
            assert!(lower.contains(header), "{header}: {answer:?}");
        }
    }
    let page = side("page.html", "before").to_lowercase();
    assert!(page.contains("content-type: application/octet-stream") && page.contains("attachment;"), "{page:?}");
    for (path, name) in [
        ("key.pem", "before"),
        ("big.bin", "after"),
        ("big.bin", "before"),
        ("a.txt", "after"),
        ("../home/config.toml", "after"),
    ] {
        let answer = side(path, name);
        assert!(answer.contains(" 404 ") && !answer.contains("very-secret"), "{path}: {answer:.300}");
    }
    assert!(side("photo.webp", "other").contains(" 400 "));

    let change = |path: &str| served.get(&format!("/sessions/default/folders/change?at=/project&path={path}"));
    let photo = change("photo.webp");
    assert_eq!(
        (&photo["before_kind"], &photo["after"], &photo["hunks"]),
        (&json!("picture"), &Value::Null, &json!([]))
    );
    assert_eq!(change("big.bin")["after_kind"], "binary");
    assert_eq!(change("key.pem")["before"], Value::Null);
    let listed = change("long.txt");
    assert_eq!(listed["hunks"].as_array().unwrap().len(), 2);
    assert_eq!(listed["hunks"][0]["lines"][2], "-line 3");
    let accept = |body: Value| served.request("POST", "/sessions/default/folders/accept", Some(&body.to_string()));
    let request = |hunks: Value, revision: &Value| json!({ "at": "/project", "paths": ["long.txt"], "hunks": hunks, "revision": revision });
    accept(request(json!([3]), &listed["revision"])).expect(400);
    accept(json!({ "at": "/project", "paths": ["long.txt"], "hunks": [1] })).expect(400);
    accept(json!({ "at": "/project", "hunks": [1], "revision": listed["revision"] })).expect(400);
    accept(request(json!([1]), &json!("another"))).expect(409);
    assert_eq!(desk.read("long.txt"), text);
    assert_eq!(accept(request(json!([1]), &listed["revision"])).expect(200)["changes"], 1);
    assert_eq!(desk.read("long.txt"), text.replace("line 3\n", "third\n"));
    accept(request(json!([1]), &listed["revision"])).expect(409);
    assert_eq!(change("long.txt")["hunks"].as_array().unwrap().len(), 1);
    let discard = json!({ "at": "/project", "paths": ["long.txt"], "hunks": [1] }).to_string();
    served.request("POST", "/sessions/default/folders/discard", Some(&discard)).expect(400);
    // Other users see neither.
    let guest = desk.home.kiso(&["--json", "token", "add", "guest", "--scope", "chat"]).json();
    let guest = guest["token"].as_str().unwrap();
    let asked = served.ask_with(guest, "/sessions/default/folders/side?at=/project&path=photo.webp&side=after");
    assert!(!asked.contains(" 200 ") && !asked.contains("WEBP"), "{asked}");
}
