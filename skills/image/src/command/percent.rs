//! The escapes of `identify -format`.

use crate::kind::Kind;
use crate::metadata::{self, Entry, decimal};
use crate::picture::Picture;
use crate::source::Source;
use image::{DynamicImage, ExtendedColorType};
use std::collections::HashSet;

/// The values of the escapes, from a file's header or from a picture that was made of others.
pub(super) struct Facts<'a> {
    pub path: &'a str,
    pub kind: Kind,
    pub width: u32,
    pub height: u32,
    pub depth: u16,
    pub channels: u8,
    pub has_alpha: bool,
    pub orientation: u8,
    pub bytes: Option<usize>,
    pub scene: usize,
    pub count: usize,
    pub delay_ms: u32,
    pub entries: Vec<Entry>,
    pub pixels: Pixels<'a>,
}

/// The pixels, for the few escapes that need them.
pub(super) enum Pixels<'a> {
    In(&'a Source),
    Here(&'a Picture),
}

impl<'a> Facts<'a> {
    pub fn of_source(path: &'a str, source: &'a Source, scene: usize, count: usize) -> Result<Self, String> {
        let page = if source.kind == Kind::Tiff { scene } else { 0 };
        let header = source.header(page)?;
        Ok(Self {
            path,
            kind: source.kind,
            width: header.width,
            height: header.height,
            depth: header.depth().min(16),
            channels: channels(header.color, header.has_alpha),
            has_alpha: header.has_alpha,
            orientation: header.orientation.to_exif(),
            bytes: Some(source.bytes().len()),
            scene,
            count,
            delay_ms: 0,
            entries: metadata::entries(source, header.exif.as_deref()),
            pixels: Pixels::In(source),
        })
    }

    pub fn of_picture(picture: &'a Picture, scene: usize, count: usize) -> Self {
        let (width, height) = picture.size();
        let color = picture.pixels.color();
        Self {
            path: &picture.path,
            kind: picture.kind,
            width,
            height,
            depth: 8,
            channels: color.channel_count(),
            has_alpha: color.has_alpha(),
            orientation: picture.orientation.to_exif(),
            bytes: None,
            scene,
            count,
            delay_ms: picture.delay_ms,
            entries: picture.exif.clone().map(metadata::parse).unwrap_or_default(),
            pixels: Pixels::Here(picture),
        }
    }

    pub fn colorspace(&self) -> &'static str {
        if self.channels < 3 { "Gray" } else { "sRGB" }
    }

    fn channel_names(&self) -> &'static str {
        match (self.channels < 3, self.has_alpha) {
            (true, false) => "gray",
            (true, true) => "graya",
            (false, false) => "srgb",
            (false, true) => "srgba",
        }
    }

    pub fn size_in_bytes(&self) -> String {
        self.bytes.map_or_else(|| "0B".to_owned(), |bytes| format!("{bytes}B"))
    }

    pub fn resolution(&self) -> (String, String) {
        let one = |name: &str| {
            let entry = self.entries.iter().find(|entry| entry.name == name);
            entry.and_then(|entry| entry.number).map_or_else(|| "72".to_owned(), decimal)
        };
        (one("XResolution"), one("YResolution"))
    }

    /// Decodes the picture and hands it to a function.
    fn with_pixels<T>(&self, work: impl FnOnce(&DynamicImage) -> T) -> Result<T, String> {
        match self.pixels {
            Pixels::Here(picture) => Ok(work(&picture.pixels)),
            Pixels::In(source) => Ok(work(&source.decode(self.scene)?.pixels)),
        }
    }
}

fn channels(color: ExtendedColorType, has_alpha: bool) -> u8 {
    match color.channel_count() {
        1 | 2 if has_alpha => 2,
        1 => 1,
        _ if has_alpha => 4,
        count => count.min(3),
    }
}

const ORIENTATIONS: [&str; 9] = [
    "Undefined",
    "TopLeft",
    "TopRight",
    "BottomRight",
    "BottomLeft",
    "LeftTop",
    "RightTop",
    "RightBottom",
    "LeftBottom",
];

/// Fills a format such as `%w x %h\n`.
pub(super) fn fill(format: &str, facts: &Facts) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = format;
    while let Some(at) = rest.find(['%', '\\']) {
        filled.push_str(&rest[..at]);
        let is_percent = rest[at..].starts_with('%');
        rest = &rest[at + 1..];
        let Some(letter) = rest.chars().next() else {
            filled.push(if is_percent { '%' } else { '\\' });
            break;
        };
        let after = &rest[letter.len_utf8()..];
        if !is_percent {
            match letter {
                'n' => filled.push('\n'),
                't' => filled.push('\t'),
                'r' => filled.push('\r'),
                other => filled.push(other),
            }
            rest = after;
        } else if letter == '[' {
            let Some((name, after)) = after.split_once(']') else {
                return Err(format!("the escape %[{after} has no end"));
            };
            filled.push_str(&named(name, facts)?);
            rest = after;
        } else {
            filled.push_str(&lettered(letter, facts)?);
            rest = after;
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

fn lettered(letter: char, facts: &Facts) -> Result<String, String> {
    let (path, name) = (facts.path, facts.path.rsplit('/').next().unwrap_or_default());
    let dot = name.rfind('.').filter(|dot| *dot > 0);
    Ok(match letter {
        '%' => "%".to_owned(),
        'w' | 'W' => facts.width.to_string(),
        'h' | 'H' => facts.height.to_string(),
        'm' => facts.kind.name().to_owned(),
        'b' | 'B' => facts.size_in_bytes(),
        'd' => path.rfind('/').map_or("", |slash| &path[..slash]).to_owned(),
        'e' => dot.map_or("", |dot| &name[dot + 1..]).to_owned(),
        'f' => name.to_owned(),
        't' => dot.map_or(name, |dot| &name[..dot]).to_owned(),
        'i' => path.to_owned(),
        'n' => facts.count.to_string(),
        'p' | 's' => facts.scene.to_string(),
        'z' => facts.depth.to_string(),
        'g' => format!("{}x{}+0+0", facts.width, facts.height),
        'X' | 'Y' => "+0".to_owned(),
        'O' => "+0+0".to_owned(),
        'A' => if facts.has_alpha { "Blend" } else { "Undefined" }.to_owned(),
        'r' => format!("DirectClass {} {}", facts.colorspace(), if facts.has_alpha { "Alpha" } else { "" }),
        'T' => (facts.delay_ms / 10).to_string(),
        'x' => facts.resolution().0,
        'y' => facts.resolution().1,
        'U' => "PixelsPerInch".to_owned(),
        'k' => facts.with_pixels(count_colors)?.to_string(),
        other => return Err(format!("the escape %{other} is not known here")),
    })
}

fn count_colors(pixels: &DynamicImage) -> usize {
    let channels = usize::from(pixels.color().channel_count());
    let mut seen = HashSet::new();
    for pixel in pixels.as_bytes().chunks_exact(channels) {
        let mut color = [0; 4];
        color[..channels].copy_from_slice(pixel);
        seen.insert(color);
    }
    seen.len()
}

/// Fields of metadata that `%[EXIF:*]` lists.
const MAX_LISTED: usize = 500;

fn named(name: &str, facts: &Facts) -> Result<String, String> {
    let lower = name.to_ascii_lowercase();
    if let Some(tag) = lower.strip_prefix("exif:") {
        if tag == "*" {
            let lines = facts.entries.iter().filter(|entry| entry.group != "Composite").take(MAX_LISTED);
            return Ok(lines.map(|entry| format!("exif:{}={}\n", entry.standard, entry.raw)).collect());
        }
        let found = facts.entries.iter().find(|entry| entry.standard.eq_ignore_ascii_case(tag));
        return Ok(found.map(|entry| entry.raw.clone()).unwrap_or_default());
    }
    Ok(match lower.as_str() {
        "width" | "fx:w" | "page.width" => facts.width.to_string(),
        "height" | "fx:h" | "page.height" => facts.height.to_string(),
        "fx:w*h" | "fx:h*w" => (u64::from(facts.width) * u64::from(facts.height)).to_string(),
        "fx:w/h" => decimal(f64::from(facts.width) / f64::from(facts.height.max(1))),
        "size" => facts.size_in_bytes(),
        "magick" => facts.kind.name().to_owned(),
        "mime" => facts.kind.media_type().to_owned(),
        "basename" => lettered('t', facts)?,
        "extension" => lettered('e', facts)?,
        "depth" | "bit-depth" => facts.depth.to_string(),
        "colorspace" => facts.colorspace().to_owned(),
        "channels" => facts.channel_names().to_owned(),
        "scene" => facts.scene.to_string(),
        "scenes" => facts.count.to_string(),
        "orientation" => ORIENTATIONS.get(usize::from(facts.orientation)).copied().unwrap_or("Undefined").to_owned(),
        "resolution.x" => facts.resolution().0,
        "resolution.y" => facts.resolution().1,
        "units" => "PixelsPerInch".to_owned(),
        "opaque" => facts.with_pixels(|pixels| !crate::picture::is_transparent(pixels))?.to_string(),
        "type" => match (facts.channels < 3, facts.has_alpha) {
            (true, false) => "Grayscale",
            (true, true) => "GrayscaleAlpha",
            (false, false) => "TrueColor",
            (false, true) => "TrueColorAlpha",
        }
        .to_owned(),
        "mean" | "fx:mean" => {
            let share = facts.with_pixels(|pixels| {
                let gray = pixels.to_luma8();
                let sum: u64 = gray.as_raw().iter().map(|level| u64::from(*level)).sum();
                sum as f64 / gray.as_raw().len().max(1) as f64 / 255.0
            })?;
            decimal(if lower == "mean" { share * 65_535.0 } else { share })
        }
        _ => return Err(format!("the escape %[{name}] is not known here")),
    })
}
