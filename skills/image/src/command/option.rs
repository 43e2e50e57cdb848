//! Options of ImageMagick, each as what it sets or does.

use super::{Words, unknown};
use crate::color;
use crate::geometry::{Geometry, Gravity};
use crate::operation::{Alpha, Operation};
use crate::scale::Filter;
use crate::tone::{NORMALIZE, Tone};
use image::Rgba;
use image::metadata::Orientation;

/// A setting, which later options and the output use.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    Background(Rgba<u8>),
    Border(Rgba<u8>),
    Fill(Rgba<u8>),
    Gravity(Gravity),
    Filter(Option<Filter>),
    Fuzz(f64),
    Geometry(Geometry),
    Size(Geometry),
    Quality(Option<u8>),
    Density(u16),
    Format(String),
    Repeat(u16),
    MostBytes(Option<usize>),
    Palette,
    Adjoin(bool),
}

/// An operation on all pictures that were read.
#[derive(Debug, Clone, PartialEq)]
pub enum Together {
    Append { across: bool },
    Flatten,
    Composite,
    Reverse,
    Delete(String),
    Clone(String),
    Tiles(Geometry),
    Write(String),
}

/// An option.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Set(Setting),
    Apply(Operation),
    Together(Together),
    /// It is known, and there is nothing to do for it.
    Nothing,
}

/// Reads an option with its value.
pub(super) fn read(option: &str, words: &mut Words) -> Result<Step, String> {
    if let Some(step) = setting(option, words)? {
        return Ok(step);
    }
    if let Some(step) = together(option, words)? {
        return Ok(step);
    }
    if let Some(step) = without_effect(option, words)? {
        return Ok(step);
    }
    operation(option, words)?.map(Step::Apply).ok_or_else(|| unknown(option))
}

fn setting(option: &str, words: &mut Words) -> Result<Option<Step>, String> {
    let set = match option {
        "-background" => Setting::Background(color::parse(words.value(option)?)?),
        "-bordercolor" => Setting::Border(color::parse(words.value(option)?)?),
        "-fill" => Setting::Fill(color::parse(words.value(option)?)?),
        "-gravity" => Setting::Gravity(Gravity::parse(words.value(option)?)?),
        "+gravity" => Setting::Gravity(Gravity::default()),
        "-filter" => {
            let name = words.value(option)?;
            Setting::Filter(Some(Filter::from_name(name).ok_or_else(|| {
                format!("unknown filter '{name}': Point, Box, Triangle, Cubic, Mitchell and Lanczos are known")
            })?))
        }
        "+filter" => Setting::Filter(None),
        "-fuzz" => Setting::Fuzz(share(words.value(option)?, option)?),
        "-geometry" => Setting::Geometry(Geometry::parse(words.value(option)?)?),
        "-size" => Setting::Size(Geometry::parse(words.value(option)?)?),
        "-quality" => {
            let quality: f64 = number(words.value(option)?, option)?;
            Setting::Quality(Some(quality.clamp(1.0, 100.0) as u8))
        }
        "+quality" => Setting::Quality(None),
        "-density" => {
            let density = Geometry::parse(words.value(option)?)?.width.unwrap_or(72.0);
            Setting::Density(density.clamp(1.0, f64::from(u16::MAX)) as u16)
        }
        "-format" => Setting::Format(words.value(option)?.to_owned()),
        "-loop" => Setting::Repeat(number::<u16>(words.value(option)?, option)?),
        "-adjoin" => Setting::Adjoin(true),
        "+adjoin" => Setting::Adjoin(false),
        "-define" => return define(words.value(option)?).map(Some),
        _ => return Ok(None),
    };
    Ok(Some(Step::Set(set)))
}

/// Reads `-define KEY=VALUE`. Hints to ImageMagick's own libraries have no meaning here.
fn define(definition: &str) -> Result<Step, String> {
    let (key, value) = definition.split_once('=').unwrap_or((definition, ""));
    match key.to_ascii_lowercase().as_str() {
        "jpeg:extent" => Ok(Step::Set(Setting::MostBytes(Some(bytes(value)?)))),
        "png:format" if value.eq_ignore_ascii_case("png8") => Ok(Step::Set(Setting::Palette)),
        key if ["jpeg:", "png:", "webp:", "tiff:", "filter:"].iter().any(|hint| key.starts_with(hint)) => {
            Ok(Step::Nothing)
        }
        _ => Err(format!("option -define {key} is not known here")),
    }
}

/// Reads a number of bytes such as `300kb`.
fn bytes(text: &str) -> Result<usize, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(['b', 'i', 'k', 'm']);
    let unit = &lower[digits.len()..];
    let factor = match unit {
        "" | "b" => 1.0,
        "k" | "kb" => 1_000.0,
        "kib" => 1_024.0,
        "m" | "mb" => 1_000_000.0,
        "mib" => 1_048_576.0,
        _ => return Err(format!("invalid number of bytes '{text}'")),
    };
    let number: f64 = digits.parse().map_err(|_| format!("invalid number of bytes '{text}'"))?;
    if !(1.0..=1e9).contains(&(number * factor)) {
        return Err(format!("invalid number of bytes '{text}'"));
    }
    Ok((number * factor) as usize)
}

fn together(option: &str, words: &mut Words) -> Result<Option<Step>, String> {
    let step = match option {
        "-append" => Together::Append { across: false },
        "+append" => Together::Append { across: true },
        "-flatten" => Together::Flatten,
        "-composite" => Together::Composite,
        "-reverse" => Together::Reverse,
        "-delete" => Together::Delete(words.value(option)?.to_owned()),
        "-clone" => Together::Clone(words.value(option)?.to_owned()),
        "+clone" => Together::Clone("-1".to_owned()),
        "+delete" => Together::Delete("-1".to_owned()),
        "-write" => Together::Write(words.value(option)?.to_owned()),
        "-crop" => {
            let geometry = Geometry::parse(words.value(option)?)?;
            if geometry.has_offset() {
                return Ok(Some(Step::Apply(Operation::Crop(geometry))));
            }
            Together::Tiles(geometry)
        }
        "-layers" => {
            return match words.value(option)?.to_ascii_lowercase().as_str() {
                "flatten" | "merge" | "mosaic" => Ok(Some(Step::Together(Together::Flatten))),
                // Frames are decoded whole, so there is nothing to coalesce.
                "coalesce" | "optimize" | "optimizeplus" | "optimizeframe" | "optimizetransparency" => {
                    Ok(Some(Step::Nothing))
                }
                other => Err(format!("option -layers {other} is not known here")),
            };
        }
        _ => return Ok(None),
    };
    Ok(Some(Step::Together(step)))
}

/// Options that change nothing of a result here, with whether they have a value.
const WITHOUT_EFFECT: [(&str, bool); 27] = [
    ("-repage", true),
    ("+repage", false),
    ("-coalesce", false),
    ("-deconstruct", false),
    ("-interlace", true),
    ("-sampling-factor", true),
    ("-units", true),
    ("-compress", true),
    ("+compress", false),
    ("-limit", true),
    ("-quiet", false),
    ("-monitor", false),
    ("-verbose", false),
    ("-ping", false),
    ("-regard-warnings", false),
    ("-dither", true),
    ("+dither", false),
    ("-interpolate", true),
    ("-intent", true),
    ("-dispose", true),
    ("-endian", true),
    ("-antialias", false),
    ("+antialias", false),
    ("+set", true),
    ("-seed", true),
    ("-virtual-pixel", true),
    ("-depth", true),
];

fn without_effect(option: &str, words: &mut Words) -> Result<Option<Step>, String> {
    let Some((_, has_value)) = WITHOUT_EFFECT.iter().find(|(known, _)| *known == option) else { return Ok(None) };
    if *has_value {
        let value = words.value(option)?;
        if option == "-depth" && value != "8" {
            return Err(format!("option -depth {value} is not known here: pictures have 8 bits"));
        }
    }
    Ok(Some(Step::Nothing))
}

fn operation(option: &str, words: &mut Words) -> Result<Option<Operation>, String> {
    let found = match option {
        "-resize" | "-adaptive-resize" => Operation::Resize(Geometry::parse(words.value(option)?)?, None),
        "-scale" => Operation::Resize(Geometry::parse(words.value(option)?)?, Some(Filter::Box)),
        "-sample" => Operation::Resize(Geometry::parse(words.value(option)?)?, Some(Filter::Nearest)),
        "-thumbnail" => Operation::Thumbnail(Geometry::parse(words.value(option)?)?),
        "-extent" => Operation::Extent(Geometry::parse(words.value(option)?)?),
        "-shave" => {
            let (x, y) = pair(words.value(option)?)?;
            Operation::Shave(x, y)
        }
        "-border" => {
            let (x, y) = pair(words.value(option)?)?;
            Operation::Border(x, y)
        }
        "-rotate" => {
            let value = words.value(option)?;
            Operation::Rotate(number(value, option)?)
        }
        "-flip" => Operation::Flip,
        "-flop" => Operation::Flop,
        "-transpose" => Operation::Transpose,
        "-transverse" => Operation::Transverse,
        "-auto-orient" => Operation::AutoOrient,
        "-orient" => Operation::Orient(orientation(words.value(option)?)?),
        "-strip" => Operation::Strip,
        "+profile" => {
            words.value(option)?;
            Operation::Strip
        }
        "-trim" => Operation::Trim,
        "-alpha" => Operation::Alpha(alpha(words.value(option)?)?),
        "+matte" => Operation::Alpha(Alpha::Off),
        "-matte" => Operation::Alpha(Alpha::On),
        "-transparent" => Operation::Transparent(color::parse(words.value(option)?)?),
        "-opaque" => Operation::Opaque(color::parse(words.value(option)?)?),
        "-colors" => Operation::Colors(number::<u32>(words.value(option)?, option)?.clamp(1, 256)),
        // Hundredths of a second.
        "-delay" => Operation::Delay(delay(words.value(option)?)?),
        _ => return tone(option, words).map(|tone| tone.map(Operation::Tone)),
    };
    Ok(Some(found))
}

fn tone(option: &str, words: &mut Words) -> Result<Option<Tone>, String> {
    let found = match option {
        "-colorspace" | "-type" => return colors(option, words.value(option)?).map(Some),
        "-grayscale" => {
            words.value(option)?;
            Tone::Gray
        }
        "-negate" => Tone::Negate,
        "-normalize" => NORMALIZE,
        "-auto-level" => Tone::Widest,
        "-contrast-stretch" => {
            let value = words.value(option)?;
            let (black, white) = value.split_once(['x', ',']).unwrap_or((value, value));
            Tone::Stretch(share(black, option)?, share(white, option)?)
        }
        "-brightness-contrast" => {
            let numbers = list(words.value(option)?, option)?;
            Tone::BrightnessContrast(number_at(&numbers, 0, 0.0), number_at(&numbers, 1, 0.0))
        }
        "-modulate" => {
            let numbers = list(words.value(option)?, option)?;
            Tone::Modulate(number_at(&numbers, 0, 100.0), number_at(&numbers, 1, 100.0), number_at(&numbers, 2, 100.0))
        }
        "-gamma" => Tone::Gamma(number(words.value(option)?, option)?),
        "-level" => {
            let value = words.value(option)?;
            let parts: Vec<&str> = value.split([',', 'x']).collect();
            let is_percent = value.contains('%');
            let point = |at: usize, usual: f64| match parts.get(at).map(|part| part.trim_end_matches('%')) {
                // As elsewhere in ImageMagick, a plain number is one of 65535.
                Some(part) if !part.is_empty() => {
                    number::<f64>(part, option).map(|number| number / if is_percent { 100.0 } else { 65_535.0 })
                }
                _ => Ok(usual),
            };
            let gamma = parts.get(2).map_or(Ok(1.0), |gamma| number(gamma, option))?;
            Tone::Level(point(0, 0.0)?, point(1, 1.0)?, gamma)
        }
        "-threshold" => Tone::Threshold(share(words.value(option)?, option)?),
        "-monochrome" => Tone::Monochrome,
        "-posterize" => Tone::Posterize(number(words.value(option)?, option)?),
        "-sepia-tone" => Tone::Sepia(share(words.value(option)?, option)?),
        "-blur" | "-gaussian-blur" => Tone::Blur(sigma(words.value(option)?, option)?),
        "-sharpen" | "-unsharp" | "-adaptive-sharpen" => Tone::Sharpen(sigma(words.value(option)?, option)?),
        _ => return Ok(None),
    };
    Ok(Some(found))
}

fn colors(option: &str, value: &str) -> Result<Tone, String> {
    match value.to_ascii_lowercase().as_str() {
        "gray" | "grey" | "lineargray" | "grayscale" | "grayscalealpha" | "rec709luma" | "rec601luma" => Ok(Tone::Gray),
        "srgb" | "rgb" | "truecolor" | "truecoloralpha" | "truecolormatte" => Ok(Tone::Color),
        "bilevel" => Ok(Tone::Monochrome),
        _ => Err(format!("option {option} {value} is not known here")),
    }
}

fn alpha(value: &str) -> Result<Alpha, String> {
    Ok(match value.to_ascii_lowercase().as_str() {
        "on" | "set" | "activate" => Alpha::On,
        "off" | "deactivate" | "disassociate" => Alpha::Off,
        "remove" | "flatten" => Alpha::Remove,
        "opaque" => Alpha::Opaque,
        "transparent" => Alpha::Transparent,
        "extract" => Alpha::Extract,
        _ => return Err(format!("option -alpha {value} is not known here")),
    })
}

fn orientation(value: &str) -> Result<Orientation, String> {
    const NAMES: [&str; 8] =
        ["topleft", "topright", "bottomright", "bottomleft", "lefttop", "righttop", "rightbottom", "leftbottom"];
    let name = value.to_ascii_lowercase().replace('-', "");
    let at = NAMES.iter().position(|known| *known == name).and_then(|at| u8::try_from(at + 1).ok());
    at.and_then(Orientation::from_exif).ok_or_else(|| format!("option -orient {value} is not known here"))
}

pub(super) fn number<T: std::str::FromStr>(text: &str, option: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("invalid number '{text}' for {option}"))
}

/// Reads a share: in percent, or of the largest level, which is 255 up to there and 65535 beyond.
fn share(text: &str, option: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => number::<f64>(percent, option)? / 100.0,
        None => {
            let number: f64 = number(text, option)?;
            number / if number <= 255.0 { 255.0 } else { 65_535.0 }
        }
    };
    if share.is_finite() { Ok(share.clamp(0.0, 1.0)) } else { Err(format!("invalid number '{text}' for {option}")) }
}

/// Reads numbers with `x` or commas between them.
fn list(text: &str, option: &str) -> Result<Vec<f64>, String> {
    text.split(['x', ',']).map(|part| number(part.trim_end_matches('%'), option)).collect()
}

fn number_at(numbers: &[f64], at: usize, usual: f64) -> f64 {
    numbers.get(at).copied().filter(|number| number.is_finite()).unwrap_or(usual)
}

/// Reads `RADIUSxSIGMA`, where the radius follows from sigma. A radius alone stands for both.
fn sigma(text: &str, option: &str) -> Result<f32, String> {
    let numbers: Vec<f64> = list(text.split('+').next().unwrap_or_default(), option)?;
    let sigma = match numbers[..] {
        [radius] if radius > 0.0 => radius / 2.0,
        [_, sigma, ..] => sigma,
        _ => 1.0,
    };
    Ok(sigma as f32)
}

fn pair(text: &str) -> Result<(u32, u32), String> {
    let geometry = Geometry::parse(text)?;
    let side = |wanted: Option<f64>| wanted.map(|number| number.clamp(0.0, 65_535.0) as u32);
    let x = side(geometry.width).or(side(geometry.height)).unwrap_or(0);
    Ok((x, side(geometry.height).unwrap_or(x)))
}

/// Reads a time in hundredths of a second, or `TICKSxTICKS_PER_SECOND`, as milliseconds.
fn delay(text: &str) -> Result<u32, String> {
    let (ticks, per_second) = text.split_once('x').unwrap_or((text, "100"));
    let ticks: f64 = number(ticks.trim_end_matches(['>', '<']), "-delay")?;
    let per_second: f64 = number(per_second, "-delay")?;
    Ok((ticks * 1000.0 / per_second.max(1.0)).clamp(0.0, 655_350.0) as u32)
}
