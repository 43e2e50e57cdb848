//! The files that all conversations share: uploaded, opened, deleted and restored.

use super::browser::{css, role};
use super::stage::{QUICK, Stage, manage};
use super::themes::audit_in_both;
use crate::harness::{Home, root};
use crate::served::ask;
use std::fs;

/// Saves a screenshot if screenshots are requested.
fn picture(stage: &Stage, name: &str) {
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        let shots = root().join("target/page");
        fs::create_dir_all(&shots).unwrap();
        fs::write(shots.join(name), stage.tab.screenshot()).unwrap();
    }
}

#[test]
fn shared_files_are_uploaded_opened_deleted_and_put_back() {
    let Some(stage) = Stage::with(Home::new(), &format!("model = \"reflex\"\n{QUICK}")) else { return };
    let tab = &stage.tab;
    manage(tab, "Files");
    tab.wait_for(role("heading", "Shared files"));
    tab.shows("No shared files yet");
    audit_in_both(tab, "no shared files");

    let report = stage.home.file("report.txt", "figures\n");
    tab.choose_file(css("main input[type=file]"), &report);
    tab.wait_for(role("link", "report.txt"));
    assert_eq!(stage.daemon.request("GET", "/files/report.txt", None).body, "figures\n");
    tab.click(role("button", "Dismiss"));
    // An existing name needs a confirmation.
    fs::write(&report, "newer figures\n").unwrap();
    tab.expects("answer: 409 /files/report.txt");
    tab.choose_file(css("main input[type=file]"), &report);
    tab.wait_for(role("dialog", "Replace “report.txt”?"));
    tab.click(role("button", "Replace"));
    tab.wait("it is replaced", || stage.daemon.request("GET", "/files/report.txt", None).body == "newer figures\n");
    tab.click(role("button", "Undo"));
    tab.wait("the old one is back", || stage.daemon.request("GET", "/files/report.txt", None).body == "figures\n");

    // It opens beside the list, and is listed with the files of each chat.
    tab.click(role("link", "report.txt"));
    tab.wait_of(css("aside.panel code"), "it.textContent.includes('figures')");
    audit_in_both(tab, "a shared file beside the list");
    tab.press("Escape");
    tab.wait_gone(css("aside.panel"));
    tab.eval("location.hash = '#/s/default/f/%2Fshared%2Freport.txt'");
    tab.wait_of(css("aside.panel code"), "it.textContent.includes('figures')");
    tab.click(css(".chat-head > .menu button"));
    tab.click(role("menuitem", "Files"));
    tab.wait_of(css("dialog [aria-label='Shared with all chats']"), "it.innerText.includes('report.txt')");
    tab.audit("the files of a chat and the shared ones");
    tab.press("Escape");
    tab.eval("location.hash = '#/files'");
    tab.wait_for(role("link", "report.txt"));

    let token = stage.home.kiso(&["token", "add", "phone"]).ok().stdout.trim().to_owned();
    ask(&stage.daemon.address, Some(&token), "PUT", "/files/lists/2026/shop.txt", Some("milk")).unwrap().expect(201);
    tab.reload();
    tab.click(role("link", "lists"));
    tab.wait_until("location.hash === '#/files/lists'");
    tab.click(role("link", "2026"));
    tab.wait_for(role("link", "shop.txt"));
    tab.shows("from outside");
    let other = stage.home.file("Notes of May.txt", "notes\n");
    tab.drop_file(css("main"), &other);
    tab.wait_for(role("link", "Notes of May.txt"));
    assert_eq!(stage.daemon.request("GET", "/files/lists/2026/Notes%20of%20May.txt", None).body, "notes\n");
    tab.wait_for(role("link", "Download shop.txt"));
    audit_in_both(tab, "the shared files");
    picture(&stage, "shared-files.png");
    tab.click(role("link", "Shared files"));
    tab.wait_until("location.hash === '#/files'");

    tab.click(role("button", "Delete lists"));
    tab.wait_for(role("dialog", "Delete “lists”?"));
    tab.shows("Everything in it is deleted for all chats");
    tab.click(role("button", "Cancel"));
    tab.click(role("button", "Delete lists"));
    tab.click(role("button", "Delete"));
    tab.wait_gone(role("link", "lists"));
    assert_eq!(stage.daemon.get("/files")["items"].as_array().unwrap().len(), 1);
    picture(&stage, "shared-files-undo.png");
    tab.click(role("button", "Undo"));
    tab.wait_for(role("link", "lists"));
    assert_eq!(stage.daemon.request("GET", "/files/lists/2026/shop.txt", None).body, "milk");
}

#[test]
fn a_file_of_a_reply_is_saved_among_the_shared_files() {
    let Some(stage) = Stage::with(Home::new(), &format!("model = \"reflex\"\n{QUICK}")) else { return };
    let tab = &stage.tab;
    stage.open("desk");
    stage.say("$ echo chart > /work/pub/chart.csv; echo made");
    tab.click(role("button", "Save pub/chart.csv to a folder or to the shared files"));
    tab.wait_for(role("button", "Save in Shared files"));
    tab.click(role("button", "Save in Shared files"));
    tab.shows("Saved as “chart.csv” in Shared files");
    assert_eq!(stage.daemon.request("GET", "/files/chart.csv", None).body, "chart\n");
    stage.say("/undo");
    tab.wait("it is taken back", || stage.daemon.request("GET", "/files/chart.csv", None).status == 404);
}
