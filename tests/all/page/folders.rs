//! A person's folder: what a run has changed in it waits above the composer.

use super::browser::role;
use super::stage::Stage;
use crate::harness::root;

#[test]
fn changes_to_a_folder_wait_until_they_are_applied() {
    let Some(stage) = Stage::reflex() else { return };
    let folder = stage.home.dir.path().join("site");
    std::fs::create_dir_all(folder.join("drafts")).unwrap();
    std::fs::write(folder.join("index.html"), "<h1>Old</h1>\n<p>same</p>\n").unwrap();
    for number in 0..20 {
        std::fs::write(folder.join(format!("drafts/{number}")), "draft\n").unwrap();
    }
    stage.home.kiso(&["shell", "--session", "site", "--dir", folder.to_str().unwrap(), "-c", "true"]).ok();
    let tab = &stage.tab;
    stage.open("site");
    stage.say("$ sed -i s/Old/New/ index.html; rm -r drafts; echo ok > status.txt; echo made");
    tab.wait_for(role("region", &format!("Changes to {}", folder.display())));
    tab.shows("3 changes to");
    tab.shows("20 files deleted");
    assert!(folder.join("drafts/0").exists());
    tab.click(role("button", &format!("3 changes to {}, 20 files deleted", folder.display())));
    tab.shows("status.txt");
    tab.click(role("button", "Show index.html"));
    tab.shows("+ <h1>New</h1>");
    tab.shows("- <h1>Old</h1>");
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        let shots = root().join("target/page");
        std::fs::create_dir_all(&shots).unwrap();
        std::fs::write(shots.join("folder.png"), tab.screenshot()).unwrap();
    }
    tab.click(role("button", "Apply all"));
    tab.wait_for(role("dialog", &format!("Apply 3 changes to {}?", folder.display())));
    tab.shows("20 files will be deleted");
    tab.click(role("button", "Apply"));
    tab.shows("3 changes applied to");
    assert!(!folder.join("drafts").exists());
    assert_eq!(std::fs::read_to_string(folder.join("index.html")).unwrap(), "<h1>New</h1>\n<p>same</p>\n");
    stage.say("/undo");
    tab.shows("What was applied to /project");
    assert!(folder.join("drafts/7").exists());
}
