use crate::{Chart, Drawn, Request, draw};
use kiso_sdk::{Failure, Skill};
use serde_json::{Value as Json, json};
use table::Table;

fn request(args: Json) -> Request {
    serde_json::from_value(args).unwrap()
}

fn try_draw(text: &str, mut args: Json) -> Result<Drawn, Failure> {
    args["file"] = json!("data/t.csv");
    draw(&Table::parse("data/t.csv", text.into(), 16 << 20).unwrap(), &request(args))
}

#[track_caller]
fn drawn(text: &str, args: Json) -> Drawn {
    let drawn = try_draw(text, args).unwrap();
    assert!(drawn.png.starts_with(b"\x89PNG") && drawn.svg.starts_with("<svg ") && drawn.svg.ends_with("</svg>\n"));
    assert!(!drawn.svg.contains("NaN") && !drawn.svg.contains("inf"), "{}", drawn.svg);
    drawn
}

#[track_caller]
fn fails(text: &str, args: Json, code: &str, words: &str) {
    let failure = try_draw(text, args).unwrap_err();
    assert_eq!((failure.code.as_str(), true), (code, failure.message.contains(words)), "{}", failure.message);
}

fn count(svg: &str, what: &str) -> usize {
    svg.matches(what).count()
}

const DAYS: &str = "date,temp,rain\n2024-01-01,2,0\n2024-01-02,3,1\n2024-01-03,,2\n2024-01-04,5,0\n2024-01-05,4,3\n";

#[test]
fn self_test_passes() {
    Chart::self_test().unwrap();
}

#[test]
fn a_missing_value_breaks_the_line() {
    let drawn = drawn(DAYS, json!({"y": ["temp"]}));
    let lines = drawn.svg.split("<g class=\"lines\"").nth(1).unwrap().split("</g>").next().unwrap();
    assert_eq!(count(lines, "<line") + count(lines, "<polyline"), 2);
    assert_eq!(count(&drawn.svg, "<circle"), 4);
    assert_eq!(drawn.title, "Temp, Jan 2024");
    assert_eq!(
        drawn.text,
        "Drew a line chart of 5 rows of data/t.csv: temp (2 to 5) over date from 2024-01-01 to 2024-01-05"
    );
    assert_eq!(drawn.data["series"][0], json!({"name": "temp", "points": 4, "missing": 1, "min": 2.0, "max": 5.0}));
}

fn block_of(drawn: &Drawn) -> Json {
    let lines: Vec<&str> = drawn.block.lines().collect();
    let ["```chart", chart, "```"] = lines[..] else { panic!("{}", drawn.block) };
    serde_json::from_str(chart).unwrap()
}

#[test]
fn a_block_has_the_chart_as_data() {
    let chart = block_of(&drawn(DAYS, json!({"y": ["temp", "rain"], "y_label": "°C"})));
    let wanted = json!({
        "type": "line", "title": "Temp and rain, Jan 2024", "x_label": "date", "y_label": "°C",
        "x": ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"],
        "series": [{"name": "temp", "values": [2, 3, null, 5, 4]}, {"name": "rain", "values": [0, 1, 2, 0, 3]}],
    });
    assert_eq!(chart, wanted);
    let bars = block_of(&drawn("who,n\n\"a\n```\",3.14159265\nb,4\n", json!({"kind": "bar"})));
    assert_eq!((&bars["type"], &bars["x"]), (&json!("bar"), &json!(["a\n```", "b"])));
    assert_eq!(bars["series"][0]["values"], json!([3.14159, 4]));
    let cloud = block_of(&drawn("x,y\n1,2\n1,3\n0.5,1\n", json!({"kind": "scatter", "x": "x", "y": ["y"]})));
    assert_eq!((&cloud["x"], &cloud["series"][0]["values"]), (&json!([0.5, 1, 1]), &json!([1, 2, 3])));
    let bins = block_of(&drawn("d\n1\n2\n2\n3\n", json!({"kind": "histogram", "y": ["d"]})));
    assert_eq!((&bins["type"], &bins["series"][0]["values"]), (&json!("bar"), &json!([1, 2, 1])));
}

#[test]
fn a_block_stays_small_and_keeps_the_peaks() {
    let rows: String = (0..5_000).map(|n| format!("{n},{}\n", if n == 2_345 { 900 } else { n % 7 })).collect();
    let drawn = drawn(&format!("n,v\n{rows}"), json!({"x": "n", "y": ["v"]}));
    let chart = block_of(&drawn);
    let values = chart["series"][0]["values"].as_array().unwrap();
    assert!(drawn.block.len() < crate::block::MOST_BYTES + 100, "{}", drawn.block.len());
    assert!(values.len() > 200 && values.contains(&json!(900)), "{}", values.len());
    assert_eq!(chart["x"].as_array().unwrap().len(), values.len());
    assert!(drawn.text.contains(&format!("shows {} of 5000 points", values.len())), "{}", drawn.text);
}

#[test]
fn names_are_escaped() {
    let drawn = drawn("who,n\n\"<script>&\"\"x\",3\nb,4\n", json!({"kind": "bar", "title": "a < b & \u{1}c"}));
    assert!(drawn.svg.contains(">&lt;script&gt;&amp;&quot;x</text>"));
    assert!(drawn.svg.contains("<title>a &lt; b &amp; \u{FFFD}c</title>"));
}

#[test]
fn where_it_goes() {
    assert_eq!(drawn(DAYS, json!({})).out, "pub/t-line");
    assert_eq!(drawn(DAYS, json!({"y": ["temp and rain"], "kind": "bar"})).out, "pub/temp-and-rain-bar");
    assert_eq!(drawn(DAYS, json!({"title": "Été: a/b.."})).out, "pub/été-a-b");
    assert_eq!(drawn(DAYS, json!({"out": "charts/x.SVG"})).out, "charts/x");
    assert_eq!(drawn(DAYS, json!({"out": "pub/v1.2"})).out, "pub/v1.2");
}

#[test]
fn long_tables_become_series() {
    let text = "date,city,temp\n2024-01-01,Oslo,1\n2024-01-01,Rome,9\n2024-01-02,Oslo,2\n2024-01-02,Rome,8\n";
    let split = drawn(text, json!({}));
    assert_eq!(split.title, "Temp by city, Jan 2024");
    assert_eq!(split.data["series"].as_array().unwrap().len(), 2);
    let averaged = drawn(text, json!({"kind": "bar", "x": "city", "y": ["temp"]}));
    assert_eq!((averaged.title.as_str(), &averaged.data["series"][0]["max"]), ("Mean temp by city", &json!(8.5)));
    assert!(averaged.text.contains("city repeats; rows that share it were averaged"));
    let counted = drawn("city\nOslo\nRome\nOslo\n", json!({"kind": "bar"}));
    assert_eq!((counted.title.as_str(), &counted.data["series"][0]["max"]), ("Number of rows by city", &json!(2.0)));
}

#[test]
fn odd_values_still_make_a_picture() {
    for rows in [
        "x,y\n1,5\n",
        "x,y\n1,7\n2,7\n3,7\n",
        "x,y\n1,-5\n2,-9\n",
        "x,y\n1,0\n2,0\n",
        "x,y\n1,1e300\n2,-1e300\n",
        "x,y\n1,1e-300\n2,3e-300\n",
        "x,y\n1,1000000000.1\n2,1000000000.2\n",
        "x,y\n-5,3\n-5,4\n",
        "date,y\n2024-01-01 12:00:00.5,3\n2024-01-01 12:00:00.75,4\n",
        "date,y\n0001-01-01,3\n9999-12-31,4\n",
        "date,y\n2024-02-29,1\n2024-02-29,2\n",
    ] {
        for kind in ["line", "bar", "scatter", "histogram"] {
            drawn(rows, json!({"kind": kind, "y": ["y"], "width": 320, "height": 240, "theme": "dark"}));
        }
    }
}

#[test]
fn many_points_stay_small() {
    let text: String = (0..20_000).map(|i| format!("{i},{}\n", (i * 7919) % 1_000)).collect();
    let line = drawn(&format!("x,y\n{text}"), json!({}));
    assert!(line.svg.len() < 80_000, "{}", line.svg.len());
    drawn(&format!("x,y\n{text}"), json!({"kind": "scatter"}));
    fails(&format!("x,y\n{text}"), json!({"kind": "bar"}), "too-many", "20000 bars");
}

#[test]
fn many_names_are_thinned() {
    let text: String = (0..200).map(|i| format!("Category number {i},{i}\n")).collect();
    let bars = drawn(&format!("name,n\n{text}"), json!({"kind": "bar"}));
    let names = count(&bars.svg, "Category number");
    assert!((20..100).contains(&names), "{names}");
    assert!(bars.text.contains("not every name has room"));
    let text: String = (0..301).map(|i| format!("c{i},{i}\n")).collect();
    fails(&format!("name,n\n{text}"), json!({"kind": "bar"}), "too-many", "more than 300 different values");
}

#[test]
fn columns_of_another_magnitude_wait_to_be_named() {
    let market = "day,close,volume\n2024-01-01,10,5000000\n2024-01-02,11,7000000\n";
    let alike = drawn(market, json!({}));
    assert_eq!(alike.data["series"].as_array().unwrap().len(), 1);
    assert!(alike.text.contains("volume is of another magnitude"));
    assert_eq!(drawn(market, json!({"y": ["close", "volume"]})).data["series"].as_array().unwrap().len(), 2);
}

#[test]
fn a_foreign_script_is_said() {
    let drawn = drawn("city,n\n東京,3\n", json!({"kind": "bar"}));
    assert!(drawn.svg.contains("東京") && drawn.text.contains("the PNG lacks some letters"));
}

#[test]
fn what_cannot_be_drawn_says_why() {
    fails("a,b\n", json!({}), "no-rows", "data/t.csv has no rows");
    fails("a,b\n1,\n2,\n", json!({}), "no-values", "column b of data/t.csv has no values");
    fails("a,b\n1,NaN\n2,NaN\n", json!({"y": ["b"]}), "no-values", "b of data/t.csv has no values");
    fails(DAYS, json!({"y": ["tmep"]}), "unknown-column", "did you mean temp?");
    fails(DAYS, json!({"x": "dat"}), "unknown-column", "did you mean date?");
    fails(DAYS, json!({"y": ["date"]}), "wrong-type", "holds a date, but y needs numbers; number columns: temp, rain");
    fails(DAYS, json!({"kind": "histogram", "y": ["temp", "rain"]}), "bad-args", "a histogram shows one column");
    fails("x,y\n1,1e305\n2,3\n", json!({}), "too-large", "beyond 1e300");
}
