//! A run of twelve steps that moves to the other machine at its steps: the same reply, the same files, and nothing is done twice.
//!
//! Ten steps write to a file and notify a receiver; two request a web server outside. Each is paused in its middle, where its
//! owner is killed or drained. `KISO_FLEET=full` moves the run at all twelve, each way. After a kill, a whole lease passes, so
//! that takes about a minute; otherwise each way has four of them, with the first, the last and both kinds.

use super::members::{Machine, begun};
use super::nats::Nats;
use super::sink::Sink;
use crate::harness::{wait_for, wait_until};
use crate::model_server::{ModelServer, Script};
use crate::served::Served;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

const STEPS: usize = 12;

/// The steps that request the web server.
const OUTSIDE: [usize; 2] = [4, 9];

const MEMBERS: [&str; 2] = ["pi", "desk"];

const MESSAGE: &str = "Please do the twelve steps, one after the other.";

const REPLY: &str = "All twelve steps are done.";

/// The way in which the owner goes away in the middle of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Kill,
    Drain,
}

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    reply: String,
    /// Content of the files in the workspace by name.
    files: BTreeMap<String, String>,
    /// Requests to the web server by step.
    asked: BTreeMap<usize, usize>,
    /// Deliveries to the receiver.
    told: Vec<String>,
}

/// The steps at which the run moves.
fn moved(few: [usize; 4]) -> Vec<usize> {
    match std::env::var("KISO_FLEET").as_deref() {
        Ok("full") => (1..=STEPS).collect(),
        _ => few.to_vec(),
    }
}

#[test]
fn a_run_is_drained_away_in_the_middle_of_its_steps() {
    is_as_if_nothing_had_happened(Move::Drain, &moved([1, 4, 7, 12]));
}

/// Work inside the sandbox is done again; a request to the outside is reported as interrupted.
#[test]
fn a_run_is_killed_away_in_the_middle_of_its_steps() {
    is_as_if_nothing_had_happened(Move::Kill, &moved([1, 6, 9, 12]));
}

fn is_as_if_nothing_had_happened(how: Move, at: &[usize]) {
    static UNDISTURBED: OnceLock<Option<Left>> = OnceLock::new();
    let undisturbed = UNDISTURBED.get_or_init(|| {
        let left = left_by(Move::Drain, &[])?;
        assert_eq!(left.reply, REPLY);
        assert_eq!(left.asked, BTreeMap::from(OUTSIDE.map(|step| (step, 1))));
        assert_eq!(left.told.len(), STEPS - OUTSIDE.len() + 1, "{:?}", left.told);
        let inside = (1..=STEPS).filter(|step| !OUTSIDE.contains(step));
        let lines: String = inside.map(|step| format!("begin {step}\nend {step}\n")).collect();
        assert_eq!(left.files["effects"], lines);
        Some(left)
    });
    if let Some(undisturbed) = undisturbed {
        assert_eq!(left_by(how, at).as_ref(), Some(undisturbed), "{how:?} at {at:?}");
    }
}

/// Runs the plan and moves it at these steps. Returns `None`, with a message, if there is no server.
fn left_by(how: Move, at: &[usize]) -> Option<Left> {
    let mut stage = Stage::open(how, at)?;
    let message = stage.daemons[stage.owner].send("main", MESSAGE);
    for step in 1..=STEPS {
        stage.is_in(step);
        match at.contains(&step).then_some(how) {
            None => stage.release(step),
            Some(Move::Drain) => stage.drain(step),
            Some(Move::Kill) => stage.kill(step),
        }
    }
    let reply = stage.daemons[stage.owner].reply(message);
    Some(stage.end(reply, how, at))
}

/// Two machines and the servers that the run uses.
struct Stage {
    machines: Vec<Machine>,
    daemons: Vec<Served>,
    /// Index of the owner.
    owner: usize,
    web: Web,
    sink: Sink,
    model: ModelServer,
    _nats: Nats,
}

impl Stage {
    fn open(how: Move, at: &[usize]) -> Option<Stage> {
        let nats = Nats::start()?;
        let (web, sink) = (Web::open(), Sink::open());
        let model = ModelServer::start(script(&web, how, at));
        let more = format!(
            "[models]\nrouter = \"test:m\"\nplanner = \"test:m\"\nreviewer = \"test:m\"\nworker = \"test:m\"\n\
             [providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n{}",
            model.base_url(),
            sink.settings(&["reply", "notify"]),
        );
        let machines: Vec<Machine> = MEMBERS.iter().map(|name| Machine::new(name, &nats, &nats.url(), &more)).collect();
        machines[0].home.kiso(&["skill", "grant", "fetch", "--host", &web.address, "--private"]).ok();
        begun(&machines[0]);
        let mut daemons = vec![machines[0].start()];
        machines[0].owns();
        daemons.push(machines[1].start());
        Some(Stage { machines, daemons, owner: 0, web, sink, model, _nats: nats })
    }

    /// Waits until the owner is in the middle of a step.
    #[track_caller]
    fn is_in(&self, step: usize) {
        wait_until(&format!("step {step} has begun"), || {
            let is_last = |line: &str| line == format!("begin {step}");
            match OUTSIDE.contains(&step) {
                true => self.web.holds(step),
                false => self.effects().lines().last().is_some_and(is_last),
            }
        });
    }

    fn effects(&self) -> String {
        std::fs::read_to_string(self.machines[self.owner].home.work("main").join("effects")).unwrap_or_default()
    }

    /// Lets the step finish.
    fn release(&self, step: usize) {
        match OUTSIDE.contains(&step) {
            true => self.web.answer(step),
            false => {
                let go = self.machines[self.owner].home.work("main").join(format!("go-{step}"));
                std::fs::write(go, "").expect("there is room");
            }
        }
    }

    /// The owner finishes the step and releases the home; its machine is on standby again.
    fn drain(&mut self, step: usize) {
        let (from, to) = (self.owner, 1 - self.owner);
        self.machines[from].home.kiso(&["fleet", "drain"]).ok();
        self.daemons[from].logs("shutting down: work in progress finishes its current step", 1);
        self.release(step);
        self.machines[to].owns();
        self.owner = to;
        self.starts_anew(from);
    }

    /// Kills the owner. The interrupted step is done again, unless it has reached something outside.
    fn kill(&mut self, step: usize) {
        let (from, to) = (self.owner, 1 - self.owner);
        self.daemons[from].signal(rustix::process::Signal::KILL);
        self.machines[to].owns();
        self.owner = to;
        self.starts_anew(from);
        if !OUTSIDE.contains(&step) {
            self.is_in(step);
            self.release(step);
        }
    }

    fn starts_anew(&mut self, machine: usize) {
        self.daemons.remove(machine).kill();
        self.daemons.insert(machine, self.machines[machine].start());
    }

    fn end(mut self, reply: String, how: Move, at: &[usize]) -> Left {
        assert!(self.web.asked().values().all(|times| *times == 1), "{:?}", self.web.asked());
        let expected = STEPS - OUTSIDE.len() + 1;
        wait_until("the receiver is told everything", || self.sink.taken().len() >= expected);
        assert_eq!(self.daemons.remove(self.owner).terminate(), 0);
        let home = &self.machines[self.owner].home;
        let files = std::fs::read_dir(home.work("main")).expect("it is there").flatten();
        let files = files.filter(|file| file.path().is_file()).map(|file| {
            let text = std::fs::read_to_string(file.path()).expect("it is text");
            (file.file_name().into_string().expect("it has a plain name"), text)
        });
        let files = files.collect();
        let store = Connection::open(home.path().join("store.db")).expect("it is there");
        let mut query = store.prepare("SELECT status FROM tasks ORDER BY id").unwrap();
        let statuses = query.query_map((), |row| row.get::<_, String>(0)).unwrap();
        let statuses: Vec<_> = statuses.collect::<Result<_, _>>().unwrap();
        assert_eq!(statuses.len(), STEPS + 1, "{statuses:?}");
        for (step, status) in (1..).zip(&statuses) {
            let is_cut = how == Move::Kill && at.contains(&step) && OUTSIDE.contains(&step);
            assert_eq!(status, if is_cut { "interrupted" } else { "done" }, "step {step}: {statuses:?}");
        }
        let mut told: Vec<_> = self.sink.taken().into_iter().map(|told| told.text).collect();
        told.sort();
        // No model answer was requested twice.
        self.model.finish();
        Left { reply, files, asked: self.web.asked(), told }
    }
}

/// Answers of the models: only the plan decides what is done.
fn script(web: &Web, how: Move, at: &[usize]) -> Script {
    let routing =
        json!({ "effort": "high", "categories": [], "tool_need": 1, "goal": "twelve steps", "durable": false });
    let mut tasks: Vec<Value> = (1..=STEPS).map(|step| task(web, step)).collect();
    tasks.push(json!({ "type": "msg", "detail": "say that all is done", "notify": true }));
    let plan = json!({ "goal": "twelve steps", "tasks": tasks });
    let mut replies = vec![
        json!({ "role": "router", "text": routing.to_string() }),
        json!({ "role": "planner", "text": format!("<FINAL_PRD>{plan}</FINAL_PRD>") }),
    ];
    for step in OUTSIDE {
        let verdict = json!({ "status": "ok" }).to_string();
        let is_cut = how == Move::Kill && at.contains(&step);
        let told = if is_cut { "interrupted" } else { "the door is open" };
        replies.push(json!({ "role": "reviewer", "text": verdict, "expect_contains": told }));
    }
    // The worker that writes the reply sees the last step's result on either machine.
    replies.push(json!({ "role": "worker", "text": REPLY, "expect_contains": "step 12, 20 lines" }));
    serde_json::from_value(json!({ "reply": replies })).expect("it is a script")
}

fn task(web: &Web, step: usize) -> Value {
    if OUTSIDE.contains(&step) {
        let args = json!({ "url": format!("http://{}/{step}", web.address) });
        return json!({ "type": "skill", "skill": "fetch", "args": args, "review": true, "expect": "it is open" });
    }
    let line = format!(
        "echo begin {step} >> effects; until [ -e go-{step} ]; do sleep 0.1; done; echo end {step} >> effects; \
         echo \"step {step}, $(wc -l < effects) lines\""
    );
    json!({ "type": "exec", "detail": line, "notify": true })
}

/// A web server that responds when the test allows it, and counts requests.
struct Web {
    address: String,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Default)]
struct Asked {
    /// Requests by step.
    times: BTreeMap<usize, usize>,
    held: BTreeMap<usize, TcpStream>,
}

impl Web {
    fn open() -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has one").to_string();
        let asked: Arc<Mutex<Asked>> = Arc::default();
        let kept = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(step) = step_of(&stream) {
                    let mut asked = kept.lock().expect("no thread panics with it");
                    *asked.times.entry(step).or_default() += 1;
                    asked.held.insert(step, stream);
                }
            }
        });
        Web { address, asked }
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().expect("no thread panics with it")
    }

    fn holds(&self, step: usize) -> bool {
        self.lock().held.contains_key(&step)
    }

    fn answer(&self, step: usize) {
        let mut stream = wait_for("somebody waits for an answer", || self.lock().held.remove(&step));
        stream.write_all(&crate::web::text("the door is open")).expect("somebody listens");
    }

    fn asked(&self) -> BTreeMap<usize, usize> {
        self.lock().times.clone()
    }
}

/// The step of a request.
fn step_of(stream: &TcpStream) -> Option<usize> {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    head.split(' ').nth(1)?.trim_start_matches('/').parse().ok()
}
