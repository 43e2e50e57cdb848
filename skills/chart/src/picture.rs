//! A table and a request to a scene, and what can be said about it.

use crate::axis::Axis;
use crate::font::Font;
use crate::frame::{Frame, Shape, lay_out};
use crate::request::{Choice, Kind, Request, choose};
use crate::scale::{MOST, format_value, span};
use crate::scene::Scene;
use crate::series::{Prepared, Series, X, format_x, prepare, x_range};
use crate::{bar, block, calendar, histogram, line, scatter, title};
use kiso_sdk::Failure;
use serde_json::{Value as Json, json};
use table::Table;

/// A finished picture.
#[derive(Debug)]
pub struct Picture {
    pub scene: Scene,
    /// A summary of a few sentences.
    pub text: String,
    pub data: Json,
    /// The content of a block `chart`, without its title.
    pub chart: Json,
}

/// Bars that can be told apart; beyond, an axis of this width shows nothing but a block.
const MOST_BARS: usize = 2_000;

/// Draws. Codes: those of [`choose`] and [`prepare`], "too-many".
pub fn picture(table: &Table, request: &Request, font: &Font) -> Result<Picture, Failure> {
    if table.rows == 0 {
        return Err(Failure::new("no-rows", format!("{} has no rows; there is nothing to draw", table.file)));
    }
    let choice = choose(table, request)?;
    let mut picture = match choice.kind {
        Kind::Histogram => of_values(table, request, &choice, font)?,
        _ => of_series(table, request, &choice, font)?,
    };
    let foreign = picture.scene.layers.iter().flat_map(|l| &l.marks).any(|m| match m {
        crate::scene::Mark::Text { text, .. } => !font.covers(text),
        _ => false,
    });
    if foreign {
        picture.text.push_str(
            "\nNote: the PNG lacks some letters, as its font has only Latin, Greek and Cyrillic; the SVG has all",
        );
    }
    Ok(picture)
}

fn of_series(table: &Table, request: &Request, choice: &Choice, font: &Font) -> Result<Picture, Failure> {
    let mut prepared = prepare(table, choice)?;
    let x_name = table.columns[choice.x].name.clone();
    let (x_low, x_high) = x_range(&prepared.series);
    let data = summarize_as_json(&prepared, &x_name, (x_low, x_high));
    let mut text = write_summary(table, request, &prepared, &x_name, (x_low, x_high));
    let (chart, shown, total) = block::of_series(&prepared, request, &x_name);
    if shown < total {
        text.push_str(&format!("\nNote: the chart shows {shown} of {total} points; the files have all of them"));
    }
    for column in &choice.left_out {
        let name = &table.columns[*column].name;
        text.push_str(&format!("\nNote: {name} is of another magnitude and was left out; name it in y to draw it"));
    }
    let bars = choice.kind == Kind::Bar;
    let x = match &prepared.x {
        _ if bars => Axis::of_slots(&prepared.x, &mut prepared.series),
        X::Names(_) => Axis::of_slots(&prepared.x, &mut prepared.series),
        X::Time(precision) => {
            let (low, high) = if x_low == x_high { (x_low - 43_200.0, x_high + 43_200.0) } else { (x_low, x_high) };
            let room = if choice.kind == Kind::Scatter { (high - low) * 0.015 } else { 0.0 };
            Axis::Time { low: low - room, high: high + room, precision: *precision }
        }
        X::Number => {
            let (low, high) = if x_low == x_high { span(x_low, x_high, false) } else { (x_low, x_high) };
            let room = if choice.kind == Kind::Scatter { (high / 2.0 - low / 2.0) * 0.04 } else { 0.0 };
            let whole = prepared.series.iter().flat_map(|s| &s.points).all(|p| p.0.fract() == 0.0);
            Axis::Number { low: low - room, high: high + room, whole }
        }
    };
    if let Axis::Slots { count, .. } = &x
        && *count > MOST_BARS
    {
        let message = format!(
            "{count} bars do not fit into one chart; group the rows first, for example by month(date), or draw a line"
        );
        return Err(Failure::new("too-many", message));
    }
    let (low, high) = y_range(&prepared.series);
    if [low, high, x_low, x_high].iter().any(|v| v.abs() > MOST) {
        return Err(Failure::new(
            "too-large",
            format!("{} holds values beyond 1e300, which no axis can show", table.file),
        ));
    }
    let mut frame = Frame {
        title: title::title(table, request, choice, &prepared, (x_low, x_high)),
        y_label: request.y_label.clone(),
        x_label: request.x_label.clone(),
        source: source(table, prepared.rows),
        legend: Vec::new(),
        shape: match choice.kind {
            Kind::Bar => Shape::Square,
            Kind::Scatter => Shape::Dot,
            _ => Shape::Line,
        },
        x,
        y: span(low, high, bars),
        whole: choice.y.is_empty(),
    };
    if prepared.series.len() > 1 {
        let end = |s: &Series| s.points.last().map_or(f64::NAN, |p| p.1);
        let same_end = prepared
            .series
            .iter()
            .all(|s| s.points.last().map(|p| p.0) == prepared.series[0].points.last().map(|p| p.0));
        frame.legend = prepared
            .series
            .iter()
            .map(|s| (title::spaced(&s.name), if same_end { end(s) } else { f64::NAN }))
            .collect();
    } else if frame.y_label.is_none() && (request.title.is_some() || choice.kind == Kind::Scatter) {
        frame.y_label = Some(title::pretty(&prepared.series[0].name));
    }
    // The title that is made from the columns already says what x is.
    if frame.x_label.is_none() && prepared.x == X::Number && (request.title.is_some() || choice.kind == Kind::Scatter) {
        frame.x_label = Some(title::pretty(&x_name));
    }
    let size = (f64::from(request.width), f64::from(request.height));
    let palette = request.theme.palette();
    let (mut scene, area) = lay_out(&frame, size, &palette, font);
    match choice.kind {
        Kind::Bar => bar::draw(&mut scene, &area, &frame.x, &prepared.series, &palette),
        Kind::Scatter => {
            let (drawn, total) = scatter::draw(&mut scene, &area, &frame.x, &prepared.series, &palette);
            if drawn < total {
                text.push_str(&format!(
                    "\nNote: {drawn} of {total} points are drawn; the others would lie on top of them"
                ));
            }
        }
        _ => line::draw(&mut scene, &area, &frame.x, &prepared.series, &palette),
    }
    if !area.complete {
        text.push_str(&format!("\nNote: not every {x_name} has room for its name on the axis"));
    }
    Ok(Picture { scene, text, data, chart })
}

fn of_values(table: &Table, request: &Request, choice: &Choice, font: &Font) -> Result<Picture, Failure> {
    let column = &table.columns[choice.y[0]];
    let mut values: Vec<f64> = (0..table.rows).map(|r| column.number(r)).filter(|v| !v.is_nan()).collect();
    if values.is_empty() {
        return Err(Failure::new(
            "no-values",
            format!("column {} of {} has no values to draw", column.name, table.file),
        ));
    }
    if values.iter().any(|v| v.abs() > MOST) {
        return Err(Failure::new(
            "too-large",
            format!("{} holds values beyond 1e300, which no axis can show", column.name),
        ));
    }
    let bins = histogram::bin(&mut values, request.bins);
    let (low, high) = (values[0], values[values.len() - 1]);
    let kind = match &column.values {
        table::Values::Dates(_, precision) => X::Time(*precision),
        _ => X::Number,
    };
    let x = match &kind {
        X::Time(precision) => Axis::Time { low: bins.first, high: bins.end(), precision: *precision },
        _ => Axis::Number { low: bins.first, high: bins.end(), whole: false },
    };
    let frame = Frame {
        title: request.title.clone().unwrap_or_else(|| format!("Distribution of {}", title::spaced(&column.name))),
        y_label: Some(request.y_label.clone().unwrap_or_else(|| "Number of rows".into())),
        x_label: Some(request.x_label.clone().unwrap_or_else(|| title::pretty(&column.name))),
        source: source(table, values.len()),
        legend: Vec::new(),
        shape: Shape::Square,
        x,
        y: (0.0, bins.highest() as f64),
        whole: true,
    };
    let palette = request.theme.palette();
    let size = (f64::from(request.width), f64::from(request.height));
    let (mut scene, area) = lay_out(&frame, size, &palette, font);
    histogram::draw(&mut scene, &area, &frame.x, &bins, &palette);
    let missing = table.rows - values.len();
    let width =
        if matches!(kind, X::Number) { format!(" of {} each", format_value(bins.width)) } else { String::new() };
    let mut text = format!(
        "Drew a histogram of {} values of {} from {}: {} to {}, {} bins{width}",
        values.len(),
        column.name,
        table.file,
        format_x(&kind, low),
        format_x(&kind, high),
        bins.counts.len(),
    );
    if missing > 0 {
        text.push_str(&format!("\nNote: {missing} rows have no {} and were left out", column.name));
    }
    let data = json!({
        "rows": values.len(), "column": column.name, "min": low, "max": high, "missing": missing,
        "bins": { "first": bins.first, "width": bins.width, "counts": bins.counts },
    });
    let chart = block::of_bins(&bins, &kind, request, &column.name);
    Ok(Picture { scene, text, data, chart })
}

fn y_range(series: &[Series]) -> (f64, f64) {
    let ranges = series.iter().filter_map(Series::range);
    ranges.fold((f64::INFINITY, f64::NEG_INFINITY), |all, one| (all.0.min(one.0), all.1.max(one.1)))
}

fn source(table: &Table, rows: usize) -> String {
    let file = table.file.rsplit('/').next().unwrap_or(&table.file);
    format!("{file} · {} {}", format_value(rows as f64), if rows == 1 { "row" } else { "rows" })
}

fn write_summary(
    table: &Table,
    request: &Request,
    prepared: &Prepared,
    x_name: &str,
    (low, high): (f64, f64),
) -> String {
    let range = |s: &Series| {
        s.range().map_or(String::new(), |(low, high)| {
            format!("{} ({} to {})", s.name, format_value(low), format_value(high))
        })
    };
    let series: Vec<String> = prepared.series.iter().map(range).collect();
    let over = match &prepared.x {
        X::Names(names) => format!("{} values of {x_name}", names.len()),
        x => format!("{x_name} from {} to {}", format_x(x, low), format_x(x, high)),
    };
    let split = prepared.split.as_ref().map_or(String::new(), |s| format!(", one series for each {s}"));
    let rows = if prepared.rows == 1 { "row" } else { "rows" };
    let mut text = format!(
        "Drew a {} of {} {rows} of {}: {} over {over}{split}",
        request.kind.name(),
        prepared.rows,
        table.file,
        series.join(", "),
    );
    for note in prepared.notes.iter().chain(&table.notes) {
        text.push_str(&format!("\nNote: {note}"));
    }
    text
}

fn summarize_as_json(prepared: &Prepared, x_name: &str, (low, high): (f64, f64)) -> Json {
    let series = |s: &Series| {
        let missing = s.points.iter().filter(|p| p.1.is_nan()).count();
        let (low, high) = s.range().unwrap_or((f64::NAN, f64::NAN));
        json!({ "name": s.name, "points": s.points.len() - missing, "missing": missing, "min": low, "max": high })
    };
    let x = match &prepared.x {
        X::Names(names) => json!({ "column": x_name, "values": names.len() }),
        X::Number => json!({ "column": x_name, "min": low, "max": high }),
        x => json!({ "column": x_name, "min": format_x(x, low), "max": format_x(x, high) }),
    };
    json!({ "rows": prepared.rows, "x": x, "series": prepared.series.iter().map(series).collect::<Vec<_>>() })
}

/// The time that the x of a picture covers, if it is time.
pub fn covered(x: &X, (low, high): (f64, f64)) -> Option<String> {
    matches!(x, X::Time(_)).then(|| calendar::covered(low, high))
}
