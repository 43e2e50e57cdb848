//! Many similar changes are one line, which contains no change that a person must see.

use super::digits;
use crate::effect::overlay::tests::{Action, Stage, in_overlay};
use crate::effect::overlay::{FolderSelection, ListedChange, Overlay};
use std::fs;
use std::path::Path;

fn write(overlay: &Overlay, path: &str) {
    let action = Action::Write { path: path.to_owned(), text: "text".to_owned(), empties: true, is_first: false };
    in_overlay(overlay, &action).unwrap();
}

fn make(overlay: &Overlay, path: &str) {
    in_overlay(overlay, &Action::MakeDir(path.to_owned())).unwrap();
}

fn rename(overlay: &Overlay, from: &str, to: &str) {
    in_overlay(overlay, &Action::Rename(from.to_owned(), to.to_owned())).unwrap();
}

#[test]
fn files_that_are_sorted_by_their_kind_are_a_line_for_each_kind() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(folder.join("in")).unwrap();
    for number in 100..150 {
        for ending in ["pdf", "jpg"] {
            fs::write(folder.join(format!("in/{number}.{ending}")), "text").unwrap();
        }
    }
    fs::write(folder.join("in/a.txt"), "text").unwrap();
    let overlay = stage.open("project");
    make(&overlay, "pdf");
    make(&overlay, "mixed");
    for number in 100..150 {
        rename(&overlay, &format!("in/{number}.pdf"), &format!("pdf/{number}.pdf"));
    }
    for number in 100..115 {
        rename(&overlay, &format!("in/{number}.jpg"), &format!("mixed/x{number}.jpg"));
    }
    for number in 120..150 {
        rename(&overlay, &format!("in/{number}.jpg"), &format!("in/y{number}.jpg"));
    }
    rename(&overlay, "in/a.txt", "mixed/a.txt");
    // This change collides, so the group of its kind does not contain it.
    fs::write(folder.join("in/107.pdf"), "somebody else's text").unwrap();
    let difference = overlay.difference(&stage.labels()).unwrap();
    let listed = difference.listed(&FolderSelection::All, true);
    let lines: Vec<String> = listed.iter().map(ListedChange::to_string).collect();
    assert!(lines.contains(&"R  49 files  in/*.pdf → pdf/  (100.pdf, 101.pdf, 102.pdf, …)".to_owned()), "{lines:#?}");
    let renamed = "R  30 files  in/*.jpg → in/*.jpg  (120.jpg → y120.jpg, 121.jpg → y121.jpg, 122.jpg → y122.jpg, …)";
    assert!(lines.contains(&renamed.to_owned()), "{lines:#?}");
    let alone = lines.iter().filter(|line| line.contains("→ mixed/")).count();
    assert_eq!(alone, 16, "a few are listed one by one: {lines:#?}");
    assert!(
        lines.iter().any(|line| line.starts_with("R  in/107.pdf → pdf/107.pdf  (CANNOT BE ACCEPTED")),
        "{lines:#?}"
    );
    assert_eq!(difference.listed(&FolderSelection::All, false).len(), difference.changes.len());

    // A group is accepted by a selection of its members.
    let group = listed.iter().find_map(|line| match line {
        ListedChange::Group(group) if group.dir == Path::new("pdf") => Some(group),
        _ => None,
    });
    let group = group.unwrap();
    assert_eq!(overlay.accept(&difference, &group.selection()).unwrap().changes, 50);
    assert!(folder.join("pdf/149.pdf").exists() && folder.join("in/107.pdf").exists());
    let ids: std::collections::BTreeSet<String> = listed
        .iter()
        .filter_map(|line| match line {
            ListedChange::Group(group) => Some(group.id()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 2);
}

#[test]
fn a_new_tree_is_one_line() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(folder.join("gone")).unwrap();
    for number in 100..1_300 {
        fs::write(folder.join(format!("gone/{number}")), "x").unwrap();
    }
    let overlay = stage.open("project");
    make(&overlay, "new");
    make(&overlay, "new/deep");
    make(&overlay, "few");
    for number in 10..40 {
        write(&overlay, &format!("new/deep/{number}.js"));
        write(&overlay, &format!("new/{number}.md"));
    }
    write(&overlay, "few/one");
    for number in 100..1_200 {
        in_overlay(&overlay, &Action::Unlink(format!("gone/{number}"))).unwrap();
    }
    let difference = overlay.difference(&stage.labels()).unwrap();
    let listed = difference.listed(&FolderSelection::All, true);
    let lines: Vec<String> = listed.iter().map(ListedChange::to_string).collect();
    assert_eq!(
        lines,
        [
            "A  few/",
            "A  few/one  (4 B)",
            "D  1,100 files  gone/*  (1.1 kB; 100, 1000, 1001, …)",
            "A  new/  (60 files; 2 directories; 240 B; 30 js, 30 md; 10.md, 11.md, 12.md, …)",
        ]
    );
}

#[test]
fn numbers_have_commas() {
    assert_eq!([0, 999, 1_000, 1_234_567].map(digits), ["0", "999", "1,000", "1,234,567"]);
}
