//! Undo in the menu of a reply: what would change is shown before it does.

use super::browser::role;
use super::stage::Stage;

#[test]
fn file_changes_of_a_reply_are_undone_and_redone() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    let file = stage.home.work("files").join("a");
    stage.open("files");
    stage.say("$ echo new > a; echo made");
    tab.wait_for(role("button", "Actions for this reply"));
    assert!(file.exists());
    tab.click(role("button", "Actions for this reply"));
    tab.click(role("menuitem", "Undo file changes"));
    tab.wait_for(role("dialog", "Undo the file changes of this reply?"));
    tab.shows("a: deleted");
    assert!(file.exists(), "nothing is done unasked");
    tab.click(role("button", "Undo"));
    tab.shows("File changes undone: 1 path");
    assert!(!file.exists());
    tab.click(role("button", "Actions for this reply"));
    tab.click(role("menuitem", "Undo file changes"));
    tab.shows("This reply has no file changes to undo");
    tab.click(role("button", "Actions for this reply"));
    tab.click(role("menuitem", "Redo file changes"));
    tab.wait_for(role("dialog", "Redo the file changes of this reply?"));
    tab.click(role("button", "Redo"));
    tab.shows("File changes redone: 1 path");
    assert!(file.exists());
}
