use super::way::number_key;
use super::*;
use kiso_plan::label::Label;
use std::io::Write;

struct House {
    dir: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir }
    }

    fn open(&self) -> FileLabels {
        let labels = FileLabels::new(self.dir.path());
        labels.refresh();
        labels
    }

    fn file(&self, name: &str) -> File {
        let path = self.dir.path().join("work").join(name);
        OpenOptions::new().create(true).read(true).append(true).open(path).unwrap()
    }
}

fn world(n: usize) -> LabelId {
    LabelId::from_label(&Label::world(&format!("web:{n}.example")))
}

#[test]
fn a_label_goes_with_its_file_and_outlives_the_process() {
    let house = House::new();
    let labels = house.open();
    let a = house.file("a");
    assert!(labels.is_empty() && labels.label_of(&a) == LabelId::session());
    labels.writing(&a, LabelId::session()).unwrap();
    assert!(labels.is_empty() && !house.dir.path().join("labels").exists(), "clean files cost nothing");
    labels.writing(&a, world(1)).unwrap();
    labels.writing(&a, world(2)).unwrap();
    std::fs::rename(house.dir.path().join("work/a"), house.dir.path().join("work/b")).unwrap();
    let wanted = world(1).join(world(2)).join(LabelId::session());
    for labels in [&labels, &house.open()] {
        assert_eq!(labels.label_of(house.file("b")), wanted);
        assert_eq!(labels.label_of(house.file("c")), LabelId::session());
    }
    labels.made(house.file("b"), LabelId::default()).unwrap();
    assert_eq!(house.open().label_of(house.file("b")), LabelId::session(), "another file in its place");
}

#[test]
fn another_process_is_heard_and_a_line_that_was_cut_off_is_not() {
    let house = House::new();
    let (labels, other) = (house.open(), house.open());
    other.writing(house.file("a"), world(1)).unwrap();
    labels.refresh();
    assert!(!labels.label_of(house.file("a")).is_ordinary());
    let mut log = OpenOptions::new().append(true).open(house.dir.path().join("labels")).unwrap();
    log.write_all(b"00000000000000").unwrap();
    assert!(!house.open().label_of(house.file("a")).is_ordinary());
}

#[test]
fn on_another_disk_all_files_have_the_label_of_all() {
    let house = House::new();
    house.open().writing(house.file("a"), world(1)).unwrap();
    let (work, moved) = (house.dir.path().join("work"), house.dir.path().join("moved"));
    std::fs::rename(&work, &moved).unwrap();
    std::fs::create_dir(&work).unwrap();
    for _ in 0..2 {
        let labels = house.open();
        assert_eq!(labels.label_of(house.file("b")), world(1).join(LabelId::session()));
    }
    let labels = house.open();
    labels.made(house.file("c"), LabelId::default()).unwrap();
    assert_eq!(house.open().label_of(house.file("c")), LabelId::session());
    assert_eq!(house.open().label_of(house.file("b")), world(1).join(LabelId::session()));
}

#[test]
fn a_hundred_thousand_files_take_less_than_two_mebibytes() {
    let house = House::new();
    let labels = house.open();
    for n in 0..100_000_u64 {
        labels.put(&mut labels.lock(), number_key((1, n), false), world(n as usize % 7)).unwrap();
    }
    let (files, bytes) = labels.size();
    assert!(files == 100_000 && bytes <= 2 << 20, "{files} files, {bytes} bytes");
    for n in 0..100_000_u64 {
        labels.put(&mut labels.lock(), number_key((1, n), false), LabelId::default()).unwrap();
    }
    assert_eq!(labels.size().0, 0);
    assert!(std::fs::metadata(house.dir.path().join("labels")).unwrap().len() < 1 << 20, "what is gone is forgotten");
}
