//! docs/shell.md: every example gives the documented result, and every named command exists.

use crate::harness::{Home, root};
use crate::shell::{fixtures, in_session};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The examples under one heading; they share a directory.
struct Section {
    title: String,
    examples: Vec<Example>,
    /// The commands in a paragraph that begins with "Commands: ".
    commands: Vec<String>,
}

/// A command line and its whole output.
struct Example {
    text: String,
    output: String,
}

#[test]
fn every_example_does_what_the_page_shows() {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    let (mut wrong, mut ran) = (String::new(), 0);
    for (at, section) in sections().iter().enumerate() {
        let session = format!("section-{at}");
        fixtures(&home.work(&session));
        for example in &section.examples {
            let outcome = in_session(&home, &session, &example.text);
            // The page shows standard error last.
            let mut found = String::from_utf8_lossy(&outcome.stdout).into_owned();
            found.push_str(&String::from_utf8_lossy(&outcome.stderr));
            if !found.is_empty() && !found.ends_with('\n') {
                found.push('\n');
            }
            if found != example.output {
                let Example { text, output } = example;
                writeln!(wrong, "## {}\n$ {text}\nthe page:\n{output}kiso:\n{found}", section.title)
                    .expect("a string takes any text");
            }
            ran += 1;
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(ran >= 100, "{ran} examples were found");
}

#[test]
fn every_command_that_the_page_names_is_there_and_has_an_example() {
    let sections = sections();
    let named: Vec<&str> = sections.iter().flat_map(|s| &s.commands).map(String::as_str).collect();
    assert!(named.len() >= 80, "{} commands are named", named.len());
    let examples = sections.iter().flat_map(|section| &section.examples);
    let words: BTreeSet<&str> = examples.flat_map(|e| e.text.split([' ', '\n', ';', '(', ')', '|'])).collect();
    let without: Vec<_> = named.iter().filter(|name| !words.contains(*name)).collect();
    assert!(without.is_empty(), "commands without an example: {without:?}");
    let home = Home::new();
    let text = format!("for c in {}; do command -v -- \"$c\" > /dev/null || echo \"$c\"; done", named.join(" "));
    let missing = &home.kiso(&["shell", "-c", &text]).stdout;
    assert!(missing.is_empty(), "the page names commands that there are not:\n{missing}");
}

/// The sections of the page: a heading of any level starts one.
fn sections() -> Vec<Section> {
    let page = std::fs::read_to_string(root().join("docs/shell.md")).expect("docs/shell.md is there");
    let mut sections = vec![Section { title: String::new(), examples: Vec::new(), commands: Vec::new() }];
    let (mut block, mut in_list) = (None::<&str>, false);
    for line in page.lines() {
        let section = sections.last_mut().expect("there is one");
        match (block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some(language),
            (Some(_), Some(_)) => block = None,
            (Some("console"), None) => add(line, &mut section.examples),
            (Some(_), None) => {}
            (None, None) if line.starts_with('#') => {
                let title = line.trim_start_matches('#').trim().to_owned();
                sections.push(Section { title, examples: Vec::new(), commands: Vec::new() });
            }
            (None, None) => {
                in_list = line.starts_with("Commands: ") || in_list && !line.is_empty();
                if in_list {
                    section.commands.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
                }
            }
        }
    }
    sections
}

/// Adds a line of a console block: `$ ` starts a command, `> ` directly below continues it, and everything else is output.
fn add(line: &str, examples: &mut Vec<Example>) {
    if let Some(text) = line.strip_prefix("$ ") {
        examples.push(Example { text: text.to_owned(), output: String::new() });
        return;
    }
    let example = examples.last_mut().unwrap_or_else(|| panic!("output without a command: {line}"));
    match line.strip_prefix("> ") {
        Some(more) if example.output.is_empty() => {
            example.text.push('\n');
            example.text.push_str(more);
        }
        _ => {
            example.output.push_str(line);
            example.output.push('\n');
        }
    }
}
