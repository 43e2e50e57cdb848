//! Interrupted acceptances, acceptances into a folder that has changed, and partial acceptances.

use super::super::tests::{Action, Numbers, Stage, copy, in_overlay, plainly, plant, shown};
use super::super::walk::SeenLabels;
use super::super::{FolderSelection, Overlay};
use super::{AcceptError, AcceptRecord, AcceptState, AcceptStep, PendingAcceptance, append};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn write(path: &str, text: &str) -> Action {
    Action::Write { path: path.to_owned(), text: text.to_owned(), empties: true, is_first: false }
}

fn run(overlay: &Overlay, actions: &[Action]) {
    actions.iter().for_each(|action| in_overlay(overlay, action).unwrap());
}

#[test]
fn an_acceptance_that_is_cut_off_leaves_the_folder_as_it_was_or_is_complete() {
    let stage = Stage::new();
    for seed in 1..40 {
        let (mut numbers, name) = (Numbers(seed), format!("p{seed}"));
        let folder = stage.folder(&name);
        plant(&folder, &mut numbers);
        let plain = stage.folder(&format!("{name}-plain"));
        copy(&folder, &plain, &mut BTreeMap::new());
        let before = shown(&folder);
        let dir = Dir::open_ambient_dir(&plain, ambient_authority()).unwrap();
        let overlay = stage.open(&name);
        for number in 0..14 {
            let action = numbers.action(number);
            let _ = (plainly(&dir, &action), in_overlay(&overlay, &action));
        }
        let after = shown(&plain);
        let mut step = 0;
        loop {
            // Opens the overlay as the process after the killed one does.
            let overlay = stage.open(&name);
            assert_eq!(shown(&folder), before, "program {seed}, cut off behind step {step}");
            let difference = overlay.difference(&stage.labels()).unwrap();
            if difference.changes.is_empty() {
                break;
            }
            let PendingAcceptance { id, header, steps, .. } =
                overlay.begin(&difference, &FolderSelection::All).unwrap();
            let mut work = overlay.stage(&header, &[]).unwrap();
            steps.iter().take(step).for_each(|step| work.apply(step).unwrap());
            if step <= steps.len() {
                step += 1;
                continue;
            }
            // Cut off between its end and that of its changes.
            append(&overlay.accept_log(id), &[AcceptRecord::State(AcceptState::Done)]).unwrap();
            let overlay = stage.open(&name);
            assert_eq!(shown(&folder), after, "program {seed}");
            assert!(overlay.difference(&stage.labels()).unwrap().changes.is_empty());
            // An undo that is cut off is completed.
            append(&overlay.accept_log(id), &[AcceptRecord::State(AcceptState::Undoing)]).unwrap();
            let mut work = overlay.stage(&header, &[]).unwrap();
            for step in steps.iter().rev().take(steps.len() / 2) {
                work.revert(step).unwrap();
            }
            let overlay = stage.open(&name);
            assert_eq!(shown(&folder), before, "program {seed}, undone");
            overlay.redo_acceptance(id).unwrap();
            assert_eq!(shown(&folder), after, "program {seed}, redone");
            break;
        }
    }
}

#[test]
fn a_file_that_somebody_has_changed_is_never_overwritten() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(folder.join("sub")).unwrap();
    for name in ["a", "b", "c", "sub/d", "moved"] {
        fs::write(folder.join(name), "first").unwrap();
    }
    let overlay = stage.open("project");
    run(
        &overlay,
        &[
            write("a", "ours"),
            Action::Unlink("b".to_owned()),
            write("new", "ours"),
            write("sub/d", "ours"),
            Action::Rename("moved".to_owned(), "sub/moved".to_owned()),
            write("c", "ours"),
        ],
    );
    for name in ["a", "b", "new", "moved"] {
        fs::write(folder.join(name), "theirs").unwrap();
    }
    let before = shown(&folder);
    let difference = overlay.difference(&stage.labels()).unwrap();
    let against: Vec<(&Path, &str)> =
        difference.changes.iter().filter_map(|change| Some((change.path.as_path(), change.collision?))).collect();
    let changed = "was changed in the folder since";
    let expected = [("a", changed), ("b", changed), ("new", "was made in the folder since"), ("sub/moved", changed)];
    assert_eq!(against, expected.map(|(path, why)| (Path::new(path), why)));
    let refused = overlay.accept(&difference, &FolderSelection::All).unwrap_err();
    assert!(matches!(&refused, AcceptError::Collision(paths) if paths.len() == 4), "{refused}");
    assert_eq!(shown(&folder), before);

    // The others can be accepted, and those that collide stay.
    let some = FolderSelection::Paths(vec![PathBuf::from("sub/d"), PathBuf::from("c")]);
    assert_eq!(overlay.accept(&difference, &some).unwrap().changes, 2);
    assert_eq!(fs::read_to_string(folder.join("c")).unwrap(), "ours");
    assert_eq!(fs::read_to_string(folder.join("sub/d")).unwrap(), "ours");
    assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "theirs");
    let left = overlay.difference(&stage.labels()).unwrap();
    let left: Vec<_> = left.changes.iter().map(|change| change.path.to_str().unwrap().to_owned()).collect();
    assert_eq!(left, ["a", "b", "new", "sub/moved"]);
}

#[test]
fn what_was_accepted_is_undone_unless_somebody_has_changed_it() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(folder.join("many/deep")).unwrap();
    for number in 0..50 {
        fs::write(folder.join(format!("many/deep/{number}")), number.to_string()).unwrap();
    }
    fs::write(folder.join("a"), "first").unwrap();
    let before = shown(&folder);
    let overlay = stage.open("project");
    run(&overlay, &[Action::RemoveTree("many".to_owned()), write("a", "second")]);
    let difference = overlay.difference(&stage.labels()).unwrap();
    assert_eq!(difference.changes.iter().map(|change| change.files).sum::<u64>(), 50);
    let accepted = overlay.accept(&difference, &FolderSelection::All).unwrap();
    assert!(!folder.join("many").exists());
    let modified = fs::metadata(folder.join("a")).unwrap().modified().unwrap();
    fs::write(folder.join("a"), "third").unwrap();
    let refused = overlay.undo_acceptance(accepted.number, false).unwrap_err();
    assert!(refused.to_string().contains("a was changed since"), "{refused}");
    assert!(!folder.join("many").exists());
    overlay.undo_acceptance(accepted.number, true).unwrap();
    let after = shown(&folder);
    assert_eq!(after, before);
    let _ = modified;
}

#[test]
fn a_move_is_accepted_with_all_that_depends_on_it() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(folder.join("d")).unwrap();
    fs::write(folder.join("d/x"), "x").unwrap();
    fs::write(folder.join("d/y"), "y").unwrap();
    let overlay = stage.open("project");
    run(&overlay, &[Action::Rename("d/x".to_owned(), "x".to_owned()), Action::RemoveTree("d".to_owned())]);
    let difference = overlay.difference(&stage.labels()).unwrap();
    let refused = overlay.accept(&difference, &FolderSelection::Exact([PathBuf::from("d")].into())).unwrap_err();
    assert!(refused.to_string().contains("x was moved out of d"), "{refused}");
    overlay.accept(&difference, &FolderSelection::All).unwrap();
    let names: Vec<_> = shown(&folder).into_keys().collect();
    assert_eq!(names, [PathBuf::from("x")]);
}

#[test]
fn changes_are_discarded_one_by_one_or_together() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(folder.join("d")).unwrap();
    fs::write(folder.join("a"), "a").unwrap();
    fs::write(folder.join("d/x"), "x").unwrap();
    let overlay = stage.open("project");
    let actions = [
        write("a", "changed"),
        Action::Rename("d".to_owned(), "e".to_owned()),
        Action::MakeDir("new".to_owned()),
        write("new/f", "f"),
    ];
    run(&overlay, &actions);
    let difference = overlay.difference(&stage.labels()).unwrap();
    let paths = |overlay: &Overlay| -> Vec<PathBuf> {
        let difference = overlay.difference(&stage.labels()).unwrap();
        difference.changes.into_iter().map(|change| change.path).collect()
    };
    overlay.discard(&difference, &FolderSelection::Paths(vec![PathBuf::from("e")])).unwrap();
    assert_eq!(paths(&overlay), ["a", "new", "new/f"].map(PathBuf::from));
    let difference = overlay.difference(&stage.labels()).unwrap();
    overlay.discard(&difference, &FolderSelection::Paths(vec![PathBuf::from("new/f")])).unwrap();
    assert_eq!(paths(&overlay), ["a", "new"].map(PathBuf::from));
    let difference = overlay.difference(&stage.labels()).unwrap();
    overlay.discard(&difference, &FolderSelection::All).unwrap();
    assert!(paths(&overlay).is_empty());
    assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "a");
}

#[test]
fn what_somebody_has_made_meanwhile_is_never_lost() {
    /// The session's changes, somebody else's changes meanwhile, and the path on which they conflict.
    type Case<'a> = (&'a [Action], &'a dyn Fn(&Path), &'a str);
    let cases: [Case<'_>; 6] = [
        (
            &[Action::Rename("a".to_owned(), "z".to_owned())],
            &|folder: &Path| fs::write(folder.join("z"), "precious").unwrap(),
            "z",
        ),
        (
            &[Action::MakeDir("out".to_owned()), write("out/x", "x")],
            &|folder: &Path| {
                fs::create_dir(folder.join("out")).unwrap();
                fs::write(folder.join("out/mine"), "precious").unwrap();
            },
            "out",
        ),
        (
            &[Action::RemoveTree("old".to_owned())],
            &|folder: &Path| fs::write(folder.join("old/sub/new"), "precious").unwrap(),
            "old",
        ),
        (
            &[write("old/sub/x", "ours")],
            &|folder: &Path| {
                fs::rename(folder.join("old"), folder.join("elsewhere")).unwrap();
                std::os::unix::fs::symlink("elsewhere", folder.join("old")).unwrap();
            },
            "old",
        ),
        (
            &[Action::Rename("old".to_owned(), "moved".to_owned())],
            &|folder: &Path| {
                fs::create_dir(folder.join("moved")).unwrap();
                fs::write(folder.join("moved/mine"), "precious").unwrap();
            },
            "moved",
        ),
        (
            &[Action::RemoveTree("old".to_owned()), write("old", "a file now")],
            &|folder: &Path| fs::write(folder.join("old/precious"), "precious").unwrap(),
            "old",
        ),
    ];
    for (number, (actions, meanwhile, path)) in cases.into_iter().enumerate() {
        let stage = Stage::new();
        let folder = stage.folder("project");
        fs::create_dir_all(folder.join("old/sub")).unwrap();
        fs::write(folder.join("a"), "a").unwrap();
        fs::write(folder.join("old/sub/x"), "x").unwrap();
        let overlay = stage.open("project");
        run(&overlay, actions);
        meanwhile(&folder);
        let before = shown(&folder);
        let difference = overlay.difference(&stage.labels()).unwrap();
        let collides = |change: &&super::FolderChange| change.path == Path::new(path) && change.collision.is_some();
        assert!(difference.changes.iter().any(|change| collides(&change)), "{number}: {:#?}", difference.changes);
        assert!(matches!(overlay.accept(&difference, &FolderSelection::All), Err(AcceptError::Collision(_))));
        if let Some(harmless) = difference.harmless() {
            overlay.accept(&difference, &harmless).unwrap();
        }
        for (path, (_, text, ..)) in &before {
            if text == b"precious" {
                assert_eq!(fs::read(folder.join(path)).unwrap(), *text, "{number}");
            }
        }
    }
}

#[test]
fn both_sides_of_a_file_in_a_moved_directory_are_read() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(folder.join("d")).unwrap();
    fs::write(folder.join("d/x"), "before").unwrap();
    let overlay = stage.open("project");
    run(&overlay, &[Action::Rename("d".to_owned(), "e".to_owned()), write("e/x", "after")]);
    let difference = overlay.difference(&stage.labels()).unwrap();
    let change = difference.changes.iter().find(|change| change.path == Path::new("e/x")).unwrap();
    let text = |file: std::io::Result<fs::File>| std::io::read_to_string(file.unwrap()).unwrap();
    assert_eq!(text(overlay.open_before(change)), "before");
    assert_eq!(text(overlay.open_after(change)), "after");
    overlay.accept(&difference, &FolderSelection::All).unwrap();
    assert_eq!(fs::read_to_string(folder.join("e/x")).unwrap(), "after");
}

#[test]
fn an_undo_that_fails_half_way_leaves_the_folder_as_it_was_accepted() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(&folder).unwrap();
    for name in ["a", "b", "m"] {
        fs::write(folder.join(name), "first").unwrap();
    }
    let before = shown(&folder);
    let overlay = stage.open("project");
    let actions = [
        Action::Unlink("a".to_owned()),
        write("b", "ours"),
        Action::MakeDir("new".to_owned()),
        write("new/x", "ours"),
        Action::Rename("m".to_owned(), "n".to_owned()),
    ];
    run(&overlay, &actions);
    let difference = overlay.difference(&stage.labels()).unwrap();
    let id = overlay.accept(&difference, &FolderSelection::All).unwrap().number;
    fs::write(folder.join("a"), "in the way").unwrap();
    let after = shown(&folder);
    let refused = overlay.undo_acceptance(id, true).unwrap_err();
    assert!(refused.to_string().contains("a was made in the folder meanwhile; it is as it was"), "{refused}");
    assert_eq!(shown(&folder), after);
    fs::remove_file(folder.join("a")).unwrap();
    // Its directories are not the accepted ones any more, and count as unchanged.
    overlay.undo_acceptance(id, false).unwrap();
    assert_eq!(shown(&folder), before);
    overlay.redo_acceptance(id).unwrap();

    // Neither way is possible: the next opening goes on.
    fs::write(folder.join("a"), "in the way").unwrap();
    let log = overlay.read_log(id, "undone", |_| true).unwrap();
    append(&overlay.accept_log(id), &[AcceptRecord::State(AcceptState::Undoing)]).unwrap();
    let mut work = overlay.stage(&log.header, &[]).unwrap();
    let failed = overlay.take_back(&mut work, &log.steps).unwrap_err();
    assert!(failed.reverted.len() > 4, "{failed:?}");
    fs::write(folder.join("b"), "theirs").unwrap();
    let error = overlay.put_again(&mut work, &failed.reverted).unwrap_err();
    assert!(error.to_string().contains("b was changed in the folder meanwhile"), "{error}");
    fs::remove_file(folder.join("a")).unwrap();
    let overlay = stage.open("project");
    assert!(overlay.acceptances().unwrap()[0].is_undone);
    assert_eq!(fs::read_to_string(folder.join("b")).unwrap(), "theirs");
    fs::write(folder.join("b"), "first").unwrap();
    assert_eq!(shown(&folder), before);
}

#[test]
fn steps_that_were_taken_back_are_done_again_from_every_one_on() {
    let stage = Stage::new();
    for seed in 1..40 {
        let (mut numbers, name) = (Numbers(seed), format!("p{seed}"));
        let folder = stage.folder(&name);
        plant(&folder, &mut numbers);
        let overlay = stage.open(&name);
        for number in 0..14 {
            let _ = in_overlay(&overlay, &numbers.action(number));
        }
        let difference = overlay.difference(&stage.labels()).unwrap();
        if difference.changes.is_empty() {
            continue;
        }
        let id = overlay.accept(&difference, &FolderSelection::All).unwrap().number;
        let (after, log) = (shown(&folder), overlay.read_log(id, "undone", |_| true).unwrap());
        let mut work = overlay.stage(&log.header, &[]).unwrap();
        for first in 0..log.steps.len() {
            let mut reverted = Vec::new();
            for step in log.steps[first..].iter().rev() {
                assert!(work.revert(step).unwrap(), "program {seed}: {step:?}");
                reverted.push(step);
            }
            overlay.put_again(&mut work, &reverted).unwrap_or_else(|error| panic!("program {seed}: {error}"));
            assert_eq!(shown(&folder), after, "program {seed}, from step {first} on");
        }
        // A replaced file is moved away before the old one comes back.
        for step in &log.steps {
            if let AcceptStep::Put { path, new, before: Some(_), .. } = step {
                fs::rename(folder.join(path.as_path()), log.header.stage.as_path().join(new.to_string())).unwrap();
                overlay.put_again(&mut work, &[step]).unwrap();
                assert_eq!(shown(&folder), after, "program {seed}, {path}");
            }
        }
    }
}

#[test]
fn a_file_with_several_names_is_one_file_under_each_of_them() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a"), "first;").unwrap();
    for name in ["b", "c"] {
        fs::hard_link(folder.join("a"), folder.join(name)).unwrap();
    }
    let before = shown(&folder);
    let overlay = stage.open("project");
    let adds = |path: &str, text: &str, empties| Action::Write {
        path: path.to_owned(),
        text: text.to_owned(),
        empties,
        is_first: false,
    };
    let text = |path: &str| {
        let spot = overlay.walk(Path::new(""), path.as_ref(), false, &mut SeenLabels::new(None)).unwrap();
        std::io::read_to_string(overlay.open_found(&spot).unwrap()).unwrap()
    };
    // One is moved before the file has a copy, one after it.
    run(&overlay, &[Action::Rename("c".to_owned(), "d".to_owned()), adds("a", "a;", false), adds("b", "b;", false)]);
    assert_eq!(["a", "b", "d"].map(text), ["first;a;b;"; 3]);
    run(&overlay, &[Action::Rename("b".to_owned(), "e".to_owned()), adds("d", "d;", false)]);
    assert_eq!(["a", "d", "e"].map(text), ["first;a;b;d;"; 3]);
    run(&overlay, &[adds("e", "again;", true), adds("a", "a;", false)]);
    assert_eq!(["a", "d", "e"].map(text), ["again;a;"; 3]);
    let difference = overlay.difference(&stage.labels()).unwrap();
    let id = overlay.accept(&difference, &FolderSelection::All).unwrap().number;
    let after = shown(&folder);
    let first: Vec<_> = after.values().map(|(_, text, _, first)| (text.as_slice(), first.as_path())).collect();
    assert_eq!(first, [(&b"again;a;"[..], Path::new("a")); 3]);
    overlay.undo_acceptance(id, false).unwrap();
    assert_eq!(shown(&folder), before);
}

#[test]
fn a_part_of_a_file_that_is_cut_off_while_it_is_accepted_leaves_the_rest_waiting() {
    let stage = Stage::new();
    let folder = stage.folder("project");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a"), "first").unwrap();
    run(&stage.open("project"), &[write("a", "first and second and third")]);
    let read = || fs::read_to_string(folder.join("a")).unwrap();
    for step in 0..=2 {
        let overlay = stage.open("project");
        let mut difference = overlay.difference(&stage.labels()).unwrap();
        assert_eq!((difference.changes.len(), difference.changes[0].collision), (1, None), "behind {step} steps");
        assert_eq!(read(), "first", "behind {step} steps");
        difference.changes[0].part = Some("first and second".into());
        let PendingAcceptance { id, header, steps, .. } = overlay.begin(&difference, &FolderSelection::All).unwrap();
        let mut work = overlay.stage(&header, &[]).unwrap();
        steps.iter().take(step).for_each(|step| work.apply(step).unwrap());
        if step == 2 {
            append(&overlay.accept_log(id), &[AcceptRecord::State(AcceptState::Done)]).unwrap();
        }
    }
    let overlay = stage.open("project");
    assert_eq!(read(), "first and second");
    let left = overlay.difference(&stage.labels()).unwrap();
    assert_eq!((left.changes.len(), left.changes[0].collision), (1, None));
    // An undo that is cut off is completed, and the whole change waits again.
    let id = overlay.acceptances().unwrap().last().unwrap().number;
    append(&overlay.accept_log(id), &[AcceptRecord::State(AcceptState::Undoing)]).unwrap();
    let overlay = stage.open("project");
    assert_eq!(read(), "first");
    let left = overlay.difference(&stage.labels()).unwrap();
    assert_eq!((left.changes.len(), left.changes[0].collision), (1, None));
    overlay.accept(&left, &FolderSelection::All).unwrap();
    assert_eq!(read(), "first and second and third");
}
