//! Suggestions of kiso run unchanged: reflex's offers in different workspaces, commands named in errors and on the page, and
//! messages with attached files.

use crate::harness::{Home, root};
use std::path::Path;

/// The messages in a reply's list.
fn offered(reply: &str) -> Vec<String> {
    reply.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
}

/// Sends every message that reflex offers, unchanged, in the session where it was offered.
#[test]
fn every_message_that_reflex_offers_runs() {
    let example = |name: &str| std::fs::read(root().join("examples").join(name)).unwrap();
    let stock: &[u8] = b"name,place,weight\nnail,shelf,3\nsaw,wall,12\n";
    let workspaces: [&[(&str, Vec<u8>)]; 5] = [
        &[],
        &[("weather.csv", example("weather.csv"))],
        &[("stock.csv", stock.to_vec())],
        &[("notes.txt", b"one\ntwo three\n".to_vec())],
        &[("my notes.md", b"# One\n".to_vec()), ("market.csv", example("market.csv"))],
    ];
    for (number, files) in workspaces.iter().enumerate() {
        let home = Home::new();
        let files: Vec<_> = files.iter().map(|(name, bytes)| home.file(name, bytes)).collect();
        let with: Vec<&str> = files.iter().flat_map(|file| ["--file", file.to_str().unwrap()]).collect();
        for asks in ["hello", "write a sonnet about my cat"] {
            let ran = home.kiso(&[&["run"][..], with.as_slice(), &[asks][..]].concat());
            let messages = offered(&ran.stdout);
            assert!(!messages.is_empty(), "{ran:?}");
            for message in messages {
                let ran = home.kiso(&["run", &message]);
                assert_eq!(ran.code, 0, "workspace {number}: {message}\n{ran:?}");
            }
        }
    }
}

/// Every command in backquotes in the program, its page and its docs is accepted by the command line.
#[test]
fn every_command_that_is_named_is_one_of_kiso() {
    let home = Home::new();
    let mut seen = 0;
    let places = [
        ("host", "rs"),
        ("host/gateway/src/page/web/lib", "js"),
        ("host/gateway/src/page/web/screens", "js"),
        ("docs", "md"),
        ("roles", "md"),
    ];
    for (dir, ending) in places {
        for path in files(&root().join(dir), ending) {
            let text = std::fs::read_to_string(&path).unwrap();
            for command in commands(&text) {
                let words = words(&command);
                // With `--help`, a command is only parsed.
                let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
                // Arguments after `--` belong to another program.
                args.insert(args.iter().position(|word| *word == "--").unwrap_or(args.len()), "--help");
                let ran = home.kiso(&args);
                assert_eq!(ran.code, 0, "{}: `kiso {command}`\n{}", path.display(), ran.stderr);
                seen += 1;
            }
        }
    }
    assert!(seen > 60, "{seen} commands were found");
}

fn files(dir: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("vendor") {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|found| found == ending) {
            found.push(path);
        }
    }
    found
}

/// The text between "`kiso " and the next backquote on the same line.
fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    // Users do not see comments.
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for part in line.split("`kiso ").skip(1) {
            let Some((command, _)) = part.split_once('`') else { continue };
            // Ellipses, alternatives and variables mark a pattern.
            if !command.contains(['…', '|', '<', '$']) && !found.iter().any(|known| known == command) {
                found.push(command.to_owned());
            }
        }
    }
    found
}

/// A command as arguments, with a number, which is also a valid name, for each `{}` and `{name}`.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut quote = None;
    let mut word = String::new();
    let mut braces = false;
    for c in command.replace("\\\"", "\"").chars() {
        match (quote, c) {
            (None, '{') => braces = true,
            (None, '}') => {
                braces = false;
                word.push('1');
            }
            _ if braces => {}
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ' ') => words.push(std::mem::take(&mut word)),
            (_, c) => word.push(c),
        }
    }
    words.push(word);
    // A number for each ID.
    words.iter_mut().filter(|word| *word == "ID").for_each(|word| *word = "1".to_owned());
    words.retain(|word| !word.is_empty());
    words
}

/// A message without a file name refers to its attached file, even if there are others.
#[test]
fn what_comes_with_a_message_is_what_it_is_about() {
    let home = Home::new();
    let one = home.file("one.csv", "day,value\n2024-01-01,1\n2024-01-02,2\n");
    let two = home.file("two.csv", "day,value\n2024-01-01,10\n2024-01-02,20\n");
    let notes = home.file("notes.txt", "first\nsecond error\n");
    let run = |file: &Path, message: &str| home.kiso(&["run", "--file", file.to_str().unwrap(), message]);
    run(&one, "total value").ok().prints(&["3"]);
    run(&two, "total value").ok().prints(&["30"]);
    run(&notes, "how many lines are there?").ok().prints(&["wc -l notes.txt", "2"]);
    run(&notes, "search for error").ok().prints(&["2:second error"]);
    home.kiso(&["run", "show notes.txt"]).ok().prints(&["first", "second error"]);
    home.kiso(&["run", "mean value from notes.txt"]).exit(1);
}

#[test]
fn what_is_to_be_remembered_is_kept() {
    let home = Home::new();
    home.kiso(&["run", "remember that my dog is called Rex"])
        .ok()
        .prints(&["I will remember that", "kiso memory show"]);
    home.kiso(&["memory", "search", "Rex"]).ok().prints(&["my dog is called Rex"]);
    home.kiso(&["run", "remind me of the tea"]).ok().prints(&["Reminder: the tea"]);
}
