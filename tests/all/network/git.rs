//! git over HTTP, with the host's `git http-backend` as the server; the host's git checks the cloned and pushed repositories.

use crate::git::home;
use crate::harness::missing_tool;
use crate::web;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Serves the repositories of a directory; those below `/private/` need a password. Returns the address.
fn serve(root: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A connection without a request is ignored.
            let _ = answer(&root, stream);
        }
    });
    address
}

fn answer(root: &Path, stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let lines = web::read_head(&mut reader)?;
    let header = |name: &str| web::field(&lines, name);
    let words: Vec<&str> = lines.first().map(|line| line.split(' ').collect()).unwrap_or_default();
    let [method, target, _] = words[..] else { return Ok(()) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut body = Vec::new();
    web::read_body(&mut reader, &lines, |piece| body.extend_from_slice(piece))?;
    let mut stream = stream;
    let path = match path.strip_prefix("/private") {
        // ada:t0k/en
        Some(_) if header("authorization") != "Basic YWRhOnQway9lbg==" => {
            return stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic realm=\"x\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
        Some(path) => path,
        None => path,
    };
    let mut backend = Command::new("git");
    backend.arg("http-backend").env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1").env("REMOTE_USER", "ada");
    backend
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("REMOTE_ADDR", "127.0.0.1");
    backend.env("CONTENT_TYPE", header("content-type")).env("CONTENT_LENGTH", body.len().to_string());
    backend.env("GIT_PROTOCOL", header("git-protocol")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut backend = backend.spawn()?;
    let mut stdin = backend.stdin.take().expect("it is a pipe");
    std::thread::spawn(move || stdin.write_all(&body));
    let output = backend.wait_with_output()?.stdout;
    let end = output.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let head = head.lines().filter(|line| !line.starts_with("Status: ")).collect::<Vec<_>>().join("\r\n");
    write!(stream, "HTTP/1.1 {status}\r\nconnection: close\r\n{head}\r\n\r\n")?;
    stream.write_all(&output[(end + 4).min(output.len())..])
}

fn host(directory: &Path, words: &str) -> String {
    let mut git = Command::new("sh");
    git.args(["-c", words]).current_dir(directory).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", directory);
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "Bob").env(format!("GIT_{role}_EMAIL"), "bob@example.com");
    }
    let output = git.output().expect("there is a sh");
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Five commits on `main`, a branch `side`, a tag with a message, and a hook that prints something.
const REPOSITORY: &str = "git init -q --bare -b main a.git && git -C a.git config http.receivepack true && \
    git -C a.git config uploadpack.allowFilter true && git init -q -b main w && cd w && \
    for i in 1 2 3 4 5; do echo $i > f$i; seq $i 200 > x; git add .; git commit -qm c$i; done && git tag -a -m note v1 HEAD~1 && \
    git branch side HEAD~2 && git push -q ../a.git main side v1 && \
    printf '#!/bin/sh\\n[ \"$1\" = refs/heads/no ] && { echo not here; exit 1; }; exit 0\\n' > ../a.git/hooks/update && \
    printf '#!/bin/sh\\necho arrived\\n' > ../a.git/hooks/post-receive && chmod +x ../a.git/hooks/update ../a.git/hooks/post-receive";

#[test]
fn repositories_are_cloned_fetched_and_pushed_over_http() {
    let Some(home) = home() else { return };
    if Command::new("git").arg("http-backend").env("REQUEST_METHOD", "GET").output().is_err() {
        missing_tool("git over HTTP", "there is no git");
        return;
    }
    let there = tempfile::tempdir().unwrap();
    host(there.path(), REPOSITORY);
    let address = serve(there.path().to_owned());
    let url = format!("http://{address}/a.git");
    let run = |line: &str| home.kiso(&["shell", "--session", "http", "-c", line]);
    run(&format!("git clone {url}"))
        .exit(128)
        .says(&[&format!("kiso: {address} may not be reached"), &format!("fatal: unable to access '{url}/'")]);
    home.kiso(&["network", "allow", &address, "--private"]).ok();
    run("git config --global user.name Ada; git config --global user.email ada@example.com").ok();
    run(&format!("git ls-remote {url} | cut -f 2"))
        .ok()
        .prints(&["HEAD\nrefs/heads/main\nrefs/heads/side\nrefs/tags/v1\nrefs/tags/v1^{}\n"]);
    run(&format!("git clone {url} c 2>&1; cd c; git remote -v; git branch -a; git log --oneline | wc -l; cat f5"))
        .ok()
        .prints(&[
            "Cloning into 'c'...\n",
            &format!("origin\t{url} (fetch)\norigin\t{url} (push)\n"),
            "remotes/origin/HEAD -> origin/main\n  remotes/origin/main\n  remotes/origin/side\n5\n5\n",
        ]);
    let cloned = home.work("http").join("c");
    assert_eq!(
        host(&cloned, "git fsck --strict 2>&1 && git status --porcelain && git rev-parse v1^{}"),
        host(&there.path().join("w"), "git rev-parse v1^{}")
    );

    // Reading is allowed, but pushing needs another permission.
    run("cd c; echo new > n; git add n; git commit -qm n; git push").exit(128).says(&["may not be reached"]);
    home.kiso(&["network", "allow", &address, "--private", "--method", "GET", "--method", "POST"]).ok();
    let line = "cd c; git push 2>&1; git checkout -qb more; git push -u origin more 2>&1; git push origin HEAD:no 2>&1; git push origin :side 2>&1";
    run(line).exit(0).prints(&[
        "remote: arrived        \n",
        " main -> main\n",
        " * [new branch]      more -> more\nbranch 'more' set up to track 'origin/more'.\n",
        " ! [remote rejected] HEAD -> no (hook declined)\nerror: failed to push some refs to",
        " - [deleted]         side\n",
    ]);
    assert_eq!(
        host(
            &there.path().join("a.git"),
            "git fsck --strict 2>&1; git for-each-ref --format='%(refname:short) %(subject)'"
        ),
        "main n\nmore n\nv1 note\n"
    );

    host(
        &there.path().join("w"),
        "git pull -q ../a.git main; echo theirs > t; git add t; git commit -qm theirs; git push -q ../a.git main",
    );
    run("cd c; git checkout -q main; echo mine > m; git add m; git commit -qm mine; git push")
        .exit(1)
        .says(&["! [rejected]", "(fetch first)"]);
    run("cd c; git pull -q --rebase; git push -q; git log --format=%s -2").ok().prints(&["mine\ntheirs\n"]);
    assert_eq!(host(&there.path().join("a.git"), "git log --format=%s -2 main"), "mine\ntheirs\n");

    run(&format!("git clone -q --depth 1 {url} s; cd s; git log --oneline | wc -l; git fetch -q --depth 3; git log --oneline | wc -l; git fetch -q --unshallow; git log --oneline | wc -l"))
        .ok()
        .prints(&["1\n3\n8\n"]);
    run(&format!(
        "git clone -q --filter=blob:none {url} p; cd p; git show HEAD~5:x | wc -l; git config remote.origin.promisor"
    ))
    .ok()
    .prints(&["198\ntrue\n"]);
    assert_eq!(
        host(
            &home.work("http").join("p"),
            "git fsck 2>&1; git rev-list --objects --all --missing=print | grep -c '^?'"
        ),
        "3\n"
    );

    // A partial clone contains no data outside the working tree.
    run("cd c; mkdir -p in/ner out; echo in > in/ner/a; echo out > out/b; git add in out; git commit -qm dirs; git push -q").ok();
    run(&format!(
        "git clone -q --filter=blob:none --depth 1 --sparse --single-branch --branch main {url} sp; ls -d sp/*/; cd sp; \
         git sparse-checkout set in; find . -path ./.git -prune -o -type f -name '[ab]' -print; git checkout main 2>&1; git status -s"
    ))
    .ok()
    .prints(&["./in/ner/a\nAlready on 'main'\nYour branch is up to date with 'origin/main'.\n"]);
    assert_eq!(
        host(
            &home.work("http").join("sp"),
            "git status -s; git rev-list --objects --all --missing=print | grep -c '^?'"
        ),
        "1\n"
    );

    // More than one request to the host can carry, mostly incompressible.
    run("cd c; head -c 3000000 /dev/urandom > r1; head -c 2000000 /dev/urandom > r2; git add r1 r2; git commit -qm large; git push -q").ok();
    assert_eq!(
        host(
            &there.path().join("a.git"),
            "git fsck --strict 2>&1; git ls-tree -l main | awk '$4 > 1000000 {print $4, $5}'"
        ),
        "3000000 r1\n2000000 r2\n"
    );

    let private = url.replace("/a.git", "/private/a.git");
    run(&format!("git clone {private} q")).exit(128).says(&["could not read Username for"]);
    run(&format!("TOKEN=t0k%2Fen; git clone -q {} q; cd q; git pull", private.replace("//", "//ada:$TOKEN@")))
        .ok()
        .prints(&["Already up to date."]);
    run(&format!("git clone {} r", private.replace("//", "//ada:wrong@")))
        .exit(128)
        .says(&[&format!("Authentication failed for '{private}/'")]);
    run(&format!("git clone {url}x")).exit(128).says(&[&format!("repository '{url}x/' not found")]);
}
