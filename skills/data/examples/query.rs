//! Answers a query over files of this machine, without a sandbox:
//! `cargo run --example query -- '{"file": "weather.csv", "describe": true}'`

use data::{Query, answer, text};
use table::Table;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = std::env::args().nth(1).ok_or("one argument: the query as JSON")?;
    let query: Query = serde_json::from_str(&args)?;
    let load = |path: &str| match std::fs::read(path) {
        Ok(bytes) => Table::parse(path, bytes, data::BUDGET).map_err(kiso_sdk::Failure::from),
        Err(e) => Err(kiso_sdk::Failure::new("not-found", format!("{path}: {e}"))),
    };
    println!("{}", text(&answer(&query, &load)?, query.format));
    Ok(())
}
