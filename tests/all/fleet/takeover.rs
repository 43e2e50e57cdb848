//! One member dies, is cut off or releases the home, and another one continues.

use super::cable::Way;
use super::members::{Machine, begun};
use super::nats::Nats;
use crate::harness::wait_until;
use crate::served::Served;
use rustix::process::Signal;

/// Waits until the owner knows that it owns the home: until then it forwards requests to the previous owner.
fn serves(member: &Served) {
    wait_until("the owner serves", || member.ask("GET", "/health", None).is_ok_and(|answer| answer.status == 200));
}

#[test]
fn another_machine_goes_on_where_the_owner_was_killed() {
    let Some(nats) = Nats::start() else { return };
    let (pi, desk) = (Machine::new("pi", &nats, &nats.url(), ""), Machine::new("desk", &nats, &nats.url(), ""));
    pi.home.kiso(&["run", "$ echo before > before.txt"]).ok();
    // A session with messages and no directory, as after an import.
    pi.home.kiso(&["run", "--session", "empty", "$ true"]).ok();
    std::fs::remove_dir_all(pi.home.path().join("sessions/empty")).unwrap();
    begun(&pi);
    let owner = pi.start();
    pi.owns();
    let standby = desk.start();
    desk.home.kiso(&["session", "list"]).exit(1).says(&["stands by in a fleet"]);
    assert!(!desk.home.path().join("store.db").exists(), "no other store was begun");
    let first = owner.send("main", "$ echo hello > made.txt; cat made.txt");
    assert!(owner.reply(first).contains("hello"));
    // The next message goes through the standby machine.
    let second = standby.send("main", "$ cat made.txt; echo again >> made.txt");
    assert!(standby.reply(second).contains("hello"));

    owner.kill();
    desk.owns();
    serves(&standby);
    assert!(standby.reply(first).contains("hello"), "what was said is there");
    let third = standby.send("main", "$ cat made.txt");
    let reply = standby.reply(third);
    assert!(reply.contains("hello") && reply.contains("again"), "{reply}");
    assert!(first < second && second < third);
    let fourth = standby.send("default", "$ cat before.txt");
    assert!(standby.reply(fourth).contains("before"), "what was there when the fleet began");

    // The same in the other direction.
    let again = pi.start();
    standby.kill();
    pi.owns();
    serves(&again);
    let fifth = again.send("main", "$ wc -l made.txt");
    assert!(again.reply(fifth).contains('2'));
    again.terminate();
    desk.home.kiso(&["session", "list"]).exit(1).says(&["stands by in a fleet"]);
}

/// A member with another key, and a message from somebody who has NATS' password but no key.
#[test]
fn what_was_sealed_with_another_key_stops_nobody() {
    let Some(nats) = Nats::start() else { return };
    let (pi, desk) = (Machine::new("pi", &nats, &nats.url(), ""), Machine::new("desk", &nats, &nats.url(), ""));
    pi.home.kiso(&["run", "$ true"]).ok();
    begun(&pi);
    let owner = pi.start();
    pi.owns();
    serves(&owner);
    let epoch = || pi.home.kiso(&["--json", "fleet", "status"]).ok().json_lines()[0]["epoch"].clone();
    let before = epoch();
    let mut wire = nats.connect();
    let put = |wire: &mut super::wire::Wire, subject: &str| {
        let answer = wire.ask(subject, &[], b"from nobody of this fleet, and long enough for a tag");
        assert!(answer["seq"].is_u64(), "{answer}");
    };
    put(&mut wire, "$KV.KISO_kiso.member.stranger");
    pi.home.kiso(&["fleet", "status"]).ok().prints(&["owner pi", "stranger  its home has another `key`"]);
    let status = pi.home.kiso(&["--json", "fleet", "status"]).ok().json_lines();
    assert_eq!(status[0]["other_keys"], serde_json::json!(["stranger"]));
    for n in 0..3 {
        put(&mut wire, "kiso.kiso.log");
        let said = owner.send("main", &format!("$ echo {n} >> made.txt; cat made.txt"));
        assert!(owner.reply(said).contains(&n.to_string()), "the owner goes on");
    }
    assert_eq!(epoch(), before, "it was the owner all the time");
    put(&mut wire, "kiso.kiso.log");
    let standby = desk.start();
    owner.kill();
    desk.owns();
    serves(&standby);
    let reply = standby.reply(standby.send("main", "$ cat made.txt"));
    assert!(reply.contains('0') && reply.contains('2'), "{reply}");
}

#[test]
fn one_that_was_stopped_for_too_long_does_nothing_more() {
    let Some(nats) = Nats::start() else { return };
    let (pi, desk) = (Machine::new("pi", &nats, &nats.url(), ""), Machine::new("desk", &nats, &nats.url(), ""));
    begun(&pi);
    let owner = pi.start();
    pi.owns();
    let standby = desk.start();
    let first = owner.send("main", "$ echo one");
    assert!(owner.reply(first).contains("one"));
    owner.signal(Signal::STOP);
    desk.owns();
    serves(&standby);
    let second = standby.send("main", "$ echo two");
    assert!(standby.reply(second).contains("two"));
    owner.signal(Signal::CONT);
    owner.logs("does not own the home any more", 1);
    // The former owner is on standby, and forwards.
    wait_until("it forwards", || {
        owner.ask("GET", &format!("/messages/{second}"), None).is_ok_and(|answer| answer.status == 200)
    });
    let third = owner.send("main", "$ echo three");
    assert!(standby.reply(third).contains("three"));
    assert_eq!(desk.owner().as_deref(), Some("desk"));
}

#[test]
fn the_home_is_handed_over_when_somebody_asks() {
    let Some(nats) = Nats::start() else { return };
    let (pi, desk) = (Machine::new("pi", &nats, &nats.url(), ""), Machine::new("desk", &nats, &nats.url(), ""));
    begun(&pi);
    let owner = pi.start();
    pi.owns();
    serves(&owner);
    let standby = desk.start();
    desk.home.kiso(&["fleet", "move", "nobody"]).exit(2).says(&["there is no member \"nobody\""]);
    wait_until("it is a member", || desk.home.kiso(&["fleet", "status"]).stdout.contains("desk"));
    pi.home.add("echo");
    desk.home.kiso(&["fleet", "move", "desk"]).ok().prints(&["pi gives the home to desk"]);
    desk.owns();
    serves(&standby);
    assert!(standby.reply(standby.send("main", "$ echo here")).contains("here"));
    desk.home.kiso(&["skill", "list"]).ok().prints(&["echo"]);
    pi.home.kiso(&["fleet", "drain"]).ok().prints(&["desk gives the home up"]);
    pi.owns();
    assert!(owner.reply(owner.send("main", "$ echo there")).contains("there"));
}

/// Number of compiled components in its home.
fn compiled(machine: &Machine) -> usize {
    let cache = std::fs::read_dir(machine.home.path().join("cache")).unwrap();
    cache
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "cwasm"))
        .count()
}

#[test]
fn whoever_stands_by_has_the_skills_compiled_for_its_own_machine() {
    let Some(nats) = Nats::start() else { return };
    let (pi, desk) = (Machine::new("pi", &nats, &nats.url(), ""), Machine::new("desk", &nats, &nats.url(), ""));
    begun(&pi);
    let owner = pi.start();
    pi.owns();
    serves(&owner);
    let standby = desk.start();
    assert_eq!(compiled(&desk), 0);
    pi.home.add("echo");
    wait_until("it is compiled there, too", || compiled(&desk) == 1);
    standby.logs("skills compiled for this machine: 1", 1);
    assert!(!desk.home.path().join("store.db").exists(), "and nothing else is done");
    // A removed skill disappears there, and a new one is compiled.
    pi.home.kiso(&["skill", "remove", "echo"]).ok();
    wait_until("it is gone there, too", || !desk.home.path().join("skills/echo").exists());
    pi.home.add("pair");
    wait_until("the next one is compiled", || compiled(&desk) == 2);
    owner.kill();
    desk.owns();
    serves(&standby);
    assert!(!desk.home.path().join("cache/standby.db").exists());
    desk.home.kiso(&["skill", "list"]).ok().prints(&["pair"]);
    assert_eq!(compiled(&desk), 2, "nothing had to be compiled for that");
}

#[test]
fn a_server_that_comes_back_within_the_lease_is_waited_for() {
    let Some(mut nats) = Nats::start() else { return };
    let pi = Machine::new("pi", &nats, &nats.url(), "");
    // Longer than a restart on a slow machine.
    pi.leases(60);
    begun(&pi);
    let owner = pi.start();
    pi.owns();
    for round in 0..3 {
        nats.kill();
        nats.restart();
        assert!(owner.reply(owner.send("main", &format!("$ echo round {round}"))).contains(&format!("round {round}")));
    }
    assert!(!owner.log().contains("does not own the home any more"), "{}", owner.log());
}

#[test]
fn a_server_that_is_away_while_the_home_is_taken_over_is_waited_for() {
    let Some(nats) = Nats::start() else { return };
    let cable = nats.cable();
    let pi = Machine::behind("pi", &nats, &cable, "");
    pi.leases(60);
    pi.home.kiso(&["run", "$ echo before > before.txt"]).ok();
    begun(&pi);
    // The lease, the base of the log, and the files of the session: each is requested, and no answer arrives.
    cable.freeze_at("PUB $KV.KISO_kiso.owner ");
    let owner = pi.start();
    for (now, next) in [
        ("whether this member has taken the home is not known", Some("$KV.KISO_kiso.base")),
        ("the home cannot be taken over yet", Some("STREAM.MSG.GET.KISO_kiso_CHUNKS")),
        ("the home cannot be taken over yet", None),
    ] {
        let seen = owner.log().matches(now).count();
        wait_until("it is asked for", || cable.holds(Way::Up));
        owner.logs(now, seen + 1);
        if let Some(next) = next {
            cable.freeze_at(next);
        }
        cable.thaw();
    }
    assert!(owner.reply(owner.send("default", "$ cat before.txt")).contains("before"));
    assert!(!owner.log().contains("does not own the home any more"), "{}", owner.log());
}

#[test]
fn a_server_that_is_away_for_longer_than_the_lease_is_waited_for() {
    let Some(mut nats) = Nats::start() else { return };
    let pi = Machine::new("pi", &nats, &nats.url(), "");
    begun(&pi);
    let owner = pi.start();
    pi.owns();
    assert!(owner.reply(owner.send("main", "$ echo before")).contains("before"));
    nats.kill();
    owner.logs("does not own the home any more", 1);
    owner.logs("NATS cannot be reached", 1);
    nats.restart();
    assert!(owner.reply(owner.send("main", "$ echo after")).contains("after"));
}

#[test]
fn what_is_wrong_is_said() {
    let Some(nats) = Nats::start() else { return };
    let pi = Machine::new("pi", &nats, &nats.url(), "");
    pi.home.kiso(&["serve"]).exit(1).says(&["there is nothing in this fleet yet", "kiso fleet begin"]);
    begun(&pi);
    pi.home.kiso(&["fleet", "begin"]).exit(1).says(&["this fleet has a home already"]);
    let stranger = Machine::new("stranger", &nats, &nats.url(), "");
    std::fs::write(stranger.home.path().join("key"), [8; 32]).unwrap();
    stranger.home.kiso(&["fleet", "status"]).exit(3).says(&["sealed with another key", "`key`"]);
    let alone = crate::harness::Home::new();
    alone.kiso(&["fleet", "status"]).exit(3).says(&["fleet.url", "docs/fleet.md"]);
    let wrong = Machine::new("Wrong_Name", &nats, &nats.url(), "");
    wrong.home.kiso(&["fleet", "status"]).exit(3).says(&["fleet.member", "is not a name"]);
}
