//! Folders: opening one, reading in it compared with reading in the workspace, and accepting changes.

use super::exec::Shell;
use super::{row, summary};
use kiso_base::home::{Home, PROJECT, SessionFolder, SessionName};
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::effect::overlay::{FolderSelection, Overlay};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Number of files in the large folder, and in a directory.
const MANY: usize = 100_000;
const FEW: usize = 10;
const IN_DIRECTORY: usize = 50;

/// Number of files to read, and to change.
const READ: usize = 5_000;
const CHANGED: usize = 1_000;

const TIMES: usize = 9;

/// Prints the rows.
pub(crate) async fn rows() {
    let dir = TempDir::new().expect("there is room");
    let (large, small) = (dir.path().join("large"), dir.path().join("small"));
    plant(&large, MANY);
    plant(&small, FEW);
    let small = opening(dir.path(), &small).await;
    row(&format!("first line in a folder of {FEW} files"), summary(small.clone()), None);
    let large = opening(dir.path(), &large).await;
    row(&format!("the same with {MANY} files"), summary(large), Some((summary(small), "× with few")));

    let (in_work, in_folder) = reading(dir.path()).await;
    row(&format!("`grep -r` over {READ} files in /work"), summary(in_work.clone()), None);
    row("the same in a folder", summary(in_folder), Some((summary(in_work), "× /work")));

    let (copied, accepted) = accepting(dir.path());
    row(&format!("`cp` of {CHANGED} files and `sync` of each"), summary(copied.clone()), None);
    row(&format!("accepting {CHANGED} changed files"), summary(accepted), Some((summary(copied), "× `cp`")));
}

fn plant(root: &Path, files: usize) {
    for number in 0..files {
        let dir = root.join(format!("{}", number / IN_DIRECTORY));
        if number % IN_DIRECTORY == 0 {
            fs::create_dir_all(&dir).expect("there is room");
        }
        fs::write(dir.join(format!("{number}.txt")), format!("line one of {number}\nline two\n"))
            .expect("there is room");
    }
}

fn open(home: &Home, session: &SessionName, folder: &Path) -> SessionFolder {
    let folder = SessionFolder::new(home, folder, PROJECT, true).expect("a folder");
    home.open_folder(session, folder.clone()).expect("it can be opened");
    folder
}

async fn opening(dir: &Path, folder: &Path) -> Vec<Duration> {
    let home_dir = dir.join(format!("home-{}", folder.file_name().expect("it has one").to_string_lossy()));
    let shell = Shell::new(&home_dir);
    let (home, session) = bench_session(&home_dir);
    open(&home, &session, folder);
    let mut times = Vec::new();
    for turn in 0..=TIMES {
        let time = shell.run("cat 0/0.txt > /dev/null").await;
        if turn > 0 {
            times.push(time);
        }
    }
    times
}

async fn reading(dir: &Path) -> (Vec<Duration>, Vec<Duration>) {
    let home_dir = dir.join("home-read");
    let shell = Shell::new(&home_dir);
    let (home, session) = bench_session(&home_dir);
    let folder = dir.join("read");
    plant(&folder, READ);
    plant(&home.work_dir(&session).join("read"), READ);
    open(&home, &session, &folder);
    let (mut in_work, mut in_folder) = (Vec::new(), Vec::new());
    for turn in 0..=TIMES {
        let work = shell.run("grep -rc nowhere /work/read > /dev/null; true").await;
        let folder = shell.run("grep -rc nowhere /project > /dev/null; true").await;
        if turn > 0 {
            in_work.push(work);
            in_folder.push(folder);
        }
    }
    (in_work, in_folder)
}

fn accepting(dir: &Path) -> (Vec<Duration>, Vec<Duration>) {
    let (home, session) = bench_session(&dir.join("home-accept"));
    let (mut copied, mut accepted) = (Vec::new(), Vec::new());
    for turn in 0..3 {
        let folder_dir = dir.join(format!("accept-{turn}"));
        plant(&folder_dir, CHANGED);
        let at = format!("/accept-{turn}");
        let folder = SessionFolder::new(&home, &folder_dir, &at, true).expect("a folder");
        home.open_folder(&session, folder.clone()).expect("it can be opened");
        let upper = home.folder_dir(&session, &at).join("upper");
        for number in 0..CHANGED {
            let path = upper.join(format!("{}/{number}.txt", number / IN_DIRECTORY));
            fs::create_dir_all(path.parent().expect("it is below one")).expect("there is room");
            fs::write(path, format!("changed {number}\n")).expect("there is room");
        }
        let overlay = Overlay::open(&home, &session, &folder).expect("it can be opened");
        let difference = overlay.difference(&FileLabels::of_session(&home, &session)).expect("it can be read");
        assert_eq!(difference.changes.len(), CHANGED);
        let started = Instant::now();
        overlay.accept(&difference, &FolderSelection::All).expect("nothing has changed meanwhile");
        accepted.push(started.elapsed());
        let target = dir.join(format!("copy-{turn}"));
        fs::create_dir(&target).expect("there is room");
        let started = Instant::now();
        for number in 0..CHANGED {
            let from = folder_dir.join(format!("{}/{number}.txt", number / IN_DIRECTORY));
            let to = target.join(number.to_string());
            fs::copy(from, &to).expect("there is room");
            fs::File::open(to).expect("it is there").sync_all().expect("it is on disk");
        }
        copied.push(started.elapsed());
        home.close_folder(&session, &at).expect("it can be closed");
    }
    (copied, accepted)
}

fn bench_session(home: &Path) -> (Home, SessionName) {
    let home = Home::open(home).expect("a home");
    let session = SessionName::parse("bench").expect("a plain name");
    home.create_session(&session).expect("there is room");
    (home, session)
}
