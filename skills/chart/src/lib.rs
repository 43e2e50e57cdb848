//! The skill `chart`: a line, bar or scatter chart or a histogram of a table, as SVG and PNG.
//!
//! table → `request` (which columns) → `series` (which points) → `picture` → `frame` (title, axes, margins) and
//! `line`, `bar`, `scatter`, `histogram` (the data) → `scene` → `svg`, `png`; and `block`, the data for programs that draw it.

mod axis;
mod bar;
mod block;
mod calendar;
mod font;
mod frame;
mod histogram;
mod line;
mod picture;
mod png;
mod request;
mod scale;
mod scatter;
mod scene;
mod series;
mod svg;
#[cfg(test)]
mod tests;
mod theme;
mod title;

pub use request::{Kind, Request};

use kiso_sdk::{Call, Failure, Reply, Skill};
use serde_json::json;
use table::{Column, Table};

/// Bytes for the table of one call; the picture needs up to 80 MiB beside it.
pub const BUDGET: usize = 80 << 20;

/// Draws charts.
#[derive(Debug)]
pub struct Chart;

/// A chart in both formats.
#[derive(Debug)]
pub struct Drawn {
    pub svg: String,
    pub png: Vec<u8>,
    /// Where it goes, without an ending.
    pub out: String,
    pub title: String,
    pub text: String,
    /// The same chart as data, in a fenced block.
    pub block: String,
    pub data: serde_json::Value,
}

/// Draws a table.
pub fn draw(table: &Table, request: &Request) -> Result<Drawn, Failure> {
    let font = font::Font::new();
    let picture = picture::picture(table, request, &font)?;
    let svg = svg::svg(&picture.scene);
    let (png, width, height) = png::png(&picture.scene, &font)?;
    let mut data = picture.data;
    data["kind"] = json!(request.kind.name());
    data["png"] = json!({ "width": width, "height": height });
    let out = title::out(table, request);
    let block = block::fenced(&picture.scene.title, picture.chart);
    Ok(Drawn { svg, png, out, title: picture.scene.title, text: picture.text, block, data })
}

impl Skill for Chart {
    type Args = Request;

    fn run(request: Request, _call: &Call) -> Result<Reply, Failure> {
        let mut table = Table::read(&request.file, BUDGET)?;
        table.columns = table.columns.into_iter().map(Column::with_integers_as_text).collect();
        let drawn = draw(&table, &request)?;
        let svg = kiso_sdk::write(&format!("{}.svg", drawn.out), &drawn.svg)?;
        let png = kiso_sdk::write(&format!("{}.png", drawn.out), &drawn.png)?;
        let text = format!("{}\n\n{}\n", drawn.text, drawn.block);
        let title = drawn.title;
        Ok(Reply::text(text)
            .data(&drawn.data)
            .titled_file(svg, title.clone())
            .titled_file(png, format!("{title} (PNG)")))
    }

    fn self_test() -> Result<(), String> {
        let text = "date,temp\n2024-01-01,2\n2024-01-02,\n2024-01-03,-4\n";
        let table = Table::parse("t.csv", text.into(), BUDGET).map_err(|e| e.to_string())?;
        let request = serde_json::from_value(json!({ "file": "t.csv", "width": 320, "height": 240 }));
        let drawn = draw(&table, &request.map_err(|e| e.to_string())?).map_err(|f| f.to_string())?;
        let sound = drawn.svg.ends_with("</svg>\n") && drawn.png.starts_with(b"\x89PNG");
        if sound { Ok(()) } else { Err("a chart of a known table is broken".into()) }
    }
}

#[cfg(target_family = "wasm")]
kiso_sdk::skill!(Chart);
