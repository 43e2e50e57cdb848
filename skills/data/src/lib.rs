//! The skill `data`: one declarative query over a CSV, JSON or JSON lines file of the workspace.
//!
//! A query goes through its stages in one order, whatever order its arguments have:
//! read → join → where → group and compute → sort → select → limit. Every stage works on row numbers of the stage
//! before, so that only a join and a grouping make a new table.

mod aggregate;
mod condition;
mod describe;
mod group;
mod join;
mod order;
mod query;
mod render;
mod save;
#[cfg(test)]
mod tests;

pub use query::{Answer, Query, answer};
pub use render::{Format, text};

use kiso_sdk::{Call, Failure, Reply, Skill};
use table::Table;

/// Bytes for the tables of one call; the rest of the 256 MiB is for what is computed from them.
pub const BUDGET: usize = 100 << 20;

/// Answers queries.
#[derive(Debug)]
pub struct Data;

impl Skill for Data {
    type Args = Query;

    fn run(query: Query, _call: &Call) -> Result<Reply, Failure> {
        let answer = answer(&query, &|path| Table::read(path, BUDGET))?;
        let text = text(&answer, query.format);
        let Some(path) = &query.save else { return Ok(Reply::text(text).data(&render::json(&answer))) };
        let path = kiso_sdk::write(path, save::bytes(&answer, path)?)?;
        let saved = match query.format {
            Format::Table => format!("{text}\nSaved {} to {path}\n", render::counted(answer.len(), "row")),
            Format::Json => text,
        };
        Ok(Reply::text(saved).data(&render::json(&answer)).file(path))
    }

    fn self_test() -> Result<(), String> {
        let query = Query {
            file: "t.csv".into(),
            conditions: vec!["temp > 1".into()],
            group: vec!["month(date)".into()],
            compute: vec!["mean(temp)".into()],
            ..Query::default()
        };
        let text = "date,temp\n2024-01-05,2\n2024-01-06,4\n2024-02-01,1\n2024-02-02,7.5\n";
        let load = |file: &str| Table::parse(file, text.as_bytes().to_vec(), BUDGET).map_err(Failure::from);
        let answer = answer(&query, &load).map_err(|f| f.to_string())?;
        let found = render::json(&answer)["rows"].to_string();
        match found.as_str() {
            r#"[["2024-01",3],["2024-02",7.5]]"# => Ok(()),
            _ => Err(format!("a query over a known table answered {found}")),
        }
    }
}

#[cfg(target_family = "wasm")]
kiso_sdk::skill!(Data);
