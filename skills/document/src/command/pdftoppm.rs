//! `pdftoppm` of poppler: pages as PNG, JPEG, PPM or PGM.

use std::io::Write;

use super::pdftotext::load_pdf;
use super::words::{Word, Words, unexpected, unknown};
use super::{save, with_path};
use crate::error::{Error, Result};
use crate::limits;
use crate::pdf::{self, Scaling};

pub const USAGE: &str = "Usage: pdftoppm [OPTION]... PDF-FILE [ROOT]
Draw pages as ROOT-N.ppm, ROOT-N.png with -png, or ROOT-N.jpg with -jpeg. Without ROOT, one page goes to standard output.

  -png           PNG instead of PPM
  -jpeg          JPEG; -jpegopt quality=N from 1 to 100 (75)
  -gray          gray (PGM)
  -f N, -l N     first and last page
  -o, -e         only odd or even pages
  -singlefile    the first page alone, as ROOT.ppm or ROOT.png
  -r N           resolution (150); also -rx and -ry
  -scale-to N    pixels of the longer side; also -scale-to-x and -scale-to-y (-1 keeps the ratio)
  -sep C         the character before the number
  -forcenum      a number even if there is one page
  -opw, -upw PW  the password
  -cropbox, -q   accepted
";

#[derive(Default)]
struct Options<'a> {
    png: bool,
    /// The quality of JPEG.
    jpeg: Option<u8>,
    gray: bool,
    single: bool,
    force_number: bool,
    odd_even: Option<usize>,
    first: usize,
    last: usize,
    separator: &'a str,
    password: Option<String>,
    files: Vec<&'a str>,
}

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let mut options = Options { first: 1, last: usize::MAX, separator: "-", ..Options::default() };
    let (mut x, mut y, mut longer, mut across, mut down) = (150.0, 150.0, None, 0.0, 0.0);
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option("-png") => options.png = true,
            Word::Option("-gray") => options.gray = true,
            Word::Option("-singlefile") => options.single = true,
            Word::Option("-forcenum") => options.force_number = true,
            Word::Option("-o") => options.odd_even = Some(1),
            Word::Option("-e") => options.odd_even = Some(0),
            Word::Option("-f") => options.first = words.number::<usize>("-f")?.max(1),
            Word::Option("-l") => options.last = words.number("-l")?,
            Word::Option("-sep") => options.separator = words.value("-sep")?,
            Word::Option("-r") => {
                x = words.number("-r")?;
                y = x;
            }
            Word::Option("-rx") => x = words.number("-rx")?,
            Word::Option("-ry") => y = words.number("-ry")?,
            Word::Option("-scale-to") => longer = Some(words.number::<f64>("-scale-to")?),
            Word::Option("-scale-to-x") => across = words.number("-scale-to-x")?,
            Word::Option("-scale-to-y") => down = words.number("-scale-to-y")?,
            Word::Option("-opw" | "-upw") => options.password = Some(words.value("-upw")?.to_owned()),
            Word::Option("-cropbox" | "-q" | "-progress") => {}
            Word::Option("-aa" | "-aaVector" | "-freetype" | "-thinlinemode") => drop(words.value("-aa")?),
            Word::Option("-jpeg") => options.jpeg = options.jpeg.or(Some(75)),
            Word::Option("-jpegopt") => options.jpeg = Some(quality(words.value("-jpegopt")?)?),
            Word::Option("-tiff" | "-jpegcmyk") => {
                return Err("only -png, -jpeg, PPM and -gray are supported here".into());
            }
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(file) if options.files.len() < 2 => options.files.push(file),
            Word::Operand(file) => return Err(unexpected(file)),
        }
    }
    let scaling = match longer {
        Some(side) if side > 0.0 => Scaling::Longer(side),
        _ if across > 0.0 || down > 0.0 => Scaling::Box(across, down),
        _ if x > 0.0 && y > 0.0 => Scaling::Dpi(x, y),
        _ => return Err("the resolution must be above 0".into()),
    };
    draw(&options, scaling, out)
}

/// The quality in options such as `quality=90,progressive=n`.
fn quality(text: &str) -> Result<u8> {
    let mut quality = 75;
    for pair in text.split(',') {
        if let Some(number) = pair.strip_prefix("quality=") {
            let number = number.parse().ok().filter(|number| (1..=100).contains(number));
            quality = number.ok_or_else(|| Error::new(format!("-jpegopt: `{pair}` is not a quality from 1 to 100")))?;
        }
    }
    Ok(quality)
}

fn draw(options: &Options, scaling: Scaling, out: &mut dyn Write) -> Result<()> {
    let path = *options.files.first().ok_or("a PDF file is needed (see pdftoppm --help)")?;
    let root = options.files.get(1).copied();
    let pdf = pdf::open(load_pdf(path)?, &super::passwords(options.password.clone())).map_err(with_path(path))?;
    let total = pdf.pages().len();
    let last = options.last.min(total);
    let mut pages: Vec<usize> =
        (options.first..=last).filter(|number| options.odd_even.is_none_or(|rest| number % 2 == rest)).collect();
    if options.single {
        pages.truncate(1);
    }
    if pages.is_empty() {
        return Err(Error::new(format!("{path}: it has no such page; there are {total}")));
    }
    if pages.len() > limits::RENDERED {
        let sentence = format!("{path}: {} pages would be drawn; use -f and -l", pages.len());
        return Err(Error::limit(&sentence, format!("{} at once", limits::RENDERED)));
    }
    if root.is_none() && pages.len() > 1 {
        return Err("several pages need a ROOT for their names; use -f and -l, or -singlefile".into());
    }
    let width = total.to_string().len();
    for number in pages {
        let picture = pdf::render(&pdf, number, scaling).map_err(with_path(path))?;
        let (bytes, end) = match (options.jpeg, options.png, options.gray) {
            (Some(quality), _, gray) => (picture.to_jpeg(quality, gray)?, "jpg"),
            (None, true, _) => (picture.to_png()?, "png"),
            (None, false, true) => (picture.to_pgm(), "pgm"),
            (None, false, false) => (picture.to_ppm(), "ppm"),
        };
        let name = match root {
            None | Some("-") => "-".to_owned(),
            Some(root) if options.single && !options.force_number => format!("{root}.{end}"),
            Some(root) => format!("{root}{}{number:0width$}.{end}", options.separator),
        };
        save(&name, &bytes, out)?;
    }
    Ok(())
}
