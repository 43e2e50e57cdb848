use crate::picture::covered;
use crate::request::{Choice, Kind, Request};
use crate::series::Prepared;
use table::Table;

/// A column's name in a sentence.
pub fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

/// A column's name at the start of one.
pub fn pretty(name: &str) -> String {
    let name = spaced(name);
    let mut letters = name.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => name,
    }
}

/// The title that was asked for, or what the picture shows: "Temp max and temp min, 2024", "Mean rain by city".
pub fn title(table: &Table, request: &Request, choice: &Choice, prepared: &Prepared, range: (f64, f64)) -> String {
    if let Some(title) = &request.title
        && !title.trim().is_empty()
    {
        return title.trim().to_owned();
    }
    let x = spaced(&table.columns[choice.x].name);
    let names: Vec<String> = match choice.y.as_slice() {
        [] => vec!["number of rows".into()],
        y => y.iter().map(|&y| spaced(&table.columns[y].name)).collect(),
    };
    let mut shown = match names.as_slice() {
        [.., _] if names.len() > 3 => spaced(stem(&table.file)),
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => names.concat(),
    };
    if prepared.averaged {
        shown = format!("mean {shown}");
    }
    if let Some(split) = &prepared.split {
        shown = format!("{shown} by {}", spaced(split));
    }
    pretty(&match covered(&prepared.x, range) {
        Some(time) => format!("{shown}, {time}"),
        None if choice.kind == Kind::Scatter => format!("{shown} against {x}"),
        None => format!("{shown} by {x}"),
    })
}

/// The file names, without endings, that a picture gets: from `out`, else from its title or columns.
pub fn out(table: &Table, request: &Request) -> String {
    if let Some(out) = request.out.as_ref().map(|o| o.trim()).filter(|o| !o.is_empty() && !o.ends_with('/')) {
        let ending = out.rsplit_once('.').filter(|(_, e)| matches!(e.to_ascii_lowercase().as_str(), "svg" | "png"));
        return ending.map_or(out, |(stem, _)| stem).to_owned();
    }
    let kind = match request.kind {
        Kind::Line => "line",
        Kind::Bar => "bar",
        Kind::Scatter => "scatter",
        Kind::Histogram => "histogram",
    };
    let name = match &request.title {
        Some(title) if !slug(title).is_empty() => slug(title),
        _ if request.y.is_empty() => format!("{}-{kind}", slug(stem(&table.file))),
        _ => format!("{}-{kind}", slug(&request.y.join("-"))),
    };
    format!("pub/{name}")
}

/// A name for a file: letters and digits, dashes between.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().take(60) {
        match c {
            c if c.is_alphanumeric() => slug.extend(c.to_lowercase()),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_end_matches('-').to_owned()
}

fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name)
}
