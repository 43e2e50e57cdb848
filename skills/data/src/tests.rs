use crate::query::{Answer, Query, answer};
use crate::{Data, Format, render, save};
use kiso_sdk::{Failure, Skill};
use serde_json::{Value as Json, json};
use table::Table;

const WEATHER: &str = "date,city,temp,rain,Max Wind\n\
    2024-01-01,Oslo,-3.5,0,10\n2024-01-02,Oslo,-1,1.5,12.5\n2024-01-31,Bergen,4,,20\n2024-02-01,Bergen,5.5,12,31\n\
    2024-02-29,Oslo,0,3,8\n2025-03-01,Trinidad and Tobago,28.25,2.5,\n";
const PLACES: &str = "city,country,temp\nOslo,Norway,5.7\nBergen,Norway,7.6\nRome,Italy,15\n";
const TRADES: &str =
    "time;open;close\n2024-01-05 09:30;10,5;11\n2024-01-05 16:00;11;10,75\n2024-01-08 09:30;10,75;12\n";

const SNOW: &str = "id,user,n\n99999999999999999,a,1\n1234567890123456789,b,2\n500000000000000000,c,3\n,d,4\n7,e,7\n";
const OWNERS: &str = "id,owner\n7,Eve\n1234567890123456789,Bob\n1234567890123456788,Mallory\n";

fn load(file: &str) -> Result<Table, Failure> {
    let text = match file {
        "weather.csv" => WEATHER.to_owned(),
        "places.csv" => PLACES.to_owned(),
        "trades.csv" => TRADES.to_owned(),
        "snow.csv" => SNOW.to_owned(),
        "owners.csv" => OWNERS.to_owned(),
        "header.csv" => "a,b\n".to_owned(),
        "long.csv" => "n,square\n".to_owned() + &(0..3_000).map(|i| format!("{i},{}\n", i * i)).collect::<String>(),
        _ => return Err(Failure::new("not-found", file)),
    };
    Ok(Table::parse(file, text.into_bytes(), 64 << 20)?)
}

fn query(args: Json) -> Query {
    serde_json::from_value(args).unwrap()
}

fn ask(args: Json) -> Answer {
    answer(&query(args), &load).unwrap()
}

#[track_caller]
fn rows(args: Json, expected: Json) {
    assert_eq!(render::json(&ask(args))["rows"], expected);
}

#[track_caller]
fn fails(args: Json, code: &str, words: &str) {
    let failure = answer(&query(args), &load).unwrap_err();
    assert_eq!((failure.code.as_str(), true), (code, failure.message.contains(words)), "{}", failure.message);
}

/// Asserts which rows of the weather a condition leaves, by their numbers.
#[track_caller]
fn leaves(condition: &str, expected: &[u32]) {
    assert_eq!(ask(json!({"file": "weather.csv", "where": [condition]})).rows, expected, "{condition}");
}

#[test]
fn self_test_passes() {
    Data::self_test().unwrap();
}

#[test]
fn conditions_on_numbers() {
    leaves("temp > 0", &[2, 3, 5]);
    leaves("temp>=0", &[2, 3, 4, 5]);
    leaves("TEMP <= -1.0", &[0, 1]);
    leaves("temp = 4", &[2]);
    leaves("rain != 0", &[1, 3, 4, 5]);
    leaves("rain is empty", &[2]);
    leaves("rain is not empty", &[0, 1, 3, 4, 5]);
    leaves("max_wind is above 12", &[1, 2, 3]);
    leaves("`Max Wind` < 10", &[4]);
    leaves("temp > rain", &[5]);
    leaves("rain < temp", &[5]);
}

#[test]
fn long_integers_are_exact() {
    let [least, middle, most] = ["99999999999999999", "500000000000000000", "1234567890123456789"];
    let all = |args: Json, expected: Json| {
        let mut args = args;
        args["file"] = json!("snow.csv");
        rows(args, expected);
    };
    all(
        json!({"compute": ["max(id)", "min(id)", "sum(id)", "count(id)", "distinct(id)"]}),
        json!([[most, "7", "1834567890123456795", 4, 4]]),
    );
    for (condition, expected) in [
        ("id > 600000000000000000", vec!["b"]),
        ("id = 1234567890123456788", vec![]),
        ("id = 1234567890123456789", vec!["b"]),
        ("id != 1234567890123456789", vec!["a", "c", "e"]),
        ("id >= 1,234,567,890,123,456,789", vec!["b"]),
        ("id < 7.5", vec!["e"]),
        ("id <= 6.5", vec![]),
        ("id > 5e17", vec!["b"]),
        ("id > n", vec!["a", "b", "c"]),
        ("id = n", vec!["e"]),
        ("id starts with 1234", vec!["b"]),
        ("id is empty", vec!["d"]),
    ] {
        let expected: Vec<[&str; 1]> = expected.into_iter().map(|user| [user]).collect();
        all(json!({"where": [condition], "select": ["user"]}), json!(expected));
    }
    all(json!({"sort": ["id"], "select": ["id"]}), json!([["7"], [least], [middle], [most], [null]]));
    all(json!({"sort": ["id desc"], "select": ["id"], "limit": 2}), json!([[most], [middle]]));
    all(json!({"group": ["id"], "limit": 1}), json!([["7", 1]]));
    rows(
        json!({"file": "snow.csv", "join": "owners.csv", "select": ["user", "owner"]}),
        json!([["b", "Bob"], ["e", "Eve"]]),
    );
    let described = render::json(&ask(json!({"file": "snow.csv", "describe": true, "select": ["id"]})));
    assert_eq!((&described["rows"][0][5], &described["rows"][0][7]), (&json!("7"), &json!(most)));
    fails(json!({"file": "snow.csv", "where": ["id > x"]}), "wrong-type", "not an integer");
}

#[test]
fn conditions_on_dates() {
    leaves("date >= 2024-02-01", &[3, 4, 5]);
    leaves("date = 2024-01", &[0, 1, 2]);
    leaves("date > 2024-01", &[3, 4, 5]);
    leaves("date <= 2024-01-31", &[0, 1, 2]);
    leaves("date != 2024", &[5]);
    leaves("date after 31.1.2024", &[3, 4, 5]);
    leaves("year(date) = 2025", &[5]);
    leaves("month(date) = 2024-02", &[3, 4]);
    leaves("weekday(date) = mon", &[0]);
}

#[test]
fn conditions_on_text() {
    leaves("city = oslo", &[0, 1, 4]);
    leaves("city is not \"Oslo\"", &[2, 3, 5]);
    leaves("city contains RG", &[2, 3]);
    leaves("city starts with 'o'", &[0, 1, 4]);
    leaves("city does not contain o", &[2, 3]);
    leaves("city = Trinidad and Tobago", &[5]);
    leaves("city = Trinidad and Tobago and temp > 20", &[5]);
    leaves("city = Oslo and temp < 0 or rain > 10", &[0, 1, 3]);
    leaves("city > C", &[0, 1, 4, 5]);
}

#[test]
fn broken_conditions_say_what_is_wrong() {
    let fails = |condition: &str, code, words| fails(json!({"file": "weather.csv", "where": [condition]}), code, words);
    fails("temp", "bad-expression", "`temp` is no condition");
    fails("temp >", "bad-expression", "has no value");
    fails("tmep > 3", "unknown-column", "weather.csv has no column tmep; did you mean temp? Its columns: date, city");
    fails("temp > warm", "wrong-type", "temp is a number column and `warm` is not a number");
    fails("date > soon", "wrong-type", "is not a date such as 2024-03-01");
    fails("month(temp) = 3", "wrong-type", "temp holds a number, not dates");
    fails("mnth(date) = 3", "bad-expression", "did you mean month?");
}

#[test]
fn grouping() {
    rows(
        json!({"file": "weather.csv", "group": ["month(date)"], "compute": ["mean(temp)", "sum(rain)", "count()"]}),
        json!([["2024-01", -0.166_666_666_666_67, 1.5, 3], ["2024-02", 2.75, 15, 2], ["2025-03", 28.25, 2.5, 1]]),
    );
    let answer = ask(
        json!({"file": "weather.csv", "group": ["city"], "compute": ["max(temp) as top, distinct(date)", "p90(rain)"]}),
    );
    let names: Vec<&str> = answer.shown().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["city", "top", "distinct_date", "p90_rain"]);
    rows(
        json!({"file": "weather.csv", "group": ["weekday(date)"]}),
        json!([["Mon", 1], ["Tue", 1], ["Wed", 1], ["Thu", 2], ["Sat", 1]]),
    );
    rows(
        json!({"file": "weather.csv", "group": ["year(date)", "city"], "where": ["temp > 0"]}),
        json!([[2024, "Bergen", 2], [2025, "Trinidad and Tobago", 1]]),
    );
    rows(
        json!({"file": "trades.csv", "group": ["day(time)"], "compute": ["sum(close)"]}),
        json!([["2024-01-05", 21.75], ["2024-01-08", 12]]),
    );
    rows(json!({"file": "trades.csv", "group": ["hour(time)"], "compute": ["count"]}), json!([[9, 2], [16, 1]]));
    rows(
        json!({"file": "trades.csv", "group": ["week(time)"], "compute": ["max(time)"]}),
        json!([["2024-W01", "2024-01-05T16:00"], ["2024-W02", "2024-01-08T09:30"]]),
    );
}

#[test]
fn computing_over_all_rows() {
    rows(
        json!({"file": "weather.csv", "compute": ["median(temp)", "std(rain)", "avg of temp", "min(city)", "count(rain)", "mean(rain) and max(rain)"]}),
        json!([[2, 4.724_933_861_971, 5.541_666_666_666_7, "Bergen", 5, 3.8, 12]]),
    );
    rows(
        json!({"file": "weather.csv", "where": ["temp > 99"], "compute": ["mean(temp)", "sum(rain)", "count()"]}),
        json!([[null, null, 0]]),
    );
    rows(json!({"file": "header.csv", "compute": ["count()", "min(a)"]}), json!([[0, null]]));
    let fails = |compute: &str, code, words| fails(json!({"file": "weather.csv", "compute": [compute]}), code, words);
    fails("men(temp)", "bad-expression", "unknown function men; did you mean mean?");
    fails("temp", "bad-expression", "write mean(temp)");
    fails("mean()", "bad-expression", "needs a column");
    fails("mean(city)", "wrong-type", "city holds text, not numbers");
    fails("mean(tepm)", "unknown-column", "did you mean temp?");
    fails("p0(temp)", "bad-expression", "unknown function p0");
}

#[test]
fn sorting_selecting_limiting() {
    rows(
        json!({"file": "weather.csv", "sort": ["rain desc"], "select": ["rain"]}),
        json!([[12], [3], [2.5], [1.5], [0], [null]]),
    );
    rows(
        json!({"file": "weather.csv", "sort": ["city, -temp"], "select": ["temp"], "limit": 3}),
        json!([[5.5], [4], [0]]),
    );
    rows(
        json!({"file": "weather.csv", "group": ["city"], "compute": ["avg(temp)"], "sort": ["avg(temp) desc"], "limit": 1, "select": ["mean(temp)", "city"]}),
        json!([[28.25, "Trinidad and Tobago"]]),
    );
    rows(
        json!({"file": "weather.csv", "group": ["city"], "compute": ["avg(temp)"], "sort": ["avg_temp"], "limit": 1, "select": ["city"]}),
        json!([["Oslo"]]),
    );
    rows(
        json!({"file": "weather.csv", "group": ["weekday(date)"], "sort": ["weekday desc"], "limit": 2}),
        json!([["Sat", 1], ["Thu", 2]]),
    );
    fails(
        json!({"file": "weather.csv", "group": ["city"], "sort": ["temp"]}),
        "unknown-column",
        "the result has no column temp",
    );
}

#[test]
fn joining() {
    let joined = json!({"file": "weather.csv", "join": "places.csv", "on": "city", "where": ["country = Norway"], "group": ["country"], "compute": ["count()", "max(temp_2)"]});
    rows(joined, json!([["Norway", 5, 7.6]]));
    let answer = ask(json!({"file": "weather.csv", "join": "places.csv", "on": "city = city", "limit": 1}));
    let names: Vec<&str> = answer.shown().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["date", "city", "temp", "rain", "Max Wind", "country", "temp_2"]);
    assert_eq!(ask(json!({"file": "weather.csv", "join": "places.csv", "on": "temp"})).len(), 0);
    fails(json!({"file": "weather.csv", "join": "places.csv"}), "bad-args", "share city, temp; say which with on");
    fails(json!({"file": "weather.csv", "join": "trades.csv"}), "bad-args", "no column in common");
    fails(
        json!({"file": "weather.csv", "join": "places.csv", "on": "date=country"}),
        "wrong-type",
        "date in weather.csv holds a date and country",
    );
    fails(json!({"file": "weather.csv", "on": "city"}), "bad-args", "`join` names no table");
    fails(
        json!({"file": "weather.csv", "join": "long.csv", "on": "date=m"}),
        "unknown-column",
        "long.csv has no column m",
    );
}

#[test]
fn describing() {
    let answer = ask(json!({"file": "weather.csv", "describe": true}));
    let data = render::json(&answer);
    assert_eq!(data["columns"], json!(["column", "type", "count", "missing", "distinct", "min", "mean", "max"]));
    assert_eq!(data["rows"][0], json!(["date", "date", 6, 0, 6, "2024-01-01", "2024-04-01", "2025-03-01"]));
    assert_eq!(data["rows"][1], json!(["city", "text", 6, 0, 3, null, null, null]));
    assert_eq!(data["rows"][3], json!(["rain", "number", 5, 1, 5, 0, 3.8, 12]));
    let expected = "\
column    type    count  missing  distinct         min        mean         max
--------  ------  -----  -------  --------  ----------  ----------  ----------
date      date        6        0         6  2024-01-01  2024-04-01  2025-03-01
city      text        6        0         3
temp      number      6        0         6       -3.50        5.54       28.25
rain      number      5        1         5           0         3.8          12
Max Wind  number      5        1         5           8        16.3          31
Note: 6 rows of weather.csv
";
    assert_eq!(render::text(&answer, Format::Table), expected);
    assert_eq!(
        render::json(&ask(json!({"file": "header.csv", "describe": true})))["rows"][0],
        json!(["a", "text", 0, 0, 0, null, null, null])
    );
}

#[test]
fn tables_for_people() {
    let answer = ask(json!({"file": "weather.csv", "select": ["city", "temp", "rain"], "limit": 3}));
    let expected = "city    temp  rain\n------  ----  ----\nOslo    -3.5   0.0\nOslo    -1.0   1.5\nBergen   4.0\n";
    assert_eq!(render::text(&answer, Format::Table), expected);
    let text = render::text(&ask(json!({"file": "long.csv"})), Format::Table);
    assert!(text.ends_with("39    1521\n… and 2960 more rows\n"), "{text}");
    assert!(render::text(&ask(json!({"file": "header.csv"})), Format::Table).ends_with("no rows\n"));
    let wide = Table::parse("w.csv", "名,n\n東京,1\nx,22\n".as_bytes().to_vec(), 1 << 20).unwrap();
    let answer = Answer { rows: vec![0, 1], columns: vec![0, 1], table: wide, summaries: None };
    assert_eq!(render::text(&answer, Format::Table), "名     n\n----  --\n東京   1\nx     22\n");
}

#[test]
fn json_is_capped() {
    let data = render::json(&ask(json!({"file": "long.csv"})));
    assert_eq!(
        (data["rows"].as_array().unwrap().len(), &data["total"], &data["truncated"]),
        (1_000, &json!(3_000), &json!(true))
    );
    let long = "x".repeat(1_000);
    let text = "t\n".to_owned() + &format!("{long}\n").repeat(500);
    let table = Table::parse("t.csv", text.into_bytes(), 4 << 20).unwrap();
    let answer = Answer { rows: (0..500).collect(), columns: vec![0], table, summaries: None };
    let data = render::json(&answer);
    assert!(data.to_string().len() < 115 << 10 && data["truncated"] == json!(true));
}

#[test]
fn saving() {
    let answer = ask(
        json!({"file": "weather.csv", "select": ["date", "city", "rain"], "where": ["rain is empty or city contains and"]}),
    );
    let saved = |path: &str| String::from_utf8(save::bytes(&answer, path).unwrap()).unwrap();
    assert_eq!(saved("a.csv"), "date,city,rain\n2024-01-31,Bergen,\n2025-03-01,Trinidad and Tobago,2.5\n");
    let first = r#"{"date":"2024-01-31","city":"Bergen","rain":null}"#;
    let second = r#"{"date":"2025-03-01","city":"Trinidad and Tobago","rain":2.5}"#;
    assert_eq!(saved("a.json"), format!("[\n{first},\n{second}\n]\n"));
    assert_eq!(saved("a.JSONL"), format!("{first}\n{second}\n"));
    assert_eq!(save::bytes(&answer, "a.txt").unwrap_err().code, "bad-args");
    fails(
        json!({"file": "weather.csv", "save": "/work/weather.csv"}),
        "bad-args",
        "save the result under another name",
    );
    let odd = Table::parse("o.jsonl", b"{\"t\": \"a \\\"b\\\"\\nc, d\"}\n{\"t\": null}\n".to_vec(), 1 << 20).unwrap();
    let answer = Answer { rows: vec![0, 1], columns: vec![0], table: odd, summaries: None };
    let csv = save::bytes(&answer, "o.csv").unwrap();
    assert_eq!(String::from_utf8_lossy(&csv), "t\n\"a \"\"b\"\"\nc, d\"\n\"\"\n");
}
