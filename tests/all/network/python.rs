//! Python over the network: its own modules and popular libraries with a server on loopback, pip with a local index, and pytest.

use crate::harness::{Home, Ran, missing_tool, root};
use crate::python::home;
use crate::web;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Responses by path: the request's address, a redirect, a chunked body, a truncated body, a missing page.
fn server() -> String {
    let body = |status: &str, headers: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
    };
    web::serve(move |path| {
        match path {
            "/moved" => body("302 Found", "location: /page?a=1\r\n", ""),
            "/chunks" => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n".into(),
            "/cut" => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nabc".into(),
            "/none" => body("404 Not Found", "", "no such page"),
            "/cookie" => body("200 OK", "set-cookie: a=b\r\nset-cookie: c=d\r\n", "set"),
            path => body("200 OK", "content-type: text/plain\r\n", &format!("at {path}")),
        }
        .into_bytes()
    })
}

fn run(home: &Home, session: &str, line: &str) -> Ran {
    home.kiso(&["shell", "--session", session, "-c", line])
}

/// Runs a program and compares every line of its output.
fn program(home: &Home, session: &str, text: &str, expected: &str) {
    std::fs::create_dir_all(home.work(session)).unwrap();
    std::fs::write(home.work(session).join("p.py"), text).unwrap();
    let ran = run(home, session, "python3 p.py");
    assert_eq!(ran.ok().stdout.trim_end(), expected, "{}", ran.stderr);
}

#[test]
fn modules_of_the_library_make_requests() {
    let Some(home) = home() else { return };
    let address = server();
    home.kiso(&["network", "allow", &address, "--private", "--method", "GET", "--method", "POST"]).ok();
    home.kiso(&["network", "allow", "127.0.0.1:1", "--private"]).ok();
    let text = r#"
import asyncio, http.client, socket, threading, urllib.error, urllib.request
U, (HOST, PORT) = "http://ADDRESS", "ADDRESS".split(":")
answer = urllib.request.urlopen(U + "/moved")
print(answer.status, answer.url.removeprefix(U), answer.read())
print(urllib.request.urlopen(U + "/cookie").headers.get_all("Set-Cookie"))
try:
    urllib.request.urlopen(U + "/none")
except urllib.error.HTTPError as error:
    print(error.code, error.read())
connection = http.client.HTTPConnection(HOST, int(PORT))
for path in ("/chunks", "/again"):
    connection.request("POST", path, body=iter([b"a", b"b"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    print(connection.getresponse().read())
try:
    urllib.request.urlopen(U + "/cut").read()
except http.client.IncompleteRead as error:
    print(error)
for url in ("http://127.0.0.1:1/", "http://denied.test/"):
    try:
        urllib.request.urlopen(url)
    except urllib.error.URLError as error:
        print(type(error.reason).__name__)
raw = socket.create_connection((HOST, int(PORT)))
raw.sendall(b"GET /raw HTTP/1.0\r\n\r\n")
print(raw.makefile("rb").read().rpartition(b"\r\n")[2])
for wrong in (lambda: socket.create_connection((HOST, int(PORT))).sendall(b"SSH-2.0-x\r\n"), lambda: socket.socket().listen(),
              lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)):
    try:
        wrong()
    except OSError as error:
        print(error.strerror.partition(",")[0])
async def get(path):
    reader, writer = await asyncio.open_connection(HOST, int(PORT))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    return (await reader.read()).rpartition(b"\n")[2]
async def main():
    return await asyncio.gather(*map(get, ("/1", "/2", "/3")))
print(asyncio.run(main()))
threads = [threading.Thread(target=lambda n=n: print(urllib.request.urlopen(f"{U}/t{n}").read())) for n in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"#;
    program(
        home,
        "requests",
        &text.replace("ADDRESS", &address),
        "200 /page?a=1 b'at /page?a=1'\n\
         ['a=b', 'c=d']\n\
         404 b'no such page'\n\
         b'hello!'\n\
         b'at /again'\n\
         IncompleteRead(3 bytes read, 97 more expected)\n\
         ConnectionRefusedError\n\
         PermissionError\n\
         b'at /raw'\n\
         hosts are reached with HTTP and HTTPS only\n\
         programs cannot be servers here; they can make requests\n\
         programs have neither UDP nor raw sockets here; they can make requests with HTTP and HTTPS\n\
         [b'at /1', b'at /2', b'at /3']\n\
         b'at /t0'\n\
         b'at /t1'",
    );
    let said = &run(home, "requests", "python3 -c 'import urllib.request as u; u.urlopen(\"http://denied.test\")'");
    said.exit(1)
        .says(&["kiso: denied.test may not be reached; `kiso network allow denied.test` allows it", "PermissionError"]);
}

/// A file, generated pieces, and a body in one text; then a truncated body, one that is longer than announced, and a server that
/// may not be reached.
const UPLOADS: &str = r#"
import asyncio, http.client, sys, urllib.error, urllib.request, zlib
U, (HOST, PORT), MIB = "http://ADDRESS/", "ADDRESS".split(":"), int(sys.argv[1])
part = bytes(range(256)) * 1024
def pieces(mib=MIB):
    for n in range(4 * mib):
        yield part
def expect(method, size, framed):
    checksum = 1
    for n in range(size // len(part)):
        checksum = zlib.adler32(part, checksum)
    checksum = zlib.adler32(part[:size % len(part)], checksum)
    return f"{method} {size} {checksum} {framed}"
def send(method, data, **headers):
    request = urllib.request.Request(U, data=data, method=method, headers=headers)
    return urllib.request.urlopen(request).read().decode()
size, of_file = MIB << 20, min(MIB, 40) << 20
with open("big", "wb") as file:
    file.writelines(pieces(of_file >> 20))
with open("big", "rb") as file:
    print(send("PUT", file, **{"Content-Length": str(of_file)}) == expect("PUT", of_file, "length"))
print(send("POST", pieces()) == expect("POST", size, "chunks"))
print(send("POST", part * 21) == expect("POST", len(part) * 21, "length"), send("POST", b"small").endswith("length"))
connection = http.client.HTTPConnection(HOST, int(PORT))
for n in (1, 2):
    connection.request("POST", "/", body=part * 3 + b"x" * n)
    print(connection.getresponse().read().split()[1] == str(len(part) * 3 + n).encode())
async def post(n):
    reader, writer = await asyncio.open_connection(HOST, int(PORT))
    writer.write(f"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(part) * 5 + n}\r\n\r\n".encode())
    for _ in range(5):
        writer.write(part)
        await writer.drain()
    writer.write(b"x" * n)
    return (await reader.read()).split()[-3] == str(len(part) * 5 + n).encode()
async def main():
    return await asyncio.gather(*map(post, (1, 2, 3)))
print(asyncio.run(main()))
connection = http.client.HTTPConnection(HOST, int(PORT))
connection.putrequest("PUT", "/")
connection.putheader("Content-Length", str(size))
connection.endheaders()
connection.send(part * 2)
connection.close()
for url in ("http://127.0.0.1:1/", "http://denied.test/"):
    try:
        urllib.request.urlopen(url, data=pieces())
    except urllib.error.URLError as error:
        print(type(error.reason).__name__)
"#;

fn uploads(home: &Home, session: &str, mib: &str) {
    let (address, answers) = web::weigh();
    home.kiso(&["network", "allow", &address, "--private", "--method", "POST", "--method", "PUT"]).ok();
    home.kiso(&["network", "allow", "127.0.0.1:1", "--private", "--method", "POST"]).ok();
    std::fs::create_dir_all(home.work(session)).unwrap();
    std::fs::write(home.work(session).join("p.py"), UPLOADS.replace("ADDRESS", &address)).unwrap();
    let ran = run(home, session, &format!("python3 p.py {mib}"));
    let expected = "True\nTrue\nTrue True\nTrue\nTrue\n[True, True, True]\nConnectionRefusedError\nPermissionError\n";
    assert_eq!(ran.ok().stdout, expected, "{}", ran.stderr);
    let answers: Vec<_> = (0..10).map(|_| answers.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
    assert_eq!(answers.iter().filter(|answer| *answer == "cut").count(), 1, "{answers:?}");
}

#[test]
fn long_bodies_are_sent_while_they_are_made() {
    let Some(home) = home() else { return };
    uploads(home, "uploads", "3");
}

#[test]
#[ignore = "sends 600 MiB, more than a program's memory"]
fn bodies_need_no_memory() {
    let Some(home) = home() else { return };
    uploads(home, "large", "300");
}

/// Wheels of libraries and their digests, fetched by pip for this machine. Returns `None`, with a message, if that is not
/// possible.
fn wheels() -> Option<PathBuf> {
    let directory = root().join("target/python/wheels");
    let names = ["requests==2.34.2", "httpx==0.28.1", "pytest==9.2.0"];
    if directory.join("ready").is_file() {
        return Some(directory);
    }
    let [plat, only] = [["--platform", "any"], ["--only-binary", ":all:"]];
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--python-version", "3.12"]);
    let done = pip.args(plat).args(only).arg("--dest").arg(&directory).args(names).output();
    match done {
        Ok(done) if done.status.success() => {
            std::fs::write(directory.join("ready"), "").unwrap();
            Some(directory)
        }
        other => {
            missing_tool("libraries of Python", &format!("{other:?}"));
            None
        }
    }
}

/// An index of these wheels, with one package that has native code and one that has to be built.
fn index(wheels: PathBuf) -> String {
    let page = |links: &[String]| {
        let links: String = links.iter().map(|name| format!("<a href=\"/files/{name}\">{name}</a>\n")).collect();
        web::text(&links)
    };
    let html = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace("text/plain", "text/html").into_bytes();
    web::serve(move |path| {
        if let Some(name) = path.strip_prefix("/files/") {
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\nconnection: close\r\n\r\n";
            return std::fs::read(wheels.join(name))
                .map_or_else(|_| b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec(), |file| [&head[..], &file[..]].concat());
        }
        let project = path.trim_start_matches("/simple/").trim_end_matches('/').to_owned();
        let made = match &project[..] {
            "nativ" => vec!["nativ-1.0-cp312-cp312-manylinux_2_17_x86_64.whl".to_owned()],
            "built" => vec!["built-1.0.tar.gz".to_owned()],
            _ => std::fs::read_dir(&wheels)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name.replace('_', "-").to_lowercase().starts_with(&format!("{project}-")))
                .collect(),
        };
        html(page(&made))
    })
}

#[test]
fn pip_installs_from_an_index_that_is_allowed() {
    let (Some(home), Some(wheels)) = (home(), wheels()) else { return };
    let index = index(wheels);
    let run = |line: &str| run(home, "pip-short", line);
    run("pip install iniconfig --index-url https://denied.test/simple")
        .exit(1)
        .says(&["denied.test may not be reached"]);
    home.kiso(&["network", "allow", &index, "--private"]).ok();
    let line =
        format!("pip install -q --trusted-host 127.0.0.1 --index-url http://{index}/simple iniconfig && pip freeze");
    run(&line).ok().prints(&["iniconfig=="]);
    run("python3 -c 'import iniconfig; print(iniconfig.__name__)'").ok().prints(&["iniconfig"]);
}

#[test]
#[ignore = "starts pip and pytest fifteen times"]
fn pip_installs_what_libraries_and_tests_need() {
    let (Some(home), Some(wheels)) = (home(), wheels()) else { return };
    let (index, pages) = (index(wheels), server());
    let run = |line: &str| run(home, "pip", line);
    for address in [&index, &pages] {
        home.kiso(&["network", "allow", address, "--private"]).ok();
    }
    let from = format!("export PIP_INDEX_URL=http://{index}/simple PIP_TRUSTED_HOST=127.0.0.1; ");
    let with = |line: &str| run(&format!("{from}{line}"));
    with("pip install requests httpx pytest==9.2.0").ok().prints(&[
        "Successfully installed",
        "requests-2.34.2",
        "httpx-0.28.1",
    ]);
    with("pip install requests").ok().prints(&["Requirement already satisfied: requests"]);
    with("pip install nativ").exit(1).says(&["kiso: nativ has native code", "such as nativ-1.0-cp312-cp312-manylinux"]);
    with("pip install built")
        .exit(1)
        .says(&["kiso: built has no wheel, only built-1.0.tar.gz, and nothing can be built here"]);
    with("pip install .").exit(1).says(&["nothing can be built here"]);
    with("pip download --no-deps -d dl iniconfig && ls dl && pip uninstall -y iniconfig && pip install dl/*.whl && pip check")
        .ok()
        .prints(&["iniconfig-", "Successfully uninstalled iniconfig", "No broken requirements"]);
    with("pip freeze > all.txt; pip install --target t --no-deps -r all.txt -q; ls t | grep -c '^requests$'; pip list | grep -c '^pip '; \
          python3 -m pip show requests | grep ^Version")
        .ok()
        .prints(&["1\n1\nVersion: 2.34.2\n"]);
    with("printf 'idna --hash=sha256:%064d\\n' 0 > bad.txt; pip install --require-hashes --force-reinstall -r bad.txt")
        .exit(1)
        .says(&["THESE PACKAGES DO NOT MATCH THE HASHES"]);
    let text = r#"
import asyncio, httpx, requests
U = "http://ADDRESS"
session = requests.Session()
print(session.get(U + "/moved").text, session.get(U + "/cookie").cookies.get_dict())
print(requests.get(U + "/none").status_code, httpx.get(U + "/chunks").text)
async def main():
    async with httpx.AsyncClient() as client:
        return [answer.text for answer in await asyncio.gather(*(client.get(f"{U}/{n}") for n in range(3)))]
print(asyncio.run(main()))
"#;
    let expected = "at /page?a=1 {'a': 'b', 'c': 'd'}\n404 hello!\n['at /0', 'at /1', 'at /2']";
    program(home, "pip", &text.replace("ADDRESS", &pages), expected);
    passes_pytest(home);
}

/// Uses of pytest that programs need, in the session that has it installed.
fn passes_pytest(home: &Home) {
    let tests = r#"
import os, threading, pytest
@pytest.fixture
def one():
    yield 1
@pytest.mark.parametrize("a,b", [(1, 2), (2, 3)])
def test_table(a, b, one):
    assert a + one == b
def test_streams(capsys):
    print("hello")
    assert capsys.readouterr().out == "hello\n"
def test_commands(capfd):
    os.system("echo from a command")
    assert capfd.readouterr().out == "from a command\n"
def test_files(tmp_path, monkeypatch):
    (tmp_path / "x").write_text("y")
    monkeypatch.chdir(tmp_path)
    assert open("x").read() == "y"
def test_threads():
    found = []
    thread = threading.Thread(target=lambda: found.append(1))
    thread.start(); thread.join()
    assert found == [1]
def test_wrong():
    print("before it")
    assert {"a": 1} == {"a": 2}
"#;
    std::fs::write(home.work("pip").join("test_it.py"), tests).unwrap();
    let run = |line: &str| run(home, "pip", line);
    run("pytest -q").exit(1).prints(&[
        "before it",
        "AssertionError: assert {'a': 1} == {'a': 2}",
        "1 failed, 6 passed",
    ]);
    run("python3 -m pytest --lf -q").exit(1).prints(&["1 failed"]);
    run("pytest -q -x -k 'wrong or files'").exit(1).prints(&["1 failed, 1 passed, 5 deselected"]);
}
