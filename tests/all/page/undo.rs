//! Undo in the menu of a reply, with a preview of the changes.

use super::browser::{css, role};
use super::stage::Stage;

#[test]
fn file_changes_of_a_reply_are_undone_and_redone() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.expects("answer: 404 /sessions/files/files/pub/a.txt");
    let file = stage.home.work("files").join("pub/a.txt");
    stage.open("files");
    stage.say("$ echo hello");
    tab.wait_for(role("button", "Actions for this reply"));
    stage.say("$ mkdir -p pub; echo new > pub/a.txt; echo made");
    tab.wait_of(css(".chat-reply .file-chip"), "it.innerText.includes('4 bytes')");
    assert!(file.exists());
    tab.click(role("link", "a.txt"));
    tab.wait_of(css("aside.panel code"), "it.textContent.includes('new')");
    let menu = css(".chat-reply:last-of-type [aria-label='Actions for this reply']");
    tab.click(menu);
    tab.click(role("menuitem", "Undo file changes"));
    tab.wait_for(role("dialog", "Undo the file changes of this reply?"));
    tab.shows("pub/a.txt: deleted");
    assert!(file.exists(), "nothing is done unasked");
    tab.click(role("button", "Undo"));
    tab.shows("File changes undone: 1 path");
    assert!(!file.exists());
    // The panel and the chip are updated, also after a reload; an undone run can only be redone.
    for _ in 0..2 {
        tab.wait_of(css("aside.panel"), "it.innerText.includes('This file was undone')");
        tab.wait_of(css(".chat-reply .file-chip"), "it.innerText.includes('undone')");
        tab.reload();
    }
    tab.wait_of(css("aside.panel"), "it.innerText.includes('This file was undone')");
    tab.click(menu);
    tab.wait_for(role("menuitem", "Redo file changes"));
    assert!(!tab.has(role("menuitem", "Undo file changes")));
    tab.press("Escape");
    tab.audit("an undone file");
    tab.click(role("button", "Redo"));
    tab.wait_for(role("dialog", "Redo the file changes of this reply?"));
    tab.click(css("dialog .primary"));
    tab.shows("File changes redone: 1 path");
    tab.wait_of(css("aside.panel code"), "it.textContent.includes('new')");
    assert!(file.exists());
    // The first reply belongs to a run without changes.
    tab.click(menu);
    tab.wait_for(role("menuitem", "Undo file changes"));
    tab.press("Escape");
    tab.click(role("button", "Actions for this reply"));
    tab.wait_for(role("menuitem", "Trace"));
    assert!(!tab.has(role("menuitem", "Undo file changes")), "a run that changed nothing");
    tab.press("Escape");
}
