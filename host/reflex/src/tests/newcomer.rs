//! Questions of a new user about an attached table: each is answered correctly, or refused.

use serde_json::json;

use super::fixtures::*;
use crate::plan::plan as planned;
use crate::reply::{blocks, reply};
use kiso_plan::block::Block;
use kiso_plan::prompt::{FileCard, Pieces};
use kiso_plan::report::{TaskReport, TaskStatus};

fn asked(message: &str, files: Vec<FileCard>) -> String {
    lines(&planned(&pieces(message, files))).join("\n")
}

/// Questions with the arguments of the query that answers each, without the file.
const ANSWERED: &[(&str, &str)] = &[
    (
        "Which city is warmer?",
        r#""group":["city"],"compute":["mean(temperature_c)"],"sort":["mean_temperature_c desc"]"#,
    ),
    ("which city is colder?", r#""group":["city"],"compute":["mean(temperature_c)"],"sort":["mean_temperature_c"]"#),
    (
        "which city is the warmest?",
        r#""group":["city"],"compute":["mean(temperature_c)"],"sort":["mean_temperature_c desc"],"limit":1"#,
    ),
    (
        "What is the warmest city",
        r#""group":["city"],"compute":["mean(temperature_c)"],"sort":["mean_temperature_c desc"],"limit":1"#,
    ),
    (
        "Which city is the coldest on average?",
        r#""group":["city"],"compute":["mean(temperature_c)"],"sort":["mean_temperature_c"],"limit":1"#,
    ),
    ("which city has more rain?", r#""group":["city"],"compute":["sum(rain_mm)"],"sort":["sum_rain_mm desc"]"#),
    (
        "Which city gets the most rain?",
        r#""group":["city"],"compute":["sum(rain_mm)"],"sort":["sum_rain_mm desc"],"limit":1"#,
    ),
    ("which city is windier?", r#""group":["city"],"compute":["mean(wind_kmh)"],"sort":["mean_wind_kmh desc"]"#),
    ("which city is sunnier", r#""group":["city"],"compute":["mean(sunshine_h)"],"sort":["mean_sunshine_h desc"]"#),
    (
        "which month is the wettest?",
        r#""group":["month(date)"],"compute":["mean(rain_mm)"],"sort":["mean_rain_mm desc"],"limit":1"#,
    ),
    ("compare the temperature of the cities", r#""group":["city"],"compute":["mean(temperature_c)"]"#),
    ("what's in this file?", r#""describe":true"#),
    ("what is this?", r#""describe":true"#),
    ("tell me about this file", r#""describe":true"#),
    ("summarise the data", r#""describe":true"#),
    ("what can you tell me about this data?", r#""describe":true"#),
    ("which columns does it have", r#""describe":true"#),
    ("show the first lines", r#""limit":10"#),
    ("show me the first 5 lines", r#""limit":5"#),
    ("show the first rows", r#""limit":10"#),
    ("preview", r#""limit":10"#),
    ("show the data", r#""limit":10"#),
    ("open the file", r#""limit":10"#),
    ("show the last 5 rows", r#""sort":["date desc"],"limit":5"#),
    ("how many rows are there?", r#""compute":["count()"]"#),
    ("how many lines does it have?", r#""compute":["count()"]"#),
    ("how many cities", r#""compute":["distinct(city)"]"#),
    ("how many different cities are in it?", r#""compute":["distinct(city)"]"#),
    ("list the cities", r#""group":["city"],"compute":["count()"]"#),
    ("which cities are in it", r#""group":["city"],"compute":["count()"]"#),
    ("what is the highest temperature?", r#""compute":["max(temperature_c)"]"#),
    ("lowest temperature", r#""compute":["min(temperature_c)"]"#),
    ("largest wind", r#""compute":["max(wind_kmh)"]"#),
    ("what was the warmest day?", r#""sort":["temperature_c desc"],"limit":1"#),
    ("when was it coldest?", r#""sort":["temperature_c"],"limit":1"#),
    ("when did it rain the most?", r#""sort":["rain_mm desc"],"limit":1"#),
    ("what is the average temperature?", r#""compute":["mean(temperature_c)"]"#),
    ("average temperature by city", r#""group":["city"],"compute":["mean(temperature_c)"]"#),
    ("total rain per city", r#""group":["city"],"compute":["sum(rain_mm)"]"#),
    ("sum of rain by month", r#""group":["month(date)"],"compute":["sum(rain_mm)"]"#),
    ("how much did it rain in Oslo?", r#""where":["city = Oslo"],"compute":["sum(rain_mm)"]"#),
    ("what is the temperature in Oslo?", r#""where":["city = Oslo"],"select":["temperature_c"]"#),
];

/// The rules do not guess an answer that is not in the table.
const REFUSED: &[&str] = &[
    "Which city is nicer?",
    "Which city is bigger?",
    "which city is not warm?",
    "which city is warmer than 10 degrees?",
    "show rows where city is warmer",
    "where is it warmer?",
    "Is Oslo colder than Lisbon?",
    "Which day was hotter, Monday or Sunday?",
    "is it getting warmer?",
    "what's the trend?",
    "compare the cities",
    "compare Oslo and Lisbon",
    "what is the difference between Oslo and Lisbon?",
    "top 3 cities",
    "what is the biggest?",
    "who is the best?",
    "how warm is Oslo?",
    "does rain depend on wind?",
    "are there missing values?",
    "delete this file",
    "send it to Anna",
    "translate this file",
    "what does this mean?",
    "average of everything",
];

#[test]
fn a_question_about_a_table_is_answered_as_it_is_meant_or_refused() {
    for (message, args) in ANSWERED {
        let found = asked(&format!("{message}\n\nFiles: weather.csv"), vec![weather(), market()]);
        assert_eq!(found, format!("data {{\"file\":\"weather.csv\",{args}}}"), "{message}");
    }
    for message in REFUSED {
        let plan = planned(&pieces(&format!("{message}\n\nFiles: weather.csv"), vec![weather(), market()]));
        assert_eq!(lines(&plan).len(), 1, "{message}: {:?}", lines(&plan));
        assert!(plan.blocked.is_some(), "{message}: {:?}", lines(&plan));
        assert!(plan.tasks[0].detail.contains("What I can do here"), "{message}: {:?}", plan.tasks[0].detail);
    }
}

#[test]
fn files_are_listed_and_the_only_one_is_meant() {
    for message in
        ["list my files", "what files do I have?", "Show me all my files, please", "ls", "what is in this folder?"]
    {
        assert_eq!(asked(message, vec![weather(), market()]), "$ ls -l", "{message}");
    }
    assert_eq!(asked("how many files are there", vec![]), "$ find . -type f | wc -l");
    assert_eq!(asked("what is in this file?", vec![market()]), r#"data {"file":"market.csv","describe":true}"#);
    assert_eq!(
        asked("show me the first 3 lines of market.csv", vec![weather(), market()]),
        r#"data {"file":"market.csv","limit":3}"#
    );
    for (files, why) in [(vec![], "no file came with the message"), (vec![weather(), market()], "more than one file")] {
        let found = asked("what is in this file?", files);
        assert!(found.starts_with("blocked: ") && found.contains(why), "{found}");
    }
    // Questions about other files and longer sentences are not file questions.
    for message in ["list my files on the server", "list my files and delete them", "move the files"] {
        assert!(asked(message, vec![weather()]).starts_with("blocked: "), "{message}");
    }
}

#[test]
fn a_comparison_is_answered_in_a_sentence() {
    let plan = planned(&pieces("Which city is warmer?\n\nFiles: weather.csv", vec![weather()]));
    let [query, closing] = plan.tasks.as_slice() else { panic!("{plan:?}") };
    let answered = |rows: serde_json::Value| {
        let data = json!({"columns": ["city", "mean_temperature_c"], "rows": rows, "total": 2});
        let report = TaskReport { data: Some(data), ..TaskReport::new(query.clone(), TaskStatus::Done, "a table") };
        let pieces = Pieces { task: Some(closing.clone()), evidence: Some(vec![report]), ..Pieces::default() };
        (reply(&pieces), blocks(&pieces))
    };
    let sentence = "The city with the highest mean temperature_c is Lisbon with 17.03, then Oslo with 7.45.";
    let (text, parts) = answered(json!([["Lisbon", 17.030054644809], ["Oslo", 7.4524590163934]]));
    assert!(text.starts_with(&format!("{sentence}\n\na table")), "{text}");
    assert_eq!(parts[0], Block::Text { text: sentence.to_owned() });
    // There is no first one.
    let (text, _) = answered(json!([["Lisbon", 7], ["Oslo", 7]]));
    assert!(text.starts_with("a table"), "{text}");
}
