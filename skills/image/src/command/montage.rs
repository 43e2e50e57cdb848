//! `montage`: many pictures on one sheet.

use super::convert::{Line, into_cell, is_option};
use super::option::{Setting, Step, read};
use super::{Outcome, Words};
use crate::geometry::Geometry;
use crate::limits;
use crate::picture::Picture;
use crate::scale::simplify;
use image::{DynamicImage, RgbaImage, imageops};

const USAGE: &str = "Usage: montage IN... [OPTION]... OUT
Put pictures on one sheet, or on several if -tile has room for fewer.
  -tile COLUMNSxROWS   (default: about as many columns as rows)
  -geometry WxH+X+Y    size of each, and the space around it (default: 120x120+4+3)
  -background COLOUR   and the other options of convert
";

pub(super) fn run(words: &[String]) -> Outcome {
    if matches!(words.first().map(String::as_str), Some("-help" | "--help")) {
        return super::print(USAGE);
    }
    let Some((target, words)) = words.split_last() else {
        return Err("files are missing; use: montage IN... [OPTION]... OUT".to_owned());
    };
    let mut line = Line::default();
    let mut tile = None;
    let mut words = Words::new(words);
    // The settings are those of the whole line, wherever they stand.
    let mut files = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-tile" => tile = Some(Geometry::parse(words.value(word)?)?),
            "-mode" => {
                let mode = words.value(word)?;
                if !mode.eq_ignore_ascii_case("concatenate") && !mode.eq_ignore_ascii_case("unframe") {
                    return Err(format!("option -mode {mode} is not known here"));
                }
                if mode.eq_ignore_ascii_case("concatenate") {
                    line.geometry = Some(Geometry { x: Some(0), y: Some(0), ..Geometry::default() });
                }
            }
            _ if is_option(word) => match read(word, &mut words)? {
                step @ Step::Set(Setting::Geometry(_)) => line.step(step)?,
                step => line.step(step).map_err(|e| format!("{word}: {e}"))?,
            },
            _ => files.push(word),
        }
    }
    for file in &files {
        line.add(file)?;
        // A sheet is for looking at, so each is upright.
        line.pictures.iter_mut().for_each(Picture::make_upright);
    }
    if line.pictures.is_empty() {
        return Err("files are missing; use: montage IN... [OPTION]... OUT".to_owned());
    }
    let usual = Geometry {
        width: Some(120.0),
        height: Some(120.0),
        x: Some(4),
        y: Some(3),
        only_shrinks: true,
        ..Geometry::default()
    };
    let geometry = line.geometry.unwrap_or(usual);
    let sheets = sheets(&mut line, &geometry, tile)?;
    line.output.write(&sheets, target)
}

fn sheets(line: &mut Line, geometry: &Geometry, tile: Option<Geometry>) -> Result<Vec<Picture>, String> {
    let count = line.pictures.len();
    let largest = line.pictures.iter().map(Picture::size).fold((1, 1), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    let cell = geometry.sides(largest);
    let (columns, rows) = grid(tile, count);
    let gap = |offset: i64| u32::try_from(offset.clamp(0, 10_000)).unwrap_or_default();
    let (x, y) = (gap(geometry.offset().0), gap(geometry.offset().1));
    let step = (u64::from(cell.0) + 2 * u64::from(x), u64::from(cell.1) + 2 * u64::from(y));
    let side = |step: u64, count: usize| u32::try_from(step * count as u64).unwrap_or(u32::MAX);
    let size = (side(step.0, columns), side(step.1, rows));
    limits::check(size.0, size.1, 4)?;
    let number = count.div_ceil(columns * rows) as u64;
    let held: u64 = line.pictures.iter().map(Picture::bytes).sum();
    limits::check_bytes(held + number * u64::from(size.0) * u64::from(size.1) * 4)?;
    let mut sheets: Vec<Picture> = Vec::new();
    let mut canvas = RgbaImage::from_pixel(size.0, size.1, line.settings.background);
    let kind = line.pictures[0].kind;
    for (at, mut picture) in std::mem::take(&mut line.pictures).into_iter().enumerate() {
        let place = at % (columns * rows);
        if at > 0 && place == 0 {
            let next = RgbaImage::from_pixel(size.0, size.1, line.settings.background);
            let full = std::mem::replace(&mut canvas, next);
            sheets.push(Picture::new(simplify(DynamicImage::ImageRgba8(full)), kind));
        }
        into_cell(&mut picture, geometry, cell, &line.settings)?;
        let left = (place % columns) as u64 * step.0 + u64::from(x);
        let top = (place / columns) as u64 * step.1 + u64::from(y);
        imageops::overlay(&mut canvas, &picture.pixels.to_rgba8(), left as i64, top as i64);
    }
    sheets.push(Picture::new(simplify(DynamicImage::ImageRgba8(canvas)), kind));
    Ok(sheets)
}

/// Returns columns and rows.
fn grid(tile: Option<Geometry>, count: usize) -> (usize, usize) {
    let wanted = |side: Option<f64>| side.filter(|side| *side >= 1.0).map(|side| side.min(1000.0) as usize);
    let tile = tile.unwrap_or_default();
    match (wanted(tile.width), wanted(tile.height)) {
        (Some(columns), Some(rows)) => (columns, rows),
        (Some(columns), None) => (columns, count.div_ceil(columns)),
        (None, Some(rows)) => (count.div_ceil(rows), rows),
        (None, None) => {
            let columns = (1..).find(|columns| columns * columns >= count).unwrap_or(1);
            (columns, count.div_ceil(columns))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_nearly_square() {
        assert_eq!(grid(None, 1), (1, 1));
        assert_eq!(grid(None, 5), (3, 2));
        assert_eq!(grid(Geometry::parse("2x").ok(), 5), (2, 3));
        assert_eq!(grid(Geometry::parse("x1").ok(), 5), (5, 1));
        assert_eq!(grid(Geometry::parse("2x2").ok(), 5), (2, 2));
    }
}
