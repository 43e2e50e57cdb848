//! Attached files, text files, and statements.

use super::fixtures::*;
use crate::honest;
use crate::plan::plan as planned;
use crate::scene::Scene;
use crate::vocabulary::Vocabulary;
use kiso_plan::prompt::FileCard;

fn text(path: &str) -> FileCard {
    FileCard { path: path.to_owned(), bytes: 1000, ..FileCard::default() }
}

#[track_caller]
fn over(files: &[FileCard], cases: &[(&str, &str)]) {
    for (message, wanted) in cases {
        let plan = planned(&pieces(message, files.to_vec()));
        assert_eq!(lines(&plan).join("\n"), *wanted, "{message}");
    }
}

#[test]
fn a_message_is_about_what_came_with_it() {
    let two = table("other.csv", "date:d,temperature");
    over(
        &[weather(), two.clone(), market()],
        &[
            (
                "plot temperature over date\n\nFiles: weather.csv",
                r#"chart {"file":"weather.csv","x":"date","y":["temperature_c"]}"#,
            ),
            (
                "plot temperature over date\n\nFiles: other.csv",
                r#"chart {"file":"other.csv","x":"date","y":["temperature"]}"#,
            ),
            // Two files are attached, and one of them is named.
            (
                "plot temperature over date from other.csv\n\nFiles: weather.csv",
                r#"chart {"file":"other.csv","x":"date","y":["temperature"]}"#,
            ),
            // Two files are attached, and only one has the column.
            (
                "plot close over day\n\nFiles: other.csv, market.csv",
                r#"chart {"file":"market.csv","x":"day","y":["close"]}"#,
            ),
            ("$ wc -l weather.csv\n\nFiles: weather.csv", "$ wc -l weather.csv"),
            ("Files: market.csv", r#"data {"file":"market.csv","describe":true}"#),
        ],
    );
    let both = planned(&pieces("plot temperature over date\n\nFiles: weather.csv, other.csv", vec![weather(), two]));
    assert!(both.blocked.as_deref().unwrap().contains("weather.csv, other.csv"), "{both:?}");
}

#[test]
fn a_text_is_shown_counted_and_searched() {
    let files = [weather(), text("notes.txt"), text("My log.log")];
    over(
        &files,
        &[
            ("show notes.txt", "$ cat notes.txt"),
            ("what is in notes.txt?", "$ cat notes.txt"),
            ("what does notes.txt say", "$ cat notes.txt"),
            ("read \"My log.log\"", "$ cat 'My log.log'"),
            ("how many lines are in notes.txt?", "$ wc -l notes.txt"),
            ("count the words in notes.txt", "$ wc -w notes.txt"),
            ("how many lines and words does notes.txt have", "$ wc -l -w notes.txt"),
            ("show the first 5 lines of notes.txt", "$ head -n 5 notes.txt"),
            ("last line of notes.txt", "$ tail -n 1 notes.txt"),
            ("search notes.txt for error", "$ grep -niF -e error notes.txt"),
            ("find \"disk full\" in notes.txt", "$ grep -niF -e 'disk full' notes.txt"),
            ("which lines of notes.txt contain the word error?", "$ grep -niF -e error notes.txt"),
            ("how many lines of notes.txt contain error", "$ grep -ciF -e error notes.txt"),
            ("how often does error occur in notes.txt?", "$ grep -oiF -e error notes.txt | wc -l"),
            ("search notes.txt for it's late", r"$ grep -niF -e 'it'\''s late' notes.txt"),
            ("show notes.txt, then count the lines", "$ cat notes.txt\n$ wc -l notes.txt"),
            ("show it\n\nFiles: notes.txt", "$ cat notes.txt"),
            ("Files: notes.txt", "$ cat notes.txt"),
            ("show weather.csv", r#"data {"file":"weather.csv"}"#),
        ],
    );
    over(&[text("notes.txt")], &[("how many words are there?", "$ wc -w notes.txt")]);
    // A question that a text file cannot answer is not a query of a table.
    for message in ["mean temperature from notes.txt", "plot notes.txt", "show the longest line of notes.txt"] {
        let plan = planned(&pieces(message, files.to_vec()));
        assert!(plan.blocked.is_some(), "{message}: {:?}", lines(&plan));
    }
}

#[test]
fn what_is_told_is_kept_and_abbreviations_are_found() {
    for message in ["remember that my dog is called Rex", "I prefer dark charts"] {
        let plan = planned(&pieces(message, vec![weather()]));
        assert_eq!(plan.blocked, None, "{message}");
        assert!(plan.tasks[0].detail.contains("I will remember that"), "{:?}", plan.tasks[0].detail);
    }
    let sales = table("sales.csv", "day:d,product:t,qty,amt");
    over(
        &[sales],
        &[("total quantity by product", r#"data {"file":"sales.csv","group":["product"],"compute":["sum(qty)"]}"#)],
    );
}

#[test]
fn hints_name_columns_of_the_file_at_hand() {
    let plain = || vec![table("stock.csv", "name:t,place:t,weight")];
    for (message, hint) in [
        ("plot the total weight from stock.csv", "such as \"by name\""),
        ("mean weight in March from stock.csv", "stock.csv has none with dates"),
    ] {
        let why = planned(&pieces(message, plain())).blocked.unwrap_or_default();
        assert!(why.contains(hint), "{message}: {why}");
    }
    let texts = planned(&pieces("how many rows not there in list.csv", vec![table("list.csv", "name:t,place:t")]));
    assert!(!texts.blocked.clone().unwrap_or_default().contains("COLUMN"), "{texts:?}");
}

/// For any workspace, every suggestion can be planned unchanged.
#[test]
fn everything_that_is_offered_can_be_planned() {
    let workspaces: [Vec<FileCard>; 8] = [
        vec![],
        vec![weather()],
        vec![orders()],
        vec![weather(), market(), cities()],
        vec![table("names.csv", "name:t,place:t")],
        vec![table("numbers.csv", "a,b")],
        vec![text("notes.txt")],
        vec![text("My notes.txt"), table("sales.csv", "day:d,product:t,qty")],
    ];
    for files in workspaces {
        let cards = skills();
        let vocabularies: Vec<Vocabulary> = cards.iter().map(Vocabulary::new).collect();
        let scene = Scene::new("", &vocabularies, Some(&files));
        let offered = honest::offered(&scene);
        assert!(!offered.is_empty());
        for message in offered {
            let plan = planned(&pieces(&message, files.clone()));
            assert_eq!(plan.blocked, None, "{message} over {:?}", files.iter().map(|f| &f.path).collect::<Vec<_>>());
        }
    }
}
