use super::{HEAD_BYTES, MAX_FILES, MAX_IN_DIR, MAX_TABLES, cards, head};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use kiso_plan::prompt::{Column, ColumnKind, FileCard};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ColumnKind::{Date, Number, Text};

fn workspace() -> (tempfile::TempDir, Dir) {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(temp.path(), ambient_authority()).unwrap();
    (temp, dir)
}

/// Returns the columns of a workspace's only file.
fn read(name: &str, bytes: impl AsRef<[u8]>) -> Option<Vec<Column>> {
    let (_temp, dir) = workspace();
    dir.write(name, bytes).unwrap();
    let mut cards = cards(&dir);
    assert_eq!(cards.len(), 1);
    cards.remove(0).columns
}

#[track_caller]
fn reads(name: &str, bytes: impl AsRef<[u8]>, expected: &[(&str, ColumnKind)]) {
    let found = read(name, bytes).expect("a table");
    let found: Vec<_> = found.iter().map(|c| (c.name.as_str(), c.kind)).collect();
    assert_eq!(found, expected);
}

fn paths(cards: &[FileCard]) -> Vec<&str> {
    cards.iter().map(|c| c.path.as_str()).collect()
}

#[test]
fn endings_in_any_case() {
    reads("A.CSV", "a,b\n1,x\n", &[("a", Number), ("b", Text)]);
    reads("A.Tsv", "a\tb, c\n1\tx, y\n", &[("a", Number), ("b, c", Text)]);
    reads("A.JSON", r#"[{"a": 1}]"#, &[("a", Number)]);
    reads("A.JSONL", "{\"a\": 1}\n", &[("a", Number)]);
    reads("A.NDJSON", "{\"a\": 1}\n{\"b\": \"x\"}\n", &[("a", Number), ("b", Text)]);
    assert_eq!(read("a.txt", "a,b\n1,2\n"), None);
    assert_eq!(read("csv", "a,b\n1,2\n"), None);
}

/// Returns the notes on a workspace's only file.
fn notes(name: &str, bytes: impl AsRef<[u8]>) -> Vec<String> {
    let (_temp, dir) = workspace();
    dir.write(name, bytes).unwrap();
    cards(&dir).remove(0).notes
}

#[test]
fn a_table_says_how_it_is_read() {
    assert_eq!(notes("a.csv", "a,b\n1,x\n"), [""; 0]);
    assert_eq!(notes("a.csv", "Stra\u{df}e;b\n1;x\n"), ["separator ;"]);
    assert_eq!(notes("a.csv", b"Stra\xdfe;b\n1;x\n"), ["cp1252", "separator ;"]);
    assert_eq!(notes("a.csv", "\u{feff}a,b\n1,x\n"), ["UTF-8 with BOM"]);
    assert_eq!(notes("a.csv", b"\xff\xfea\0\t\0b\0\n\x001\0\t\x002\0"), ["UTF-16", "separator tab"]);
    assert_eq!(notes("a.tsv", "a\tb\n1\tx\n"), [""; 0]);
    assert_eq!(notes("a.csv", "# a note, with signs\n\nsep=;\na;b;c\n1;2,5;\"x;y\"\n"), ["separator ;"]);
    let meter = "Datum;Z\u{e4}hlerstand (kWh);Ort\n2023-01-01;48.211,4;A1\n01.02.2023;48520,0;B-2\n";
    assert_eq!(notes("a.csv", meter), ["separator ;", "mixed forms {Datum, Z\u{e4}hlerstand (kWh)}"]);
    let long = format!("a;b\n{}", "1;2\n".repeat(HEAD_BYTES / 4));
    assert_eq!(notes("a.csv", long), ["separator ;"]);
}

#[test]
fn json_says_what_its_columns_do_not() {
    assert_eq!(notes("a.json", r#"[{"a": 1, "b": "x"}, {"a": 2, "b": null}]"#), [""; 0]);
    let orders = r#"{"exported": "2024", "orders": [{"id": 1, "items": [1], "by": {"n": 1}}, {"id": "2", "items": [], "by": null}]}"#;
    assert_eq!(
        notes("a.json", orders),
        ["object {exported, orders}", "with {by: null/object, id: number/text, items: list}"]
    );
    let wide = format!("[{{{}}}]", (0..20).map(|n| format!("\"k\\n{n}\": []")).collect::<Vec<_>>().join(","));
    let told = notes("a.json", wide).concat();
    assert!(told.ends_with(", …}") && told.matches("list").count() == 8 && !told.contains('\n'), "{told}");
}

#[test]
fn a_repository_is_named() {
    let (_temp, dir) = workspace();
    for path in ["depot/.git", "plain", "tree"] {
        dir.create_dir_all(path).unwrap();
    }
    dir.write("tree/.git", "gitdir: ../depot/.git/worktrees/tree\n").unwrap();
    dir.write("depot/.git/config", "").unwrap();
    dir.write("depot/a.txt", "a").unwrap();
    let found = cards(&dir);
    assert_eq!(paths(&found), ["depot/", "depot/a.txt", "tree/"]);
    assert_eq!(found[0].notes, ["git repository"]);
    dir.create_dir(".git").unwrap();
    assert_eq!(paths(&cards(&dir))[0], "/work/");
}

#[test]
fn delimiters_marks_and_preambles() {
    for d in [',', ';', '\t', '|'] {
        reads("a.csv", format!("\u{feff}a{d}b\r\n1{d}\"x\r\ny\"\r\n"), &[("a", Number), ("b", Text)]);
    }
    reads("a.csv", "# a note, with commas\n\nsep=;\nort;temp\nBonn;1\n", &[("ort", Text), ("temp", Number)]);
    reads("a.csv", "one\n1\n", &[("one", Number)]);
}

#[test]
fn headers_as_the_skill_names_them() {
    reads(
        "a.csv",
        "temp,temp,, temp \n1,2,3,x\n",
        &[("temp", Number), ("temp_2", Number), ("column_3", Number), ("temp_3", Text)],
    );
    reads("a.csv", "1,2024-01-01\n2,2024-01-02\n", &[("column_1", Number), ("column_2", Date)]);
    reads("a.csv", "a,b\n", &[("a", Text), ("b", Text)]);
}

#[test]
fn missing_words_do_not_decide() {
    reads(
        "a.csv",
        "n,d,t,e,m\nNA,N/A,x,,NaN\n1,2024-01-01,-,,-\nnull,none,,,NA\n",
        &[("n", Number), ("d", Date), ("t", Text), ("e", Text), ("m", Number)],
    );
}

#[test]
fn numbers_with_commas() {
    reads("a.csv", "ort;t;n\nKöln;3,5;1.204,25\nBonn;-1;2\n", &[("ort", Text), ("t", Number), ("n", Number)]);
    reads("a.csv", "n,c\n\"1,234\",\"3,14\"\n\"12,500.5\",1\n", &[("n", Number), ("c", Text)]);
    reads("a.csv", "id,zip\n12345678901234567890,007\n", &[("id", Number), ("zip", Text)]);
}

#[test]
fn dates_in_many_coats() {
    let cells = ["2024-03-01", "1.3.2024", "13/02/2024", "3/13/2024", "2024/3/1", "2024-03", "1 Mar 2024"];
    for cell in cells.into_iter().chain(["2024-03-01T12:30:15.25Z", "1.3.2024 12:30", "3/1/2024 12:30 PM"]) {
        reads("a.csv", format!("d\n{cell}\n"), &[("d", Date)]);
    }
    reads(
        "a.csv",
        "d,e,f\n13/02/2024,2024,2024-13-01\n02/13/2024,2025,x\n",
        &[("d", Text), ("e", Number), ("f", Text)],
    );
}

#[test]
fn encodings() {
    reads("a.csv", b"K\xf6ln \x80,n\nx,1\n", &[("Köln €", Text), ("n", Number)]);
    let wide: Vec<u8> = "\u{feff}ß,b\nx,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    reads("a.csv", wide, &[("ß", Text), ("b", Number)]);
    assert_eq!(read("a.csv", b"\x89PNG\r\n\x1a\n\0\0"), None);
    // The head ends within a character.
    for pad in 0..3 {
        let text = format!("{}ß,東\n", "#\n".repeat(8)) + &"x".repeat(pad) + &"東,1\n".repeat(HEAD_BYTES / 5);
        reads("a.csv", text, &[("ß", Text), ("東", Number)]);
    }
}

#[test]
fn json_in_its_shapes() {
    let rows = r#"[{"day": "2024-01-01", "t": 1.5, "wind": {"speed": "3"}},
        {"t": null, "tags": ["a"], "id": 12345678901234567890}]"#;
    let expected = [("day", Date), ("t", Number), ("wind.speed", Number), ("tags", Text), ("id", Number)];
    reads("a.json", rows, &expected);
    reads("a.json", format!(r#"{{"count": 2, "units": ["mm"], "results": {rows}, "next": null}}"#), &expected);
    reads("a.json", r#"{"columns": ["a", "a"], "rows": [[1, "x"], [2]]}"#, &[("a", Number), ("a_2", Text)]);
    reads("a.json", r#"{"columns": [{"name": "a"}], "rows": []}"#, &[("a", Text)]);
    reads("a.json", "{\"a\": 1}\n\n{\"a\": 2}\n", &[("a", Number)]);
    for text in ["[1, 2]", r#"{"a": 1}"#, r#"[{"a": 1},"#, "[]", "", r#"[{"a": 1}] x"#] {
        assert_eq!(read("a.json", text), None, "{text}");
    }
    assert_eq!(read("a.jsonl", "{\"a\": 1}\n{\"a\":\n"), None);
    assert_eq!(read("a.json", "[".repeat(60_000)), None);
}

#[test]
fn heads_of_long_tables() {
    let expected = [("a", Number), ("b", Text)];
    for pad in 0..8 {
        let row = format!(r#"{{"a": 1, "b": "é\u00e9{}"}}"#, "x".repeat(pad));
        let rows = format!("{row},\n").repeat(5_000);
        reads("a.json", format!("[{rows}{row}]"), &expected);
        reads("a.json", format!(r#"{{"results": [{rows}{row}]}}"#), &expected);
        reads("a.jsonl", format!("{row}\n").repeat(5_000), &expected);
        let cells = format!("1,\"{}\n\"\n", "x".repeat(pad)).repeat(20_000);
        reads("a.csv", format!("a,b\n{cells}"), &expected);
    }
    let cells = "[1, \"x\"],".repeat(20_000);
    reads("a.json", format!(r#"{{"columns": ["a", "b"], "rows": [{cells} [2, "y"]]}}"#), &expected);
    // No complete row or header.
    assert_eq!(read("a.json", format!(r#"[{{"a": 1, "b": "{}"}}]"#, "x".repeat(100_000))), None);
    assert_eq!(read("a.jsonl", format!(r#"{{"a": "{}"}}"#, "x".repeat(100_000))), None);
    assert_eq!(read("a.csv", "a,".repeat(100_000)), None);
}

#[test]
fn what_the_skill_refuses() {
    assert_eq!(read("a.csv", ""), None);
    assert_eq!(read("a.csv", "\n# x\n"), None);
    assert_eq!(read("a.csv", "a,b\n1,2\n1,2,3\n"), None);
    assert_eq!(read("a.csv", "a,b\n1,2\n3,\"4\n5,6\n7,8\n"), None);
    assert_eq!(read("a.csv", (0..3_000).map(|i| format!("c{i},")).collect::<String>()), None);
    reads("a.csv", "a,b\n1\n1,x,,\n\n", &[("a", Number), ("b", Text)]);
}

#[test]
fn links_pipes_and_odd_names() {
    let (temp, dir) = workspace();
    dir.create_dir_all("sub/deep").unwrap();
    dir.write("sub/deep/a.csv", "a\n1\n").unwrap();
    dir.write("b.csv", "b\n1\n").unwrap();
    dir.symlink("b.csv", "link.csv").unwrap();
    dir.symlink("sub", "linked").unwrap();
    dir.symlink("..", "sub/up").unwrap();
    dir.write(".hidden.csv", "h\n1\n").unwrap();
    dir.write(OsStr::from_bytes(b"\xff.csv"), "x\n1\n").unwrap();
    rustix::fs::mknodat(&dir, "pipe.csv", rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(temp.path().join("socket.csv")).unwrap();
    let found = cards(&dir);
    assert_eq!(paths(&found), ["b.csv", "sub/deep/a.csv"]);
    assert!(found.iter().all(|card| card.bytes == 4 && card.columns.is_some()));
    // Entries that replace a file between the listing and the reading: if opening blocked, this test would never end.
    for path in ["pipe.csv", "link.csv", "socket.csv", "linked/deep/a.csv", "sub/up/b.csv", "sub", "gone.csv"] {
        assert_eq!(head(&dir, path), None, "{path}");
    }
}

#[test]
fn crowded_workspaces_cost_bounded_work() {
    let (_temp, dir) = workspace();
    dir.create_dir("a").unwrap();
    for i in 0..MAX_IN_DIR + 50 {
        dir.write(format!("a/{i}.csv"), "a\n1\n").unwrap();
    }
    dir.create_dir("b").unwrap();
    dir.write("b/x.csv", "a\n1\n").unwrap();
    dir.write("z.csv", "a\n1\n").unwrap();
    let found = cards(&dir);
    assert_eq!(found.len(), MAX_FILES);
    assert_eq!(found[0].path, "z.csv");
    assert_eq!(found.iter().filter(|card| card.columns.is_some()).count(), MAX_TABLES);
    let inner = dir.open_dir("a").unwrap();
    let mut left = super::Left::new(MAX_IN_DIR + 10);
    let mut files = || super::entries(&inner, "a/", &mut left, &|_| true).files.len();
    assert_eq!([files(), files(), files()], [MAX_IN_DIR, 10, 0]);
    // Skipped entries hide nothing.
    let mut left = super::Left::new(500);
    let some = super::entries(&inner, "a/", &mut left, &|path| path.ends_with("7.csv")).files;
    assert_eq!((some.len(), left.entries), (405, 95));
    // Deeper than the limit.
    let (_temp, dir) = workspace();
    dir.create_dir_all("1/2/3/4/5/6/7").unwrap();
    dir.write("1/2/3/4/5/6/x", "").unwrap();
    dir.write("1/2/3/4/5/6/7/x", "").unwrap();
    assert_eq!(paths(&cards(&dir)), ["1/2/3/4/5/6/x"]);
}

#[test]
fn heads_are_read_of_plain_files_alone() {
    let (temp, dir) = workspace();
    dir.write("SOUL.md", "Kind.\n").unwrap();
    dir.write("AGENTS.md", "é".repeat(10)).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", temp.path().join("IDENTITY.md")).unwrap();
    let heads = super::heads(&dir, &kiso_base::home::GUIDANCE, 9);
    assert_eq!(heads, ["SOUL.md:\nKind.", "AGENTS.md:\néééé\n[… the rest is left out …]"]);
    dir.remove_file("SOUL.md").unwrap();
    dir.remove_file("AGENTS.md").unwrap();
    // It has no writer, so opening it would block.
    rustix::fs::mkfifoat(&dir, "SOUL.md", rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    assert_eq!(super::heads(&dir, &kiso_base::home::GUIDANCE, 9), [""; 0]);
}
