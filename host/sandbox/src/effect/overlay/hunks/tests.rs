//! Acceptances of single hunks, and refused requests.

use super::{HunkError, TextChange};
use crate::effect::overlay::tests::{Action, Stage, in_overlay};
use crate::effect::overlay::{AcceptError, FolderDifference, FolderSelection, Overlay};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn numbers(count: usize) -> Vec<String> {
    (1..=count).map(|number| number.to_string()).collect()
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn write(overlay: &Overlay, path: &str, text: &str) {
    let action = Action::Write { path: path.to_owned(), text: text.to_owned(), empties: true, is_first: false };
    in_overlay(overlay, &action).unwrap();
}

fn difference(stage: &Stage, overlay: &Overlay) -> FolderDifference {
    overlay.difference(&stage.labels()).unwrap()
}

fn hunks(overlay: &Overlay, difference: &FolderDifference) -> TextChange {
    let change = difference.changes.iter().find(|change| change.path == Path::new("a")).unwrap();
    overlay.text_change(change).unwrap()
}

/// A file of 60 lines, of which the session has changed the fifth, the thirtieth, and the end.
fn stage() -> (Stage, Overlay, Vec<String>) {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(&folder).unwrap();
    let lines = numbers(60);
    fs::write(folder.join("a"), text(&lines)).unwrap();
    fs::set_permissions(folder.join("a"), fs::Permissions::from_mode(0o640)).unwrap();
    let overlay = stage.open("project");
    let mut changed = lines.clone();
    changed[4] = "five".to_owned();
    changed.remove(29);
    write(&overlay, "a", &format!("{}end", text(&changed)));
    (stage, overlay, lines)
}

#[test]
fn a_hunk_comes_into_the_folder_and_the_rest_goes_on_waiting() {
    let (stage, overlay, lines) = stage();
    let path = stage.folder("project").join("a");
    let made = difference(&stage, &overlay);
    let listed = hunks(&overlay, &made);
    assert_eq!(listed.hunks.len(), 3);
    assert_eq!(listed.hunks[0].header, "@@ -2,7 +2,7 @@");
    let revision = listed.revision.clone();
    let accepted = overlay.accept_hunks(&made, Path::new("a"), (&[3, 1], &revision)).unwrap();
    assert_eq!(accepted.changes, 1);
    let mut expected = lines.clone();
    expected[4] = "five".to_owned();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}end", text(&expected)));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);

    // The rest does not collide, also in a process that comes later.
    let overlay = stage.open("project");
    let left = difference(&stage, &overlay);
    assert_eq!((left.changes.len(), left.changes[0].collision), (1, None));
    let rest = hunks(&overlay, &left);
    assert_eq!(rest.hunks.len(), 1);
    let removed: Vec<&str> =
        rest.hunks[0].lines.iter().filter(|line| line.sign == '-').map(|line| line.text.as_str()).collect();
    assert_eq!(removed, ["30\n"]);

    // After an undo, all three changes wait again; after a redo, one does.
    overlay.undo_acceptance(accepted.number, false).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text(&lines));
    let again = difference(&stage, &overlay);
    assert_eq!(again.changes[0].collision, None);
    let again = hunks(&overlay, &again);
    assert_eq!((again.hunks.len(), &again.revision), (3, &revision));
    overlay.redo_acceptance(accepted.number).unwrap();
    let left = difference(&stage, &overlay);
    assert_eq!((left.changes[0].collision, hunks(&overlay, &left).hunks.len()), (None, 1));

    // The last one is the whole rest.
    let revision = hunks(&overlay, &left).revision;
    overlay.accept_hunks(&left, Path::new("a"), (&[1], &revision)).unwrap();
    assert!(difference(&stage, &overlay).changes.is_empty());
    expected.remove(29);
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}end", text(&expected)));
}

#[test]
fn hunks_of_a_list_that_is_old_are_refused() {
    let (stage, overlay, _) = stage();
    let path = stage.folder("project").join("a");
    let made = difference(&stage, &overlay);
    let listed = hunks(&overlay, &made);
    overlay.remember_hunks(&[(Path::new("a"), listed.revision.clone())]).unwrap();
    assert_eq!(overlay.remembered_hunks(Path::new("a")), Some(listed.revision.clone()));
    assert_eq!(overlay.remembered_hunks(Path::new("b")), None);
    // Another run has changed it.
    write(&overlay, "a", "all is new\n");
    let newer = difference(&stage, &overlay);
    let refused = overlay.accept_hunks(&newer, Path::new("a"), (&[1], &listed.revision)).unwrap_err();
    assert!(matches!(refused, HunkError::Stale(_)), "{refused}");
    // Somebody has changed it in the folder.
    fs::write(&path, "somebody else's\n").unwrap();
    let newest = difference(&stage, &overlay);
    let revision = hunks(&overlay, &newest).revision;
    let refused = overlay.accept_hunks(&newest, Path::new("a"), (&[1], &revision)).unwrap_err();
    assert!(matches!(refused, HunkError::Accept(AcceptError::Collision(_))), "{refused}");
    assert_eq!(fs::read_to_string(path).unwrap(), "somebody else's\n");
}

#[test]
fn what_has_no_hunks_is_refused() {
    let (stage, overlay, _) = stage();
    let folder = stage.folder("project");
    fs::write(folder.join("binary"), b"a\0b").unwrap();
    fs::write(folder.join("gone"), "gone\n").unwrap();
    fs::create_dir(folder.join("d")).unwrap();
    fs::write(folder.join("d/x"), "x\n").unwrap();
    fs::write(folder.join("one"), "1\n").unwrap();
    fs::hard_link(folder.join("one"), folder.join("other")).unwrap();
    write(&overlay, "binary", "text");
    write(&overlay, "new", "new\n");
    write(&overlay, "one", "2\n");
    in_overlay(&overlay, &Action::Unlink("gone".to_owned())).unwrap();
    in_overlay(&overlay, &Action::Rename("d".to_owned(), "e".to_owned())).unwrap();
    write(&overlay, "e/x", "y\n");
    let made = difference(&stage, &overlay);
    let known = hunks(&overlay, &made).revision;
    for (path, numbers, expected) in [
        ("binary", &[1][..], "is not a short text"),
        ("new", &[1], "was not changed in place"),
        ("gone", &[1], "was not changed in place"),
        ("e/x", &[1], "directory that was moved"),
        ("one", &[1], "several names"),
        ("none", &[1], "has no change"),
        ("a", &[4], "has 3 hunks, not a hunk 4"),
        ("a", &[0], "not a hunk 0"),
        ("a", &[], "without the number"),
    ] {
        let change = made.changes.iter().find(|change| change.path == Path::new(path));
        let revision = change.and_then(|change| Some(overlay.text_change(change)?.revision)).unwrap_or(known.clone());
        let refused = overlay.accept_hunks(&made, Path::new(path), (numbers, &revision)).unwrap_err();
        assert!(refused.to_string().contains(expected), "{path}: {refused}");
    }
    assert_eq!(difference(&stage, &overlay).changes.len(), made.changes.len());
}

#[test]
fn random_hunks_in_any_order_come_to_the_whole() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(&folder).unwrap();
    let mut random = crate::effect::overlay::tests::Numbers(7);
    for round in 0..30 {
        let before: String = (0..60).map(|line| format!("{line}{}", ["\n", "\r\n"][random.below(2)])).collect();
        let mut after: Vec<String> = before.split_inclusive('\n').map(str::to_owned).collect();
        for _ in 0..1 + random.below(12) {
            let at = random.below(after.len());
            match random.below(3) {
                0 => drop(after.remove(at)),
                1 => after.insert(at, format!("new {round}\n")),
                _ => after[at] = "changed".to_owned() + ["\n", ""][usize::from(at + 1 == after.len())],
            }
        }
        let after = after.concat();
        fs::write(folder.join("a"), &before).unwrap();
        let overlay = stage.open("project");
        write(&overlay, "a", &after);
        loop {
            let left = difference(&stage, &overlay);
            if left.changes.is_empty() {
                break;
            }
            let listed = hunks(&overlay, &left);
            let number = 1 + random.below(listed.hunks.len());
            overlay.accept_hunks(&left, Path::new("a"), (&[number], &listed.revision)).unwrap();
        }
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), after, "round {round}");
        overlay.discard(&difference(&stage, &overlay), &FolderSelection::All).unwrap_err();
    }
}
