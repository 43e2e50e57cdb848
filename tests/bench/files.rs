//! Documents and pictures in a running process compared with the host's programs; and the start of `document`.

use super::exec::Shell;
use super::{Times, row, summary};
use kiso_base::home::SessionName;
use kiso_sandbox::skill::Caller;
use kiso_store::secret::Secrets;
use serde_json::json;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const KISO: &str = env!("CARGO_BIN_EXE_kiso");

/// Repetitions of each pair.
const TIMES: usize = 15;

const PAGES: usize = 100;

/// Twelve megapixels.
const PHOTO: (u32, u32) = (4_000, 3_000);

pub(crate) async fn rows() {
    let dir = TempDir::new().expect("there is room");
    let home = dir.path().join("home");
    let shell = Shell::new(&home);
    let work = home.join("sessions/bench/work");
    fs::write(work.join("book.pdf"), book()).expect("there is room");
    fs::write(work.join("photo.ppm"), photo()).expect("there is room");
    shell.run_for_good("convert photo.ppm -quality 90 photo.jpg; rm photo.ppm").await;
    let pdf = ("text of a PDF of 100 pages", "pdftotext book.pdf book.txt");
    let picture = ("a JPEG of 12 megapixels to 1,568 pixels", "convert photo.jpg -resize 1568x1568 small.jpg");
    for (name, line) in [pdf, picture] {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        // The two alternate, so that other load on the machine affects both equally. The first turn is a warm-up.
        for turn in 0..=TIMES {
            let here = on_host(&work, line);
            let kiso = shell.run_for_good(line).await;
            if turn > 0 {
                theirs.extend(here);
                ours.push(kiso);
            }
        }
        let program = line.split(' ').next().unwrap_or_default();
        let ours = summary(ours);
        if theirs.is_empty() {
            row(&format!("kiso, running: {name}"), ours, None);
            continue;
        }
        let theirs = summary(theirs);
        row(&format!("the host's `{program}`: {name}"), theirs, None);
        row(&format!("kiso, running: {name}"), ours, Some((theirs, &format!("× the host's `{program}`"))));
    }
    let (data, document) = calls(&home).await;
    row("kiso, running: call `data`", data, None);
    row("kiso, running: call `document` with the same table", document, Some((data, "× `data`")));
    let (data, document) = starts();
    row("kiso: start, call `data`, end", data, None);
    row("kiso: start, call `document`, end", document, Some((data, "× `data`")));
}

/// The same line on the host, or `None` if it has no such program.
fn on_host(dir: &Path, line: &str) -> Option<Duration> {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next()?);
    command.args(words).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    command.status().ok().filter(|status| status.success()).map(|_| started.elapsed())
}

/// Calls of both skills with the same file in this process.
async fn calls(home: &Path) -> (Times, Times) {
    let (skills, secrets) = (super::skills(home), Secrets::default());
    let session = SessionName::parse("bench").expect("a plain name");
    fs::write(home.join("sessions/bench/work/t.csv"), "a,b\n1,2\n").expect("there is room");
    let call = async |skill: &str, args: serde_json::Value| {
        let started = Instant::now();
        let ended = skills.call(skill, &args, Caller::by_hand(&session, &secrets)).await;
        ended.result.expect("it answers");
        started.elapsed()
    };
    let (mut data, mut document) = (Vec::new(), Vec::new());
    for turn in 0..=20 * TIMES {
        let of_data = call("data", json!({ "file": "t.csv", "describe": true })).await;
        let of_document = call("document", json!({ "file": "t.csv" })).await;
        if turn > 0 {
            data.push(of_data);
            document.push(of_document);
        }
    }
    (summary(data), summary(document))
}

/// Starts of both skills with the same file, after they were compiled.
fn starts() -> (Times, Times) {
    let dir = TempDir::new().expect("there is room");
    let kiso = |args: &[&str]| {
        let started = Instant::now();
        let mut kiso = Command::new(KISO);
        kiso.args(args).env("KISO_HOME", dir.path().join("home")).stdin(Stdio::null()).stdout(Stdio::null());
        assert!(kiso.stderr(Stdio::null()).status().expect("kiso starts").success(), "{args:?}");
        started.elapsed()
    };
    kiso(&["shell", "-c", "echo a,b >t.csv; echo 1,2 >>t.csv"]);
    let (mut data, mut document) = (Vec::new(), Vec::new());
    for turn in 0..=2 * TIMES {
        let of_data = kiso(&["skill", "run", "data", "file=t.csv", "describe=true"]);
        let of_document = kiso(&["skill", "run", "document", "file=t.csv"]);
        if turn > 0 {
            data.push(of_data);
            document.push(of_document);
        }
    }
    (summary(data), summary(document))
}

/// A PDF with fifty lines of words on each page.
fn book() -> Vec<u8> {
    let kids: String = (0..PAGES).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        format!("<</Type/Pages/Kids[{kids}]/Count {PAGES}>>"),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned(),
    ];
    let mut dice = Dice(7);
    for page in 0..PAGES {
        let mut drawn = String::from("BT /F 10 Tf 50 780 Td 14 TL ");
        for _ in 0..50 {
            let words: Vec<_> = (0..13).map(|_| dice.word()).collect();
            let _ = write!(drawn, "({}) Tj T* ", words.join(" "));
        }
        drawn.push_str("ET");
        objects.push(format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {} 0 R/Resources<</Font<</F 3 0 R>>>>>>",
            5 + 2 * page
        ));
        objects.push(format!("<</Length {}>>stream\n{drawn}\nendstream", drawn.len()));
    }
    let (mut text, mut places) = ("%PDF-1.4\n".to_owned(), String::new());
    for (number, object) in objects.iter().enumerate() {
        let _ = writeln!(places, "{:010} 00000 n ", text.len());
        let _ = writeln!(text, "{} 0 obj{object}\nendobj", number + 1);
    }
    let (count, start) = (objects.len() + 1, text.len());
    let _ = write!(
        text,
        "xref\n0 {count}\n0000000000 65535 f \n{places}trailer<</Root 1 0 R/Size {count}>>\nstartxref\n{start}\n%%EOF\n"
    );
    text.into_bytes()
}

/// A picture with smooth gradients and some noise, like a photo.
fn photo() -> Vec<u8> {
    let (width, height) = PHOTO;
    let mut bytes = format!("P6\n{width} {height}\n255\n").into_bytes();
    let mut dice = Dice(11);
    for y in 0..height {
        for x in 0..width {
            let grain = (dice.next() % 16) as u8;
            let wave = ((f64::from(x) / 90.0).sin() * (f64::from(y) / 70.0).cos() * 60.0 + 120.0) as u8;
            bytes.extend([wave + grain, (x * 200 / width) as u8 + grain, (y * 200 / height) as u8 + grain]);
        }
    }
    bytes
}

/// Pseudorandom numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn word(&mut self) -> String {
        let length = 2 + self.next() % 8;
        (0..length).map(|_| char::from(b'a' + (self.next() % 26) as u8)).collect()
    }
}
