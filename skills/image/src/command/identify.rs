//! `identify`: what a file says of its pictures.

use super::convert::{is_option, split_pages};
use super::output::split_prefix;
use super::percent::{Facts, fill};
use super::{Outcome, Words, print, unknown};
use crate::kind::Kind;
use crate::picture::Picture;
use crate::source::Source;
use std::fmt::Write;

const USAGE: &str = "Usage: identify [-format FORMAT] [-verbose] FILE...
Print format and size of each picture.
  -format FORMAT  %w width, %h height, %m format, %f name, %b bytes, %n pictures, %z bits, %[EXIF:TAG], %[EXIF:*],
                  %[colorspace], %[channels], %[orientation], %k colours, \\n newline
  -verbose        all properties and metadata
  -ping           only what the header says, which is so anyway
";

/// Pictures of one file that are listed.
const MAX_LISTED: usize = 10_000;

pub(super) fn run(words: &[String]) -> Outcome {
    let (mut format, mut verbose, mut files) = (None, false, Vec::new());
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "-help" | "--help" => return print(USAGE),
            "-format" => format = Some(words.value(word)?),
            "-verbose" => verbose = true,
            "-ping" | "-quiet" | "-regard-warnings" => {}
            _ if is_option(word) => return Err(unknown(word)),
            _ => files.push(word),
        }
    }
    if files.is_empty() {
        return Err("files are missing; use: identify [-format FORMAT] FILE...".to_owned());
    }
    let mut failed = None;
    for file in files {
        if let Err(message) = one(file, format, verbose)
            && let Some(before) = failed.replace(message)
        {
            eprintln!("identify: {before}");
        }
    }
    failed.map_or(Ok(()), Err)
}

fn one(file: &str, format: Option<&str>, verbose: bool) -> Outcome {
    let (_, path) = split_prefix(file);
    let (path, pages) = split_pages(path);
    let source = Source::open(path)?;
    let count = source.count();
    let at = |page: i64| usize::try_from(if page < 0 { page + count as i64 } else { page }).unwrap_or(usize::MAX);
    let (first, last) = pages.map_or((0, count - 1), |(first, last)| (at(first), at(last)));
    if first > last || last >= count {
        return Err(format!("{path}: there is no such picture: it has {count}"));
    }
    let mut text = String::new();
    for scene in (first..=last).take(MAX_LISTED) {
        let facts = Facts::of_source(path, &source, scene, count).map_err(|e| format!("{path}: {e}"))?;
        match format {
            Some(format) => text.push_str(&fill(format, &facts)?),
            None if verbose => text.push_str(&describe(&facts)),
            None => text.push_str(&line(&facts)),
        }
    }
    print(&text)
}

/// Prints pictures of a command line, for `info:`.
pub(super) fn print_pictures(pictures: &[Picture], format: Option<&str>) -> Outcome {
    let mut text = String::new();
    for (scene, picture) in pictures.iter().enumerate() {
        let facts = Facts::of_picture(picture, scene, pictures.len());
        match format {
            Some(format) => text.push_str(&fill(format, &facts)?),
            None => text.push_str(&line(&facts)),
        }
    }
    print(&text)
}

fn line(facts: &Facts) -> String {
    let scene = if facts.count > 1 { format!("[{}]", facts.scene) } else { String::new() };
    let (width, height) = (facts.width, facts.height);
    format!(
        "{}{scene} {} {width}x{height} {width}x{height}+0+0 {}-bit {} {} 0.000u 0:00.000\n",
        facts.path,
        facts.kind.name(),
        facts.depth,
        facts.colorspace(),
        facts.size_in_bytes()
    )
}

fn describe(facts: &Facts) -> String {
    let mut text = String::new();
    let (x, y) = facts.resolution();
    let has_alpha = if facts.has_alpha { "True" } else { "False" };
    let _ = write!(
        text,
        "Image: {}\n  Format: {}\n  Mime type: {}\n  Geometry: {}x{}+0+0\n  Resolution: {x}x{y}\n  Units: PixelsPerInch\n  Colorspace: {}\n  Alpha: {has_alpha}\n  Depth: {}-bit\n  Filesize: {}\n",
        facts.path,
        facts.kind.name(),
        facts.kind.media_type(),
        facts.width,
        facts.height,
        facts.colorspace(),
        facts.depth,
        facts.size_in_bytes(),
    );
    if facts.count > 1 {
        let _ = writeln!(text, "  Scene: {} of {}", facts.scene, facts.count);
    }
    if facts.kind == Kind::Jpeg || !facts.entries.is_empty() {
        let orientation = fill("%[orientation]", facts).unwrap_or_default();
        let _ = writeln!(text, "  Orientation: {orientation}");
    }
    if !facts.entries.is_empty() {
        text.push_str("  Properties:\n");
        for entry in facts.entries.iter().filter(|entry| entry.group != "Composite") {
            let _ = writeln!(text, "    exif:{}: {}", entry.standard, entry.raw);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn filled(format: &str, bytes: Vec<u8>) -> Result<String, String> {
        let source = Source::new(bytes).unwrap();
        let facts = Facts::of_source("a/photo.jpg", &source, 0, source.count())?;
        fill(format, &facts)
    }

    #[test]
    fn escapes_are_filled() {
        let jpeg = || samples::jpeg_with_exif(&samples::photo(40, 30), 6);
        for (format, text) in [
            ("%w %h\\n", "40 30\n"),
            ("%wx%h %m %f|%t|%e|%d|%i", "40x30 JPEG photo.jpg|photo|jpg|a|a/photo.jpg"),
            ("%[EXIF:Make] %[exif:datetimeoriginal]", "Acme 2024:05:01 10:20:30"),
            ("%[EXIF:ExposureTime]%[EXIF:Software]", "1/125"),
            ("%[orientation] %[colorspace] %[channels] %z %n %p", "RightTop sRGB srgb 8 1 0"),
            ("100%% %[fx:w*h]%", "100% 1200%"),
            ("%A %[type] %[opaque]", "Undefined TrueColor true"),
            ("\\t\\\\", "\t\\"),
        ] {
            assert_eq!(filled(format, jpeg()).unwrap(), text);
        }
        assert!(filled("%[EXIF:*]", jpeg()).unwrap().contains("exif:FNumber=28/10\n"));
        for format in ["%q", "%[nonsense]", "%[w"] {
            assert!(filled(format, jpeg()).is_err(), "{format}");
        }
    }

    #[test]
    fn a_picture_is_a_line_or_a_list() {
        let source = Source::new(samples::gif(3)).unwrap();
        let facts = Facts::of_source("a.gif", &source, 1, 3).unwrap();
        assert!(line(&facts).starts_with("a.gif[1] GIF 12x8 12x8+0+0 8-bit sRGB "), "{}", line(&facts));
        let source = Source::new(samples::jpeg_with_exif(&samples::photo(40, 30), 6)).unwrap();
        let text = describe(&Facts::of_source("a.jpg", &source, 0, 1).unwrap());
        assert!(text.contains("  Orientation: RightTop\n") && text.contains("    exif:Make: Acme\n"), "{text}");
    }
}
