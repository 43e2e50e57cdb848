//! Repositories whose loose objects are written here: the ids of the commits are made up, because nothing checks them.

use super::is_data;
use crate::effect::overlay::tests::{Action, Stage, in_overlay};
use crate::effect::overlay::{FolderDifference, FolderSelection, ListedChange, Overlay};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

fn id(number: u32) -> String {
    format!("{number:040x}")
}

fn commit(repository: &Path, number: u32, parents: &[u32], subject: &str) {
    let parents: String = parents.iter().map(|parent| format!("parent {}\n", id(*parent))).collect();
    let text = format!("tree {}\n{parents}author A <a@b> 1 +0000\n\n{subject}\n\nMore.\n", id(0));
    let mut file = ZlibEncoder::new(Vec::new(), Compression::default());
    write!(file, "commit {}\0{text}", text.len()).unwrap();
    let id = id(number);
    let path = repository.join("objects").join(&id[..2]).join(&id[2..]);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, file.finish().unwrap()).unwrap();
}

/// A repository with two commits on `main`, of which `old` is behind the newest.
fn repository(stage: &Stage) -> PathBuf {
    let folder = stage.folder("project");
    let git = folder.join(".git");
    for dir in ["refs/heads", "refs/tags", "objects/pack", "objects/info", "hooks/x", "info"] {
        fs::create_dir_all(git.join(dir)).unwrap();
    }
    fs::write(folder.join("a"), "a").unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("config"), "[core]\n").unwrap();
    fs::write(git.join("index"), "index").unwrap();
    fs::write(git.join("refs/heads/main"), format!("{}\n", id(2))).unwrap();
    fs::write(git.join("packed-refs"), format!("# pack-refs with: peeled\n{} refs/heads/old\n", id(1))).unwrap();
    commit(&git, 1, &[], "First");
    commit(&git, 2, &[1], "Second");
    folder
}

fn write(overlay: &Overlay, path: &str, text: &str) {
    let action = Action::Write { path: path.to_owned(), text: text.to_owned(), empties: true, is_first: false };
    in_overlay(overlay, &action).unwrap();
}

fn difference(stage: &Stage, overlay: &Overlay) -> FolderDifference {
    overlay.difference(&stage.labels()).unwrap()
}

fn lines(difference: &FolderDifference) -> Vec<String> {
    difference.listed(&FolderSelection::All, true).iter().map(ListedChange::to_string).collect()
}

/// New commits of a session, put beside those of the folder.
fn upper(overlay: &Overlay) -> PathBuf {
    overlay.upper_path().join(".git")
}

#[test]
fn commits_and_branches_are_one_line() {
    let stage = Stage::new();
    let folder = repository(&stage);
    let overlay = stage.open("project");
    write(&overlay, ".git/index", "another");
    assert_eq!(lines(&difference(&stage, &overlay)), ["G  .git  (index)"]);
    for (number, parents) in [(3, vec![2]), (4, vec![3]), (5, vec![2]), (6, vec![4, 5])] {
        commit(&upper(&overlay), number, &parents, &format!("Change {number}"));
    }
    write(&overlay, ".git/refs/heads/fix", &format!("{}\n", id(6)));
    write(&overlay, ".git/HEAD", "ref: refs/heads/fix\n");
    write(&overlay, ".git/packed-refs", "# nothing\n");
    write(&overlay, ".git/refs/tags/v1", &id(2));
    write(&overlay, "a", "changed");
    let made = difference(&stage, &overlay);
    let expected = "G  .git  (4 commits on branch fix; branch old deleted; tag v1 added; branch fix checked out; ";
    assert!(lines(&made)[0].starts_with(expected), "{:?}", lines(&made));
    assert_eq!(lines(&made).len(), 2, "{:?}", lines(&made));
    let summary = &made.repositories[0];
    let subjects: Vec<&str> = summary.newest.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!((summary.commits, subjects), (Some(4), vec!["Change 6", "Change 4", "Change 5", "Change 3"]));
    // A deleted branch always needs a review.
    assert!(summary.needs_review);
    let harmless = made.harmless().unwrap();
    assert_eq!(made.count(&harmless), 1);

    // A path within a repository means all of it.
    let part = FolderSelection::Paths(vec![PathBuf::from(".git/refs/heads/fix")]);
    assert_eq!(made.count(&part), 1);
    assert_eq!(overlay.accept(&made, &part).unwrap().changes, 1);
    assert_eq!(fs::read_to_string(folder.join(".git/HEAD")).unwrap(), "ref: refs/heads/fix\n");
    assert!(folder.join(".git/objects/00").join(&id(6)[2..]).exists());
    assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "a");
    let left = difference(&stage, &overlay);
    assert_eq!(lines(&left), ["M  a  (1 B → 7 B)"]);
}

#[test]
fn a_branch_that_no_longer_has_its_commit_says_where_it_was() {
    let stage = Stage::new();
    repository(&stage);
    let overlay = stage.open("project");
    commit(&upper(&overlay), 7, &[1], "Instead");
    write(&overlay, ".git/refs/heads/main", &id(7));
    assert!(difference(&stage, &overlay).harmless().is_none());
    let line = format!("G  .git  (1 commit on branch main, which was at {}; ", &id(2)[..7]);
    assert!(lines(&difference(&stage, &overlay))[0].starts_with(&line), "{:?}", lines(&difference(&stage, &overlay)));
    write(&overlay, ".git/refs/heads/main", &id(1));
    let moved = format!("G  .git  (branch main moved from {} to {}; ", &id(2)[..7], &id(1)[..7]);
    assert!(lines(&difference(&stage, &overlay))[0].starts_with(&moved), "{:?}", lines(&difference(&stage, &overlay)));
    // The old commit is among the parents.
    commit(&upper(&overlay), 3, &[2], "Third");
    write(&overlay, ".git/refs/heads/main", &id(3));
    assert!(difference(&stage, &overlay).harmless().is_some());
    // Packed commits are not read.
    write(&overlay, ".git/objects/pack/pack-1.pack", "PACK");
    write(&overlay, ".git/refs/heads/main", &id(9));
    let packed = difference(&stage, &overlay);
    assert!(lines(&packed)[0].starts_with("G  .git  (new commits on branch main; "), "{:?}", lines(&packed));
    assert_eq!(packed.repositories[0].commits, None);
}

#[test]
fn hooks_and_settings_are_named_and_not_applied_unseen() {
    let stage = Stage::new();
    repository(&stage);
    for path in ["hooks/pre-commit", "config", "info/attributes", "objects/info/alternates", "hooks/x/y"] {
        let overlay = stage.open("project");
        write(&overlay, &format!(".git/{path}"), "#!/bin/sh\n");
        write(&overlay, ".git/index", "new");
        let made = difference(&stage, &overlay);
        assert!(lines(&made)[0].contains(&format!("({path} ")), "{path}: {:?}", lines(&made));
        assert!(made.harmless().is_none(), "{path}");
        assert_eq!(made.repositories[0].settings, [Path::new(".git").join(path)]);
        overlay.discard(&made, &FolderSelection::All).unwrap();
    }
    let overlay = stage.open("project");
    in_overlay(&overlay, &Action::Rename("a".to_owned(), ".git/hooks/post-merge".to_owned())).unwrap();
    let made = difference(&stage, &overlay);
    assert!(lines(&made)[0].contains("hooks/post-merge moved there"), "{:?}", lines(&made));
    assert!(made.harmless().is_none());
    for (path, expected) in [
        ("objects/ab/cd", true),
        ("logs/HEAD", true),
        ("modules/lib/deep/refs/heads/main", true),
        ("modules/lib/index", true),
        ("modules/lib/config", false),
        ("modules/lib/hooks/post-checkout", false),
        ("modules/hooks/post-checkout", false),
        ("hooks/pre-commit.sample", true),
        ("rebase-merge/git-rebase-todo", false),
        ("worktrees/x/gitdir", false),
        ("config.worktree", false),
    ] {
        assert_eq!(is_data(Path::new(path)), expected, "{path}");
    }
}

#[test]
fn a_change_in_the_folder_stops_the_whole_repository() {
    let stage = Stage::new();
    let folder = repository(&stage);
    let overlay = stage.open("project");
    commit(&upper(&overlay), 3, &[2], "Third");
    write(&overlay, ".git/refs/heads/main", &id(3));
    write(&overlay, ".git/index", "ours");
    write(&overlay, "b", "b");
    fs::write(folder.join(".git/index"), "somebody else's").unwrap();
    let made = difference(&stage, &overlay);
    let line = &lines(&made)[0];
    assert!(line.contains("CANNOT BE ACCEPTED: .git/index was changed in the folder since"), "{line}");
    assert!(overlay.accept(&made, &FolderSelection::Paths(vec![PathBuf::from(".git/refs")])).is_err());
    overlay.accept(&made, &made.harmless().unwrap()).unwrap();
    assert!(folder.join("b").exists());
    assert!(!folder.join(".git/objects/00").join(&id(3)[2..]).exists());
    // It is discarded as a whole, too.
    write(&overlay, "c", "c");
    let made = difference(&stage, &overlay);
    assert_eq!(overlay.discard(&made, &FolderSelection::Paths(vec![PathBuf::from(".git/HEAD")])).unwrap(), 1);
    assert_eq!(lines(&difference(&stage, &overlay)), ["A  c  (1 B)"]);
}

#[test]
fn a_new_repository_is_one_line_and_one_that_is_deleted_is_a_deletion() {
    let stage = Stage::new();
    let folder = repository(&stage);
    let overlay = stage.open("project");
    in_overlay(&overlay, &Action::MakeDir("sub".to_owned())).unwrap();
    in_overlay(&overlay, &Action::MakeDir("sub/.git".to_owned())).unwrap();
    write(&overlay, "sub/.git/HEAD", "ref: refs/heads/main\n");
    write(&overlay, "sub/.git/config", "[core]\n");
    in_overlay(&overlay, &Action::MakeDir("sub/.git/refs".to_owned())).unwrap();
    in_overlay(&overlay, &Action::MakeDir("sub/.git/refs/heads".to_owned())).unwrap();
    commit(&overlay.upper_path().join("sub/.git"), 8, &[], "Begin");
    write(&overlay, "sub/.git/refs/heads/main", &id(8));
    // The file of a worktree.
    write(&overlay, "sub/tree.git", "gitdir: x");
    in_overlay(&overlay, &Action::RemoveTree(".git".to_owned())).unwrap();
    let made = difference(&stage, &overlay);
    let lines = lines(&made);
    assert!(lines[0].starts_with("D  .git/  ("), "{lines:?}");
    assert_eq!(lines[1], "A  sub/");
    assert!(lines[2].starts_with("G  sub/.git  (new repository; 1 commit on branch main; "), "{lines:?}");
    assert_eq!(lines.len(), 4, "{lines:?}");
    overlay.accept(&made, &FolderSelection::Paths(vec![PathBuf::from("sub/.git")])).unwrap();
    assert!(folder.join("sub/.git/HEAD").exists() && folder.join(".git/HEAD").exists());
    assert!(!folder.join("sub/tree.git").exists());
}
