//! `[folders]` in config.toml: folders that permitted users open by name.

use crate::harness::{Home, wait_until};
use crate::served::Served;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A home whose configuration lists two folders: `own` for administrators, and `photos` for everyone.
struct Listed {
    home: Home,
    photos: PathBuf,
    own: PathBuf,
}

impl Listed {
    fn new() -> Self {
        let home = Home::new();
        let [photos, own] = ["photos", "own"].map(|name| home.dir.path().join(name));
        for dir in [&photos, &own] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("a.txt"), "first words\n").unwrap();
        }
        fs::write(photos.join(".env"), "KEY=secret\n").unwrap();
        let listed = Self { home, photos, own };
        listed.write("role = \"user\"\n");
        listed
    }

    /// Writes the configuration with these lines for `photos`. If empty, it lists only `own`.
    fn write(&self, photos: &str) {
        let [own, path] = [&self.own, &self.photos].map(|path| path.display().to_string());
        let photos = match photos {
            "" => String::new(),
            lines => format!("[folders.photos]\npath = {path:?}\n{lines}"),
        };
        self.home.config(&format!(
            "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[folders.own]\npath = {own:?}\n{photos}"
        ));
    }
}

fn names(answer: &Value) -> Vec<&str> {
    answer["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[test]
fn a_folder_is_opened_by_its_name_on_the_command_line() {
    let Listed { home, own, .. } = Listed::new();
    home.kiso(&["run", "--dir", "@own", "--dir", "@photos", "$ pwd; cat a.txt /photos/a.txt; echo new > b.txt"])
        .ok()
        .prints(&["/project", "first words\nfirst words\n"])
        .says(&["1 change", "waiting"]);
    home.kiso(&["diff", "--accept"]).ok();
    assert_eq!(fs::read_to_string(own.join("b.txt")).unwrap(), "new\n");
    home.kiso(&["run", "--dir", "@none", "$ true"]).exit(2).says(&["@none is not a directory"]);
    home.kiso(&["run", "--dir", "@photos", "--with-secrets", "$ true"]).exit(2).says(&["--with-secrets"]);
    home.kiso(&["config", "show"]).ok().prints(&["[folders.own]", "role = \"admin\"", "mode = \"write\""]);
}

#[test]
fn an_entry_is_refused_as_the_folder_would_be() {
    let home = Home::new();
    home.kiso(&["config", "check"]).ok();
    let keys = home.dir.path().join("x/.ssh");
    fs::create_dir_all(&keys).unwrap();
    let user = std::env::var("HOME").unwrap();
    let outer = home.dir.path().display().to_string();
    for (path, why) in [
        ("/", "it is the whole machine"),
        (outer.as_str(), "it holds kiso's own home, or is in it"),
        (user.as_str(), "add force = true"),
        (keys.to_str().unwrap(), "holds keys, or the data of a browser; to list it anyway, add force = true"),
    ] {
        home.config(&format!("model = \"reflex\"\n[folders.a]\npath = {path:?}\n"));
        home.kiso(&["config", "check"]).exit(3).says(&["config.toml:3:1: folders.a.path: ", why]);
    }
    home.config(&format!("[folders.a]\nforce = true\npath = {:?}\n", keys.display().to_string()));
    home.kiso(&["config", "check"]).ok();
}

#[test]
fn who_chats_opens_only_what_is_for_everyone() {
    let Listed { home, photos, .. } = Listed::new();
    let served = Served::start(&home);
    let listed = served.get("/folders?session=s");
    assert_eq!(names(&listed), ["photos"]);
    assert!(listed["items"][0]["path"].is_null() && listed["items"][0]["at"].is_null(), "{listed}");
    let open = |body: &str| served.request("POST", "/sessions/s/folders", Some(body));
    open(r#"{"name": "own"}"#).refuses(404, "not_found");
    open(r#"{"name": "../photos"}"#).refuses(404, "not_found");
    open(r#"{"path": "/etc"}"#).refuses(400, "bad_request");
    assert!(home.path().join("sessions/s/folders.json").metadata().is_err());
    let opened = open(r#"{"name": "photos"}"#).expect(200);
    assert_eq!((opened["at"].as_str(), opened["write"].as_bool()), (Some("/project"), Some(true)));
    assert_eq!(served.get("/folders?session=s")["items"][0]["at"], "/project");

    let line = |line: &str| served.reply(served.send("s", &format!("$ {line}")));
    let reply = line("pwd; cat a.txt; cat .env; echo two > b.txt; rm a.txt");
    assert!(reply.contains("/project") && reply.contains("first words") && !reply.contains("KEY"), "{reply}");
    assert!(photos.join("a.txt").exists() && !photos.join("b.txt").exists());
    let folders = served.folders("s");
    assert_eq!(folders["items"][0]["changes"].as_array().unwrap().len(), 2, "{folders}");
    assert!(served.command("s", "/diff").contains("D  a.txt"));
    served.request("POST", "/sessions/s/folders/close", Some(r#"{"at": "/project"}"#)).refuses(409, "taken");
    served.request("POST", "/sessions/s/folders/accept", Some(r#"{"at": "/project"}"#)).expect(200);
    assert!(photos.join("b.txt").exists() && !photos.join("a.txt").exists());
    served.request("POST", "/sessions/s/folders/undo", Some("{}")).expect(200);
    assert!(photos.join("a.txt").exists() && !photos.join("b.txt").exists());
    // The changes are pending again.
    served.request("POST", "/sessions/s/folders/discard", Some(r#"{"at": "/project"}"#)).expect(200);
    assert_eq!(served.request("POST", "/sessions/s/folders/close", Some(r#"{"at": "/project"}"#)).status, 204);
    assert!(!line("ls /project").contains("a.txt"));
}

#[test]
fn what_an_administrator_opened_is_not_shown_to_who_chats() {
    let Listed { home, photos, .. } = Listed::new();
    let mut served = Served::start(&home);
    let add = |args: &[&str]| home.kiso(&[&["token", "add"], args].concat()).ok().stdout.trim().to_owned();
    let (chat, admin) = (add(&["phone"]), add(&["root", "--scope", "admin"]));
    // The token may read this session.
    served.token = Some(chat.clone());
    served.reply(served.send("s", "$ true"));
    served.token = Some(admin);
    let listed = served.get("/folders");
    assert_eq!(names(&listed), ["own", "photos"]);
    assert!(listed["items"][0]["path"].as_str().unwrap().ends_with("/own"), "{listed}");
    served.request("POST", "/sessions/s/folders", Some(r#"{"name": "own"}"#)).expect(200);
    home.kiso(&[
        "shell",
        "--session",
        "s",
        "--dir",
        photos.to_str().unwrap(),
        "--at",
        "/app",
        "--with-secrets",
        "-c",
        "true",
    ])
    .ok();
    let reply = served.reply(served.send("s", "$ cat /project/a.txt /app/.env"));
    assert!(reply.contains("first words") && reply.contains("KEY"), "{reply}");

    served.token = Some(chat);
    let reply = served.reply(served.send("s", "$ cat /project/a.txt /app/a.txt"));
    assert!(!reply.contains("first words"), "{reply}");
    assert_eq!(served.folders("s")["items"].as_array().unwrap().len(), 0);
    served.request("POST", "/sessions/s/folders/accept", Some(r#"{"at": "/project"}"#)).refuses(404, "not_found");
    served.request("POST", "/sessions/s/folders/close", Some(r#"{"at": "/project"}"#)).refuses(404, "not_found");
    // It would show the files that the administrator opened with their credentials.
    served.request("POST", "/sessions/s/folders", Some(r#"{"name": "photos"}"#)).refuses(409, "taken");
}

#[test]
fn a_session_loses_a_folder_with_its_entry() {
    let listed = Listed::new();
    let served = Served::start(&listed.home);
    served.request("POST", "/sessions/s/folders", Some(r#"{"name": "photos"}"#)).expect(200);
    let line = |line: &str| served.reply(served.send("s", &format!("$ {line}")));
    assert!(line("echo two > b.txt && cat b.txt").contains("two"));
    let reload = |photos: &str, times: usize| {
        listed.write(photos);
        served.signal(Signal::HUP);
        served.logs("[folders]", times);
    };
    let accept = || served.request("POST", "/sessions/s/folders/accept", Some(r#"{"at": "/project"}"#));
    reload("role = \"user\"\nmode = \"read\"\n", 1);
    let reply = line("cat a.txt; echo three > c.txt || echo refused");
    assert!(reply.contains("first words") && reply.contains("refused"), "{reply}");
    accept().refuses(403, "forbidden");
    reload("", 2);
    wait_until("the folder is gone", || !line("cat /project/a.txt").contains("first words"));
    accept().refuses(404, "not_found");
    assert_eq!(names(&served.get("/folders")), Vec::<&str>::new());
    assert!(!listed.photos.join("b.txt").exists());
}
