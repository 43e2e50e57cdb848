//! What a fleet keeps, and what it holds up: bytes for a message and for a session, the time that a machine needs to take a home over,
//! and what a NATS server needs for each home.

use super::Door;
use super::member::{Appended, Machine, stream};
use super::nats::Nats;
use crate::run::grouped;
use crate::store::{filled, home, space};
use crate::{show, summary};
use kiso::home::{Home, SessionName};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Messages whose bytes are counted: so few that no copy of the whole store takes their place meanwhile.
const COUNTED: u64 = 100;

/// Homes that are taken over, by stored messages and sessions with a file each: the second has only more sessions than the first, the
/// third only more messages.
const HOMES: [(u32, u32); 3] = [(200, 10), (200, 1_000), (200_000, 10)];

/// How often each is taken over.
const TAKEOVERS: usize = 3;

/// Homes that a server has.
const EMPTY_HOMES: u64 = 100;

/// Pieces of files in one stream.
const PIECES: u64 = 20_000;

/// Of these, at once on their way.
const ON_THEIR_WAY: u64 = 100;

pub fn rows(nats: &Nats) {
    messages(nats);
    takeovers(nats);
    // What another one has forgotten still counts as its memory.
    if let Some(fresh) = Nats::start() {
        server(&fresh);
    }
}

/// What is published for a message, and what of it stays in the store.
fn messages(nats: &Nats) {
    let machine = Machine::new(home(), nats, "size", "m0");
    machine.begin();
    let (door, mut wire) = (Door::open(machine.start()), nats.connect());
    let mut client = door.served.client();
    door.message(&mut client, "old", "$ echo begin");
    let kinds: [(&str, &dyn Fn(u64) -> (String, String)); 3] = [
        ("a message with one command", &|n| ("old".to_owned(), format!("$ echo {n}"))),
        ("one whose command writes a file of 1 kB", &|n| {
            ("old".to_owned(), format!("$ head -c 1000 /dev/urandom > file-{}", n % 10))
        }),
        ("the first message of a session", &|n| (format!("new-{n}"), format!("$ echo {n}"))),
    ];
    for (what, message) in kinds {
        let before = (Appended::of(&mut wire, "size"), space(machine.dir.path()));
        for n in 0..COUNTED {
            let (session, text) = message(n);
            door.message(&mut client, &session, &text);
        }
        let (after, stays) = (Appended::of(&mut wire, "size").since(before.0), space(machine.dir.path()) - before.1);
        let each = |count: u64| count as f64 / COUNTED as f64;
        println!(
            "| {what}: appended to the log | {:.1} | {} bytes | |",
            each(after.log_messages),
            after.log_bytes / COUNTED
        );
        println!("| pieces of files for it | {:.1} | {} bytes | |", each(after.pieces), after.piece_bytes / COUNTED);
        println!("| of that stays in the store | | {} bytes | |", stays / COUNTED);
    }
    println!("| resident memory, the owner | | {} MiB | |", door.served.resident() >> 20);
    let standby = machine.another(nats, "m1").start();
    println!("| resident memory, one that stands by | | {} MiB | |", standby.resident() >> 20);
    standby.end();
    door.served.end();
}

/// How long it takes to begin a fleet with a home, and until another machine serves it.
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

/// Gives each session its directory, and a file in it.
fn with_files(path: &Path, sessions: u32) {
    let home = Home::open(path).expect("a home");
    for name in (1..=sessions).map(|n| format!("s{n}")).chain(["long".to_owned()]) {
        let session = SessionName::parse(&name).expect("a plain name");
        home.create_session(&session).expect("there is room");
        let note = home.path().join("sessions").join(&name).join("work/note.txt");
        std::fs::write(note, format!("a note of {name}\n").repeat(60)).expect("there is room");
    }
}

/// What a server needs for homes in which nothing happens, and for pieces of files.
fn server(nats: &Nats) {
    let dir = TempDir::new().expect("there is room");
    let config = std::fs::read_to_string(home().path().join("config.toml")).expect("it has one");
    let before = (resident(nats), disk(nats));
    for n in 0..EMPTY_HOMES {
        let home = TempDir::new_in(dir.path()).expect("there is room");
        std::fs::write(home.path().join("config.toml"), &config).expect("there is room");
        Machine::new(home, nats, &format!("empty-{n}"), "m0").status();
    }
    let each = |(now, then): (u64, u64), count: u64| now.saturating_sub(then) / count;
    let after = (resident(nats), disk(nats));
    println!(
        "| nats: memory and disk for each home with nothing in it | {} kB | {} kB | |",
        each((after.0, before.0), EMPTY_HOMES) / 1_000,
        each((after.1, before.1), EMPTY_HOMES) / 1_000
    );
    let (mut wire, payload) = (nats.connect(), [7; 200]);
    stream(&mut wire, "PIECES", "pieces.*");
    let before = (resident(nats), disk(nats));
    for begin in (0..PIECES).step_by(usize::try_from(ON_THEIR_WAY).expect("few")) {
        // Their names are as long as those of digests.
        let sent = (begin..begin + ON_THEIR_WAY).map(|n| wire.begin(&format!("pieces.{n:064}"), &[], &payload));
        let sent: Vec<String> = sent.collect::<Result<_, _>>().expect("it is connected");
        sent.iter().for_each(|inbox| drop(wire.answer(inbox).expect("it is confirmed")));
    }
    let after = (resident(nats), disk(nats));
    println!(
        "| nats: memory and disk for each piece of {} bytes | {} bytes | {} bytes | |",
        payload.len(),
        each((after.0, before.0), PIECES),
        each((after.1, before.1), PIECES)
    );
}

/// Bytes of memory that the server has.
fn resident(nats: &Nats) -> u64 {
    let files = std::fs::read_dir(nats.dir()).expect("it is there").flatten().map(|entry| entry.file_name());
    let names = files.map(|name| name.to_string_lossy().into_owned());
    let mut ports = names.filter(|name| name.ends_with(".ports"));
    // It names the file after its process.
    let name = ports.next().expect("it says its ports");
    let pid = name.trim_end_matches(".ports").rsplit('_').next().expect("it has a number");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("this is Linux");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number") << 10
}

/// Bytes that its files take, in whole blocks.
fn disk(nats: &Nats) -> u64 {
    fn of(path: &Path) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.metadata().map_or(0, |data| data.blocks() * 512) + of(&entry.path())).sum()
    }
    of(&nats.dir().join("store"))
}
