//! The tables of `docs/how-it-works.md` name the scenario for each rule. This test checks that each rule has a scenario, or an
//! integration test if it needs many processes, that each scenario has a rule, and that every edge of the graph and every limit
//! is covered.

use crate::harness::root;
use crate::scenarios::{Scenario, scenarios};
use kiso_base::config::KEYS;
use kiso_graph::{Node, Why, edge};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// The heading of the tables.
const SECTION: &str = "\n## Rules and the scenarios that show them\n";

/// Edges that a user cannot cause on purpose: a run is at its input only for an instant.
const UNSEEN: [(Node, Why); 1] = [(Node::Input, Why::Cancelled)];

/// A line of a table.
struct Row {
    text: String,
    /// The edge in the first cell, if it names one.
    edge: Option<String>,
    /// Names of scenarios, without extension.
    shown_by: Vec<String>,
    /// Integration tests, such as `job_limit::ten_jobs_run_at_once_and_the_eleventh_waits`.
    tests: Vec<String>,
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("docs/how-it-works.md")).expect("the page is there");
    let (_, section) = text.split_once(SECTION).expect("the page has the tables");
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with('|') && !line.starts_with("|-"));
    let cells = lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let rows = cells.filter(|cells| cells.last() != Some(&"Scenario"));
    let quoted = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let row = |cells: Vec<&str>| {
        let (tests, shown_by): (Vec<_>, Vec<_>) =
            quoted(cells[cells.len() - 1]).into_iter().partition(|name| name.contains("::"));
        Row {
            text: cells.join(" | "),
            edge: (cells.len() == 3).then(|| quoted(cells[0]).concat()),
            shown_by: shown_by
                .into_iter()
                .map(|name| name.strip_suffix(".toml").map(str::to_owned).unwrap_or(name))
                .collect(),
            tests,
        }
    };
    rows.map(row).collect()
}

/// The variants of an enum in `graph.rs`, read from its source so that none is missed.
fn variants<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let source = std::fs::read_to_string(root().join("host/graph/src/lib.rs")).expect("the graph is there");
    let (_, after) = source.split_once(&format!("pub enum {name} {{\n")).expect("it has this enum");
    let body = after.split("\n}").next().unwrap_or_default();
    let names = body.lines().map(str::trim).filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    let words = names.map(|line| {
        let mut word = String::new();
        for c in line.trim_end_matches(',').chars() {
            if c.is_ascii_uppercase() && !word.is_empty() {
                word.push('_');
            }
            word.push(c.to_ascii_lowercase());
        }
        word
    });
    words.map(|word| serde_json::from_value(word.clone().into()).unwrap_or_else(|e| panic!("{word}: {e}"))).collect()
}

/// Whether there is an integration test of this name.
fn is_test(name: &str) -> bool {
    let (file, function) = name.rsplit_once("::").expect("it has a module");
    let path = root().join(format!("tests/all/{}.rs", file.replace("::", "/")));
    std::fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("#[test]\nfn {function}() {{\n")))
}

#[test]
fn a_test_that_a_rule_names_is_looked_for() {
    assert!(is_test("rules::a_test_that_a_rule_names_is_looked_for"));
    assert!(!is_test("rules::is_test") && !is_test("rules::no_such_test") && !is_test("no_such_file::rows"));
}

fn word(why: Why) -> String {
    serde_json::to_value(why).ok().and_then(|value| value.as_str().map(str::to_owned)).expect("a reason is a word")
}

#[test]
fn every_rule_has_its_scenarios_and_every_scenario_its_rule() {
    let known: BTreeSet<String> = scenarios().into_iter().map(|(name, _)| name).collect();
    let rows = rows();
    let mut wrong = Vec::new();
    for row in &rows {
        if row.shown_by.is_empty() && row.tests.is_empty() {
            wrong.push(format!("no scenario shows: {}", row.text));
        }
        let missing = row.shown_by.iter().filter(|name| !known.contains(*name));
        wrong.extend(
            missing.map(|name| format!("there is no tests/scenarios/{name}.toml, which is to show: {}", row.text)),
        );
    }
    for name in rows.iter().flat_map(|row| &row.tests) {
        if !is_test(name) {
            wrong.push(format!("tests/all has no test {name}"));
        }
    }
    let named: BTreeSet<&String> = rows.iter().flat_map(|row| &row.shown_by).collect();
    wrong.extend(known.iter().filter(|name| !named.contains(name)).map(|name| format!("no rule names {name}.toml")));
    assert!(wrong.is_empty(), "docs/how-it-works.md\n{}", wrong.join("\n"));
}

#[test]
fn every_way_through_the_graph_is_taken_by_the_scenarios_that_show_it() {
    let scenarios: BTreeMap<String, Scenario> = scenarios().into_iter().collect();
    let mut wrong = Vec::new();
    let mut shown = BTreeSet::new();
    for row in rows() {
        let Some(way) = row.edge else { continue };
        for name in &row.shown_by {
            if scenarios.get(name).is_some_and(|scenario| scenario.edges().all(|edge| edge != way)) {
                wrong.push(format!("{name}.toml is to show \"{way}\", and no turn of it goes there"));
            }
        }
        shown.insert(way);
    }
    let mut ways = BTreeSet::new();
    for from in variants::<Node>("Node") {
        for why in variants::<Why>("Why") {
            if let Some(to) = edge(from, why)
                && !UNSEEN.contains(&(from, why))
            {
                ways.insert(format!("{from} {} {to}", word(why)));
            }
        }
    }
    assert!(ways.len() > variants::<Why>("Why").len(), "{ways:?}");
    wrong.extend(ways.difference(&shown).map(|way| format!("no row of the table shows \"{way}\"")));
    wrong.extend(shown.difference(&ways).map(|way| format!("the graph has no \"{way}\"")));
    assert!(wrong.is_empty(), "docs/how-it-works.md\n{}", wrong.join("\n"));
}

#[test]
fn every_limit_of_a_run_is_reached_in_a_scenario() {
    let scenarios = scenarios();
    let reached: BTreeSet<&str> = scenarios.iter().flat_map(|(_, scenario)| scenario.limits()).collect();
    let limits = KEYS.iter().filter(|key| key.section == "limits" && key.name.starts_with("max_"));
    // The maximum number of sessions is a limit of the home (capacity.rs).
    let limits = limits.filter(|key| key.name != "max_sessions");
    let missing: Vec<_> = limits.map(|key| key.name).filter(|name| !reached.contains(name)).collect();
    assert!(missing.is_empty(), "no scenario has these among its limits: {missing:?}");
}
