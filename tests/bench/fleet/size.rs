//! The size and cost of a fleet: bytes for a message and for a session, the time for a machine to take over a home, and a NATS
//! server's needs for each home.

use super::Door;
use super::member::{Appended, Machine, stream};
use super::nats::Nats;
use super::wire::Wire;
use crate::run::grouped;
use crate::store::{filled, home, space};
use crate::{show, summary};
use data_encoding::HEXLOWER;
use kiso_base::home::{Home, SessionName};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Messages whose bytes are counted: too few to trigger a copy of the whole store.
const COUNTED: u64 = 100;

/// Homes to take over, by stored messages and by sessions with a file each: the second has only more sessions than the first, the
/// third only more messages.
const HOMES: [(u32, u32); 3] = [(200, 10), (200, 1_000), (1_000_000, 10)];

/// Takeovers of each home.
const TAKEOVERS: usize = 3;

/// Size of an incompressible message that fills the log.
const LONG: usize = 10_000;

/// Homes on a server.
const EMPTY_HOMES: u64 = 100;

/// Pieces of files in one stream.
const PIECES: u64 = 20_000;

/// Pieces in flight at the same time.
const ON_THEIR_WAY: u64 = 100;

pub(super) fn rows(nats: &Nats) {
    messages(nats);
    copy(nats);
    takeovers(nats);
    // A new server: data that was removed from the other one still counts as its memory.
    if let Some(fresh) = Nats::start() {
        server(fresh);
    }
}

/// Bytes published for a message, and the part that stays in the store.
fn messages(nats: &Nats) {
    let machine = Machine::new(home(), nats, "size", "m0");
    machine.begin();
    let (door, mut wire) = (Door::open(machine.start()), nats.connect());
    let mut client = door.served.client();
    door.message(&mut client, "old", "$ echo begin");
    // Kinds of messages: name, session and text, with a number for N.
    let kinds = [
        ("a message with one command", "old", "$ echo N"),
        ("one whose command writes a file of 1 kB", "old", "$ head -c 1000 /dev/urandom > file"),
        ("the first message of a session", "new-N", "$ echo N"),
    ];
    for (what, session, text) in kinds {
        let before = (Appended::read(&mut wire, "size"), space(machine.dir.path()));
        for n in 0..COUNTED {
            let [session, text] = [session, text].map(|text| text.replace('N', &n.to_string()));
            door.message(&mut client, &session, &text);
        }
        let (after, stays) = (Appended::read(&mut wire, "size").since(before.0), space(machine.dir.path()) - before.1);
        let each = |count: u64| count as f64 / COUNTED as f64;
        println!(
            "| {what}: appended to the log | {:.1} messages | {} bytes | |",
            each(after.log_messages),
            after.log_bytes / COUNTED
        );
        println!(
            "| pieces of files for it | {:.1} messages | {} bytes | |",
            each(after.pieces),
            after.piece_bytes / COUNTED
        );
        println!("| of that stays in the store | | {} bytes | |", stays / COUNTED);
    }
    println!("| resident memory, the owner | | {} MiB | |", door.served.resident() >> 20);
    let another = machine.another(nats, "m1");
    let standby = another.start();
    println!("| resident memory, one that stands by | | {} MiB | |", standby.resident() >> 20);
    standby.end();
    door.served.end();
    let log = Appended::read(&mut wire, "size").log_bytes;
    let times = (0..TAKEOVERS).map(|_| {
        let started = Instant::now();
        let served = another.start();
        let took = started.elapsed();
        served.end();
        took
    });
    let took = summary(times.collect()).1;
    println!("| kiso: another machine takes over, a log of {:.1} MB | | {} | |", log as f64 / 1e6, show(took));
}

/// How long a message waits while a copy of the whole store replaces the log.
fn copy(nats: &Nats) {
    let (stored, sessions) = HOMES[2];
    let dir = filled(stored, sessions);
    with_files(dir.path(), sessions);
    let machine = Machine::new(dir, nats, "copy", "m0");
    machine.begin();
    let (door, mut wire, mut random) = (Door::open(machine.start()), nats.connect(), File::open("/dev/urandom"));
    let random = random.as_mut().expect("this is Linux");
    let (mut client, mut bytes, mut times) = (door.served.client(), [0; LONG], Vec::new());
    let first = log_begins(&mut wire, "copy");
    while log_begins(&mut wire, "copy") == first {
        random.read_exact(&mut bytes).expect("it has no end");
        let line = format!("$ echo {}", HEXLOWER.encode(&bytes));
        times.push(door.message(&mut client, "copy", &line));
    }
    let store = space(machine.dir.path()) as f64 / 1e6;
    let (count, longest) = (times.len(), times.iter().max().copied().unwrap_or_default());
    let median = summary(times).1;
    let ratio = longest.as_secs_f64() / median.as_secs_f64();
    println!(
        "| kiso: the longest of {count} messages of {} kB, while a copy of a store of {store:.1} MB takes the log's place | | {} | \
         {ratio:.1} × the median |",
        2 * LONG / 1_000,
        show(longest)
    );
    door.served.end();
}

/// The first message still in a fleet's log.
fn log_begins(wire: &mut Wire, fleet: &str) -> u64 {
    let info = wire.ask(&format!("$JS.API.STREAM.INFO.KISO_{fleet}_LOG"), &[], b"");
    info["state"]["first_seq"].as_u64().unwrap_or_else(|| panic!("{info}"))
}

/// The time to start a fleet with a home, and until another machine serves it.
fn takeovers(nats: &Nats) {
    let mut first: Option<[Duration; 3]> = None;
    for (at, (stored, sessions)) in HOMES.into_iter().enumerate() {
        let dir = filled(stored, sessions);
        with_files(dir.path(), sessions);
        let store = format!("a store of {:.1} MB, {} sessions", space(dir.path()) as f64 / 1e6, grouped(sessions));
        let owner = Machine::new(dir, nats, &format!("home-{at}"), "m0");
        let began = owner.begin();
        let (mut empty, mut full) = (Vec::new(), Vec::new());
        for n in 0..TAKEOVERS {
            let machine = owner.another(nats, &format!("m{}", n + 1));
            for times in [&mut empty, &mut full] {
                let started = Instant::now();
                let served = machine.start();
                times.push(started.elapsed());
                served.end();
            }
        }
        let all = [began, summary(empty).1, summary(full).1];
        let least = *first.get_or_insert(all);
        let whats = [
            format!("kiso: `kiso fleet begin`, {store}"),
            "kiso: a machine with nothing takes it over".to_owned(),
            "the same machine once more, with its files".to_owned(),
        ];
        for ((what, time), least) in whats.iter().zip(all).zip(least) {
            let more = time.saturating_sub(least);
            let of_session = more / (sessions - HOMES[0].1).max(1);
            let ratio = match at {
                0 => String::new(),
                1 => format!("{} for each session more", show(of_session)),
                _ => format!("{} more", show(more)),
            };
            println!("| {what} | | {} | {ratio} |", show(time));
        }
    }
}

/// Creates each session's directory with a file.
fn with_files(path: &Path, sessions: u32) {
    let home = Home::open(path).expect("a home");
    for name in (1..=sessions).map(|n| format!("s{n}")).chain(["long".to_owned()]) {
        let session = SessionName::parse(&name).expect("a plain name");
        home.create_session(&session).expect("there is room");
        let note = home.path().join("sessions").join(&name).join("work/note.txt");
        std::fs::write(note, format!("a note of {name}\n").repeat(60)).expect("there is room");
    }
}

/// A server's needs for idle homes, and for pieces of files.
fn server(mut nats: Nats) {
    let dir = TempDir::new().expect("there is room");
    let config = std::fs::read_to_string(home().path().join("config.toml")).expect("it has one");
    let before = Needs::measure(&mut nats);
    for n in 0..EMPTY_HOMES {
        let home = TempDir::new_in(dir.path()).expect("there is room");
        std::fs::write(home.path().join("config.toml"), &config).expect("there is room");
        Machine::new(home, &nats, &format!("empty-{n}"), "m0").status();
    }
    let with_homes = Needs::measure(&mut nats);
    let (mut wire, payload) = (nats.connect(), [7; 200]);
    stream(&mut wire, "PIECES", "pieces.*");
    for begin in (0..PIECES).step_by(usize::try_from(ON_THEIR_WAY).expect("few")) {
        // Their names are as long as digests.
        let sent = (begin..begin + ON_THEIR_WAY).map(|n| wire.begin(&format!("pieces.{n:064}"), &[], &payload));
        let sent: Vec<String> = sent.collect::<Result<_, _>>().expect("it is connected");
        sent.iter().for_each(|inbox| drop(wire.answer(inbox).expect("it is confirmed")));
    }
    let with_pieces = Needs::measure(&mut nats);
    println!("| nats: memory for each home with nothing in it | {} | |", with_homes.memory(&before, EMPTY_HOMES));
    println!("| nats: disk for it | | {} bytes | |", (with_homes.disk - before.disk) / EMPTY_HOMES);
    println!(
        "| nats: memory for each piece of {} bytes | {} | |",
        payload.len(),
        with_pieces.memory(&with_homes, PIECES)
    );
    println!("| nats: disk for it | | {} bytes | |", (with_pieces.disk - with_homes.disk) / PIECES);
}

/// Bytes that a server needs: memory while running and after a restart with the same files, and disk.
struct Needs {
    at_work: u64,
    restarted: u64,
    disk: u64,
}

impl Needs {
    fn measure(nats: &mut Nats) -> Needs {
        let (at_work, disk) = (resident(nats), disk(nats));
        nats.kill();
        nats.restart();
        Needs { at_work, restarted: resident(nats), disk }
    }

    /// Additional memory for each of `count` items: after a restart, and while running.
    fn memory(&self, before: &Needs, count: u64) -> String {
        let least = self.restarted.saturating_sub(before.restarted) / count;
        let most = self.at_work.saturating_sub(before.restarted) / count;
        format!("{least} bytes | {most} bytes")
    }
}

/// Resident memory of the server process with this configuration.
fn resident(nats: &Nats) -> u64 {
    let config = nats.dir().join("config");
    let is_it = |process: &Path| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == config.as_os_str().as_encoded_bytes())
    };
    let processes = std::fs::read_dir("/proc").expect("this is Linux").flatten().map(|entry| entry.path());
    let process = processes.into_iter().find(|process| is_it(process)).expect("it runs");
    let status = std::fs::read_to_string(process.join("status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("this is Linux");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number") << 10
}

/// Bytes of its files in whole blocks.
fn disk(nats: &Nats) -> u64 {
    fn bytes_below(path: &Path) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.metadata().map_or(0, |data| data.blocks() * 512) + bytes_below(&entry.path())).sum()
    }
    bytes_below(&nats.dir().join("store"))
}
