//! Accepted options have an effect: every option in the `--help` of the host's command is tried with a line in which it changes
//! the result of GNU's command. kiso's command must then refuse it, or give another result than without it.

use super::{Outcome, host_has, in_bash, in_kiso};
use crate::harness::Home;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Commands with their operands. Those of the first group run with every test, the others in `.ci/long`.
const SHORT: &[(&str, &str)] =
    &[("cut", "-d, -f1 people.csv"), ("grep", "a words.txt"), ("head", "words.txt"), ("sed", "s/a/b/ words.txt")];

const LONG: &[(&str, &str)] = &[
    ("base64", "words.txt"),
    ("cat", "crlf.txt notes.txt"),
    ("chmod", "600 words.txt"),
    ("cksum", "words.txt"),
    ("cmp", "old.conf new.conf"),
    ("comm", "words.txt numbers.txt"),
    ("cp", "words.txt copy"),
    ("csplit", "words.txt 3"),
    ("date", "-u -d @0"),
    ("diff", "old.conf new.conf"),
    ("dir", "."),
    ("du", "photos"),
    ("env", "A=1 printenv A"),
    ("expand", "fruit.tsv"),
    ("fmt", "poem.txt"),
    ("fold", "-w 20 poem.txt"),
    ("install", "words.txt copy"),
    ("join", "words.txt words.txt"),
    ("ln", "words.txt link"),
    ("ls", "."),
    ("md5sum", "words.txt"),
    ("mkdir", "new"),
    ("mv", "words.txt moved"),
    ("nl", "notes.txt"),
    ("numfmt", "1000 2000"),
    ("od", "words.txt"),
    ("paste", "words.txt numbers.txt"),
    ("pr", "-D x words.txt"),
    ("ptx", "words.txt"),
    ("realpath", "--relative-to=. words.txt"),
    ("rm", "words.txt"),
    ("rmdir", "photos"),
    ("seq", "1 5"),
    ("sha256sum", "words.txt"),
    ("sort", "words.txt numbers.txt"),
    ("split", "words.txt"),
    ("stat", "-c %n words.txt"),
    ("tac", "words.txt"),
    ("tail", "words.txt"),
    ("tar", "cf - photos"),
    ("tee", "out < words.txt"),
    ("timeout", "5 echo a"),
    ("touch", "new"),
    ("tr", "a-c x < words.txt"),
    ("truncate", "-s 5 words.txt"),
    ("uniq", "words.txt"),
    ("unexpand", "notes.txt"),
    ("wc", "words.txt notes.txt"),
    ("xargs", "echo < words.txt"),
];

/// Values that an option may need.
const VALUES: [&str; 6] = ["1", "2", ",", "a", "+x", "words.txt"];

/// Probes in one command line.
const TOGETHER: usize = 20;

/// Options that wait for a person or for ever.
const ENDLESS: [(&str, &str); 4] = [("tail", "-f"), ("tail", "-F"), ("tail", "--follow"), ("xargs", "-p")];

/// Accepted options without effect, and why that misleads nobody.
const EXCUSED: &[(&str, &[&str], &str)] = &[
    ("pr", &["-w", "--width"], "without columns, it only moves the date in the header"),
    ("dir", &["-c", "-t", "-u", "--time", "--sort"], "the files of a copy have one time here"),
    ("ls", &["-c", "-t", "-u", "--time", "--sort"], "the files of a copy have one time here"),
];

#[derive(Debug, Clone)]
struct Probe {
    /// `None` for the line without any option.
    option: Option<String>,
    line: String,
}

/// Exit code, standard output, and the files afterwards.
type Effect = (String, Vec<u8>, Vec<u8>);

#[test]
fn an_option_that_is_taken_is_honoured() {
    walk(SHORT);
}

#[test]
#[ignore = "runs some thousand lines of the host's commands"]
fn an_option_that_is_taken_is_honoured_by_every_command() {
    walk(LONG);
}

fn walk(commands: &[(&str, &str)]) {
    let (next, walked, silent) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..super::THREADS {
            scope.spawn(|| {
                let home = Home::new();
                home.kiso(&["skill", "list"]).ok();
                while let Some((name, operands)) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !host_has(name) {
                        continue;
                    }
                    let (count, found) = without_effect(&home, name, operands);
                    walked.fetch_add(count, Ordering::Relaxed);
                    silent.lock().expect("no thread panicked").extend(found);
                }
            });
        }
    });
    let (silent, walked) = (silent.into_inner().expect("no thread panicked"), walked.into_inner());
    assert!(silent.is_empty(), "these options are taken and change nothing:\n{}", silent.join("\n"));
    assert!(walked >= commands.len() * 3, "only {walked} options of {} commands were tried", commands.len());
}

/// The number of tried options of a command, and the lines with an option that kiso's command accepts without effect.
fn without_effect(home: &Home, name: &str, operands: &str) -> (usize, Vec<String>) {
    let base = Probe { option: None, line: format!("{name} {operands}") };
    let mut probes = vec![base];
    for (option, takes_value) in options(name) {
        let values = VALUES.iter().filter(|_| takes_value);
        let joined = |value: &&str| match option.starts_with("--") {
            true => format!("{name} {option}={value} {operands}"),
            false => format!("{name} {option} {value} {operands}"),
        };
        let lines = values.map(joined).chain([format!("{name} {option} {operands}")]);
        probes.extend(lines.map(|line| Probe { option: Some(option.clone()), line }));
    }
    let of_gnu = run_all(&probes, in_bash);
    let mut chosen: BTreeMap<&str, Probe> = BTreeMap::new();
    let did_work = |effect: &Effect| effect.0 == "0" || effect.0 == "1" && !effect.1.is_empty();
    for (probe, effect) in probes.iter().zip(&of_gnu).skip(1) {
        let changes = |effect: &Effect| did_work(effect) && Some(effect) != of_gnu[0].as_ref();
        if effect.as_ref().is_some_and(changes) {
            chosen.entry(probe.option.as_deref().unwrap_or_default()).or_insert_with(|| probe.clone());
        }
    }
    let tried: Vec<Probe> = probes[..1].iter().cloned().chain(chosen.into_values()).collect();
    let count = AtomicUsize::new(0);
    let of_kiso =
        run_all(&tried, |text| in_kiso(home, &format!("{name}-{}", count.fetch_add(1, Ordering::Relaxed)), text));
    let is_excused =
        |option: &str| EXCUSED.iter().any(|(command, options, _)| *command == name && options.contains(&option));
    let same =
        tried.iter().zip(&of_kiso).skip(1).filter(|(probe, effect)| {
            *effect == &of_kiso[0] && !is_excused(probe.option.as_deref().unwrap_or_default())
        });
    (tried.len() - 1, same.map(|(probe, _)| probe.line.clone()).collect())
}

/// The options in a command's `--help`, and whether each takes a value.
fn options(name: &str) -> Vec<(String, bool)> {
    let help = Command::new(name).arg("--help").env("LC_ALL", "C").output().expect("the command is there");
    let mut found = Vec::<(String, bool)>::new();
    for line in String::from_utf8_lossy(&help.stdout).lines() {
        let declared = line.trim_start();
        if !declared.starts_with('-') || line.len() - declared.len() > 10 {
            continue;
        }
        // Descriptions begin after two spaces.
        let declared = declared.split("  ").next().unwrap_or_default();
        let takes_value = declared.contains('=') || declared.contains(char::is_uppercase) && declared.contains(' ');
        for word in declared.split(", ") {
            let end = word.find(['=', '[', ' ']).unwrap_or(word.len());
            let option = &word[..end];
            let plain = option.trim_start_matches('-');
            let known = plain.is_empty() || matches!(plain, "help" | "version") || ENDLESS.contains(&(name, option));
            if !known && option.len() - plain.len() <= 2 && found.iter().all(|(other, _)| other != option) {
                found.push((option.to_owned(), takes_value));
            }
        }
    }
    found
}

/// Runs each probe in its own directory. `None` for a probe that did not end.
fn run_all(probes: &[Probe], run: impl Fn(&str) -> Outcome) -> Vec<Option<Effect>> {
    probes.chunks(TOGETHER).flat_map(|chunk| run_some(chunk, &run)).collect()
}

fn run_some(probes: &[Probe], run: impl Fn(&str) -> Outcome) -> Vec<Option<Effect>> {
    let mut script = "mkdir of; mv [!o]* old.conf of\n".to_owned();
    for (at, probe) in probes.iter().enumerate() {
        script += &format!(
            "cp -r of w; cd w\n({}) 2> /dev/null < /dev/null\nprintf '\\n@@%s %s@@\\n' {at} $?\n\
             find . -type f -o -type l | sort | while read -r f; do cksum \"$f\"; done 2> /dev/null\nls -d * | sort; cd ..; rm -rf w\n\
             printf '\\n@@files %s@@\\n' {at}\n",
            probe.line
        );
    }
    let printed = run(&script).stdout;
    let mut rest = &printed[..];
    let mut effects = Vec::new();
    for at in 0..probes.len() {
        let effect = split(rest, format!("\n@@{at} ").as_bytes()).and_then(|(output, behind)| {
            let (code, behind) = split(behind, b"@@\n")?;
            let (files, behind) = split(behind, format!("\n@@files {at}@@\n").as_bytes())?;
            rest = behind;
            Some((String::from_utf8_lossy(code).into_owned(), output.to_vec(), files.to_vec()))
        });
        effects.push(effect);
    }
    effects
}

fn split<'a>(bytes: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let found = bytes.windows(at.len()).position(|window| window == at)?;
    Some((&bytes[..found], &bytes[found + at.len()..]))
}
