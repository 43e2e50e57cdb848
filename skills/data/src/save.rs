use crate::query::Answer;
use crate::render;
use kiso_sdk::Failure;
use serde_json::{Map, Value as Json};

/// The whole answer as the bytes of a file; its ending says in which format.
pub fn bytes(answer: &Answer, path: &str) -> Result<Vec<u8>, Failure> {
    let names: Vec<&str> = answer.shown().map(|c| c.name.as_str()).collect();
    match path.rsplit('.').next().map(str::to_ascii_lowercase).as_deref() {
        Some("csv") => Ok(csv(answer, &names)),
        Some("json") => Ok(json(answer, &names, "[\n", ",\n", "\n]\n")),
        Some("jsonl") => Ok(json(answer, &names, "", "\n", "\n")),
        _ => Err(Failure::new("bad-args", format!("{path}: results are saved as .csv, .json or .jsonl"))),
    }
}

fn csv(answer: &Answer, names: &[&str]) -> Vec<u8> {
    let mut out = String::new();
    line(&mut out, names.iter().copied());
    for &row in &answer.rows {
        let cells: Vec<String> = answer.shown().map(|c| c.value(row as usize).plain()).collect();
        line(&mut out, cells.iter().map(String::as_str));
    }
    out.into_bytes()
}

/// One line as RFC 4180 has it. A row whose only value is missing is written as `""`, because an empty line is not a row.
fn line<'a>(out: &mut String, cells: impl ExactSizeIterator<Item = &'a str>) {
    let single = cells.len() == 1;
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.push(',');
        }
        let quoted =
            cell.contains([',', '"', '\n', '\r', ';', '\t']) || cell.trim() != cell || (single && cell.is_empty());
        if quoted {
            out.push('"');
            out.push_str(&cell.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(cell);
        }
    }
    out.push('\n');
}

fn json(answer: &Answer, names: &[&str], open: &str, between: &str, close: &str) -> Vec<u8> {
    let mut out = open.to_owned();
    for i in 0..answer.len() {
        if i > 0 {
            out.push_str(between);
        }
        let row = names.iter().map(|n| (*n).to_owned()).zip(render::json_row(answer, i));
        out.push_str(&Json::Object(row.collect::<Map<String, Json>>()).to_string());
    }
    if !answer.is_empty() || !open.is_empty() {
        out.push_str(close);
    }
    out.into_bytes()
}
