//! `fetch`, `node:http` and `node:https`, against a server on loopback.

use super::{home, shell};
use crate::harness::{Home, own_port};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A server on its own port with responses by path. `/echo` returns the request.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(&stream));
        }
    });
    address
}

fn answer(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    let mut writer = stream;
    let mut send = |status: &str, headers: &str, body: &[u8]| {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n");
        // Some clients disconnect early.
        let _ = writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(body));
    };
    match path.split('?').next().unwrap_or_default() {
        "/json" => send(
            "200 OK",
            "content-type: application/json\r\nx-two: a\r\nx-two: b\r\nset-cookie: c=1\r\nset-cookie: d=2\r\n",
            "{\"é\": [1]}".as_bytes(),
        ),
        "/echo" => {
            let body = String::from_utf8_lossy(&body);
            send("200 OK", "content-type: text/plain\r\n", format!("{head}{body}").as_bytes());
        }
        "/moved" => send("302 Found", "location: /echo?moved\r\n", b"elsewhere"),
        "/away" => {
            let to = path.split('?').nth(1).unwrap_or_default();
            send("307 Temporary Redirect", &format!("location: http://{to}/echo\r\n"), b"");
        }
        "/loop" => send("301 Moved Permanently", "location: /loop\r\n", b""),
        "/ftp" => send("301 Moved Permanently", "location: ftp://127.0.0.1/\r\n", b""),
        "/none" => send("404 Not Found", "", b"nothing here"),
        "/packed" => send("200 OK", "content-encoding: gzip\r\n", b"\x1f\x8b"),
        "/slow" => std::thread::sleep(Duration::from_millis(600)),
        "/wait" => {
            std::thread::sleep(Duration::from_millis(300));
            send("200 OK", "", b"waited");
        }
        "/large" => send("200 OK", "", &vec![b'x'; 3 << 20]),
        "/cut" => {
            let _ = writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this");
        }
        "/parts" => {
            let _ = writer.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
            for part in ["one", "two", "three"] {
                let _ = writer.write_all(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes());
                std::thread::sleep(Duration::from_millis(60));
            }
            let _ = writer.write_all(b"0\r\n\r\n");
        }
        _ => send("500 Internal Server Error", "", b""),
    }
}

/// A home whose command lines may send requests to these addresses.
fn open_home(files: &[(&str, &str)], places: &[&str]) -> Home {
    let home = home(files);
    for place in places {
        let methods = ["--method", "GET", "--method", "POST", "--method", "PUT", "--method", "HEAD"];
        home.kiso(&[&["network", "allow", place, "--private"][..], &methods].concat()).ok();
    }
    home
}

const FETCH: &str = r#"
const [base, other] = process.argv.slice(2);
const json = await fetch(base + '/json?q=1 2#x', { headers: { 'X-A': 'b' } });
console.log(1, json.status, json.ok, json.statusText, json.url === base + '/json?q=1%202', json.headers.get('X-Two'), json.headers.getSetCookie(), json.bodyUsed);
console.log(2, await json.json(), json.bodyUsed, await json.text().catch((e) => e.message));
const lines = async (path, init) => (await (await fetch(base + path, init)).text()).split('\r\n');
const sent = await lines('/echo', { method: 'post', body: JSON.stringify({ a: 'é' }), headers: new Headers([['content-type', 'application/json'], ['Cookie', 'x=1']]) });
console.log(3, sent[0], sent.at(-1), ['content-type: application/json', 'content-length: 10', 'cookie: x=1', 'user-agent: node', 'host: ' + new URL(base).host].every((line) => sent.includes(line)));
const form = await lines('/echo', { method: 'PUT', body: new URLSearchParams({ a: '1 2', b: '&' }) });
console.log(4, form.at(-1), form.includes('content-type: application/x-www-form-urlencoded;charset=UTF-8'));
const data = new FormData();
data.append('name', 'Ada');
data.append('file', new Blob(['bytes'], { type: 'text/x' }), 'a.txt');
const parts = await lines('/echo', { method: 'POST', body: data });
console.log(5, parts.includes('content-disposition: form-data; name="file"; filename="a.txt"'), parts.includes('content-type: text/x'), parts.includes('Ada'), parts.includes('bytes'));
const moved = await fetch(base + '/moved', { method: 'POST', body: 'x', headers: { authorization: 'secret' } });
const seen = (await moved.text()).split('\r\n');
console.log(6, moved.redirected, moved.url === base + '/echo?moved', seen[0], seen.includes('authorization: secret'), seen.some((line) => line.startsWith('content-')));
const away = await lines('/away?' + other, { method: 'POST', body: 'kept', headers: { authorization: 'secret', cookie: 'c=1' } });
console.log(7, away[0], away.at(-1), away.some((line) => /^(authorization|cookie):/.test(line)));
const manual = await fetch(base + '/moved', { redirect: 'manual' });
console.log(8, manual.status, manual.headers.get('location'), (await fetch(base + '/none')).status);
const failing = async (path, init) => { try { await (await fetch(path.startsWith('/') ? base + path : path, init)).text(); return 'no error' } catch (e) { return [e.name, e.message, e.cause && (e.cause.code || e.cause.message)].join(' | ') } };
console.log(9, await failing('/moved', { redirect: 'error' }), '\n', await failing('/loop'), '\n', await failing('/ftp'), '\n', await failing('/packed'));
console.log(10, await failing('/slow', { signal: AbortSignal.timeout(50) }), '\n', await failing('/slow', { signal: AbortSignal.abort() }), '\n', await failing('/slow'), '\n', await failing('/cut'));
console.log(11, await failing('http://user:word@127.0.0.1/'), '\n', await failing('nowhere'), '\n', await failing('/echo', { body: 'x' }), '\n', await failing('/echo', { headers: { 'a b': '1' } }));
let count = 0, first;
for await (const chunk of (await fetch(base + '/parts')).body) { first ??= new TextDecoder().decode(chunk); count += chunk.length; }
const reader = (await fetch(base + '/large')).body.getReader();
let size = 0, reads = 0;
for (let part = await reader.read(); !part.done; part = await reader.read()) { size += part.value.length; reads += 1; }
console.log(12, first, count, size, reads > 1, (await (await fetch(base + '/large')).arrayBuffer()).byteLength);
const start = Date.now();
let ticks = 0;
const ticking = setInterval(() => { ticks += 1; }, 20);
const all = await Promise.all(Array.from({ length: 5 }, () => fetch(base + '/wait').then((r) => r.text())));
clearInterval(ticking);
console.log(13, all.join(), Date.now() - start < 1200, ticks > 3);
const large = await fetch(base + '/echo', { method: 'POST', body: new Uint8Array(2 << 20).fill(65) });
console.log(14, (await large.text()).length > 2 << 20);
const twice = await fetch(base + '/json');
const copy = twice.clone();
console.log(15, await twice.text() === await copy.text(), (await Response.json({ a: 1 }).json()).a, await new Request(base, { method: 'POST', body: 'x' }).text());
const head = await fetch(base + '/json', { method: 'HEAD' });
console.log(16, head.status, await head.text() === '');
"#;

#[test]
fn fetch_is_that_of_node() {
    let (first, second) = (serve(), serve());
    let home = open_home(&[("fetch.mjs", FETCH)], &[&first, &second]);
    let ran = shell(&home, &format!("node fetch.mjs http://{first} {second}"));
    ran.ok();
    let expected = "1 200 true OK true a, b [ 'c=1', 'd=2' ] false
2 { 'é': [ 1 ] } true Body is unusable: Body has already been read
3 POST /echo HTTP/1.1 {\"a\":\"é\"} true
4 a=1+2&b=%26 true
5 true true true true
6 true true GET /echo?moved HTTP/1.1 true false
7 POST /echo HTTP/1.1 kept false
8 302 /echo?moved 404
9 TypeError | fetch failed | unexpected redirect\u{20}
 TypeError | fetch failed | redirect count exceeded\u{20}
 TypeError | fetch failed | unknown scheme\u{20}
 TypeError | fetch failed | BASE/packed is sent compressed (gzip), though that was not asked for
10 TimeoutError | The operation was aborted due to timeout |\u{20}
 AbortError | This operation was aborted |\u{20}
 TypeError | fetch failed | UND_ERR_SOCKET\u{20}
 TypeError | terminated | UND_ERR_SOCKET
11 TypeError | Request cannot be constructed from a URL that includes credentials: http://user:word@127.0.0.1/ |\u{20}
 TypeError | Failed to parse URL from nowhere | ERR_INVALID_URL\u{20}
 TypeError | Request with GET/HEAD method cannot have body. |\u{20}
 TypeError | Headers.append: a b is an invalid header name. |\u{20}
12 one 11 3145728 true 3145728
13 waited,waited,waited,waited,waited true true
14 true
15 true 1 x
16 200 true";
    let expected = expected.replace("BASE", &format!("http://{first}"));
    let lines = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(lines(&ran.stdout), lines(&expected), "{}", ran.stderr);
}

const HTTP: &str = r#"
const http = require('node:http'), https = require('https');
const { Readable } = require('stream'), fs = require('fs');
const base = process.argv[2];
const text = (message) => new Promise((resolve) => { let all = ''; message.setEncoding('utf8'); message.on('data', (part) => { all += part; }); message.on('end', () => resolve(all)); });
const url = new URL(base);
http.get(base + '/json', async (res) => {
  console.log(1, res.statusCode, res.statusMessage, res.headers['content-type'], res.headers['x-two'], res.headers['set-cookie'], JSON.parse(await text(res)), res.complete);
  const req = http.request({ hostname: url.hostname, port: url.port, path: '/echo?a=1', method: 'POST', headers: { 'Content-Type': 'text/x' }, auth: 'a:b' }, async (res) => {
    const lines = (await text(res)).split('\r\n');
    console.log(2, lines[0], lines.at(-1), lines.includes('content-type: text/x'), lines.includes('content-length: 6'), lines.includes('authorization: Basic YTpi'));
    http.get(base + '/moved', (res) => {
      console.log(3, res.statusCode, res.headers.location);
      res.resume();
      res.on('end', failures);
    });
  });
  req.write('abc');
  req.end('def');
});
const failing = (make) => new Promise((resolve) => { const req = make(); req.on('error', (e) => resolve([e.code, e.message].join(' | '))); req.on('timeout', () => req.destroy()); });
const failures = async () => {
  console.log(4, await failing(() => http.get(base + '/slow', { timeout: 50 })), await failing(() => http.get(base + '/slow')));
  console.log(5, await new Promise((resolve) => http.get(base + '/cut', (res) => { res.resume(); res.on('error', (e) => resolve(e.code + ' ' + e.message)); })));
  try { http.get('https://127.0.0.1/') } catch (e) { console.log(6, e.code) }
  try { https.request(base) } catch (e) { console.log(7, e.code) }
  try { http.createServer(() => {}) } catch (e) { console.log(8, e.code) }
  const { body } = await fetch(base + '/large');
  await require('stream/promises').pipeline(Readable.fromWeb(body), fs.createWriteStream('large.bin'));
  http.get(base + '/large', (res) => res.pipe(fs.createWriteStream('again.bin')).on('finish', () => console.log(9, fs.statSync('large.bin').size, fs.statSync('again.bin').size)));
};
"#;

#[test]
fn http_is_that_of_node() {
    let address = serve();
    let home = open_home(&[("http.js", HTTP)], &[&address]);
    let ran = shell(&home, &format!("node http.js http://{address}"));
    let expected = "1 200 OK application/json a, b [ 'c=1', 'd=2' ] { 'é': [ 1 ] } true
2 POST /echo?a=1 HTTP/1.1 abcdef true true true
3 302 /echo?moved
4 ECONNRESET | socket hang up ECONNRESET | socket hang up
5 ECONNRESET aborted
6 ERR_INVALID_PROTOCOL
7 ERR_INVALID_PROTOCOL
8 EACCES
9 3145728 3145728
";
    assert_eq!(ran.ok().stdout, expected, "{}", ran.stderr);
}

/// Refused requests, and requests that reach no server. The error of the first names the command that allows them.
#[test]
fn requests_that_fail_have_the_codes_of_node() {
    let (address, closed) = (serve(), format!("127.0.0.1:{}", own_port()));
    let code = "fetch(process.argv[1]).catch((e) => console.log(e.name, e.message, e.cause.code, e.cause.message))";
    let home = open_home(&[], &[&closed, "nowhere.invalid"]);
    let ran = shell(&home, &format!("node -e '{code}' http://{closed}/; node -e '{code}' http://nowhere.invalid/"));
    ran.ok().prints(&[
        &format!("TypeError fetch failed ECONNREFUSED connect ECONNREFUSED {closed}\n"),
        "TypeError fetch failed ENOTFOUND getaddrinfo ENOTFOUND nowhere.invalid\n",
    ]);
    let ran = shell(&home, &format!("node -e '{code}' http://{address}/json"));
    ran.ok().prints(&[&format!("TypeError fetch failed EACCES connect EACCES {address}\n")]);
    ran.says(&[&format!("{address} may not be reached"), "kiso network allow"]);
    let ran = shell(&home, &format!("node -e 'await fetch(\"http://{address}/json\")'"));
    ran.exit(1).says(&["Uncaught TypeError: fetch failed", "[cause]: Error: connect EACCES", "code: 'EACCES'"]);
    let ran = shell(&home, &format!("node -e 'require(\"http\").get(\"http://{closed}/\")'"));
    ran.exit(1).says(&["connect ECONNREFUSED", "syscall: 'connect'"]);
}
