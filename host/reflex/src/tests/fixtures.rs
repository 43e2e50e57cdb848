//! The skills and files of the tests: cards like those of the bundled skills, one quite different skill, and the files of
//! docs/reflex.md.

use serde_json::{Value, json};
use std::sync::Arc;

use kiso_plan::plan::{Plan, Task, TaskKind};
use kiso_plan::prompt::{Column, ColumnKind, FileCard, Pieces, SkillCard};

fn card(
    name: &str,
    category: &str,
    summary: &str,
    examples: &[&str],
    required: &[&str],
    properties: Value,
) -> SkillCard {
    SkillCard {
        name: name.to_owned(),
        summary: summary.to_owned(),
        category: category.to_owned(),
        secrets: Vec::new(),
        chosen: false,
        examples: examples.iter().map(|e| (*e).to_owned()).collect(),
        args: json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    }
}

fn list(format: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "format": format})
}

pub(super) fn skills() -> Vec<SkillCard> {
    let file = || json!({"type": "string", "format": "file", "description": "file under /work"});
    vec![
        card(
            "data",
            "data",
            "Reads CSV, JSON and JSON lines: describe, filter, group, aggregate, sort, join",
            &[
                "describe {file}",
                "what is in {file}",
                "what columns does {file} have? {describe=true}",
                "show {file}",
                "show the first {limit} rows of {file}",
                "show {file} where {where}",
                "show {select} from {file} where {where}",
                "how many rows of {file} have {where}",
                "count the rows of {file} where {where}",
                "compute {compute} from {file}",
                "compute {compute} by {group} from {file}",
                "compute {compute} by {group} from {file} and save it as {save}",
                "sort {file} by {sort}",
                "join {file} with {join} on {on}",
            ],
            &["file"],
            json!({
                "file": file(), "join": file(),
                "on": {"type": "string", "description": "column that both files have, or left=right"},
                "where": list("condition"), "group": list("group"), "compute": list("aggregate"), "select": list("column"),
                "sort": list("order"), "limit": {"type": "integer", "minimum": 1, "maximum": 100_000},
                "describe": {"type": "boolean"}, "format": {"type": "string", "enum": ["table", "json"], "default": "table"},
                "save": {"type": "string", "description": "where to write the result"},
            }),
        ),
        card(
            "chart",
            "chart",
            "Draws a line, bar, scatter or histogram chart of a CSV or JSON file as SVG and PNG",
            &[
                "plot {file}",
                "plot {y} from {file}",
                "plot {y} over {x} from {file}",
                "plot {y} by {x} from {file}",
                "plot {y} against {x} from {file}",
                "draw {y} over {x} from {file}",
                "{kind} chart of {file}",
                "{kind} chart of {y} by {x} from {file}",
                "draw a {kind} chart of {y} by {x} from {file}",
                "draw a {kind} chart of {y} over {x} from {file} as {out}",
                "{kind} of {y} from {file}",
                "{kind} plot of {y} over {x} from {file}",
            ],
            &["file"],
            json!({
                "file": file(), "kind": {"type": "string", "enum": ["line", "bar", "scatter", "histogram"], "default": "line"},
                "x": {"type": "string", "format": "column"}, "y": list("column"),
                "title": {"type": "string"}, "x_label": {"type": "string"}, "y_label": {"type": "string"},
                "width": {"type": "integer", "minimum": 320, "maximum": 4096, "default": 1000},
                "height": {"type": "integer", "minimum": 240, "maximum": 4096, "default": 600},
                "out": {"type": "string", "description": "pub/NAME.svg; the PNG stands beside it"},
                "bins": {"type": "integer", "minimum": 1, "maximum": 200},
                "theme": {"type": "string", "enum": ["light", "dark"], "default": "light"},
            }),
        ),
        card(
            "fetch",
            "web",
            "Fetches a web page or file by HTTP GET as Markdown, text or JSON, or saves it",
            &[
                "fetch {url}",
                "read {url}",
                "fetch {url} as {as}",
                "get {url} as {as}",
                "download {url} to {save}",
                "save {url} as {save}",
            ],
            &["url"],
            json!({
                "url": {"type": "string", "format": "url"},
                "as": {"type": "string", "enum": ["markdown", "text", "json"], "default": "markdown"},
                "save": {"type": "string"}, "max_bytes": {"type": "integer", "minimum": 1},
            }),
        ),
        card(
            "feed",
            "web",
            "Lists the entries of an RSS, Atom or JSON feed, newest first",
            &[
                "list the feed {url}",
                "read the feed {url} since {since}",
                "show {limit} entries of the feed {url}",
                "list the entries of {file}",
            ],
            &[],
            json!({
                "url": {"type": "string", "format": "url"}, "file": {"type": "string", "format": "file"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200}, "since": {"type": "string"},
            }),
        ),
        card(
            "translate",
            "text",
            "Translates text",
            &["translate {text} to {language}"],
            &["text", "language"],
            json!({"text": {"type": "string"}, "language": {"type": "string", "enum": ["english", "german", "norwegian"]}}),
        ),
        card(
            "search",
            "web",
            "Searches the web",
            &["search the web for rust wasi"],
            &["query"],
            json!({"query": {"type": "string", "maxLength": 400}, "max_results": {"type": "integer", "minimum": 1, "maximum": 20}}),
        ),
    ]
}

pub(super) fn table(path: &str, columns: &str) -> FileCard {
    let column = |text: &str| {
        let (name, kind) = text.split_once(':').unwrap_or((text, "n"));
        let kind = match kind {
            "d" => ColumnKind::Date,
            "t" => ColumnKind::Text,
            _ => ColumnKind::Number,
        };
        Column { name: name.to_owned(), kind }
    };
    FileCard {
        path: path.to_owned(),
        bytes: 1000,
        columns: Some(columns.split(',').map(column).collect()),
        ..FileCard::default()
    }
}

pub(super) fn weather() -> FileCard {
    table("weather.csv", "date:d,city:t,temperature_c,rain_mm,wind_kmh,sunshine_h")
}

pub(super) fn market() -> FileCard {
    table("market.csv", "day:d,open,high,low,close,volume")
}

/// The output of the README's first command.
pub(super) fn monthly() -> FileCard {
    table("mean-temperature-month.csv", "month:d,city:t,mean_temperature_c")
}

pub(super) fn cities() -> FileCard {
    table("cities.csv", "city:t,country:t,population")
}

/// A file that is quite different from the others.
pub(super) fn orders() -> FileCard {
    table("data/Orders 2024.csv", "Order Date:d,Customer Name:t,Unit Price,Quantity,Ship-Days")
}

pub(super) fn pieces(message: &str, files: Vec<FileCard>) -> Pieces {
    Pieces {
        new_message: Some(message.to_owned()),
        caller: Some("admin".to_owned()),
        skills: Some(skills().into_iter().map(Arc::new).collect()),
        environment: Some(files),
        ..Pieces::default()
    }
}

pub(super) fn plan(message: &str) -> Plan {
    crate::plan::plan(&pieces(message, vec![weather(), market(), cities()]))
}

/// Formats a plan in lines: `skill {args}`, `$ command`, and `blocked: why`.
pub(super) fn lines(plan: &Plan) -> Vec<String> {
    let line = |task: &Task| match task.kind {
        TaskKind::Skill => {
            let mut args = task.args.clone().unwrap_or_default();
            // Titles have their own test.
            if let Some(map) = args.as_object_mut() {
                map.shift_remove("title");
            }
            Some(format!("{} {args}", task.skill.as_deref().unwrap_or_default()))
        }
        TaskKind::Exec => Some(format!("$ {}", task.detail)),
        TaskKind::Msg | TaskKind::Act => None,
    };
    let mut out: Vec<String> = plan.tasks.iter().filter_map(line).collect();
    out.extend(plan.blocked.as_ref().map(|why| format!("blocked: {why}")));
    out
}
