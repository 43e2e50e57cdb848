//! The source of a run's instructions: text from outside keeps its label in files, commands and rows, and its consequences need a
//! person's approval.

use crate::exec::programs::cat;
use crate::harness::Home;
use crate::published::{ask, publish};
use crate::served::Served;
use crate::web;
use serde_json::Value;

/// A text that occurs only in the server's page.
const CANARY: &str = "canary-7f3a";

/// A home whose `fetch` reaches a server with the canary. Returns its address, too.
fn fetching() -> (Home, String) {
    let address = web::serve(|_| web::text(CANARY));
    let home = Home::new();
    home.config("model = \"reflex\"\n[approvals]\nexpires_s = 1\n");
    home.kiso(&["skill", "grant", "fetch", "--host", &address, "--private"]).ok();
    (home, address)
}

/// From the best to the worst.
const INTEGRITIES: [&str; 4] = ["user", "publisher", "person", "world"];

/// The worst integrity of the output of the last run's command lines, without that of the earlier conversation.
pub(crate) fn integrity(home: &Home) -> String {
    let explained = home.kiso(&["--json", "approval", "explain", "last"]);
    let lines = explained.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let printed = lines.filter(|line| line["what"].as_str().is_some_and(|what| what.starts_with("the output of $ ")));
    let worst =
        printed.filter_map(|line| INTEGRITIES.iter().position(|known| line["label"]["integrity"] == *known)).max();
    INTEGRITIES[worst.unwrap_or(0)].to_owned()
}

fn prints(home: &Home, line: &str) -> (bool, String) {
    let ran = home.kiso(&["run", &format!("$ {line}")]);
    (ran.stdout.contains(CANARY), integrity(home))
}

/// Lines that make one file from another, in every way in which bytes and names can be copied.
const WAYS: [&str; 22] = [
    "cp {a} {b}",
    "mv {a} {b}x; cp {b}x {a}; mv {b}x {b}",
    "cat {a} > {b}",
    "cat < {a} | sort | tee {b} | wc -l",
    "x=$(cat {a}); echo \"$x\" > {b}",
    "while read x; do echo \"$x\"; done < {a} > {b}",
    "tar -cf {b}.tar {a}; mkdir {b}d; tar -xf {b}.tar -C {b}d; mv {b}d/{a} {b}",
    "gzip -c {a} > {b}.gz; gzip -dc {b}.gz > {b}",
    "cp {a} {b}; sed -i 's/^/x /' {b}",
    "ln {a} {b}",
    "ln -s {a} {b}",
    "xargs -n 1 echo < {a} > {b}",
    "touch \"$(cat {a})\"; ls > {b}",
    "base64 {a} | base64 -d > {b}",
    "echo start > {b}; cat {a} >> {b}",
    "split -b 4 {a} {b}-; cat {b}-* > {b}",
    "(cat {a}; true) > {b} & wait",
    "env X=\"$(cat {a})\" sh -c 'echo $X' > {b}",
    "mkdir {b}q; cat {a} > {b}q/y; cp -r {b}q {b}r; cat {b}r/y > {b}",
    "awk '{ print }' {a} > {b}",
    "./cat.wasm < {a} > {b}",
    "(read x < {a}; cat cat.wasm > {b}.wasm); echo canary-7f3a | ./{b}.wasm > {b}",
];

#[test]
fn no_byte_is_made_of_a_page_without_its_label() {
    let (home, address) = fetching();
    home.kiso(&["run", &format!("fetch url=http://{address}/p save=page.txt")]).ok();
    home.kiso(&["run", "$ echo clean > own.txt"]).ok();
    std::fs::write(home.work("default").join("cat.wasm"), cat()).unwrap();
    assert_eq!(prints(&home, "./cat.wasm < own.txt"), (false, "user".to_owned()), "what is the user's stays so");
    // Each way from a file that an earlier way has created: chains that no fixed list would have.
    let (mut dice, mut known) = (20_u32, vec!["page.txt".to_owned()]);
    for (number, way) in WAYS.iter().enumerate() {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let a = known[dice as usize / 7 % known.len()].clone();
        let b = format!("f{number}");
        let line = way.replace("{a}", &a).replace("{b}", &b);
        home.kiso(&["run", &format!("$ {line}")]);
        let (has, integrity) = prints(&home, &format!("cat {b}"));
        assert!(has, "{line}: nothing of it is in the file");
        assert_eq!(integrity, "world", "{line}");
        known.push(b);
    }
    // Crashes and restarts keep the labels: each of these commands was a separate process. So does an undo.
    assert_eq!(prints(&home, "cat page.txt").1, "world");
    home.kiso(&["run", "$ echo mine > page.txt"]).ok();
    assert_eq!(prints(&home, "cat page.txt"), (false, "user".to_owned()), "the file was written again");
    home.kiso(&["undo", "--yes"]).ok();
    assert_eq!(prints(&home, "cat page.txt"), (true, "world".to_owned()));
    home.kiso(&["undo", "--redo"]).ok();
    assert_eq!(prints(&home, "cat page.txt"), (false, "user".to_owned()));
    assert_eq!(prints(&home, "cat own.txt"), (false, "user".to_owned()));
}

/// Four lines each: the user creates files, a process that has read a page (`$x`) changes them, the user continues, and the user
/// looks.
const NOT_BYTES: [(&str, &str, &str, &str); 13] = [
    ("true", "ln -s \"$x\" l; touch l", "rm l", "ls"),
    ("true", "ln -s \"$x\" l; : >> l", "rm l", "ls"),
    ("true", "ln -s \"$x\" l; exec 3<> l", "rm l", "ls"),
    ("true", "ln -s \"$x\" report.md", "echo clean > report.md", "ls"),
    ("echo clean > notes.txt", "ln notes.txt \"$x\"", ": > notes.txt", "ls"),
    ("echo yes > one; echo no > two", "mv one three; mv two one", "true", "cat one"),
    ("mkdir d e; echo yes > d/n; echo no > e/n", "rm -r d; ln -s e d", "true", "cat d/n"),
    ("echo yes > one; echo no > two; ln -s one l", "ln -sf two l", "true", "read -r y < l; echo \"$y\""),
    ("echo yes > one; echo no > two; ln -s one l", "ln -sf two l", "true", "dd if=l status=none"),
    ("echo yes > one; ln -s one l", "touch -d 2020-01-02 l", "true", "stat -c %Y one"),
    ("echo yes > one; ln -s one l", "chmod +x l", "true", "stat -c %a one"),
    ("mkdir d; touch d/old", "mv d/old d/new", "true", "ls d"),
    ("echo yes > one", "rm one", "true", "ls"),
];

#[test]
fn names_places_times_and_permissions_have_a_label_too() {
    let (home, address) = fetching();
    home.kiso(&["run", &format!("fetch url=http://{address}/p save=page.txt")]).ok();
    for (number, (before, tainted, clean, read)) in NOT_BYTES.iter().enumerate() {
        for is_tainted in [true, false] {
            let dir = format!("t{number}{is_tainted}");
            let within = |line: &str| {
                home.kiso(&["run", &format!("$ cd {dir}; {line}")]).ok();
            };
            home.kiso(&["run", &format!("$ mkdir {dir}")]).ok();
            within(before);
            within(&format!("{}; {tainted}", if is_tainted { "read -r x < ../page.txt" } else { "x=canary" }));
            within(clean);
            within(read);
            let expected = if is_tainted { "world" } else { "user" };
            assert_eq!(integrity(&home), expected, "{tainted}; {clean}; {read}");
        }
    }
}

#[test]
fn a_published_link_serves_nothing_that_was_put_there_later() {
    let (home, address) = fetching();
    let link = publish(&home, "a.txt", "text/plain", b"clean");
    let served = Served::start(&home);
    let says = |text: &str| served.reply(served.send("main", text));
    says(&format!("fetch url=http://{address}/p save=page.txt"));
    assert_eq!(ask(&served, "GET", &link, "").0, 200);
    says("$ cat page.txt >> pub/a.txt");
    let (status, _, body) = ask(&served, "GET", &link, "");
    assert!(status == 403 && body.contains("publish it again") && !body.contains(CANARY), "{status} {body}");
    says("$ echo mine > pub/a.txt");
    let (status, _, body) = ask(&served, "GET", &link, "");
    assert_eq!((status, body.as_str()), (200, "mine\n"));
}

#[test]
fn a_directory_of_the_machine_is_asked_at_each_write() {
    // Also without undo data, which has other rules.
    for undo in ["", "[undo]\nmax_mib = 0\n"] {
        the_machine_is_asked(undo);
    }
}

fn the_machine_is_asked(undo: &str) {
    let (home, address) = fetching();
    let shared = home.dir.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let mount = format!("\"/common\" = {{ path = {shared:?}, write = true, role = \"user\" }}");
    home.config(&format!("model = \"reflex\"\n[approvals]\nexpires_s = 1\n{undo}[exec.mounts]\n{mount}\n"));
    home.kiso(&["run", &format!("fetch url=http://{address}/p save=page.txt")]).ok();
    home.kiso(&["run", "$ exec 3> /common/open.txt; echo mine >&3; cat page.txt >&3"]);
    home.kiso(&["run", "$ touch \"/common/$(cat page.txt)\"; mkdir \"/common/d-$(cat page.txt)\""]);
    home.kiso(&["run", "$ (echo mine; cat page.txt) | tee /common/tee.txt"]);
    // By a second name, in both directions.
    std::fs::write(shared.join("theirs.txt"), "theirs\n").unwrap();
    home.kiso(&["run", "$ ln /common/theirs.txt name.txt; cat page.txt >> name.txt"]);
    home.kiso(&["run", "$ echo mine > own.txt; ln own.txt /common/own.txt"]);
    home.kiso(&["run", "$ cat page.txt >> own.txt"]);
    home.kiso(&[
        "run",
        "$ echo mine > moved-away.txt; exec 3>> moved-away.txt; mv moved-away.txt /common; cat page.txt >&3",
    ]);
    home.kiso(&[
        "run",
        "$ cp page.txt /common/copy.txt; mv page.txt /common/moved.txt; ln -s page.txt /common/link.txt",
    ]);
    home.kiso(&["run", "$ echo mine > /common/mine.txt"]).ok();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&shared).unwrap() {
        let entry = entry.unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let name = entry.file_name().into_string().unwrap();
        assert!(!text.contains(CANARY) && !name.contains(CANARY), "{name}: {text}");
        names.push((name, text));
    }
    let has = |name: &str| names.iter().any(|(known, text)| known == name && text == "mine\n");
    assert!(has("open.txt") && has("mine.txt"), "{names:?}");
    // A user who wants to be asked about everything is not bypassed: an effect that no card can name is refused.
    home.config(&format!("model = \"reflex\"\n[policy]\neffects = \"ask_always\"\n{undo}[exec.mounts]\n{mount}\n"));
    home.kiso(&["run", "$ echo more >> /common/mine.txt; rm /common/mine.txt; mkdir /common/more"]);
    assert_eq!(std::fs::read_to_string(shared.join("mine.txt")).unwrap(), "mine\n");
    assert!(!shared.join("more").exists());
}

#[test]
fn what_is_open_carries_what_others_write_meanwhile() {
    let (home, address) = fetching();
    home.kiso(&["run", &format!("fetch url=http://{address}/p save=page.txt")]).ok();
    // Each waits for the other without reading its output.
    for line in [
        // Opened while it was empty, and read after somebody had written.
        ": > a; (until [ -s a ]; do :; done; cat) < a > copy & cat page.txt >> a; wait",
        // Truncated while a process that had read from outside had it open.
        "(until [ -s go ]; do :; done; cat) < page.txt >> copy & : > copy; echo x > go; wait",
    ] {
        home.kiso(&["run", "$ rm -f a copy go"]).ok();
        home.kiso(&["run", &format!("$ {line}")]).ok();
        assert_eq!(prints(&home, "cat copy"), (true, "world".to_owned()), "{line}");
    }
}

#[test]
fn what_a_command_reads_of_a_skill_is_its_publishers() {
    let home = Home::new();
    home.config("model = \"reflex\"\n");
    let text = format!("---\nname: greet\ndescription: Greets people.\n---\n{CANARY}\n");
    let dir = home.file("greet/SKILL.md", text).parent().unwrap().to_str().unwrap().to_owned();
    home.file("greet/scripts/hello.sh", format!("echo {CANARY}\n"));
    home.file("greet/scripts/hello.js", format!("console.log('{CANARY}')\n"));
    home.file(&format!("greet/{CANARY}.txt"), "");
    home.kiso(&["skill", "add", &dir]).ok();
    for line in ["ls /skills", "cd /skills/greet; pwd", "test -d /skills/greet && echo there"] {
        assert_eq!(
            prints(&home, line),
            (false, "user".to_owned()),
            "{line}: what it is called is the administrator's word"
        );
    }
    for line in [
        "cat /skills/greet/SKILL.md",
        "cat < /skills/greet/SKILL.md",
        "while read line; do echo $line; done < /skills/greet/SKILL.md",
        "cd /skills/greet && sh scripts/hello.sh",
        ". /skills/greet/scripts/hello.sh",
        "js /skills/greet/scripts/hello.js",
        "ls /skills/greet",
        "cd /skills/greet; echo *",
        "grep -r canary /skills",
        "cp -r /skills/greet g; cat g/SKILL.md",
        "sh /skills/greet/scripts/hello.sh > out.txt; cat out.txt",
    ] {
        assert_eq!(prints(&home, line), (true, "publisher".to_owned()), "{line}");
    }
    assert_eq!(prints(&home, "cat out.txt"), (true, "publisher".to_owned()), "it stays with what was written");
    assert_eq!(prints(&home, "echo mine"), (false, "user".to_owned()));
    // An administrator vouches for the skill; files written before keep their label.
    home.config("model = \"reflex\"\n[policy]\ntrusted_skills = [\"greet\"]\n");
    assert_eq!(prints(&home, "cat /skills/greet/SKILL.md"), (true, "user".to_owned()));
    assert_eq!(prints(&home, "cat out.txt"), (true, "publisher".to_owned()));
}

/// The message about a limit contains the arguments of the command, which may come from anybody.
#[test]
fn what_is_said_of_a_limit_has_the_label_of_what_reached_it() {
    let address = web::serve(|_| web::text(&format!("yes {CANARY} > /dev/null\n")));
    let home = Home::new();
    home.config("model = \"reflex\"\n[exec]\ntimeout_s = 1\n");
    home.kiso(&["skill", "grant", "fetch", "--host", &address, "--private"]).ok();
    home.kiso(&["run", &format!("fetch url=http://{address}/p save=page.sh")]).ok();
    let ran = home.kiso(&["run", "$ sh page.sh"]);
    assert!(ran.stdout.contains(CANARY), "it is named: {ran:?}");
    assert_eq!(integrity(&home), "world");
}

/// A running daemon notices when an administrator starts or stops vouching for a skill.
#[test]
fn who_is_answered_for_changes_with_the_configuration() {
    let home = Home::new();
    let file = home.file("greet/SKILL.md", format!("---\nname: greet\ndescription: Greets people.\n---\n{CANARY}\n"));
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n");
    home.kiso(&["skill", "add", file.parent().unwrap().to_str().unwrap()]).ok();
    let served = Served::start(&home);
    for (trusted, whose) in [("", "publisher"), ("\"greet\"", "user"), ("", "publisher")] {
        let policy = format!("[policy]\ntrusted_skills = [{trusted}]\n");
        home.config(&format!("model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n{policy}"));
        home.kiso(&["config", "reload"]).ok();
        assert!(served.reply(served.send("main", "$ cat /skills/greet/SKILL.md")).contains(CANARY));
        assert_eq!(integrity(&home), whose, "{trusted}");
    }
}

/// Without a connection, there is no text from outside. An error page is such a text.
#[test]
fn a_fetch_without_a_response_brings_no_label_and_an_error_page_does() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let address = web::serve(|_| {
        format!("HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n{CANARY}").into_bytes()
    });
    let home = Home::new();
    home.config("model = \"reflex\"\n");
    for host in [closed.as_str(), address.as_str(), "nobody.invalid"] {
        home.kiso(&["skill", "grant", "fetch", "--host", host, "--private"]).ok();
    }
    let fetched = |url: &str| {
        let ran = home.kiso(&["run", &format!("fetch url={url}")]);
        let explained = home.kiso(&["--json", "approval", "explain", "last"]);
        let lines = explained.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let world = lines.filter(|line| line["type"] == "read").any(|line| line["label"]["integrity"] == "world");
        (ran.code, world)
    };
    for url in [
        format!("http://{closed}/p"),
        "http://nobody.invalid/p".to_owned(),
        // The server does not speak TLS.
        format!("https://{address}/p"),
    ] {
        assert_eq!(fetched(&url), (1, false), "{url}");
    }
    assert_eq!(fetched(&format!("http://{address}/p")), (1, true), "an error page");
    // A response has also created a file, while a failed fetch has not.
    assert_eq!(prints(&home, "ls"), (false, "user".to_owned()));
}
