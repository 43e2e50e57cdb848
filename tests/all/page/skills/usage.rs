//! What a skill has used of its permissions, and leaving it no more than that.

use super::super::browser::role;
use super::super::stage::{QUICK, Stage};
use super::items;
use crate::harness::Home;

#[test]
fn what_a_skill_used_is_shown_and_the_rest_is_taken_away() {
    let call = |home: &Home| {
        let work = home.work("default");
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(work.join("rain.csv"), "day,rain\n1,3\n2,5\n").unwrap();
        home.kiso(&["skill", "run", "data", "file=rain.csv", "compute=sum(rain)"]).ok().prints(&["8"]);
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, call) else { return };
    let tab = &stage.tab;
    // Of one that was never called there is nothing to say.
    tab.goto(&stage.url("#/skills/chart"));
    tab.click(role("button", "Show what it used"));
    tab.shows("No calls are recorded yet.");

    tab.goto(&stage.url("#/skills/data"));
    tab.click(role("button", "Show what it used"));
    tab.wait_of(role("region", "Used so far"), "it.innerText.includes('1 call since')");
    let used = items(tab, "Used hosts, folders and secrets");
    assert_eq!(used, ["read /work (1 call)"]);
    assert_eq!(items(tab, "Less would have been enough"), ["- workspace: write", "+ workspace: read"]);
    tab.click(role("button", "Allow only what was used"));
    tab.wait_for(role("dialog", "Allow only what was used?"));
    tab.click(role("button", "Allow only this"));
    tab.wait_gone(role("dialog", ""));
    tab.wait_of(role("region", "Permissions"), "it.innerText.includes('Reads files of the session that uses it.')");
    assert_eq!(stage.daemon.get("/skills/data")["grant"]["workspace"], "read");
    tab.click(role("button", "Show what it used"));
    tab.shows("It is allowed no more than it used.");
}
