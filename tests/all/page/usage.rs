//! The use and cost of models: figures, chart and tables agree with `GET /usage`.

use super::browser::{css, role};
use super::stage::{QUICK, Stage, manage};
use super::themes::audit_in_both;
use crate::harness::Home;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Days since 1970, as in the store.
fn today() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400).unwrap()
}

/// Adds use on some of the last days: 1,000 input and 50 output tokens and 1.25 dollars for each call.
fn use_models(home: &Home) {
    let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
    for (ago, calls) in [(0, 2), (1, 8), (6, 4), (7, 16), (29, 32), (40, 64)] {
        store
            .execute(
                "INSERT INTO usage_totals (scope, key, calls, input, output, cost_micros)
                 VALUES ('day', ?1, ?2, ?2 * 1000, ?2 * 50, ?2 * 1250000)",
                [today() - ago, calls],
            )
            .unwrap();
    }
}

/// Formats as "1,234".
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

fn dollars(micros: u64) -> String {
    if micros == 0 { "$0".to_owned() } else { format!("${:.2}", micros as f64 / 1e6) }
}

#[test]
fn figures_chart_and_table_agree() {
    let config = format!(
        "model = \"reflex\"\n{QUICK}[model_settings.\"test:m\"]\ninput_price = 2\noutput_price = 10\n[providers.test]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n"
    );
    let Some(stage) = Stage::prepared(Home::new(), &config, use_models) else { return };
    let tab = &stage.tab;
    manage(tab, "Usage");
    let days = stage.daemon.get("/usage?limit=500")["items"].as_array().unwrap().clone();
    assert_eq!(days.len(), 6);
    let number = |day: &Value, key: &str| day[key].as_u64().unwrap();

    // The sums of a day, a week and a month.
    for (name, calls) in [("Today", 2), ("7 days", 2 + 8 + 4), ("30 days", 2 + 8 + 4 + 16 + 32)] {
        tab.wait_of(
            role("region", name),
            &format!(
                "it.querySelector('.usage-cost').innerText === {} && it.querySelector('dd').innerText === '{calls}'",
                json!(dollars(calls * 1_250_000))
            ),
        );
    }

    // The table has every day, also days without use.
    let table = "[...document.querySelectorAll('table')].find((it) => it.caption?.innerText === 'Usage by day')";
    tab.wait_for(css(".chart canvas"));
    tab.click(css(".usage-table > summary"));
    tab.wait_until(&format!("{table}?.tBodies[0].rows.length === 41"));
    let rows = tab.eval(&format!(
        "[...{table}.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
    ));
    let rows = rows.as_array().unwrap();
    let mut used = 0;
    for row in rows {
        let day = days.iter().find(|day| day["day"] == row[0]);
        let figures =
            ["calls", "input_tokens", "output_tokens"].map(|key| grouped(day.map_or(0, |day| number(day, key))));
        let cost = dollars(day.map_or(0, |day| number(day, "cost_micros")));
        assert_eq!(row, &json!([row[0], figures[0], figures[1], figures[2], cost]));
        used += usize::from(day.is_some());
    }
    assert_eq!((used, &rows[0][0], &rows[40][0]), (days.len(), &days[0]["day"], &days[5]["day"]));

    // So do the chart and its table.
    tab.wait_for(role("figure", "Cost by day"));
    tab.focus(role("slider", "Points of Cost by day"));
    tab.press("End");
    let newest = format!(
        "it.ariaValueText.endsWith(': Cost $2.50') && new Date(`${{it.ariaValueText.split(': ')[0]}} UTC`).toISOString().startsWith({})",
        days[0]["day"]
    );
    tab.wait_of(css(".chart-plot"), &newest);
    audit_in_both(tab, "usage");
    tab.click(role("button", "Table"));
    // Day and values of each point.
    let chart = "[...document.querySelectorAll('.chart-rows tbody tr')].map(({ cells: [day, ...values] }) =>
      [new Date(`${day.innerText} UTC`).toISOString().slice(0, 10), ...values.map((cell) => cell.innerText.trim())])";
    tab.wait_until("document.querySelector('.chart-rows tbody tr')");
    let drawn = tab.eval(chart);
    let drawn = drawn.as_array().unwrap();
    assert_eq!(drawn.len(), 41);
    for day in &days {
        let row = drawn.iter().find(|row| row[0] == day["day"]).unwrap_or_else(|| panic!("no {day}: {drawn:?}"));
        let shown: f64 = row[1].as_str().unwrap().replace([',', '$', '\u{a0}', ' '], "").parse().unwrap();
        assert_eq!(shown * 1e6, number(day, "cost_micros") as f64, "{row}");
    }
    tab.focus(role("radio", "Cost"));
    tab.press("ArrowRight");
    tab.wait_for(role("figure", "Tokens by day"));
    tab.wait_until(&format!("{chart}[40][1].replace(/\\W/g, '') === '2000' && {chart}[40][2] === '100'"));
    tab.press("ArrowRight");
    tab.wait_for(role("figure", "Calls by day"));
    audit_in_both(tab, "usage as a table");

    // The saved file equals the displayed data.
    tab.eval(
        "void (URL.createObjectURL = ((make) => (blob) => {
          blob.text().then((text) => { window.saved = text; });
          return make.call(URL, blob);
        })(URL.createObjectURL))",
    );
    tab.click(role("button", "CSV of all days"));
    tab.wait_until("window.saved");
    let saved = tab.eval("saved");
    let lines: Vec<&str> = saved.as_str().unwrap().lines().collect();
    assert_eq!((lines.len(), lines[0]), (42, "day,calls,input_tokens,output_tokens,cost_dollars"));
    for (line, ago) in [(1, 0), (7, 2)] {
        let key = |key| number(&days[ago], key);
        let cost = key("cost_micros") as f64 / 1e6;
        let day = days[ago]["day"].as_str().unwrap();
        let told = format!("{day},{},{},{},{cost:.6}", key("calls"), key("input_tokens"), key("output_tokens"));
        assert_eq!(lines[line], told);
    }

    // Models with their cost.
    tab.wait_of(
        role("region", "Models"),
        "[...it.querySelectorAll('tbody tr')].some((row) => ['test:m', '$2.00', '$10.00'].every((part) => row.innerText.includes(part)))
          && it.querySelector('tbody').innerText.includes('reflex')",
    );
}

#[test]
fn nothing_was_used_yet() {
    let Some(stage) = Stage::reflex() else { return };
    let tab = &stage.tab;
    tab.goto(&stage.url("#/usage"));
    tab.shows("No usage yet");
    tab.wait_of(role("region", "Today"), "it.querySelector('.usage-cost').innerText === '$0'");
    audit_in_both(tab, "usage of nothing");
}

/// A day with a cheap model costs a fraction of a cent: the labels of the axis are all different, and none is cut off.
#[test]
fn the_axis_of_small_costs_can_be_read() {
    let cheap = |home: &Home| {
        let store = rusqlite::Connection::open(home.path().join("store.db")).unwrap();
        for (ago, micros) in [(0, 4_000), (1, 2_500), (2, 700)] {
            let insert = "INSERT INTO usage_totals (scope, key, calls, input, output, cost_micros) VALUES ('day', ?1, 1, 900, 90, ?2)";
            store.execute(insert, [today() - ago, micros]).unwrap();
        }
    };
    let Some(stage) = Stage::prepared(Home::new(), QUICK, cheap) else { return };
    let tab = &stage.tab;
    // Text on a canvas is not in the document, so it is recorded as it is drawn.
    tab.eval(
        "void (window.drawn = [], CanvasRenderingContext2D.prototype.fillText = ((draw) => function (text, x, y) {
          const { width } = this.measureText(text);
          window.drawn.push([text, this.textAlign === 'right' ? x - width : x]);
          return draw.call(this, text, x, y);
        })(CanvasRenderingContext2D.prototype.fillText))",
    );
    manage(tab, "Usage");
    tab.wait_for(css(".chart canvas"));
    tab.wait_until("drawn.some(([text]) => Number(text) === 0.004)");
    let told = tab.eval("drawn.filter(([text]) => /^[\\d.,]+$/.test(text))");
    let told: Vec<(String, f64)> = serde_json::from_value(told).unwrap();
    let mut numbers: Vec<&str> = told.iter().map(|(text, _)| text.as_str()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert!(numbers.len() >= 3, "{told:?}");
    let mut values: Vec<f64> = numbers.iter().map(|text| text.parse().unwrap()).collect();
    values.sort_by(f64::total_cmp);
    let steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        steps.iter().all(|step| (step - steps[0]).abs() < 1e-9 && *step > 0.0),
        "as far apart as they say: {numbers:?}"
    );
    assert!(told.iter().all(|(_, left)| *left >= 0.0), "none begins outside the picture: {told:?}");
    tab.wait_of(role("region", "Today"), "it.querySelector('.usage-cost').innerText === '$0.0040'");
}
