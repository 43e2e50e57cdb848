//! Folders listed in config.toml: opened in a conversation, and used to save files.

use super::browser::{css, role};
use super::stage::{QUICK, Stage};
use super::themes::audit_in_both;
use crate::harness::{Home, root};

/// Saves a screenshot if screenshots are requested.
fn picture(stage: &Stage, name: &str) {
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        let shots = root().join("target/page");
        std::fs::create_dir_all(&shots).unwrap();
        std::fs::write(shots.join(name), stage.tab.screenshot()).unwrap();
    }
}

#[test]
fn listed_folders_are_opened_in_a_conversation_and_take_files() {
    let home = Home::new();
    let photos = home.dir.path().join("photos");
    std::fs::create_dir(&photos).unwrap();
    std::fs::write(photos.join("a.txt"), "one\n").unwrap();
    let path = photos.display().to_string();
    let config = format!(
        "{QUICK}[folders.photos]\npath = {path:?}\n[folders.books]\npath = \"/no/such/place\"\nmode = \"read\"\n"
    );
    let Some(stage) = Stage::with(home, &config) else { return };
    let tab = &stage.tab;
    stage.open("desk");
    let menu = |item: &str| {
        tab.click(css(".chat-head > .menu button"));
        tab.click(role("menuitem", item));
    };
    menu("Folders");
    tab.wait_for(role("button", "Open photos"));
    tab.shows("not connected");
    tab.shows("read only");
    tab.wait_of(role("button", "Open books"), "it.disabled");
    audit_in_both(tab, "the folders");
    tab.click(role("button", "Open photos"));
    tab.wait_for(role("button", "Close photos"));
    tab.shows("open at /project");
    picture(&stage, "folder-chooser.png");
    tab.press("Escape");
    tab.wait_gone(role("dialog", ""));
    stage.say("$ echo two > a.txt; echo chart > /work/pub/chart.csv; echo made");
    tab.wait_for(role("region", &format!("Changes to {path}")));
    assert_eq!(std::fs::read_to_string(photos.join("a.txt")).unwrap(), "one\n");

    // A file of the reply, with one click and a choice of folder.
    tab.click(role("button", "Save pub/chart.csv to a folder or to the shared files"));
    tab.wait_for(role("dialog", "Save chart.csv"));
    assert!(!tab.has(role("button", "Save in books")), "it is for reading only");
    tab.wait_for(role("button", "Save in photos"));
    audit_in_both(tab, "where a file is saved");
    picture(&stage, "folder-save.png");
    tab.click(role("button", "Save in photos"));
    tab.shows("Saved as “chart.csv” in photos");
    assert_eq!(std::fs::read_to_string(photos.join("chart.csv")).unwrap(), "chart\n");
    // The same from the list of all files; a pending file stays pending.
    menu("Files");
    tab.click(role("button", "Save pub/chart.csv to a folder or to the shared files"));
    tab.click(role("button", "Save in photos"));
    tab.shows("Saved as “chart (2).csv” in photos");
    assert_eq!(std::fs::read_to_string(photos.join("a.txt")).unwrap(), "one\n");

    tab.click(role("button", "Drop all"));
    tab.click(role("button", "Drop"));
    tab.wait_gone(role("region", &format!("Changes to {path}")));
    menu("Folders");
    tab.click(role("button", "Close photos"));
    tab.wait_for(role("button", "Open photos"));
}
