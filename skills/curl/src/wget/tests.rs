//! Whole lines of wget over plain sockets, with the files that they leave and their exit codes.

use crate::server::Server;
use std::fs;
use std::path::{Path, PathBuf};

fn files(dir: &Path, below: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        match entry.path().is_dir() {
            true => files(&entry.path(), &format!("{name}/"), found),
            false => found.push(name),
        }
    }
    found.sort();
}

#[test]
fn lines_leave_files_and_wgets_codes() {
    let url = format!("http://127.0.0.1:{}", Server::start().unwrap().port);
    let dir: PathBuf = std::env::temp_dir().join(format!("wget-{}", std::process::id()));
    for (line, code, expected) in [
        ("U/a.json", 0, &["a.json"][..]),
        ("U/none", 8, &[]),
        ("-t 1 http://127.0.0.1:1/", 4, &[]),
        ("http://no.denied/", 4, &[]),
        ("--max-redirect=2 U/loop", 8, &[]),
        ("U/basic", 6, &[]),
        ("--user=user --password=pass U/basic", 0, &["basic"]),
        ("--content-disposition U/named", 0, &["given.txt"]),
        ("--spider U/a.json", 0, &[]),
        ("-r -np -nH -l 1 U/site/", 0, &["robots.txt", "site/index.html", "site/one.html", "site/sub/two.html"]),
        ("-r -nd -A css U/site/", 0, &["style.css"]),
        ("-p -nH -e robots=off U/site/sub/two.html", 0, &["site/pic.png", "site/style.css", "site/sub/two.html"]),
    ] {
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        let words = line.split(' ').map(|word| word.replace("U/", &format!("{url}/")));
        let words = words.chain(["-q".to_owned(), "-P".to_owned(), dir.to_str().unwrap().to_owned()]);
        let mut found = Vec::new();
        assert_eq!(super::run(&words.collect::<Vec<_>>()), code, "{line}");
        files(&dir, "", &mut found);
        assert_eq!(found, expected, "{line}");
    }
    let _ = fs::remove_dir_all(&dir);
}

#[test]
fn a_download_that_was_cut_off_goes_on() {
    let url = format!("http://127.0.0.1:{}", Server::start().unwrap().port);
    let file = std::env::temp_dir().join(format!("wget-rest-{}", std::process::id()));
    let _ = fs::remove_dir_all(&file);
    fs::create_dir(&file).unwrap();
    let part = file.join("big");
    fs::write(&part, "line 0000\n").unwrap();
    let words = ["-q", "-c", "-P", file.to_str().unwrap(), &format!("{url}/big")].map(str::to_owned);
    for _ in 0..2 {
        assert_eq!(super::run(&words), 0);
        assert_eq!(fs::read(&part).unwrap().len(), 10_000);
    }
    let _ = fs::remove_dir_all(&file);
}
