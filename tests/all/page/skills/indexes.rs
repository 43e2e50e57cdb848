//! Searching signed indexes on the page.

use super::super::browser::{Tab, css, role};
use super::super::stage::{QUICK, Stage};
use super::super::themes::audit_in_both;
use crate::harness::Home;
use crate::indexes::Hosted;
use serde_json::json;

/// The results from indexes. kiso's own packages follow them.
const OF_INDEXES: &str = ".skills-found:not([data-kind=package])";

/// Opens the folded search, and searches.
#[track_caller]
fn search(tab: &Tab, stage: &Stage) {
    tab.goto(&stage.url("#/skills"));
    tab.wait_for(css(".skills-more"));
    if tab.eval("document.querySelector('.skills-more').open") == false {
        tab.click(css(".skills-more > summary"));
    }
    tab.click(css(".skills-ask button"));
}

#[test]
fn skills_of_indexes_are_found_with_the_command_that_installs_them() {
    let hosted = Hosted::new();
    hosted.sign_greet();
    let (signer, config) = (hosted.signer(), format!("{QUICK}{}", hosted.config));
    let evil = "<img src=x onerror=\"document.title='taken'\"> & <b>bold</b>";
    signer.change(|index| {
        index["serial"] = json!(7);
        let echo = index["skills"].as_array_mut().unwrap().iter_mut().find(|skill| skill["name"] == "echo").unwrap();
        (echo["summary"], echo["version"]) = (json!(evil), json!("<i>1</i>"));
    });
    let Some(stage) = Stage::with(hosted.home, &config) else { return };
    let tab = &stage.tab;
    search(tab, &stage);
    tab.wait("both are found", || tab.count(css(OF_INDEXES)) == 2);
    // Text of an index is shown as plain text.
    tab.shows(evil);
    tab.shows("<i>1</i>");
    assert_eq!(tab.count(css(".skills-found :is(img, b, i)")), 0);
    assert_ne!(tab.eval("document.title"), "taken");
    for part in [
        "greet",
        "1.0",
        "Agent Skill",
        "Writes greetings.",
        "ada",
        "not signed",
        "greet.zip",
        "MIT",
        "kiso skill add greet",
    ] {
        tab.shows(part);
    }
    let at = stage.daemon.get("/indexed_skills")["indexes"][0].as_str().unwrap().to_owned();
    tab.shows(&at);
    let _clipboard = tab.allow_clipboard();
    tab.click(role("button", "Copy the command that installs greet"));
    tab.wait("the command is in the clipboard", || tab.clipboard() == "kiso skill add greet");
    audit_in_both(tab, "skills of indexes");
    tab.focus(role("searchbox", "Search the indexes"));
    tab.insert_text("greetings");
    tab.click(css(".skills-ask button"));
    tab.wait("one is left", || tab.count(css(".skills-found")) == 1);
    tab.focus(role("searchbox", "Search the indexes"));
    tab.insert_text("nobody ");
    tab.click(css(".skills-ask button"));
    tab.shows("No skill has all of these words.");
    // An old index is reported as such, and none of its content is shown.
    signer.change(|index| index["serial"] = json!(3));
    search(tab, &stage);
    tab.shows("has the number 3, and 7 was seen before");
    tab.shows("stale-index");
    assert_eq!(tab.count(css(OF_INDEXES)), 0);
}

#[test]
fn a_home_without_an_index_has_the_packages_of_kiso() {
    let Some(stage) = Stage::with(Home::new(), QUICK) else { return };
    let tab = &stage.tab;
    search(tab, &stage);
    for part in ["python-sci", "package", "part of kiso", "python3, python, ", "PSF-2.0", "kiso skill add python"] {
        tab.shows(part);
    }
    tab.shows("An administrator can add indexes of others");
    audit_in_both(tab, "no index");
}
