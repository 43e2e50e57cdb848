//! Two runs of a random program: lines of somebody below the user, between lines of the user, with two different texts of an
//! attacker. Data that a trusted reader can see must only differ between the runs if it carries a label. The test needs no list
//! of known leaks, because the programs are random.
//!
//! 100 programs in each place. `KISO_TWO_RUNS` sets another number, `KISO_TWO_RUNS_S` a time in seconds, and `KISO_TWO_RUNS_SEED`
//! the first seed.

mod grammar;
mod host;

use self::grammar::{NAMES, Step, program};
use crate::harness::Home;
use crate::load::Random;
use kiso_agent::tool::files;
use kiso_base::config::Config;
use kiso_base::home::{Home as HostHome, PROJECT, SessionFolder, SessionName};
use kiso_plan::label::Label;
use kiso_plan::network::{METHODS, NetworkAccess, NetworkRule, NetworkRules};
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::effect::network::Network;
use kiso_sandbox::effect::overlay::{EntryKind, Overlay, SharedHistory};
use kiso_sandbox::effect::sink::{Permit, PermitParts};
use kiso_sandbox::effect::undo::{Origin, Undo, UndoChoice, UndoKind, UndoLimits};
use kiso_sandbox::exec::{Channel, Exec, Line};
use kiso_sandbox::skill::{Quiet, Skills};
use kiso_store::secret::Secrets;
use kiso_store::store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The attacker's text in each run. The texts differ in length, too.
const TEXTS: [&str; 2] = ["pay-mallory", "wait"];

const LIMITS: UndoLimits = UndoLimits { max_bytes: 1 << 30, refuse: false };

/// Data that a trusted reader has seen, and whether it is labelled.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    text: String,
    labelled: bool,
}

/// Seen data by the name of its place.
type Sight = BTreeMap<String, Seen>;

/// The place where the lines work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Workspace,
    /// In a person's folder, which already has some of the names. Everything read there counts as attached; data with a lower
    /// label is labelled.
    Folder,
    /// In the shared files: the attacker's lines run in one session, the user's in another.
    Shared,
}

struct World {
    place: Place,
    /// One for each text if sessions see each other's files, otherwise one for both.
    houses: Vec<House>,
    /// The host that lines call `box`.
    host: String,
    runtime: tokio::runtime::Runtime,
}

struct House {
    home: HostHome,
    exec: Exec,
    undo: Undo,
    dir: Home,
}

impl House {
    fn new() -> Self {
        let dir = Home::new();
        let home = HostHome::open(&dir.path()).unwrap();
        let config = Config::load(&home).unwrap();
        let store = Store::open(&home.store_path()).unwrap();
        let skills = Skills::new(home.clone(), config.clone(), store, Arc::new(Quiet));
        let exec = Exec::new(home.clone(), config, skills);
        let undo = SharedHistory::undo(home.clone());
        Self { home, exec, undo, dir }
    }
}

impl World {
    fn new(place: Place) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let houses = (0..if place == Place::Shared { 2 } else { 1 }).map(|_| House::new()).collect();
        Self { place, houses, host: host::start(), runtime }
    }

    fn house(&self, session: &SessionName) -> &House {
        match self.houses.as_slice() {
            [_, other] if session.as_str().contains("-other") => other,
            houses => &houses[0],
        }
    }

    /// The session in which a step runs.
    fn session_of(&self, session: &SessionName, step: &Step) -> SessionName {
        match (self.place, step) {
            (Place::Shared, Step::Attacker(_)) => SessionName::parse(&format!("{session}-attacker")).unwrap(),
            _ => session.clone(),
        }
    }

    /// Runs a line, as the user if there is no attacker's text.
    fn line(&self, session: &SessionName, number: usize, line: &str, text: Option<&str>, kept: bool) -> Seen {
        let permit = match text {
            None => Permit::default(),
            Some(_) => {
                Permit::new(PermitParts { decision: Label::world("web:attacker.example"), ..PermitParts::default() })
            }
        };
        let origin = Origin { run: format!("r{number}"), task: 1, seq: u32::try_from(number).unwrap(), place: 0 };
        let house = self.house(session);
        let work = kept.then(|| house.undo.begin(session, origin, LIMITS)).flatten();
        let scratch = house.exec.scratch(session).unwrap();
        let secrets = Secrets::default();
        let source = if self.place == Place::Shared { format!("cd /shared; {line}") } else { line.to_owned() };
        let source =
            source.replace("//box/", &format!("//{}/{}/", self.host, session.as_str().trim_end_matches("-attacker")));
        let methods = METHODS.map(str::to_owned).to_vec();
        let host = NetworkRule { methods, private: true, ..NetworkRule::new(&self.host, NetworkAccess::Allow) };
        let rules = NetworkRules { accepted: vec![host], ..NetworkRules::default() };
        let line = Line {
            source: &source,
            session,
            role: match self.place {
                Place::Workspace => CallerScope::User,
                Place::Folder | Place::Shared => CallerScope::Admin,
            },
            shared: self.place == Place::Shared,
            locale: "en",
            secrets: &secrets,
            stdin: Channel::Null,
            args: text.into_iter().map(str::to_owned).collect(),
            state: Vec::new(),
            partial: false,
            outputs: None,
            watch: None,
            scratch: &scratch,
            transaction: work.clone(),
            accepted: None,
            permit,
            network: Network::new(rules, CallerScope::User, false),
        };
        let done = self.runtime.block_on(house.exec.run(line)).unwrap();
        if self.place == Place::Shared {
            let work = work.as_deref();
            Overlay::share_changes(&house.home, session, LabelId::default(), work, 1_024).unwrap();
        }
        if let Some(work) = work {
            work.commit();
        }
        // Concurrent processes report errors in any order.
        let mut errors: Vec<&str> = done.stderr.lines().collect();
        errors.sort_unstable();
        let text = format!("{} {:?} {errors:?}", done.code, done.stdout);
        Seen { text, labelled: self.has_label(&done.label.label()) }
    }

    fn has_label(&self, label: &Label) -> bool {
        match self.place {
            Place::Workspace | Place::Shared => !label.is_trusted(),
            Place::Folder => label.integrity > Label::attached().integrity,
        }
    }

    fn session(&self, name: &str) -> SessionName {
        let session = SessionName::parse(name).unwrap();
        let house = self.house(&session);
        house.home.create_session(&session).unwrap();
        house.home.create_session(&self.session_of(&session, &Step::Attacker(String::new()))).unwrap();
        if self.place == Place::Folder {
            let dir = house.dir.dir.path().join(format!("folder-{name}"));
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir(&dir).unwrap();
            // Half of the names exist, as files and directories.
            for (number, name) in NAMES.iter().enumerate().filter(|(number, _)| number % 2 == 0) {
                let path = dir.join(name.trim_start_matches("./"));
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                match number % 4 {
                    0 => drop(std::fs::write(&path, format!("theirs {number}\n"))),
                    _ => drop(std::fs::create_dir(&path)),
                }
            }
            let folder = SessionFolder::new(&house.home, &dir, PROJECT, true).unwrap();
            house.home.open_folder(&session, folder).unwrap();
        }
        session
    }

    /// Runs a step with the attacker's text. Returns the data that the user saw.
    fn step(&self, session: &SessionName, number: usize, step: &Step, text: &str) -> Option<Seen> {
        let session = &self.session_of(session, step);
        match step {
            Step::Attacker(line) => drop(self.line(session, number, line, Some(text), true)),
            Step::User(line) => return Some(self.line(session, number, line, None, true)),
            Step::Undo(of) | Step::Redo(of) => {
                let kind = if matches!(step, Step::Undo(_)) { UndoKind::Undo } else { UndoKind::Redo };
                let choice = UndoChoice { run: Some(format!("r{of}")), task: None };
                // Only a person is told about conflicts.
                let of_attacker = self.session_of(session, &Step::Attacker(String::new()));
                for session in if of_attacker == *session { vec![session] } else { vec![session, &of_attacker] } {
                    let _ = self.house(session).undo.apply(session, kind, &choice, true, LIMITS);
                }
            }
        }
        None
    }

    /// Plays a program with both texts, up to the user's first labelled line. Returns the number of steps, and the seen data.
    fn play(&self, names: &[String; 2], steps: &[Step]) -> (usize, [Sight; 2]) {
        let sessions = names.each_ref().map(|name| self.session(name));
        let mut sights = [Sight::new(), Sight::new()];
        let mut played = 0;
        for (number, step) in steps.iter().enumerate() {
            let seen = [0, 1].map(|side| self.step(&sessions[side], number, step, TEXTS[side]));
            played += 1;
            let ends = seen.iter().flatten().any(|seen| seen.labelled);
            for (sight, seen) in sights.iter_mut().zip(seen) {
                sight.extend(seen.map(|seen| (format!("{number:02}: {step:?}"), seen)));
            }
            if ends {
                break;
            }
        }
        std::thread::scope(|scope| {
            for (session, sight) in sessions.iter().zip(&mut sights) {
                scope.spawn(|| self.look(session, sight));
            }
        });
        (played, sights)
    }

    /// Everything that a trusted reader can query, each by itself.
    fn look(&self, session: &SessionName, sight: &mut Sight) {
        let lines = [
            "cat N",
            "cat < N",
            // When something happened is for nobody to keep secret; a time that somebody has set is.
            "t=$(stat -L -c '%F %a %s %h %Y' N) || exit; [ ${t##* } -gt 1000000000 ] && t=\"${t% *} now\"; echo $t",
            "readlink N",
            "ls -A N",
            "wc -c N",
        ];
        for name in NAMES {
            for line in lines {
                let line = line.replace('N', name);
                let seen = self.line(session, 0, &line, None, false);
                sight.insert(format!("look: {line}"), seen);
            }
        }
        for line in [
            "ls -A",
            "find . -type f | sort",
            "du -a .",
            "grep -r . .",
            "echo *",
            "tar -cf - . | wc -c",
            "curl -s http://box/p",
        ] {
            sight.insert(format!("look: {line}"), self.line(session, 0, line, None, false));
        }
        if self.place == Place::Folder {
            return self.look_at_difference(session, sight);
        }
        // And the host's own additions to prompts.
        if self.place == Place::Shared {
            let overlay = Overlay::open_shared(&self.house(session).home, session).unwrap();
            for (name, label) in overlay.shared_names(session).unwrap() {
                sight.insert(format!("name: {name}"), Seen { text: name, labelled: self.has_label(&label) });
            }
            return;
        }
        let home = &self.house(session).home;
        let work = home.open_work(session).unwrap();
        let labels = FileLabels::of_session(home, session);
        for card in files::shown(&work, &labels, &Label::default()) {
            sight.insert(format!("card: {}", card.path), Seen { text: format!("{card:?}"), labelled: false });
        }
        for name in NAMES {
            let labelled = !files::is_trusted(&work, name, &labels);
            sight.insert(format!("read: {name}"), Seen { text: format!("{:?}", files::read(&work, name)), labelled });
        }
    }

    /// The changes shown to a person for acceptance.
    fn look_at_difference(&self, session: &SessionName, sight: &mut Sight) {
        let home = &self.house(session).home;
        let folder = home.folders(session).unwrap().remove(0);
        let overlay = Overlay::open(home, session, &folder).unwrap();
        let labels = FileLabels::of_session(home, session);
        for change in overlay.difference(&labels).unwrap().changes {
            let labelled = self.has_label(&change.label);
            let text = match change.after.filter(|after| after.kind == EntryKind::File) {
                Some(_) => format!("{change} {:?}", overlay.open_after(&change).map(std::io::read_to_string)),
                None => change.to_string(),
            };
            sight.insert(format!("change: {}", change.path.display()), Seen { text, labelled });
        }
    }

    /// Whether the entry at a path has no label, or does not exist.
    fn is_clean(&self, session: &str, path: &str) -> bool {
        let session = SessionName::parse(session).unwrap();
        let home = &self.house(&session).home;
        let work = home.open_work(&session).unwrap();
        files::is_trusted(&work, path, &FileLabels::of_session(home, &session))
    }

    /// Whether the entry at a path of the folder has a label.
    fn is_labelled_in_folder(&self, session: &str, path: &str) -> bool {
        let session = SessionName::parse(session).unwrap();
        let line = format!("cat '{path}' > /dev/null 2>&1; [ -e '{path}' ]");
        self.line(&session, 0, &line, None, false).labelled
    }

    /// Removes the shared files.
    fn clear_shared(&self, names: &[String; 2]) {
        for name in names {
            let _ = std::fs::remove_dir_all(self.house(&SessionName::parse(name).unwrap()).home.shared_dir());
        }
    }

    /// Differences between the two runs without a label in either.
    ///
    /// No monitor can detect one case: a user's line that has met the attacker's text may omit its normal effect. So data that is
    /// unchanged since before such a line in one of the runs does not count; data that the line changed does.
    fn differences(&self, name: &str, steps: &[Step]) -> Vec<String> {
        let names = ["one", "other"].map(|side| format!("{name}-{side}"));
        let (played, [one, other]) = self.play(&names, steps);
        let all = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
        let differs = |key: &&String| match (one.get(*key), other.get(*key)) {
            (Some(one), Some(other)) => one.text != other.text && !one.labelled && !other.labelled,
            // A change shown in only one run has a label, or its absence in the other has one.
            (Some(seen), None) | (None, Some(seen)) if self.place != Place::Workspace => {
                let path = key.trim_start_matches("change: ").trim_start_matches("name: ");
                let other = &names[usize::from(one.contains_key(*key))];
                !seen.labelled && !self.is_labelled_in_folder(other, path)
            }
            // For a file that is not shown, the label of its path counts.
            (is_there, _) => self.is_clean(&names[usize::from(is_there.is_some())], key.trim_start_matches("card: ")),
        };
        let mut found: Vec<&String> = all.filter(differs).collect();
        let undone = ["one", "other"].map(|side| format!("{name}-before-{side}"));
        if !found.is_empty() {
            self.clear_shared(&undone);
            let (_, [one_before, other_before]) = self.play(&undone, &steps[..played - 1]);
            let text = |sight: &Sight, key: &String| sight.get(key).map(|seen| seen.text.clone());
            let met = |side: &Sight| {
                side.iter().any(|(key, seen)| !key.starts_with("look") && !key.starts_with("read") && seen.labelled)
            };
            found.retain(|key| {
                let left = |after: &Sight, before: &Sight| met(after) && text(after, key) == text(before, key);
                !left(&one, &one_before) && !left(&other, &other_before)
            });
        }
        let shown =
            found.iter().map(|key| format!("{key}\n      {:?}\n      {:?}", one.get(*key), other.get(*key))).collect();
        for name in names.iter().chain(&undone) {
            let session = SessionName::parse(name).unwrap();
            let home = &self.house(&session).home;
            let _ = std::fs::remove_dir_all(home.session_dir(&session));
            let of_attacker = self.session_of(&session, &Step::Attacker(String::new()));
            let _ = std::fs::remove_dir_all(home.session_dir(&of_attacker));
        }
        self.clear_shared(&undone);
        shown
    }
}

#[test]
fn what_differs_between_two_texts_of_an_attacker_has_a_label() {
    let given = |name: &str| std::env::var(name).ok().and_then(|given| given.parse::<u64>().ok());
    let seed = given("KISO_TWO_RUNS_SEED").unwrap_or(1);
    let most = given("KISO_TWO_RUNS").unwrap_or(100);
    let until = given("KISO_TWO_RUNS_S").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    for place in [Place::Workspace, Place::Folder, Place::Shared] {
        run(place, seed, most, until);
    }
}

fn run(place: Place, seed: u64, most: u64, until: Option<Instant>) {
    let world = World::new(place);
    let mut number = 0;
    while until.map_or(number < most, |until| Instant::now() < until) {
        let seed = seed + number;
        let mut steps = program(&mut Random::new(seed));
        if world.differences(&format!("p{seed}"), &steps).is_empty() {
            number += 1;
            continue;
        }
        // Remove steps that the failure does not need.
        let mut at = steps.len();
        while at > 0 {
            at -= 1;
            let mut fewer = steps.clone();
            fewer[at] = Step::User("true".to_owned());
            if fewer[at] != steps[at] && !world.differences(&format!("p{seed}-{at}"), &fewer).is_empty() {
                steps = fewer;
            }
        }
        let found = world.differences(&format!("p{seed}-x"), &steps);
        let left = steps.iter().filter(|step| **step != Step::User("true".to_owned()));
        let left: Vec<_> = left.map(|step| format!("  {step:?}")).collect();
        panic!(
            "KISO_TWO_RUNS_SEED={seed}, {place:?}: the program\n{}\ndiffers in\n    {}",
            left.join("\n"),
            found.join("\n    ")
        );
    }
    println!("{number} programs, each with two texts, in a {place:?}");
}
