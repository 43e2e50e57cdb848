//! Words that change the meaning: they are understood, or there is no plan.

use kiso_plan::prompt::{ChatMessage, FileCard, Pieces};

use super::fixtures::*;
use crate::plan::plan as planned;

/// Asserts that there is no plan, and that the reason names these words.
#[track_caller]
fn refuses(cases: &[(&str, &[&str])]) {
    for (message, parts) in cases {
        let plan = plan(message);
        let why = plan.blocked.clone().unwrap_or_else(|| panic!("{message} was planned: {:?}", lines(&plan)));
        for part in *parts {
            assert!(why.contains(part), "{message}: {part} in {why}");
        }
        assert_eq!(plan.tasks.len(), 1, "{message}");
    }
}

#[track_caller]
fn plans(files: &[FileCard], cases: &[(&str, &str)]) {
    for (message, wanted) in cases {
        let plan = planned(&pieces(message, files.to_vec()));
        assert_eq!(lines(&plan).join("\n"), *wanted, "{message}");
    }
}

#[test]
fn negations_block() {
    refuses(&[
        ("total rain except in Oslo", &["`except`", "`city != Oslo`"]),
        (
            "total rain not in Oslo",
            &["\"total rain not in Oslo\": I do not know what to do with `not`", "city != Oslo"],
        ),
        ("total rain without Oslo from weather.csv", &["`without`", "city != Oslo"]),
        ("total rain by city from weather.csv excluding Oslo", &["`excluding`"]),
        ("number of days with no rain in Lisbon", &["`no`", "rain_mm = 0"]),
        ("plot rain over date from weather.csv but not for Oslo", &["`not`"]),
    ]);
}

#[test]
fn months_and_seasons_are_no_names() {
    refuses(&[
        ("number of days with more than 5 hours of sunshine in Oslo in June", &["`June`", "June 2024"]),
        ("mean temperature in March from weather.csv", &["`March`", "March 2024"]),
        ("mean temperature in march from weather.csv", &["`march`"]),
        ("total rain since March from weather.csv", &["`March`"]),
        ("average temperature in winter from weather.csv", &["`winter`", "between"]),
        ("average temperature in Winter from weather.csv", &["`Winter`"]),
        ("total rain in Oslo in Lisbon from weather.csv", &["city = Oslo", "city = Lisbon"]),
    ]);
}

#[test]
fn comparisons_and_values_block() {
    refuses(&[
        ("how many days were below 0 in Oslo", &["`below`", "`0`"]),
        ("how many rows of weather.csv have city bad", &["`bad`", "city = bad"]),
        ("how many rows of weather.csv have status bad", &["`bad`"]),
        ("how many rainy days were there in Oslo", &["`rainy`"]),
        ("plot temperature over date from weather.csv and delete weather.csv", &["`delete`"]),
        ("plot temperature over date in Oslo from weather.csv and delete weather.csv", &["`delete`"]),
    ]);
}

#[test]
fn orders() {
    let data =
        |rest: &str| format!(r#"data {{"file":"market.csv","group":["month(day)"],"compute":["mean(close)"],{rest}}}"#);
    for (message, wanted) in [
        ("mean close by month from market.csv sorted by mean close", data(r#""sort":["mean_close"]"#)),
        ("mean close by month from market.csv, highest first", data(r#""sort":["mean_close desc"]"#)),
        ("mean close by month sorted by mean close, highest first", data(r#""sort":["mean_close desc"]"#)),
        ("mean close by month sorted by close descending", data(r#""sort":["mean_close desc"]"#)),
        ("mean close by month sorted by month descending", data(r#""sort":["month desc"]"#)),
    ] {
        plans(&[weather(), market()], &[(message, &wanted)]);
    }
    refuses(&[
        ("mean close by month sorted by total volume", &["sorted by"]),
        ("mean close by month sorted by open", &["sorted by"]),
        ("on which day was close highest", &["`highest`"]),
    ]);
}

#[test]
fn names_on_charts() {
    let filtered = |name: &str, city: &str| {
        format!(
            "data {{\"file\":\"weather.csv\",\"where\":[\"city = {city}\"],\"select\":[\"date\",\"rain_mm\"],\"save\":\"{name}\"}}\nchart {{\"file\":\"{name}\",\"x\":\"date\",\"y\":[\"rain_mm\"]}}"
        )
    };
    plans(
        &[weather(), market(), cities()],
        &[
            ("plot rain over date for Lisbon", &filtered("rain-date-lisbon.csv", "Lisbon")),
            ("plot rain over date from weather.csv for Lisbon", &filtered("rain-date.csv", "Lisbon")),
            ("plot rain over date from weather.csv, only Oslo", &filtered("rain-date.csv", "Oslo")),
            ("plot rain over date only Oslo", &filtered("rain-date-only.csv", "Oslo")),
        ],
    );
    refuses(&[("plot rain over date for lisbon", &["lisbon"]), ("plot wind direction over date", &["direction"])]);
    let plan = plan("plot close over day from market.csv slowly");
    assert_eq!(plan.tasks[0].args.as_ref().unwrap()["title"], "Close over day");
}

#[test]
fn rows_and_names_to_write() {
    plans(
        &[weather(), market()],
        &[
            (
                "show all days with rain above 5 and wind under 10",
                r#"data {"file":"weather.csv","where":["rain_mm > 5","wind_kmh < 10"]}"#,
            ),
            (
                "save the total rain per city as rain.csv",
                r#"data {"file":"weather.csv","group":["city"],"compute":["sum(rain_mm)"],"save":"rain.csv"}"#,
            ),
        ],
    );
}

#[test]
fn first_command_of_the_readme() {
    plans(
        &[weather()],
        &[(
            "Compute the mean temperature by month and city from weather.csv, then plot it as a line chart",
            "data {\"file\":\"weather.csv\",\"group\":[\"month(date)\",\"city\"],\"compute\":[\"mean(temperature_c)\"],\"save\":\"mean-temperature-month.csv\"}\nchart {\"file\":\"mean-temperature-month.csv\",\"kind\":\"line\",\"x\":\"month\",\"y\":[\"mean_temperature_c\"]}",
        )],
    );
}

/// A computed table is not mistaken for its source.
#[test]
fn computed_tables_are_no_sources() {
    let said = |text: &str| vec![ChatMessage::new("assistant", text)];
    let ask = |message: &str, messages| {
        planned(&Pieces { messages: Some(messages), ..pieces(message, vec![monthly(), weather()]) })
    };
    let listed = || said("Files:\n- /work/mean-temperature-month.csv (1 kB)");
    for messages in [listed(), vec![]] {
        let plan = ask("average temperature per city", messages);
        let wanted = r#"data {"file":"weather.csv","group":["city"],"compute":["mean(temperature_c)"]}"#;
        assert_eq!(lines(&plan), [wanted]);
        let note = "weather.csv was read";
        assert!(plan.tasks.last().unwrap().detail.contains(note), "{}", plan.tasks.last().unwrap().detail);
    }
    let plan = ask("average temperature per city in mean-temperature-month.csv", listed());
    assert_eq!(plan.tasks[0].args.as_ref().unwrap()["file"], "mean-temperature-month.csv");
}

#[test]
fn ambiguity_lists_what_fits() {
    let mut other = weather();
    other.path = "other.csv".to_owned();
    let why = planned(&pieces("plot rain by date", vec![weather(), market(), other])).blocked.unwrap();
    assert!(why.contains("weather.csv, other.csv") && !why.contains("market.csv"), "{why}");
}

#[test]
fn file_names_with_spaces() {
    plans(
        &[weather(), super::fixtures::orders()],
        &[
            ("describe data/Orders 2024.csv", r#"data {"file":"data/Orders 2024.csv","describe":true}"#),
            ("describe orders 2024.csv", r#"data {"file":"data/Orders 2024.csv","describe":true}"#),
            (
                "plot quantity over order date from \"Orders 2024.csv\"",
                r#"chart {"file":"data/Orders 2024.csv","x":"Order Date","y":["Quantity"]}"#,
            ),
        ],
    );
}

#[test]
fn dotted_and_exact_columns() {
    let nested = table("people.json", "address.city:t,address.zip:t,age,age_group:t");
    plans(
        std::slice::from_ref(&nested),
        &[
            (
                "mean age by address.city from people.json",
                r#"data {"file":"people.json","group":["address.city"],"compute":["mean(age)"]}"#,
            ),
            (
                "mean age by address.city",
                r#"data {"file":"people.json","group":["address.city"],"compute":["mean(age)"]}"#,
            ),
        ],
    );
    let why = planned(&pieces("mean age by address.ctiy", vec![nested])).blocked.unwrap();
    assert!(!why.contains("no file"), "{why}");
    let exact = table("m.csv", "timestamp:d,value,value_max,mean value");
    plans(
        std::slice::from_ref(&exact),
        &[
            ("plot value over timestamp", r#"chart {"file":"m.csv","x":"timestamp","y":["value"]}"#),
            ("total value by month", r#"data {"file":"m.csv","group":["month(timestamp)"],"compute":["sum(value)"]}"#),
        ],
    );
    let plan = planned(&pieces("plot value over timestamp", vec![exact]));
    assert_eq!(plan.tasks[0].args.as_ref().unwrap()["title"], "Value over timestamp");
}

#[test]
fn help_offers_what_works() {
    let text = plan("make me a sandwich").tasks[0].detail.clone();
    for part in ["provider:model", "$ COMMAND", "https://", "draw a line chart"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("`kiso config preset` shows how to set one"), "{text}");
    assert_eq!(text.matches("chart of").count(), 1, "{text}");
    let empty = planned(&pieces("hello", vec![])).tasks[0].detail.clone();
    assert!(
        empty.contains("attach one in the page") && !empty.contains("://") && empty.contains("- $ ls -l"),
        "{empty}"
    );
    let plain = planned(&pieces("hello", vec![monthly(), weather()])).tasks[0].detail.clone();
    assert!(plain.contains("from weather.csv") && !plain.contains("mean-temperature"), "{plain}");
    let picture = FileCard { path: "pub/a.png".to_owned(), bytes: 1, ..FileCard::default() };
    let holding = planned(&pieces("plot wether.csv", vec![picture, weather()])).blocked.unwrap();
    assert!(holding.ends_with("the workspace holds weather.csv"), "{holding}");
}
