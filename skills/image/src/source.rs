//! A file with pictures in it: what it says of itself, and its pictures decoded.

use crate::kind::Kind;
use crate::picture::Picture;
use crate::{frames, limits, tiff_page};
use image::codecs::gif::GifDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{AnimationDecoder, ColorType, DynamicImage, ExtendedColorType, ImageDecoder, ImageError, ImageReader};
use std::io::{Cursor, Read};
use std::path::Path;

/// The bytes of a file, with their format.
pub struct Source {
    bytes: Vec<u8>,
    pub kind: Kind,
}

/// The properties of a picture that are known without decoding it.
pub struct Header {
    /// As the pixels are stored, before the orientation is applied.
    pub width: u32,
    pub height: u32,
    pub color: ExtendedColorType,
    pub has_alpha: bool,
    pub orientation: Orientation,
    pub exif: Option<Vec<u8>>,
    pub icc: Option<Vec<u8>>,
}

impl Header {
    /// Returns width and height as a person sees them.
    pub fn upright_size(&self) -> (u32, u32) {
        if is_turned(self.orientation) { (self.height, self.width) } else { (self.width, self.height) }
    }

    /// Returns the bits of a sample, as the file stores them.
    pub fn depth(&self) -> u16 {
        let samples = u16::from(self.color.channel_count()).max(1);
        (self.color.bits_per_pixel() / samples).max(1)
    }
}

/// Whether the orientation exchanges width and height.
pub fn is_turned(orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    matches!(orientation, Rotate90 | Rotate90FlipH | Rotate270 | Rotate270FlipH)
}

/// Reads a file, or standard input for `-`.
pub fn read_file(path: &str) -> Result<Vec<u8>, String> {
    let failed = |e: std::io::Error| format!("{path}: {}", reason(&e));
    if path == "-" {
        return read_limited(std::io::stdin().lock()).map_err(|e| format!("standard input: {e}"));
    }
    if Path::new(path).is_dir() {
        return Err(format!("{path}: Is a directory"));
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > limits::MAX_FILE {
        return Err(format!("{path}: it has {} MiB, and at most {} are read", size >> 20, limits::MAX_FILE >> 20));
    }
    read_limited(file).map_err(|e| format!("{path}: {e}"))
}

fn read_limited(input: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    input.take(limits::MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| reason(&e))?;
    if bytes.len() as u64 > limits::MAX_FILE {
        return Err(format!("it has more than {} MiB", limits::MAX_FILE >> 20));
    }
    Ok(bytes)
}

/// Returns the system's message without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

impl Source {
    pub fn new(bytes: Vec<u8>) -> Result<Self, String> {
        let kind = Kind::detect(&bytes)?;
        Ok(Self { bytes, kind })
    }

    /// Reads a file, or standard input for `-`. The error begins with the path.
    pub fn open(path: &str) -> Result<Self, String> {
        Self::new(read_file(path)?).map_err(|e| format!("{path}: {e}"))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of frames or pages, at least 1.
    pub fn count(&self) -> usize {
        frames::count(&self.bytes, self.kind)
    }

    /// Returns how often an animation is shown, or 0 for without end.
    pub fn repeat(&self) -> u16 {
        if self.kind == Kind::Gif { frames::loops(&self.bytes).unwrap_or(0) } else { 0 }
    }

    /// Whether a JPEG has no end: what is missing is grey in the decoded picture.
    pub fn is_cut(&self) -> bool {
        self.kind == Kind::Jpeg && !self.bytes.windows(2).rev().any(|pair| pair == [0xff, 0xd9])
    }

    /// Reads the properties of the first picture, or of a page of a TIFF.
    pub fn header(&self, page: usize) -> Result<Header, String> {
        if self.kind == Kind::Tiff {
            return tiff_page::header(&self.bytes, page);
        }
        let mut decoder = self.decoder()?;
        let (width, height) = decoder.dimensions();
        Ok(Header {
            width,
            height,
            color: decoder.original_color_type(),
            has_alpha: decoder.color_type().has_alpha(),
            orientation: decoder.orientation().unwrap_or(Orientation::NoTransforms),
            exif: decoder.exif_metadata().unwrap_or_default(),
            icc: decoder.icc_profile().unwrap_or_default(),
        })
    }

    /// Decodes one picture, counted from 0. Its orientation is not applied.
    pub fn decode(&self, index: usize) -> Result<Picture, String> {
        if index > 0 {
            let count = self.count();
            if index >= count {
                return Err(format!("there is no picture {index}: it has {count}, counted from 0"));
            }
        }
        match self.kind {
            Kind::Tiff => {
                let header = tiff_page::header(&self.bytes, index)?;
                let pixels = tiff_page::decode(&self.bytes, index)?;
                Ok(self.picture(pixels, header))
            }
            Kind::Gif | Kind::Webp if index > 0 => {
                let mut frames = self.frames_from(index, 1)?;
                frames.pop().ok_or_else(|| format!("its frame {index} is damaged"))
            }
            _ => self.first(),
        }
    }

    /// Decodes all frames or pages.
    pub fn decode_all(&self) -> Result<Vec<Picture>, String> {
        match (self.kind, self.count()) {
            (_, 1) => Ok(vec![self.decode(0)?]),
            (Kind::Gif | Kind::Webp, count) => {
                check_count(count)?;
                self.frames_from(0, count)
            }
            (Kind::Tiff, count) => {
                check_count(count)?;
                let mut pages = Vec::new();
                let mut bytes = 0;
                for page in 0..count {
                    pages.push(self.decode(page)?);
                    bytes += pages[page].bytes();
                    limits::check_bytes(bytes)?;
                }
                Ok(pages)
            }
            _ => Ok(vec![self.decode(0)?]),
        }
    }

    fn first(&self) -> Result<Picture, String> {
        let header = self.header(0)?;
        let decoder = self.decoder()?;
        check_decoding(self.kind, &self.bytes, header.width, header.height, decoder.color_type())?;
        let pixels = DynamicImage::from_decoder(decoder).map_err(|e| explain(&e))?;
        Ok(self.picture(pixels, header))
    }

    fn picture(&self, pixels: DynamicImage, header: Header) -> Picture {
        let mut picture = Picture::new(pixels, self.kind);
        let depth = header.depth();
        picture.orientation = header.orientation;
        picture.exif = header.exif;
        picture.icc = header.icc;
        picture.depth = depth;
        picture
    }

    /// Decodes frames of an animation, each with what is below it.
    fn frames_from(&self, start: usize, most: usize) -> Result<Vec<Picture>, String> {
        let (width, height) = {
            let header = self.header(0)?;
            (header.width, header.height)
        };
        limits::check(width, height, 4 * 2)?;
        let cursor = Cursor::new(self.bytes.as_slice());
        let frames = if self.kind == Kind::Gif {
            let mut decoder = GifDecoder::new(cursor).map_err(|e| explain(&e))?;
            decoder.set_limits(limits::of_decoder()).map_err(|e| explain(&e))?;
            decoder.into_frames()
        } else {
            WebPDecoder::new(cursor).map_err(|e| explain(&e))?.into_frames()
        };
        let mut found = Vec::new();
        let mut bytes = 0;
        for frame in frames.skip(start).take(most) {
            let frame = frame.map_err(|e| explain(&e))?;
            let (numerator, denominator) = frame.delay().numer_denom_ms();
            let mut picture = Picture::new(DynamicImage::ImageRgba8(frame.into_buffer()), self.kind);
            picture.delay_ms = numerator / denominator.max(1);
            bytes += picture.bytes();
            limits::check_bytes(bytes)?;
            found.push(picture);
        }
        Ok(found)
    }

    fn decoder(&self) -> Result<impl ImageDecoder + '_, String> {
        let mut reader = ImageReader::with_format(Cursor::new(self.bytes.as_slice()), self.kind.as_image());
        reader.limits(limits::of_decoder());
        reader.into_decoder().map_err(|e| explain(&e))
    }
}

fn check_count(count: usize) -> Result<(), String> {
    if count > limits::MAX_PICTURES {
        return Err(format!("it has {count} pictures, and at most {} are decoded together", limits::MAX_PICTURES));
    }
    Ok(())
}

/// Checks the memory that decoding takes: the pixels, and what a progressive JPEG is collected in.
fn check_decoding(kind: Kind, bytes: &[u8], width: u32, height: u32, color: ColorType) -> Result<(), String> {
    let collected = if kind == Kind::Jpeg && is_progressive(bytes) { 2 * u64::from(color.channel_count()) } else { 0 };
    let below = if kind == Kind::Gif { 4 } else { 0 };
    limits::check(width, height, u64::from(color.bytes_per_pixel()) + collected + below)
}

/// Whether a JPEG comes in several scans.
fn is_progressive(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = bytes.get(at..at + 4).and_then(|head| head.first_chunk::<4>()) {
        match marker {
            0xff => at += 1,
            0xc2 | 0xc6 | 0xca | 0xce => return true,
            0xda | 0xc0 | 0xc1 => return false,
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    false
}

/// Says in one sentence what is wrong with a file.
pub(crate) fn explain(error: &ImageError) -> String {
    match error {
        ImageError::Limits(_) => {
            format!("it is too large: at most {} MiB are used for pixels", limits::MAX_BYTES >> 20)
        }
        ImageError::Unsupported(e) => format!("it cannot be read here: {}", one_line(&e.to_string())),
        ImageError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            "it is damaged: the file ends too early".to_owned()
        }
        ImageError::Decoding(e) => match std::error::Error::source(e) {
            Some(cause) if cause.to_string().eq_ignore_ascii_case("unexpected end of file") => {
                "it is damaged: the file ends too early".to_owned()
            }
            Some(cause) => format!("it is damaged: {}", one_line(&cause.to_string())),
            None => format!("it is damaged: {}", one_line(&e.to_string())),
        },
        other => format!("it is damaged: {}", one_line(&other.to_string())),
    }
}

/// Bytes of a library's message that are passed on.
const MAX_REASON: usize = 160;

/// Makes one short line of a library's message, which may quote the file.
pub(crate) fn one_line(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.replace(|c: char| c.is_control(), "?");
    match words.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}
