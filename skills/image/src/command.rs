//! The shell commands. Their names and options are those of ImageMagick and ExifTool; an option that is not known is an error.

mod convert;
mod exiftool;
mod identify;
mod mogrify;
mod montage;
mod option;
mod output;
mod percent;

use std::io::Write;

/// A command's work. The error is a sentence without the command's name.
type Outcome = Result<(), String>;

const USAGE: &str = "Usage: image COMMAND [ARGUMENT]...
       image look FILE [--region LEFT,TOP,WIDTH,HEIGHT [--as-shown]] [--page N] [--longest PIXELS] [--pixels N] [--max-bytes N]
                                 a small, upright copy of FILE, in base64 as JSON; a region is in pixels, or in fractions below 1
       image info FILE           format, size, pages and metadata, as JSON
       image IN [OPTION]... OUT  the same as convert
Commands: convert, identify, mogrify, montage, exiftool; each has --help, and is a command of its own, too.
JPEG, PNG, WebP (written without loss), GIF, BMP, TIFF and PNM are read and written.
";

const CONVERT: &str = "Usage: convert IN... [OPTION]... OUT
Convert pictures as ImageMagick does: options work on the pictures before them, in the order in which they stand.

size      -resize, -thumbnail, -scale, -sample WxH[!><^%@]  -crop WxH+X+Y  -extent WxH  -trim  -shave XxY  -border XxY
turn      -rotate DEGREES  -flip  -flop  -transpose  -transverse  -auto-orient
colour    -colorspace Gray|sRGB  -grayscale M  -monochrome  -negate  -normalize  -auto-level  -contrast-stretch BxW
          -brightness-contrast BxC  -modulate B,S,H  -gamma N  -level B,W,G  -threshold N%  -posterize N  -colors N
          -sepia-tone N%  -blur RxS  -sharpen RxS  -unsharp RxS  -transparent C  -opaque C  -alpha remove|off|on|...
together  -append  +append  -flatten  -composite  -coalesce  -layers optimize  -delete N  -reverse  +clone  ( ... )
settings  -background, -bordercolor, -fill C  -gravity G  -geometry G  -fuzz N%  -filter F  -quality N  -density N
          -strip  -format F  -delay N  -loop N  -size WxH (with xc:COLOUR)  -define jpeg:extent=N  -write FILE
IN is a file, FILE[N] for one page or frame, png:- for standard input or xc:COLOUR. OUT is a file, png:- or info:.
";

/// Runs the command that the first word names, and returns its exit code.
pub fn run(words: &[String]) -> i32 {
    let path = words.first().map(String::as_str).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let rest = words.get(1..).unwrap_or_default();
    let ended = start(name, rest);
    let written = std::io::stdout().flush();
    match (ended, written) {
        (Ok(()), Ok(())) => 0,
        (Ok(()), Err(e)) => {
            eprintln!("{name}: write error: {}", crate::source::reason(&e));
            1
        }
        (Err(message), _) => {
            eprintln!("{name}: {message}");
            1
        }
    }
}

fn start(name: &str, words: &[String]) -> Outcome {
    let first = words.first().map(String::as_str);
    match (name, first) {
        (_, Some("-version" | "--version")) => print(&format!("{name} (kiso) {}\n", env!("CARGO_PKG_VERSION"))),
        ("image", None | Some("-help" | "--help" | "-h")) => print(USAGE),
        ("image" | "magick", Some(command @ ("convert" | "identify" | "mogrify" | "montage" | "exiftool"))) => {
            start(command, &words[1..])
        }
        ("image", Some("look")) => print(&crate::call::look_at(&words[1..])?),
        ("image", Some("info")) => print(&crate::call::info_of(&words[1..])?),
        ("magick" | "convert", None) => Err("files are missing (see --help)".to_owned()),
        ("magick" | "convert", Some("-help" | "--help")) => print(CONVERT),
        ("image" | "magick" | "convert", _) => convert::run(name, words),
        ("mogrify", _) => mogrify::run(words),
        ("identify", _) => identify::run(words),
        ("montage", _) => montage::run(words),
        ("exiftool", _) => exiftool::run(words),
        _ => Err("not one of the commands in this component".to_owned()),
    }
}

/// Writes to standard output.
fn print(text: &str) -> Outcome {
    write_out(text.as_bytes())
}

fn write_out(bytes: &[u8]) -> Outcome {
    std::io::stdout().write_all(bytes).map_err(|e| format!("write error: {}", crate::source::reason(&e)))
}

/// The words of a command line, one after the other.
struct Words<'a> {
    words: std::slice::Iter<'a, String>,
}

impl<'a> Words<'a> {
    fn new(words: &'a [String]) -> Self {
        Self { words: words.iter() }
    }

    fn next(&mut self) -> Option<&'a str> {
        self.words.next().map(String::as_str)
    }

    /// Returns the value of an option.
    fn value(&mut self, option: &str) -> Result<&'a str, String> {
        self.next().ok_or_else(|| format!("the option {option} needs a value"))
    }
}

/// The error for an option that no command here has.
fn unknown(option: &str) -> String {
    format!("option {option} is not known here")
}

#[cfg(test)]
mod tests;
