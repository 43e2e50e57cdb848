//! The files of `/work/pub` that a call or a command line has created or changed. They are delivered with the reply.
//!
//! ```text
//! PublicFiles::look ──▶ the call runs ──▶ made_since ──▶ TaskReport::files ──▶ Outcome::files ──▶ page, terminal, API, channels
//! ```

use super::{Left, MAX_DIRS, entries, inside};
use cap_std::fs::{Dir, Metadata, MetadataExt};
use kiso_base::home::{Home, SessionName};
use kiso_plan::report::{FileNote, MAX_DELIVERED, TaskReport};
use kiso_sandbox::effect::files::FileLabels;
use kiso_sandbox::skill::media_type;
use std::collections::{BTreeMap, VecDeque};

/// The directory, relative to `/work`.
const PUBLIC: &str = "pub";

/// Maximum number of entries. A call with more has probably unpacked an archive there, whose files nobody opens one by one.
const MAX_ENTRIES: usize = 10_000;

/// Maximum depth below the directory.
const MAX_DEPTH: usize = 8;

/// The files of `/work/pub` at one moment, without hidden ones and links.
#[derive(Debug, Default)]
pub struct PublicFiles {
    files: BTreeMap<String, FileState>,
    /// Whether the list is complete.
    is_whole: bool,
}

/// Changes with the content of a file. A writer that resets the modification time is not detected.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

impl FileState {
    fn from_metadata(meta: &Metadata) -> Self {
        Self { inode: meta.ino(), bytes: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) }
    }
}

impl PublicFiles {
    /// Reads the directory, level by level. The caller must be the only one that works in the session.
    pub fn look(home: &Home, session: &SessionName) -> Self {
        home.open_work(session).map(|work| Self::read(&work)).unwrap_or(Self { is_whole: true, ..Self::default() })
    }

    fn read(work: &Dir) -> Self {
        let mut found = Self { is_whole: true, ..Self::default() };
        let (mut left, mut dirs) = (Left::new(MAX_ENTRIES), 1);
        let mut queue = VecDeque::from([(format!("{PUBLIC}/"), 0)]);
        while let Some((prefix, depth)) = queue.pop_front() {
            let Some(dir) = inside(work, &prefix) else { continue };
            let listed = entries(&dir, &prefix, &mut left, &|_| true);
            for name in listed.files {
                if let Some(meta) = dir.symlink_metadata(&name).ok().filter(Metadata::is_file) {
                    found.files.insert(format!("{prefix}{name}"), FileState::from_metadata(&meta));
                }
            }
            for name in listed.dirs {
                if depth < MAX_DEPTH && dirs < MAX_DIRS {
                    dirs += 1;
                    queue.push_back((format!("{prefix}{name}/"), depth + 1));
                } else {
                    found.is_whole = false;
                }
            }
            found.is_whole &= left.entries > 0;
        }
        found
    }

    /// Adds the files that are new or changed since this snapshot to the report of the call, with the labels of their names and
    /// contents. A file that is already in the report keeps its title and link.
    pub fn note_made(self, home: &Home, session: &SessionName, report: &mut TaskReport) {
        let Ok(work) = home.open_work(session) else { return };
        let now = Self::read(&work);
        // If the listing was incomplete, a missing file may have existed before.
        let is_new = |path: &str| self.is_whole || self.files.contains_key(path);
        let changed = |path: &str, state: &FileState| is_new(path) && self.files.get(path) != Some(state);
        let made: Vec<_> = now.files.iter().filter(|(path, state)| changed(path, state)).collect();
        if made.is_empty() {
            return;
        }
        let labels = FileLabels::of_session(home, session);
        for (path, state) in made {
            let known = report.files.iter().find(|known| known.path == *path);
            let media_type = known.map_or(media_type(path), |known| &known.media_type).to_owned();
            let note = FileNote { path: path.clone(), media_type, bytes: state.bytes, title: None, link: None };
            match note.add_to(&mut report.files, MAX_DELIVERED) {
                true => report.label.join(&super::label(&work, path, &labels)),
                false => report.more_files += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_plan::label::Label;
    use kiso_plan::plan::{Task, TaskKind};
    use kiso_plan::report::TaskStatus;
    use kiso_sandbox::effect::label::LabelId;
    use std::path::PathBuf;

    struct Scene {
        home: Home,
        session: SessionName,
        work: PathBuf,
        _dir: tempfile::TempDir,
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let session = SessionName::parse("s").unwrap();
        home.create_session(&session).unwrap();
        let work = home.work_dir(&session);
        Scene { home, session, work, _dir: dir }
    }

    impl Scene {
        fn write(&self, path: &str, text: &str) {
            let path = self.work.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn made(&self, work: impl FnOnce()) -> TaskReport {
            let before = PublicFiles::look(&self.home, &self.session);
            work();
            let mut report = TaskReport::new(Task::new(TaskKind::Exec, "x"), TaskStatus::Done, "");
            before.note_made(&self.home, &self.session, &mut report);
            report
        }
    }

    fn paths(report: &TaskReport) -> Vec<&str> {
        report.files.iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn new_and_changed_files_are_noted_and_no_others() {
        let scene = scene();
        for path in ["pub/old.txt", "pub/same.txt", "pub/moved.txt", "pub/gone.txt"] {
            scene.write(path, "a");
        }
        let report = scene.made(|| {
            scene.write("scratch.txt", "a");
            scene.write("pub/.hidden", "a");
            scene.write("pub/a/b/new.csv", "a,b");
            scene.write("pub/old.txt", "another text");
            std::fs::rename(scene.work.join("pub/moved.txt"), scene.work.join("pub/there.txt")).unwrap();
            std::fs::remove_file(scene.work.join("pub/gone.txt")).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", scene.work.join("pub/link.txt")).unwrap();
        });
        assert_eq!(paths(&report), ["pub/a/b/new.csv", "pub/old.txt", "pub/there.txt"]);
        assert_eq!((report.files[0].media_type.as_str(), report.files[0].bytes), ("text/csv", 3));
        assert!(scene.made(|| ()).files.is_empty());
    }

    #[test]
    fn a_file_that_a_skill_has_named_keeps_its_title() {
        let scene = scene();
        let before = PublicFiles::look(&scene.home, &scene.session);
        scene.write("pub/a.svg", "<svg/>");
        let mut report = TaskReport::new(Task::new(TaskKind::Exec, "x"), TaskStatus::Done, "");
        report.files.push(FileNote {
            path: "pub/a.svg".to_owned(),
            media_type: "image/svg+xml".to_owned(),
            bytes: 1,
            title: Some("Rain".to_owned()),
            link: None,
        });
        before.note_made(&scene.home, &scene.session, &mut report);
        let [file] = &report.files[..] else { panic!("{report:?}") };
        assert_eq!((file.title.as_deref(), file.bytes), (Some("Rain"), 6));
    }

    #[test]
    fn the_files_of_an_archive_are_counted_from_some_number_on() {
        let scene = scene();
        let report = scene.made(|| (0..MAX_DELIVERED + 7).for_each(|n| scene.write(&format!("pub/{n:04}"), "a")));
        assert_eq!((report.files.len(), report.more_files), (MAX_DELIVERED, 7));
    }

    #[test]
    fn a_report_has_the_label_of_the_files_that_it_names() {
        let scene = scene();
        scene.write("pub/old.txt", "a");
        let labels = FileLabels::of_session(&scene.home, &scene.session);
        let world = LabelId::from_label(&Label::world("web:a.example"));
        labels.wrote(&scene.work.join("pub/old.txt"), world).unwrap();
        assert!(scene.made(|| scene.write("pub/new.txt", "a")).label.is_trusted());
        let report = scene.made(|| labels.wrote(&scene.work.join("pub/new.txt"), world).unwrap());
        assert!(report.files.is_empty() && report.label.is_trusted(), "only what is named is told");
        let report = scene.made(|| {
            scene.write("pub/page.html", "b");
            labels.wrote(&scene.work.join("pub/page.html"), world).unwrap();
        });
        assert!(!report.label.is_trusted(), "{report:?}");
    }
}
