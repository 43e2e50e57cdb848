//! `curl` and `wget` in command lines: their output, their exit codes, and the same lines in Debian's programs.

#[path = "../../../skills/curl/src/server.rs"]
mod server;

use crate::harness::{Home, missing_tool, root};
use server::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// Lets command lines send any request to the server, by its address and by its name.
fn allow(home: &Home, port: u16) {
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].map(|method| ["--method", method]).concat();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "127.0.0.1:1".to_owned()] {
        home.kiso(&[&["network", "allow", &host, "--private"], &methods[..]].concat()).ok();
    }
    home.kiso(&["network", "allow", "nothing.invalid"]).ok();
}

/// Each line with its output, standard error included, and its exit code.
const LINES: [(&str, &str); 48] = [
    ("curl -s $U/a.json | jq -r .name", "kiso\n= 0"),
    ("curl -fsSL $U/redirect -o out.txt; cat out.txt", "{\"name\": \"kiso\"}\n= 0"),
    (
        "curl -sS -X POST -H 'Content-Type: application/json' -d '{\"a\":1}' $U/echo",
        "POST /echo\naccept: */*\ncontent-type: application/json\n7 bytes: {\"a\":1}\n= 0",
    ),
    (
        "printf 'n=1\\n' > body; curl -s -d @body --data-urlencode 'q=a b&c' -G $U/search",
        "GET /search?n=1&q=a+b%26c\naccept: */*\n0 bytes: \n= 0",
    ),
    (
        "printf P > a.png; curl -s -F file=@a.png -F 'name=x;type=text/plain' $U/form | tr -d '\\r' | head -n 13 | tail -n 9",
        "Content-Disposition: form-data; name=\"file\"; filename=\"a.png\"\nContent-Type: image/png\n\nP\n--B\n\
         Content-Disposition: form-data; name=\"name\"\nContent-Type: text/plain\n\nx\n= 0",
    ),
    ("curl -s -o /dev/null -w '%{http_code} %{size_download} %{num_redirects}\\n' $U/a.json", "200 17 0\n= 0"),
    (
        "curl -s -o /dev/null -w '%{json}' $U/a.json | jq -c '[.http_code, .method, .time_total > 0]'",
        "[200,\"GET\",true]\n= 0",
    ),
    ("curl -s -c jar $U/cookie; curl -s -b jar $U/cookie", "cookie: none\ncookie: deep=1; sid=abc\n= 0"),
    ("curl -s --compressed $U/gz; curl -s -H 'Accept-Encoding: gzip' $U/gz | zcat", "alpha beta\nalpha beta\n= 0"),
    ("curl -s -r 0-99 $U/big -o big; curl -s -C - -O $U/big; wc -c < big", "10000\n= 0"),
    ("curl -sS --retry 3 --retry-all-errors --max-time 5 --connect-timeout 2 $U/flaky?x", "busy\nbusy\nup\n= 0"),
    ("curl -s -u user:pass $U/basic; curl -s --oauth2-bearer T $U/bearer", "welcome\nwelcome\n= 0"),
    (
        "curl -sI $U/a.json | tr -d '\\r'",
        "HTTP/1.1 200 OK\nContent-Type: application/json\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\nContent-Length: 17\n\n= 0",
    ),
    ("curl -s -i $U/404 | tr -d '\\r' | head -n 1", "HTTP/1.1 404 Not Found\n= 0"),
    (
        "curl -s -v -H 'Authorization: Bearer SECRET' $U/nothing 2>&1 | grep -c '^< '; curl -sv -u a:SECRET $U/nothing 2>&1 | grep SECRET",
        "4\n= 1",
    ),
    (
        "curl --json '{\"a\":1}' $U/echo",
        "POST /echo\ncontent-type: application/json\naccept: application/json\n7 bytes: {\"a\":1}\n= 0",
    ),
    (
        "echo up > file; curl -sT file $U/put; curl -s -X DELETE $U/x",
        "PUT /put\naccept: */*\n3 bytes: up\n\nDELETE /x\naccept: */*\n0 bytes: \n= 0",
    ),
    ("echo piped | curl -s -T - $U/put", "PUT /put\naccept: */*\n6 bytes: piped\n\n= 0"),
    (
        "head -c 3000000 /dev/zero > big; curl -s -T big $U/echo | wc -c; curl -s -d @big $U/echo | wc -c",
        "3000038\n81\n= 0",
    ),
    (
        "curl -sL -u user:pass -b s=1 -H 'Authorization: Bearer T' $U/elsewhere",
        "GET /echo\naccept: */*\n0 bytes: \n= 0",
    ),
    ("curl -s $U/chunked $U/204 \"$U/{a.json,nothing}\"", "first second{\"name\": \"kiso\"}\n= 0"),
    ("printf 'url = \"%s/a.json\"\\nsilent\\n' $U | curl -K -", "{\"name\": \"kiso\"}\n= 0"),
    ("curl $U/none -f", "curl: (22) The requested URL returned error: 404\n= 22"),
    (
        "curl -sS http://127.0.0.1:1/ 2>&1 | sed 's/after.*ms/after N ms/'",
        "curl: (7) Failed to connect to 127.0.0.1 port 1 after N ms: Could not connect to server\n= 0",
    ),
    ("curl -s http://127.0.0.1:1/", "= 7"),
    ("curl http://nothing.invalid/", "curl: (6) Could not resolve host: nothing.invalid\n= 6"),
    ("curl -L --max-redirs 2 $U/loop", "curl: (47) Maximum (2) redirects followed\n= 47"),
    ("curl $U/empty", "curl: (52) Empty reply from server\n= 52"),
    ("curl -o part $U/short; cat part", "curl: (18) transfer closed with 5 bytes remaining to read\n0123456789= 0"),
    ("curl -s -m 0.5 -o /dev/null $U/slow", "= 28"),
    ("curl -s --max-filesize 100000 -o /dev/null $U/endless", "= 63"),
    ("curl -s $U/endless | head -c 100000 | wc -c", "100000\n= 0"),
    ("curl -s -m 5 $U/garbage", "= 52"),
    ("curl -s -m 5 $U/heads", "= 52"),
    (
        "curl -k $U/",
        "curl: option -k: certificates are always verified; an administrator can add one with [network] ca_file\ncurl: try 'curl --help' for more information\n= 2",
    ),
    ("curl -x p:1 $U/", "curl: (5) option -x: proxies are not used; kiso connects to the host itself\n= 5"),
    ("curl ftp://127.0.0.1/", "curl: (1) Protocol \"ftp\" not supported\n= 1"),
    (
        "curl -o none/x $U/a.json",
        "curl: (23) Failure writing output to destination: none/x: No such file or directory\n= 23",
    ),
    (
        "curl -T none $U/put",
        "curl: (26) Failed to open/read local data from file/application: No such file or directory\n= 26",
    ),
    (
        "curl -s -H 'Host: other' $U/nothing; curl -H 'Host: other' $U/nothing",
        "Warning: kiso writes these headers itself: Host\n= 0",
    ),
    ("yes | head -c 200000 > f; curl -s -o /dev/null -w '%{size_upload}' --data-binary @f $U/nothing", "200000= 0"),
    ("wget -q $U/a.json; cat a.json; wget -qO- $U/chunked", "{\"name\": \"kiso\"}\nfirst second= 0"),
    ("wget -nv -O x $U/none 2>&1 | sed 's/^[0-9].* ERROR/ERROR/' | tail -n 1", "ERROR 404: Not Found.\n= 0"),
    (
        "wget -q -O - --header='X-A: b' --post-data='a=1' $U/echo",
        "POST /echo\naccept: */*\ncontent-type: application/x-www-form-urlencoded\nx-a: b\n3 bytes: a=1\n= 0",
    ),
    ("curl -s -r 0-99 $U/big -o big; wget -q -c $U/big; wc -c < big", "10000\n= 0"),
    (
        "wget -q -r -np -nH -l 1 -P s $U/site/; find s -type f | sort",
        "s/robots.txt\ns/site/index.html\ns/site/one.html\ns/site/sub/two.html\n= 0",
    ),
    ("wget -q $U/none", "= 8"),
    (
        "wget --no-check-certificate $U/ 2>&1 | head -n 1",
        "wget: option '--no-check-certificate' is not supported: certificates are always verified; an administrator can add one with [network] ca_file\n= 0",
    ),
];

#[test]
fn lines_of_curl_and_wget_answer_as_they_should() {
    let (home, server) = (Home::new(), Server::start().unwrap());
    allow(&home, server.port);
    let mut script = format!("U=http://127.0.0.1:{}\n", server.port);
    for (at, (line, _)) in LINES.iter().enumerate() {
        let _ = writeln!(script, "mkdir d{at}; (cd d{at}; {line}) 2>&1; echo \"= $?\"; echo '~~'");
    }
    let ran = home.kiso(&["shell", "--session", "curl", "-c", &script]);
    let found: Vec<&str> = ran.ok().stdout.split("\n~~\n").collect();
    let mut wrong = String::new();
    for (at, (line, expected)) in LINES.iter().enumerate() {
        if found.get(at) != Some(expected) {
            let _ = write!(wrong, "{line}\nexpected: {expected:?}\nfound:    {:?}\n\n", found.get(at));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_host_that_is_not_allowed_is_named_with_what_allows_it() {
    let (home, server) = (Home::new(), Server::start().unwrap());
    let port = server.port;
    let line = |line: &str| home.kiso(&["shell", "-c", &format!("U=http://127.0.0.1:{port}; {line}")]);
    let failed = format!("curl: (7) Failed to connect to 127.0.0.1 port {port}: not allowed\n");
    let ran = line("curl -sS --retry 2 --retry-all-errors $U/a.json; curl -s $U/a.json; wget -q $U/a.json");
    ran.exit(4);
    assert_eq!((ran.stdout.as_str(), ran.stderr.matches(&failed).count()), ("", 1), "{ran:?}");
    assert_eq!(ran.stderr.matches("kiso network allow").count(), 1, "{ran:?}");
    home.kiso(&["network", "allow", &format!("127.0.0.1:{port}"), "--private"]).ok();
    line("curl -s $U/a.json").ok().prints(&["kiso"]);
    line("curl -s -d a=1 $U/echo").exit(7).says(&["kiso network allow"]);
}

/// One block of `curl-lines.sh`.
struct Line {
    name: String,
    text: String,
}

fn corpus() -> Vec<Line> {
    let source = std::fs::read_to_string(root().join("tests/all/network/curl-lines.sh")).unwrap();
    let mut lines = Vec::<Line>::new();
    let mut inside = false;
    for text in source.lines() {
        match text.strip_prefix("### ") {
            Some(name) => {
                lines.push(Line { name: name.to_owned(), text: String::new() });
                inside = true;
            }
            None if text.starts_with("## ") => inside = false,
            None if inside => lines.last_mut().unwrap().text.push_str(&format!("{text}\n")),
            None => {}
        }
    }
    lines
}

/// The names under "Differences from curl and wget" in docs/network.md.
fn differences() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("docs/network.md")).unwrap();
    let (_, section) = text.split_once("\n## Differences from curl and wget\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    section.split("\n- `").skip(1).map(|item| item.split('`').next().unwrap().to_owned()).collect()
}

#[test]
fn every_difference_from_curl_is_that_of_a_line() {
    let lines = corpus();
    let names: BTreeSet<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    assert!(lines.len() >= 110 && names.len() == lines.len(), "{} lines, {} names", lines.len(), names.len());
    let listed = differences();
    assert!(listed.len() <= 5 && listed.iter().all(|name| names.contains(name.as_str())), "{listed:?}");
}

/// Results of a line: standard output, exit code, and files.
#[derive(Debug, PartialEq)]
struct Outcome {
    stdout: String,
    code: Option<i32>,
    files: BTreeMap<String, String>,
}

fn files(dir: &Path, below: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if name == "pub" {
            continue;
        }
        match entry.path().is_dir() {
            true => files(&entry.path(), &format!("{name}/"), found),
            false => {
                let bytes = std::fs::read(entry.path()).unwrap();
                found.insert(name, String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
}

fn outcome(mut command: Command, dir: &Path) -> Outcome {
    let ran = command.stdin(Stdio::null()).output().unwrap();
    let mut found = BTreeMap::new();
    files(dir, "", &mut found);
    Outcome { stdout: String::from_utf8_lossy(&ran.stdout).into_owned(), code: ran.status.code(), files: found }
}

#[test]
#[ignore = "120 lines, each in two programs: for .ci/long"]
fn lines_answer_as_in_curl_and_wget() {
    for tool in ["curl", "wget", "jq"] {
        if !Command::new(tool).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return missing_tool("the comparison of curl and wget", &format!("this host has no {tool}"));
        }
    }
    let server = Server::start().unwrap();
    let (lines, listed, next) = (corpus(), differences(), AtomicUsize::new(0));
    let wrong = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let home = Home::new();
                allow(&home, server.port);
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let head = format!("U=http://127.0.0.1:{0}; P={0}\n", server.port);
                    let dir = TempDir::new().unwrap();
                    // Every workspace has this directory.
                    std::fs::create_dir(dir.path().join("pub")).unwrap();
                    let mut command = Command::new("bash");
                    command.args(["-c", &format!("{head}{}", line.text)]).current_dir(dir.path());
                    command.env_remove("http_proxy").env("LC_ALL", "C.UTF-8").env("HOME", dir.path());
                    let theirs = outcome(command, dir.path());
                    let session =
                        format!("line-{}", line.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-").to_lowercase());
                    let command =
                        home.command(&["shell", "--session", &session, "-c", &format!("{head}{}", line.text)]);
                    let ours = outcome(command, &home.work(&session));
                    if (ours == theirs) == listed.contains(&line.name) {
                        let _ = write!(
                            wrong.lock().unwrap(),
                            "### {}\n{}theirs: {theirs:?}\nours:   {ours:?}\n\n",
                            line.name,
                            line.text
                        );
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong}");
}
