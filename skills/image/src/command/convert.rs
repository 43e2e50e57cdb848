//! `convert` and `magick`: pictures, and what is done with them, in the order of the words.

use super::option::{Setting, Step, Together, read};
use super::output::{Output, split_prefix};
use super::{Outcome, Words};
use crate::color::{self, opaque};
use crate::geometry::Geometry;
use crate::kind::Kind;
use crate::limits;
use crate::operation::{Operation, Settings, cut, onto};
use crate::picture::Picture;
use crate::scale::Rectangle;
use crate::source::Source;
use image::{DynamicImage, RgbaImage, imageops};

/// Brackets in brackets.
const MAX_DEPTH: usize = 16;

/// Where a command line has come to.
#[derive(Default)]
pub(super) struct Line {
    pub pictures: Vec<Picture>,
    /// The pictures before each open bracket.
    outer: Vec<Vec<Picture>>,
    /// Operations that stand before the first picture, which they are for.
    waiting: Vec<Operation>,
    pub settings: Settings,
    pub output: Output,
    pub geometry: Option<Geometry>,
    size: Option<Geometry>,
    delay: Option<Operation>,
    /// The format that `mogrify -format` names.
    pub format: Option<String>,
}

pub(super) fn run(name: &str, words: &[String]) -> Outcome {
    let Some((target, words)) = words.split_last() else { return Err("files are missing (see --help)".to_owned()) };
    if words.is_empty() || target.starts_with('-') && target.len() > 1 {
        return Err(format!("the name of the output is missing; use: {name} IN [OPTION]... OUT"));
    }
    let mut line = Line::default();
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "(" => line.open()?,
            ")" => line.close()?,
            "-" => line.add(word)?,
            "-read" => line.add(words.value(word)?)?,
            _ if is_option(word) => {
                let step = read(word, &mut words)?;
                line.step(step).map_err(|e| format!("{word}: {e}"))?;
            }
            _ => line.add(word)?,
        }
    }
    if !line.outer.is_empty() {
        return Err("a bracket ( is not closed".to_owned());
    }
    if line.pictures.is_empty() {
        return Err("there is no picture to write".to_owned());
    }
    line.output.write(&line.pictures, target)
}

/// Whether a word is an option. A plus needs a letter behind it, as a file's name may begin with one.
pub(super) fn is_option(word: &str) -> bool {
    let mut letters = word.chars();
    matches!(letters.next(), Some('-' | '+'))
        && letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '-')
}

impl Line {
    fn open(&mut self) -> Outcome {
        if self.outer.len() >= MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} brackets in one another"));
        }
        self.outer.push(std::mem::take(&mut self.pictures));
        Ok(())
    }

    fn close(&mut self) -> Outcome {
        let mut before = self.outer.pop().ok_or_else(|| "a bracket ) was not opened".to_owned())?;
        before.append(&mut self.pictures);
        self.pictures = before;
        Ok(())
    }

    /// Reads a file, or makes a picture of one colour.
    pub(super) fn add(&mut self, name: &str) -> Outcome {
        let mut read = self.read(name)?;
        for picture in &mut read {
            name.clone_into(&mut picture.path);
            if let Some(delay) = &self.delay {
                delay.apply(picture, &self.settings)?;
            }
            for operation in std::mem::take(&mut self.waiting) {
                operation.apply(picture, &self.settings)?;
                self.waiting.push(operation);
            }
        }
        self.waiting.clear();
        self.pictures.append(&mut read);
        self.check()
    }

    fn read(&mut self, name: &str) -> Result<Vec<Picture>, String> {
        let (prefix, path) = split_prefix(name);
        if matches!(prefix, Some("xc" | "canvas")) {
            let color = color::parse(path)?;
            let (width, height) = self.size.unwrap_or_default().sides((1, 1));
            limits::check(width, height, 4)?;
            let canvas = DynamicImage::ImageRgba8(RgbaImage::from_pixel(width, height, color));
            return Ok(vec![Picture::new(canvas, Kind::Png)]);
        }
        let (path, pages) = split_pages(path);
        let source = Source::open(path)?;
        let in_file = |e: String| format!("{path}: {e}");
        self.output.repeat.get_or_insert(source.repeat());
        if source.is_cut() {
            eprintln!("note: {path} ends early, and what is missing of it is grey");
        }
        match pages {
            Some((first, last)) => {
                let count = source.count();
                let at = |page: i64| if page < 0 { page + count as i64 } else { page };
                let (first, last) = (at(first), at(last));
                if first > last || last - first >= limits::MAX_PICTURES as i64 {
                    return Err(in_file("its pictures do not have this range".to_owned()));
                }
                let pages = (first..=last).map(|page| {
                    let page = usize::try_from(page).map_err(|_| format!("it has {count} pictures"));
                    page.and_then(|page| source.decode(page)).map_err(in_file)
                });
                pages.collect()
            }
            None => source.decode_all().map_err(in_file),
        }
    }

    /// Carries out an option.
    pub(super) fn step(&mut self, step: Step) -> Outcome {
        match step {
            Step::Set(setting) => self.set(setting),
            Step::Apply(operation @ Operation::Delay(_)) => {
                self.delay = Some(operation);
                Ok(())
            }
            Step::Apply(operation) if self.pictures.is_empty() => {
                self.waiting.push(operation);
                Ok(())
            }
            Step::Apply(operation) => {
                for picture in &mut self.pictures {
                    operation.apply(picture, &self.settings)?;
                }
                self.check()
            }
            Step::Together(together) => self.together(&together),
            Step::Nothing => Ok(()),
        }
    }

    fn set(&mut self, setting: Setting) -> Outcome {
        match setting {
            Setting::Background(color) => {
                self.settings.background = color;
                self.output.background = Some(opaque(color));
            }
            Setting::Border(color) => self.settings.border = color,
            Setting::Fill(color) => self.settings.fill = color,
            Setting::Gravity(gravity) => self.settings.gravity = gravity,
            Setting::Filter(filter) => self.settings.filter = filter.unwrap_or_default(),
            Setting::Fuzz(fuzz) => self.settings.fuzz = fuzz,
            Setting::Geometry(geometry) => self.geometry = Some(geometry),
            Setting::Size(size) => self.size = Some(size),
            Setting::Quality(quality) => self.output.quality = quality,
            Setting::Density(density) => self.output.density = Some(density),
            Setting::Format(format) => {
                self.output.format = Some(format.clone());
                self.format = Some(format);
            }
            Setting::Repeat(times) => self.output.repeat = Some(times),
            Setting::MostBytes(most) => self.output.most_bytes = most,
            Setting::Palette => self.output.palette = true,
            Setting::Adjoin(together) => self.output.apart = !together,
        }
        Ok(())
    }

    fn together(&mut self, together: &Together) -> Outcome {
        if self.pictures.is_empty() && !matches!(together, Together::Clone(_)) {
            return Err("there is no picture yet".to_owned());
        }
        match together {
            Together::Append { across } => self.append(*across),
            Together::Flatten => self.flatten(),
            Together::Composite => self.composite(),
            Together::Reverse => {
                self.pictures.reverse();
                Ok(())
            }
            Together::Delete(which) => {
                let gone = indexes(which, self.pictures.len())?;
                let mut at = 0;
                self.pictures.retain(|_| {
                    at += 1;
                    !gone.contains(&(at - 1))
                });
                Ok(())
            }
            Together::Clone(which) => {
                // In a bracket, the pictures before it are meant.
                let from = self.outer.last().filter(|_| self.pictures.is_empty()).unwrap_or(&self.pictures);
                let copies: Vec<Picture> =
                    indexes(which, from.len())?.into_iter().map(|index| from[index].clone()).collect();
                self.pictures.extend(copies);
                self.check()
            }
            Together::Tiles(geometry) => self.tiles(geometry),
            Together::Write(target) => self.output.write(&self.pictures, target),
        }
    }

    /// Puts the pictures one below the other, or one beside the other.
    fn append(&mut self, across: bool) -> Outcome {
        let sizes: Vec<(u32, u32)> = self.pictures.iter().map(Picture::size).collect();
        let (long, wide): (Vec<u64>, Vec<u64>) = sizes
            .iter()
            .map(|(w, h)| if across { (u64::from(*w), u64::from(*h)) } else { (u64::from(*h), u64::from(*w)) })
            .unzip();
        let length = u32::try_from(long.iter().sum::<u64>()).unwrap_or(u32::MAX);
        let width = u32::try_from(wide.iter().max().copied().unwrap_or_default()).unwrap_or(u32::MAX);
        let size = if across { (length, width) } else { (width, length) };
        limits::check(size.0, size.1, 4)?;
        limits::check_bytes(self.bytes() + u64::from(size.0) * u64::from(size.1) * 4)?;
        let mut canvas = RgbaImage::from_pixel(size.0, size.1, self.settings.background);
        let mut at = 0;
        for picture in &self.pictures {
            let inner = picture.size();
            let room = if across { (inner.0, size.1) } else { (size.0, inner.1) };
            let (x, y) = self.settings.gravity.place(room, inner, (0, 0));
            let (x, y) = if across { (at, y) } else { (x, at) };
            imageops::overlay(&mut canvas, &picture.pixels.to_rgba8(), x, y);
            at += i64::from(if across { inner.0 } else { inner.1 });
        }
        self.only(canvas);
        Ok(())
    }

    /// Leaves one picture with these pixels.
    fn only(&mut self, canvas: RgbaImage) {
        self.pictures.truncate(1);
        if let Some(first) = self.pictures.first_mut() {
            first.pixels = crate::scale::simplify(DynamicImage::ImageRgba8(canvas));
            first.orientation = image::metadata::Orientation::NoTransforms;
        }
    }

    /// Puts all pictures on one another, and on the background.
    fn flatten(&mut self) -> Outcome {
        let size = self.pictures[0].size();
        limits::check_bytes(self.bytes() + u64::from(size.0) * u64::from(size.1) * 8)?;
        let mut canvas = RgbaImage::from_pixel(size.0, size.1, self.settings.background);
        for picture in &self.pictures {
            imageops::overlay(&mut canvas, &picture.pixels.to_rgba8(), 0, 0);
        }
        self.only(canvas);
        Ok(())
    }

    /// Puts the second picture onto the first.
    fn composite(&mut self) -> Outcome {
        if self.pictures.len() < 2 {
            return Err("two pictures are needed".to_owned());
        }
        limits::check_bytes(self.bytes() + self.pictures[0].bytes() * 2)?;
        let geometry = self.geometry.unwrap_or_default();
        let mut above = self.pictures.swap_remove(1);
        if geometry.width.or(geometry.height).is_some() {
            Operation::Resize(geometry, None).apply(&mut above, &self.settings)?;
        }
        let mut canvas = self.pictures[0].pixels.to_rgba8();
        let (x, y) = self.settings.gravity.place(canvas.dimensions(), above.size(), geometry.offset());
        imageops::overlay(&mut canvas, &above.pixels.to_rgba8(), x, y);
        self.only(canvas);
        Ok(())
    }

    /// Cuts each picture into tiles.
    fn tiles(&mut self, geometry: &Geometry) -> Outcome {
        let mut tiles = Vec::new();
        let mut bytes = self.bytes();
        for picture in &self.pictures {
            let (width, height) = picture.size();
            let (across, down) = if geometry.is_area {
                let count = |wanted: Option<f64>| wanted.unwrap_or(1.0).clamp(1.0, 1000.0) as u32;
                let (columns, rows) = (count(geometry.width), count(geometry.height.or(Some(1.0))));
                (width.div_ceil(columns), height.div_ceil(rows))
            } else {
                geometry.sides((width, height))
            };
            let (across, down) = (across.max(1), down.max(1));
            let count = u64::from(width.div_ceil(across)) * u64::from(height.div_ceil(down));
            if count > limits::MAX_PICTURES as u64 {
                return Err(format!("{count} tiles are too many: at most {}", limits::MAX_PICTURES));
            }
            for y in (0..height).step_by(down as usize) {
                for x in (0..width).step_by(across as usize) {
                    let part = Rectangle { x, y, width: across, height: down }.within((width, height));
                    let Some(part) = part else { continue };
                    let channels = u64::from(picture.pixels.color().channel_count());
                    bytes += u64::from(part.width) * u64::from(part.height) * channels;
                    limits::check_bytes(bytes)?;
                    let mut tile = Picture::new(DynamicImage::new_luma8(1, 1), picture.kind);
                    picture.path.clone_into(&mut tile.path);
                    tile.pixels = picture.pixels.crop_imm(part.x, part.y, part.width, part.height);
                    tiles.push(tile);
                }
            }
        }
        self.pictures = tiles;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let outer = self.outer.iter().flatten();
        self.pictures.iter().chain(outer).map(Picture::bytes).sum()
    }

    fn check(&self) -> Outcome {
        let count = self.pictures.len() + self.outer.iter().map(Vec::len).sum::<usize>();
        if count > limits::MAX_PICTURES {
            return Err(format!("{count} pictures are too many: at most {}", limits::MAX_PICTURES));
        }
        limits::check_bytes(self.bytes())
    }
}

/// Splits `a.gif[2-5]` into the path and the pages. Below zero, they count from the end.
pub(super) fn split_pages(path: &str) -> (&str, Option<(i64, i64)>) {
    let Some((name, inside)) = path.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) else {
        return (path, None);
    };
    let one = |text: &str| text.parse::<i64>().ok().filter(|page| page.unsigned_abs() <= limits::MAX_PAGES as u64);
    let pages = match inside.get(1..).and_then(|rest| rest.find('-')) {
        Some(dash) => one(&inside[..dash + 1]).zip(one(&inside[dash + 2..])),
        None => one(inside).map(|page| (page, page)),
    };
    match pages {
        Some(pages) => (name, Some(pages)),
        None => (path, None),
    }
}

/// Reads the numbers of pictures, such as `0`, `-1` or `1-3`.
fn indexes(which: &str, count: usize) -> Result<Vec<usize>, String> {
    let invalid = || format!("there is no picture {which}: there are {count}");
    let named = format!("x[{which}]");
    let (_, Some((first, last))) = split_pages(&named) else { return Err(invalid()) };
    let at = |page: i64| usize::try_from(if page < 0 { page + count as i64 } else { page }).ok();
    let (first, last) = at(first).zip(at(last)).ok_or_else(invalid)?;
    if first > last || last >= count { Err(invalid()) } else { Ok((first..=last).collect()) }
}

/// Fits a picture into a cell of a size, as `montage` does.
pub(super) fn into_cell(picture: &mut Picture, geometry: &Geometry, cell: (u32, u32), settings: &Settings) -> Outcome {
    if geometry.width.or(geometry.height).is_some() {
        let larger = Geometry { fills: false, ..*geometry };
        Operation::Resize(larger, None).apply(picture, settings)?;
    }
    let size = picture.size();
    if size.0 > cell.0 || size.1 > cell.1 {
        cut(picture, Rectangle { x: 0, y: 0, width: size.0.min(cell.0), height: size.1.min(cell.1) });
    }
    let inner = picture.size();
    let center = ((i64::from(cell.0) - i64::from(inner.0)) / 2, (i64::from(cell.1) - i64::from(inner.1)) / 2);
    onto(picture, cell, center, settings.background)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_numbers_are_read() {
        assert_eq!(split_pages("a.gif[0]"), ("a.gif", Some((0, 0))));
        assert_eq!(split_pages("a.gif[2-5]"), ("a.gif", Some((2, 5))));
        assert_eq!(split_pages("a.gif[-1]"), ("a.gif", Some((-1, -1))));
        assert_eq!(split_pages("a[b].png"), ("a[b].png", None));
        assert_eq!(split_pages("a[x]"), ("a[x]", None));
        assert_eq!(indexes("-1", 3), Ok(vec![2]));
        assert_eq!(indexes("0-1", 3), Ok(vec![0, 1]));
        assert!(indexes("3", 3).is_err() && indexes("x", 3).is_err() && indexes("-9", 3).is_err());
    }
}
