//! Pages of a TIFF, and the kinds of pixels that the library for all formats refuses: palettes, fewer than eight bits and the colours of JPEG.

use crate::limits;
use crate::source::{Header, one_line};
use image::metadata::Orientation;
use image::{DynamicImage, ExtendedColorType, GrayImage, RgbImage, RgbaImage};
use std::io::Cursor;
use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::tags::Tag;

/// The numbers of a TIFF in its byte order.
struct Numbers<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl Numbers<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        let two = *self.bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.is_little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let four = *self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let eight = *self.bytes.get(at..)?.first_chunk::<8>()?;
        Some(if self.is_little { u64::from_le_bytes(eight) } else { u64::from_be_bytes(eight) })
    }

    fn is_big(&self) -> bool {
        self.u16(2) == Some(43)
    }

    /// Returns where the next directory is, or 0 behind the last one.
    fn next(&self, directory: usize) -> Option<usize> {
        if self.is_big() {
            let entries = usize::try_from(self.u64(directory)?).ok()?;
            let at = entries.checked_mul(20)?.checked_add(directory)?.checked_add(8)?;
            usize::try_from(self.u64(at)?).ok()
        } else {
            let entries = usize::from(self.u16(directory)?);
            self.u32(directory + 2 + 12 * entries).map(|offset| offset as usize)
        }
    }
}

/// The compression of pages that are JPEGs.
const JPEG: u16 = 7;

/// Photometric interpretations: pixels are numbers in a palette, or levels of grey.
const PALETTE: u16 = 3;
const BLACK_IS_ZERO: u16 = 1;

/// Returns where the file says what the pixels of a page mean, if that is in a palette, which the library refuses.
fn palette_mark(bytes: &[u8], page: usize) -> Option<usize> {
    let numbers = Numbers { bytes, is_little: bytes.first() == Some(&b'I') };
    let directory = *offsets(bytes)?.get(page)?;
    let (first, size, count) = if numbers.is_big() {
        (directory + 8, 20, usize::try_from(numbers.u64(directory)?).ok()?)
    } else {
        (directory + 2, 12, usize::from(numbers.u16(directory)?))
    };
    let mut entries = (0..count.min(MAX_ENTRIES)).map(|number| first + number * size);
    let entry = entries.find(|at| numbers.u16(*at) == Some(Tag::PhotometricInterpretation.to_u16()))?;
    let value = entry + size - if numbers.is_big() { 8 } else { 4 };
    (numbers.u16(value) == Some(PALETTE)).then_some(value)
}

/// Entries of a directory that are looked at.
const MAX_ENTRIES: usize = 4096;

/// Returns where the directory of each page is.
pub fn offsets(bytes: &[u8]) -> Option<Vec<usize>> {
    let numbers = Numbers { bytes, is_little: bytes.first() == Some(&b'I') };
    let mut at = if numbers.is_big() { usize::try_from(numbers.u64(8)?).ok()? } else { numbers.u32(4)? as usize };
    let mut found = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    // A directory that was seen before would lead round in a circle.
    while at != 0 && at < bytes.len() && seen.insert(at) && found.len() < limits::MAX_PAGES {
        found.push(at);
        at = numbers.next(at).unwrap_or(0);
    }
    Some(found)
}

fn decoder(bytes: &[u8], page: usize) -> Result<Decoder<Cursor<&[u8]>>, String> {
    let mut most = Limits::default();
    most.decoding_buffer_size = limits::MAX_BYTES as usize;
    most.intermediate_buffer_size = limits::MAX_BYTES as usize / 2;
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(|e| explain(&e))?.with_limits(most);
    if page > 0 {
        decoder.seek_to_image(page).map_err(|e| explain(&e))?;
    }
    Ok(decoder)
}

/// Reads the properties of a page.
pub fn header(bytes: &[u8], page: usize) -> Result<Header, String> {
    let mut decoder = decoder(bytes, page)?;
    let (width, height) = decoder.dimensions().map_err(|e| explain(&e))?;
    let color = match palette_mark(bytes, page) {
        Some(_) => ColorType::Palette(8),
        None => decoder.colortype().map_err(|e| explain(&e))?,
    };
    let orientation = decoder.find_tag_unsigned::<u16>(Tag::Orientation).ok().flatten();
    let orientation = orientation.and_then(|number| u8::try_from(number).ok()).and_then(Orientation::from_exif);
    let icc = decoder.get_tag_u8_vec(Tag::IccProfile).ok();
    Ok(Header {
        width,
        height,
        color: as_extended(color),
        has_alpha: matches!(color, ColorType::RGBA(_) | ColorType::GrayA(_)),
        orientation: orientation.unwrap_or(Orientation::NoTransforms),
        exif: None,
        icc,
    })
}

/// The nearest kind of pixels that the other formats have a name for.
fn as_extended(color: ColorType) -> ExtendedColorType {
    match color {
        ColorType::Gray(1) => ExtendedColorType::L1,
        ColorType::Gray(2) => ExtendedColorType::L2,
        ColorType::Gray(4) => ExtendedColorType::L4,
        ColorType::Gray(16) => ExtendedColorType::L16,
        ColorType::Gray(_) => ExtendedColorType::L8,
        ColorType::GrayA(16) => ExtendedColorType::La16,
        ColorType::GrayA(_) => ExtendedColorType::La8,
        ColorType::RGB(16) => ExtendedColorType::Rgb16,
        ColorType::RGB(32) => ExtendedColorType::Rgb32F,
        ColorType::RGBA(16) => ExtendedColorType::Rgba16,
        ColorType::RGBA(32) => ExtendedColorType::Rgba32F,
        ColorType::RGBA(_) => ExtendedColorType::Rgba8,
        ColorType::CMYK(16) => ExtendedColorType::Cmyk16,
        ColorType::CMYK(_) => ExtendedColorType::Cmyk8,
        _ => ExtendedColorType::Rgb8,
    }
}

/// Decodes a page.
pub fn decode(bytes: &[u8], page: usize) -> Result<DynamicImage, String> {
    let Some(mark) = palette_mark(bytes, page) else { return decode_as(bytes, page, false) };
    // Read as grey, the pixels are their numbers in the palette.
    let mut copy = bytes.to_vec();
    let gray = if bytes[0] == b'I' { BLACK_IS_ZERO.to_le_bytes() } else { BLACK_IS_ZERO.to_be_bytes() };
    copy[mark..mark + 2].copy_from_slice(&gray);
    decode_as(&copy, page, true)
}

fn decode_as(bytes: &[u8], page: usize, has_palette: bool) -> Result<DynamicImage, String> {
    let mut decoder = decoder(bytes, page)?;
    let (width, height) = decoder.dimensions().map_err(|e| explain(&e))?;
    let color = match decoder.colortype().map_err(|e| explain(&e))? {
        ColorType::Gray(bits) if has_palette => ColorType::Palette(bits),
        // An alpha channel beside a palette is passed over.
        ColorType::GrayA(bits) if has_palette => ColorType::Multiband { bit_depth: bits, num_samples: 2 },
        color => color,
    };
    let (samples, bits) = layout(color)?;
    // The samples, and the pixels that are made of them.
    limits::check(width, height, u64::from(samples) * u64::from(bits).div_ceil(8) + 3)?;
    let map = match has_palette {
        true => Some(decoder.get_tag_u16_vec(Tag::ColorMap).map_err(|e| explain(&e))?),
        false => None,
    };
    let mut says = |tag, number| decoder.find_tag_unsigned::<u16>(tag).ok().flatten() == Some(number);
    if says(Tag::FillOrder, 2) {
        return Err("it cannot be read here: the bits of its bytes are in reverse order".to_owned());
    }
    // As Adobe's programs write them, the inks in a JPEG are the wrong way round.
    let inverts = matches!(color, ColorType::CMYK(_)) && says(Tag::Compression, JPEG);
    if samples > 1 && says(Tag::PlanarConfiguration, 2) {
        return Err("it cannot be read here: its colours are stored one after the other".to_owned());
    }
    let data = decoder.read_image().map_err(|e| explain(&e))?;
    let mut data = eight_bits(data, bits)?;
    if inverts {
        data.iter_mut().for_each(|ink| *ink = 255 - *ink);
    }
    let data = Samples { data, width, height, samples: usize::from(samples), bits };
    data.picture(color, map.as_deref())
}

/// Returns samples of a pixel and bits of a sample.
fn layout(color: ColorType) -> Result<(u16, u8), String> {
    let found = match color {
        ColorType::Gray(bits) | ColorType::Palette(bits) => (1, bits),
        ColorType::GrayA(bits) => (2, bits),
        ColorType::RGB(bits) | ColorType::YCbCr(bits) => (3, bits),
        ColorType::RGBA(bits) | ColorType::CMYK(bits) => (4, bits),
        ColorType::Multiband { bit_depth, num_samples } => (num_samples, bit_depth),
        other => return Err(format!("it cannot be read here: its pixels are {other:?}")),
    };
    Ok(found)
}

/// Makes samples of eight bits or fewer of those of any width.
fn eight_bits(data: DecodingResult, bits: u8) -> Result<Vec<u8>, String> {
    let float = |value: f32| (value.clamp(0.0, 1.0) * 255.0 + 0.5) as u8;
    Ok(match data {
        DecodingResult::U8(data) => data,
        // A palette's numbers stay as they are.
        DecodingResult::U16(data) if bits < 16 => data.into_iter().map(|value| (value >> (bits - 8)) as u8).collect(),
        DecodingResult::U16(data) => data.into_iter().map(|value| (value >> 8) as u8).collect(),
        DecodingResult::U32(data) => data.into_iter().map(|value| (value >> 24) as u8).collect(),
        DecodingResult::F32(data) => data.into_iter().map(float).collect(),
        DecodingResult::F64(data) => data.into_iter().map(|value| float(value as f32)).collect(),
        _ => return Err("it cannot be read here: its numbers are neither whole nor decimal fractions".to_owned()),
    })
}

/// The samples of a page.
struct Samples {
    data: Vec<u8>,
    width: u32,
    height: u32,
    samples: usize,
    bits: u8,
}

impl Samples {
    fn picture(self, color: ColorType, map: Option<&[u16]>) -> Result<DynamicImage, String> {
        let short = || "it is damaged: the file has fewer pixels than it says".to_owned();
        let (width, height) = (self.width, self.height);
        let gray = |data| GrayImage::from_raw(width, height, data).map(DynamicImage::ImageLuma8);
        let rgb = |data| RgbImage::from_raw(width, height, data).map(DynamicImage::ImageRgb8);
        let found = match color {
            _ if map.is_some() => {
                let map = map.unwrap_or_default();
                let size = map.len() / 3;
                let mut indexes = self.unpacked();
                if self.samples > 1 {
                    indexes = indexes.chunks_exact(self.samples).map(|pixel| pixel[0]).collect();
                }
                let level = |index: usize| map.get(index).map_or(0, |level| (level >> 8) as u8);
                let pixels = indexes.iter().flat_map(|index| {
                    let index = usize::from(*index);
                    [level(index), level(index + size), level(index + 2 * size)]
                });
                rgb(pixels.collect())
            }
            ColorType::Gray(bits) if bits < 8 => {
                let most = (1_u16 << bits) - 1;
                let level = |value: u8| (u16::from(value) * 255 / most) as u8;
                gray(self.unpacked().into_iter().map(level).collect())
            }
            ColorType::Gray(_) => gray(self.data),
            ColorType::GrayA(_) => {
                image::GrayAlphaImage::from_raw(width, height, self.data).map(DynamicImage::ImageLumaA8)
            }
            ColorType::RGB(_) => rgb(self.data),
            ColorType::RGBA(_) => RgbaImage::from_raw(width, height, self.data).map(DynamicImage::ImageRgba8),
            ColorType::YCbCr(_) => {
                let mut data = self.data;
                data.as_chunks_mut::<3>().0.iter_mut().for_each(|pixel| *pixel = from_ycbcr(*pixel));
                rgb(data)
            }
            ColorType::CMYK(_) => {
                rgb(self.data.as_chunks::<4>().0.iter().flat_map(|pixel| from_cmyk(*pixel)).collect())
            }
            ColorType::Multiband { num_samples, .. } if num_samples > 3 => {
                let pixels = self.data.chunks_exact(self.samples).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]);
                rgb(pixels.collect())
            }
            _ => {
                let pixels = self.data.chunks_exact(self.samples.max(1)).map(|pixel| pixel[0]);
                gray(pixels.collect())
            }
        };
        found.ok_or_else(short)
    }

    /// Returns a byte for each sample of fewer than eight bits. Each row begins with a byte.
    fn unpacked(&self) -> Vec<u8> {
        let bits = usize::from(self.bits);
        let (width, height) = (self.width as usize, self.height as usize);
        if bits >= 8 || self.data.len() >= width * height {
            return self.data.clone();
        }
        let row = (width * bits).div_ceil(8);
        let mask = (1_u8 << bits) - 1;
        let mut unpacked = Vec::with_capacity(width * height);
        for line in self.data.chunks(row.max(1)).take(height) {
            unpacked.extend((0..width).map(|x| {
                let bit = x * bits;
                line.get(bit / 8).map_or(0, |byte| (byte >> (8 - bits - bit % 8)) & mask)
            }));
        }
        unpacked
    }
}

/// The colours of JPEG with the full range.
fn from_ycbcr([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let (y, cb, cr) = (f32::from(y), f32::from(cb) - 128.0, f32::from(cr) - 128.0);
    let level = |value: f32| (value + 0.5).clamp(0.0, 255.0) as u8;
    [level(y + 1.402 * cr), level(y - 0.344_14 * cb - 0.714_14 * cr), level(y + 1.772 * cb)]
}

fn from_cmyk([c, m, y, k]: [u8; 4]) -> [u8; 3] {
    let level = |ink: u8| ((255 - u16::from(ink)) * (255 - u16::from(k)) / 255) as u8;
    [level(c), level(m), level(y)]
}

fn explain(error: &tiff::TiffError) -> String {
    match error {
        tiff::TiffError::UnsupportedError(e) => format!("it cannot be read here: {}", one_line(&e.to_string())),
        tiff::TiffError::LimitsExceeded => {
            format!("it is too large: at most {} MiB are used for pixels", limits::MAX_BYTES >> 20)
        }
        tiff::TiffError::IoError(_) => "it is damaged: the file ends too early".to_owned(),
        other => format!("it is damaged: {}", one_line(&other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn each_page_has_its_size() {
        let bytes = samples::tiff(&[(4, 3), (7, 2), (5, 5)]);
        assert_eq!(offsets(&bytes).unwrap().len(), 3);
        let sizes = (0..3).map(|page| {
            let header = header(&bytes, page).unwrap();
            (header.width, header.height)
        });
        assert_eq!(sizes.collect::<Vec<_>>(), [(4, 3), (7, 2), (5, 5)]);
        assert!(header(&bytes, 3).is_err());
    }

    #[test]
    fn a_circle_of_pages_ends() {
        let mut bytes = samples::tiff(&[(4, 3), (7, 2)]);
        let pages = offsets(&bytes).unwrap();
        let entries = usize::from(u16::from_le_bytes([bytes[pages[1]], bytes[pages[1] + 1]]));
        let at = pages[1] + 2 + 12 * entries;
        let first = (pages[0] as u32).to_le_bytes();
        bytes[at..at + 4].copy_from_slice(&first);
        assert_eq!(offsets(&bytes).unwrap().len(), 2);
    }

    #[test]
    fn narrow_samples_and_other_colours_become_pixels() {
        let samples = Samples { data: vec![0b1010_0000, 0b0100_0000], width: 3, height: 2, samples: 1, bits: 1 };
        assert_eq!(samples.unpacked(), [1, 0, 1, 0, 1, 0]);
        let picture = samples.picture(ColorType::Gray(1), None).unwrap();
        assert_eq!(picture.as_bytes(), [255, 0, 255, 0, 255, 0]);
        let samples = Samples { data: vec![1, 0], width: 2, height: 1, samples: 1, bits: 8 };
        let map = [0x1000, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000];
        let picture = samples.picture(ColorType::Palette(8), Some(&map)).unwrap();
        assert_eq!(picture.as_bytes(), [0x20, 0x40, 0x60, 0x10, 0x30, 0x50]);
        assert_eq!(from_ycbcr([255, 128, 128]), [255, 255, 255]);
        assert_eq!(from_cmyk([0, 0, 0, 255]), [0, 0, 0]);
    }
}
