//! The fleet, if the home belongs to one: checks NATS, and lists the members.

use super::{Finding, Report, block_on};
use crate::cli::{Exit, Failure, fleet};
use kiso_base::config::Config;
use kiso_base::home::Home;
use kiso_fleet::FleetError;
use kiso_fleet::bus::survey::{BusSurvey, SurveyedStream, SurveyedSync};
use kiso_fleet::bus::{Bus, BusSettings};
use kiso_fleet::member::is_a_copy;
use kiso_fleet::status;
use kiso_plan::report::size;
use kiso_sandbox::effect::member::{FleetStatus, MemberStatus};

/// The first version of NATS that can write data to the disk before it confirms it.
const OLDEST: (u32, u32) = (2, 10);

/// Tolerated difference between clocks, in milliseconds.
const CLOCK: u64 = 10_000;

/// Reports that the home's store is a copy.
pub(super) fn copy(home: &Home, config: Option<&Config>) -> Option<Finding> {
    if config.is_none_or(|config| config.fleet.url.is_none()) {
        return None;
    }
    if !home.store_path().exists() {
        return Some(Finding::Ok("none yet; this member makes one when it takes the home over".to_owned()));
    }
    is_a_copy(home).then(|| Finding::Ok("a copy, which this member makes again when it takes the home over".to_owned()))
}

/// Checks the fleet; does nothing if the home is on one machine.
pub(super) fn look(home: &Home, config: &Config, offline: bool, report: &mut Report) -> Result<(), Failure> {
    let settings = match fleet::settings(config) {
        Ok(None) => return Ok(()),
        Ok(Some(settings)) => settings,
        Err(failure) => {
            report.check::<()>("fleet", Err(failure));
            return Ok(());
        }
    };
    if offline {
        report.note("fleet", Some(Finding::Ok("NATS is not asked".to_owned())));
        return Ok(());
    }
    let survey = match block_on(Bus::survey(&settings))? {
        Ok(survey) => survey,
        Err(error) => {
            report.check::<()>("fleet", Err(error.into()));
            return Ok(());
        }
    };
    report.note("fleet", Some(server(&settings, &survey)));
    let streams = match &survey.streams {
        Ok(streams) => streams,
        Err(error) => {
            let hint = "nats.conf needs `jetstream`, and an account of its own `jetstream: enabled` (docs/fleet.md)";
            report.check::<()>("fleet streams", Err(Failure::new(Exit::Failed, format!("{error}; {hint}"))));
            return Ok(());
        }
    };
    report.note("fleet streams", Some(kept(streams, &settings)));
    report.note("fleet sync", Some(synced(&survey.syncs)));
    // Connecting creates missing streams.
    if streams.iter().any(|stream| stream.found.is_none()) {
        return Ok(());
    }
    let read = fleet::connect(home, config).and_then(|bus| {
        let read = bus.map(|bus| bus.runtime().block_on(status::read(&bus)));
        Ok(read.transpose()?)
    });
    match read {
        Ok(None) => {}
        Ok(Some(status)) => {
            report.note("fleet owner", Some(owner(&status)));
            report.note("fleet members", Some(members(&status.members)));
            report.note("fleet log", Some(log(&status)));
            report.note("fleet clocks", clocks(&status.members));
        }
        Err(failure) => drop(report.check::<()>("fleet owner", Err(failure))),
    }
    Ok(())
}

fn server(settings: &BusSettings, survey: &BusSurvey) -> Finding {
    let BusSettings { fleet, member, url, .. } = settings;
    let version = &survey.version;
    let told = format!("{member} is a member of {fleet}; NATS {version} answers at {url}");
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST => Finding::Warn(format!(
            "{told}; before 2.10 it cannot write commits to the disk before it confirms them, so a power failure can lose \
             some: use a newer one"
        )),
        _ => Finding::Ok(told),
    }
}

/// Checks that the fleet's data is kept permanently.
fn kept(streams: &[SurveyedStream], settings: &BusSettings) -> Finding {
    let replicas = settings.replicas;
    let missing: Vec<&str> =
        streams.iter().filter(|stream| stream.found.is_none()).map(|stream| stream.name.as_str()).collect();
    if missing.len() == streams.len() {
        return Finding::Fail(FleetError::Empty.to_string());
    }
    if !missing.is_empty() {
        return Finding::Fail(format!(
            "{} is missing: put the files of NATS back from a backup, or begin a new fleet (docs/fleet.md)",
            missing.join(", ")
        ));
    }
    let (mut lost, mut other) = (Vec::new(), Vec::new());
    for (name, kind) in streams.iter().filter_map(|stream| Some((&stream.name, stream.found?))) {
        if !kind.in_files {
            lost.push(format!("{name} is in memory, and gone when NATS restarts"));
        }
        if kind.forgets {
            lost.push(format!("{name} forgets messages by age or number, and with them what is needed"));
        }
        if kind.replicas != replicas {
            other.push(format!("{name} has {} and not fleet.replicas = {replicas}", copies(kind.replicas)));
        }
    }
    match (lost.is_empty(), other.is_empty()) {
        (false, _) => Finding::Fail(format!("{}; see `nats stream edit`", lost.join("; "))),
        (true, false) => {
            Finding::Warn(format!("{}; `nats stream edit NAME --replicas=N` changes it", other.join("; ")))
        }
        (true, true) => Finding::Ok(format!("in files, {}", copies(replicas))),
    }
}

fn copies(replicas: usize) -> String {
    match replicas {
        1 => "one copy".to_owned(),
        many => format!("{many} copies"),
    }
}

/// Checks that a commit that NATS has confirmed survives a power failure.
fn synced(syncs: &[SurveyedSync]) -> Finding {
    let late: Vec<&str> = syncs.iter().filter(|sync| !sync.at_once).map(|sync| sync.server.as_str()).collect();
    if syncs.is_empty() {
        return Finding::Ok(
            "NATS does not say whether it writes commits to the disk before it confirms them: look for `sync_interval: always` in \
             nats.conf, which can also let kiso ask (docs/fleet.md)"
                .to_owned(),
        );
    }
    if late.is_empty() {
        return Finding::Ok("NATS writes commits to the disk before it confirms them".to_owned());
    }
    let which = if syncs.len() > 1 { format!(" ({})", late.join(", ")) } else { String::new() };
    Finding::Warn(format!(
        "NATS{which} confirms commits before they are on the disk, so a power failure can lose some: set `sync_interval: always` in \
         `jetstream` of nats.conf (docs/fleet.md)"
    ))
}

fn owner(status: &FleetStatus) -> Finding {
    if !status.begun {
        return Finding::Fail(FleetError::Empty.to_string());
    }
    let Some(owner) = &status.owner else {
        return Finding::Warn(
            "nobody owns the home at the moment: `kiso serve` on one of its machines does".to_owned(),
        );
    };
    let told = format!("{owner} owns the home, epoch {}", status.epoch);
    match status.members.iter().find(|member| member.name == *owner) {
        Some(member) if !member.is_there() => Finding::Warn(format!(
            "{told}, and was last seen {} ago: no member takes over, so nobody serves the home",
            long(member.ago_ms)
        )),
        _ => Finding::Ok(told),
    }
}

fn members(members: &[MemberStatus]) -> Finding {
    let (there, gone): (Vec<_>, Vec<_>) = members.iter().partition(|member| member.is_there());
    let mut told: Vec<String> = there.iter().map(|member| format!("{} {}", member.name, member.does())).collect();
    told.extend(gone.iter().map(|member| format!("{} was last seen {} ago", member.name, long(member.ago_ms))));
    let told = told.join(", ");
    if there.is_empty() {
        let told = if told.is_empty() { told } else { format!(" ({told})") };
        return Finding::Warn(format!("none is there{told}: start `kiso serve` on each of them"));
    }
    match there.iter().any(|member| !member.owns && member.stands_by) {
        true => Finding::Ok(told),
        false => Finding::Warn(format!("{told}: nobody stands by, so nobody takes over if the owner dies")),
    }
}

fn log(status: &FleetStatus) -> Finding {
    let FleetStatus { log_messages, log_bytes, .. } = status;
    Finding::Ok(format!("{log_messages} messages since the last copy of the store, {} in all", size(*log_bytes)))
}

/// Compares clocks. This is only a hint: nothing in the fleet depends on it.
fn clocks(members: &[MemberStatus]) -> Option<Finding> {
    let wrong = members.iter().filter(|member| member.is_there() && member.ahead_ms.unsigned_abs() > CLOCK);
    let told = wrong.map(|MemberStatus { name, ahead_ms, .. }| {
        let side = if *ahead_ms > 0 { "ahead of" } else { "behind" };
        format!("{name}'s is {} {side} that of NATS", long(ahead_ms.unsigned_abs()))
    });
    let told = told.collect::<Vec<_>>().join(", ");
    (!told.is_empty()).then(|| {
        Finding::Ok(format!("{told}; schedules and the times of messages jump by as much when the home changes hands"))
    })
}

/// Formats a long duration: "12 s", "5 min", "3 h", "4 days".
fn long(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_fleet::bus::survey::StreamKind;

    fn member(name: &str, owns: bool, stands_by: bool, ago_ms: u64, ahead_ms: i64) -> MemberStatus {
        let labels = Vec::new();
        MemberStatus { name: name.to_owned(), version: "0.1.0".to_owned(), owns, stands_by, labels, ago_ms, ahead_ms }
    }

    fn status(owner: Option<&str>, members: Vec<MemberStatus>) -> FleetStatus {
        let owner = owner.map(str::to_owned);
        FleetStatus {
            fleet: "home".to_owned(),
            begun: true,
            owner,
            epoch: 3,
            log_messages: 9,
            log_bytes: 8_192,
            members,
            other_keys: Vec::new(),
        }
    }

    fn mark_and_text(finding: Finding) -> (&'static str, String) {
        match finding {
            Finding::Ok(text) => ("ok", text),
            Finding::Warn(text) => ("warn", text),
            Finding::Fail(text) => ("fail", text),
        }
    }

    #[test]
    fn an_owner_that_is_gone_is_told() {
        let there = status(Some("pi"), vec![member("pi", true, true, 2_000, 0)]);
        assert_eq!(mark_and_text(owner(&there)), ("ok", "pi owns the home, epoch 3".to_owned()));
        let gone = status(Some("pi"), vec![member("pi", true, true, 300_000, 0)]);
        let (mark, text) = mark_and_text(owner(&gone));
        assert!(
            mark == "warn" && text.contains("last seen 5 min ago") && text.contains("nobody serves"),
            "{mark} {text}"
        );
        assert_eq!(mark_and_text(owner(&status(None, Vec::new()))).0, "warn");
        assert_eq!(mark_and_text(owner(&FleetStatus { begun: false, ..there })).0, "fail");
    }

    #[test]
    fn members_without_one_that_stands_by_are_told() {
        let pi = member("pi", true, true, 2_000, 0);
        let both = [member("desk", false, true, 29_999, 0), pi.clone()];
        assert_eq!(mark_and_text(members(&both)), ("ok", "desk stands by, pi owns the home".to_owned()));
        let gone = [member("desk", false, true, 30_000, 0), pi.clone()];
        let (mark, text) = mark_and_text(members(&gone));
        assert!(
            mark == "warn" && text.contains("desk was last seen 30 s ago") && text.contains("nobody stands by"),
            "{text}"
        );
        let drained = [member("desk", false, false, 0, 0), pi];
        let (mark, text) = mark_and_text(members(&drained));
        assert!(mark == "warn" && text.contains("desk does not take over"), "{text}");
        assert!(mark_and_text(members(&[])).1.starts_with("none is there: "));
    }

    #[test]
    fn clocks_that_differ_are_a_hint() {
        let pi = member("pi", true, true, 0, -900);
        assert!(clocks(&[pi.clone(), member("shed", false, true, 99_000, 99_000)]).is_none(), "it is not there");
        let (mark, text) = mark_and_text(clocks(&[member("desk", false, true, 0, -150_000), pi]).unwrap());
        assert!(mark == "ok" && text.starts_with("desk's is 2 min behind that of NATS; "), "{mark} {text}");
    }

    #[test]
    fn a_server_that_syncs_late_or_is_old_is_told() {
        let sync = |server: &str, at_once| SurveyedSync { server: server.to_owned(), at_once };
        assert_eq!(mark_and_text(synced(&[sync("a", true), sync("b", true)])).0, "ok");
        let (mark, text) = mark_and_text(synced(&[sync("a", true), sync("b", false)]));
        assert!(mark == "warn" && text.starts_with("NATS (b) confirms"), "{mark} {text}");
        let settings = settings(1);
        let of = |version: &str| {
            let survey = BusSurvey { version: version.to_owned(), streams: Ok(Vec::new()), syncs: Vec::new() };
            mark_and_text(server(&settings, &survey)).0
        };
        assert_eq!(
            ["2.9.10", "1.4.1", "2.10.0", "2.15.1-RC.2", "3.0.0", "dev"].map(of),
            ["warn", "warn", "ok", "ok", "ok", "ok"]
        );
    }

    #[test]
    fn a_stream_that_loses_something_fails() {
        let kind = StreamKind { in_files: true, replicas: 3, forgets: false };
        let streams = |kinds: [Option<StreamKind>; 3]| {
            ["LOG", "CHUNKS", "KV"]
                .into_iter()
                .zip(kinds)
                .map(|(name, found)| SurveyedStream { name: name.to_owned(), found })
        };
        let of = |kinds| mark_and_text(kept(&streams(kinds).collect::<Vec<_>>(), &settings(3)));
        assert_eq!(of([Some(kind); 3]), ("ok", "in files, 3 copies".to_owned()));
        let (mark, text) = of([Some(kind), Some(StreamKind { replicas: 1, ..kind }), Some(kind)]);
        assert!(mark == "warn" && text.starts_with("CHUNKS has one copy and not fleet.replicas = 3"), "{mark} {text}");
        let (mark, text) = of([Some(StreamKind { forgets: true, ..kind }), Some(kind), Some(kind)]);
        assert!(mark == "fail" && text.starts_with("LOG forgets"), "{mark} {text}");
        let (mark, text) = of([Some(kind), Some(kind), None]);
        assert!(mark == "fail" && text.starts_with("KV is missing"), "{mark} {text}");
    }

    fn settings(replicas: usize) -> BusSettings {
        let [url, fleet, member] = ["nats://127.0.0.1:4222", "home", "pi"].map(str::to_owned);
        BusSettings { url, credentials: None, ca: None, fleet, member, labels: Vec::new(), replicas }
    }
}
