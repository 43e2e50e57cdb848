//! A person's folder: a run's changes are listed above the composer until they are accepted.

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

#[test]
fn pictures_tables_and_hunks_of_a_folder_are_shown_and_a_hunk_is_applied() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    let (folder, work) = (stage.home.dir.path().join("site"), stage.home.work("site"));
    std::fs::create_dir_all(folder.join("in")).unwrap();
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(folder.join("photo.png"), tab.screenshot()).unwrap();
    let text: String = (1..=40).map(|number| format!("line {number}\n")).collect();
    std::fs::write(folder.join("long.txt"), &text).unwrap();
    std::fs::write(folder.join("prices.csv"), "name,price\ntea,3\ncake,4\n\"milk, cold\",2\n").unwrap();
    std::fs::write(folder.join("data.bin"), "a\0b").unwrap();
    for number in 100..130 {
        std::fs::write(folder.join(format!("in/{number}.pdf")), "pdf").unwrap();
    }
    stage.home.kiso(&["shell", "--session", "site", "--dir", folder.to_str().unwrap(), "-c", "true"]).ok();
    stage.open("site");
    std::fs::write(work.join("new.png"), tab.screenshot()).unwrap();
    stage.say(
        "$ cp /work/new.png photo.png; sed -i 's/^line 3$/third/; s/^line 30$/thirtieth/' long.txt; \
         printf 'name,price\\ntea,5\\n\"milk, cold\",2\\nbread,1\\n' > prices.csv; printf 'a\\0bc' > data.bin; \
         mkdir pdf; mv in/*.pdf pdf/; \
         mkdir -p .git/hooks .git/refs/heads; echo 'ref: refs/heads/main' > .git/HEAD; echo 'echo hello' > .git/hooks/pre-commit; echo made",
    );
    let bar = format!("36 changes to {}", folder.display());
    tab.wait_for(role("button", &bar));
    tab.click(role("button", &bar));
    tab.shows("in/*.pdf → pdf/");
    tab.shows("30 files");
    tab.shows("new repository; hooks/pre-commit added");
    tab.click(role("button", "Show .git"));
    tab.shows("+ echo hello");
    tab.click(role("button", "Hide .git"));
    tab.click(role("button", "Show photo.png"));
    tab.wait_until(
        "[...document.querySelectorAll('.folder-pictures img')].filter((it) => it.naturalWidth > 0).length === 2",
    );
    tab.shows("Before, ");
    tab.click(role("button", "Show data.bin"));
    tab.shows("This is not a short text");
    tab.click(role("button", "Show prices.csv"));
    tab.shows("milk, cold");
    tab.wait_until("document.querySelectorAll('.folder-diff tr.folder-row-changed del').length === 1");
    tab.click(role("button", "Show as lines"));
    tab.shows("+ bread,1");
    tab.click(role("button", "Show as table"));
    tab.click(role("button", "Show long.txt"));
    tab.shows("+ thirtieth");
    if std::env::var_os("KISO_SCREENSHOTS").is_some() {
        let shots = root().join("target/page");
        std::fs::create_dir_all(&shots).unwrap();
        for part in ["photo.png", "prices.csv", "long.txt"] {
            tab.eval(&format!(
                "[...document.querySelectorAll('.folder-changes > li')].find((it) => it.textContent.includes('{part}')).scrollIntoView({{ block: 'nearest' }})"
            ));
            std::fs::write(shots.join(format!("folder-{part}.png")), tab.screenshot()).unwrap();
        }
    }
    tab.click(role("button", "Apply hunk 2 of long.txt"));
    tab.shows("1 hunk applied to");
    assert_eq!(std::fs::read_to_string(folder.join("long.txt")).unwrap(), text.replace("line 30\n", "thirtieth\n"));
    tab.click(role("button", "Apply in/*.pdf → pdf/"));
    tab.shows("changes applied to");
    assert!(folder.join("pdf/129.pdf").exists() && !folder.join("in/129.pdf").exists());
}
