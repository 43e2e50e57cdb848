//! Pictures as bytes of a file.

use crate::kind::Kind;
use crate::limits;
use crate::picture::{AsPixels, Picture, flatten, without_alpha};
use crate::scale::simplify;
use image::codecs::bmp::BmpEncoder;
use image::codecs::gif::{GifEncoder, Repeat};
use image::codecs::jpeg::{JpegEncoder, PixelDensity};
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::codecs::pnm::{PnmEncoder, PnmSubtype, SampleEncoding};
use image::codecs::webp::WebPEncoder;
use image::{Delay, DynamicImage, Frame, ImageEncoder, ImageError, RgbaImage};
use std::collections::HashMap;
use std::io::Cursor;
use tiff::encoder::{Compression, TiffEncoder, colortype};

/// The format of an output, with its settings.
#[derive(Debug, Clone)]
pub struct Format {
    pub kind: Kind,
    /// 1 to 100.
    pub quality: Option<u8>,
    /// The colour that replaces transparency, where a format does not support it.
    pub background: [u8; 3],
    /// How often an animation is shown; 0 for without end.
    pub repeat: u16,
    /// Dots per inch.
    pub density: Option<u16>,
    /// A limit on the bytes of a JPEG, for which its quality is lowered.
    pub most_bytes: Option<usize>,
    /// For PNM: `pbm`, `pgm` or `ppm`.
    pub ending: String,
    /// For PNG: a palette of at most 256 colours.
    pub palette: bool,
    /// Keep the metadata.
    pub metadata: bool,
}

/// ImageMagick's quality for JPEG where nothing else is said.
pub const QUALITY: u8 = 92;

/// The qualities that are tried, from this one down, if a JPEG is too large.
const LOWER: [u8; 9] = [92, 85, 80, 70, 60, 50, 40, 30, 20];

impl Format {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            quality: None,
            background: [255; 3],
            repeat: 0,
            density: None,
            most_bytes: None,
            ending: kind.ending().to_owned(),
            palette: false,
            metadata: true,
        }
    }
}

/// Encodes one picture, or several for a format that holds several.
pub fn encode(pictures: &[Picture], format: &Format) -> Result<Vec<u8>, String> {
    let Some(first) = pictures.first() else { return Err("there is no picture to write".to_owned()) };
    match format.kind {
        Kind::Jpeg => jpeg_within(first, format),
        Kind::Png => png(first, format),
        Kind::Webp => webp(first, format),
        Kind::Gif => gif(pictures, format),
        Kind::Tiff => tiff(pictures),
        Kind::Bmp => {
            let mut bytes = Vec::new();
            let encoder = BmpEncoder::new(&mut bytes);
            let pixels = simplify(first.pixels.clone());
            let (width, height) = (pixels.width(), pixels.height());
            encoder.write_image(pixels.as_bytes(), width, height, pixels.color().into()).map_err(|e| failed(&e))?;
            Ok(bytes)
        }
        Kind::Pnm => pnm(first, format),
    }
}

fn failed(error: &ImageError) -> String {
    format!("it cannot be written: {}", crate::source::one_line(&error.to_string()))
}

fn jpeg_within(picture: &Picture, format: &Format) -> Result<Vec<u8>, String> {
    let flat = flatten(picture.pixels.clone(), format.background);
    let quality = format.quality.unwrap_or(QUALITY);
    let mut bytes = jpeg(&flat, quality, picture, format)?;
    if let Some(most) = format.most_bytes {
        for lower in LOWER.into_iter().filter(|lower| *lower < quality) {
            if bytes.len() <= most {
                break;
            }
            bytes = jpeg(&flat, lower, picture, format)?;
        }
    }
    Ok(bytes)
}

fn jpeg(flat: &DynamicImage, quality: u8, picture: &Picture, format: &Format) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, quality.clamp(1, 100));
    if let Some(density) = format.density {
        encoder.set_pixel_density(PixelDensity::dpi(density));
    }
    with_metadata(&mut encoder, picture, format);
    let (width, height) = (flat.width(), flat.height());
    encoder.write_image(flat.as_bytes(), width, height, flat.color().into()).map_err(|e| failed(&e))?;
    Ok(bytes)
}

/// Writes metadata where the format has a place for it. A profile for three colours does not fit a grey picture.
fn with_metadata(encoder: &mut impl ImageEncoder, picture: &Picture, format: &Format) {
    if !format.metadata {
        return;
    }
    if let Some(icc) = picture.icc.as_ref().filter(|_| picture.pixels.color().has_color()) {
        let _ = encoder.set_icc_profile(icc.clone());
    }
    if let Some(exif) = &picture.exif {
        let _ = encoder.set_exif_metadata(exif.clone());
    }
}

fn png(picture: &Picture, format: &Format) -> Result<Vec<u8>, String> {
    let mut pixels = simplify(picture.pixels.clone());
    if format.palette {
        pixels = simplify(DynamicImage::ImageRgba8(few_colors(pixels.into_rgba8(), 256)));
    }
    // The tens of ImageMagick's quality for PNG are zlib's level.
    let compression = match format.quality.map(|quality| quality / 10) {
        None => CompressionType::Default,
        Some(level) => CompressionType::Level(level.clamp(1, 9)),
    };
    let mut bytes = Vec::new();
    let mut encoder = PngEncoder::new_with_quality(&mut bytes, compression, FilterType::Adaptive);
    with_metadata(&mut encoder, picture, format);
    let (width, height) = (pixels.width(), pixels.height());
    encoder.write_image(pixels.as_bytes(), width, height, pixels.color().into()).map_err(|e| failed(&e))?;
    Ok(bytes)
}

/// Encodes without loss, which is the only way known to the library.
fn webp(picture: &Picture, format: &Format) -> Result<Vec<u8>, String> {
    let pixels = simplify(picture.pixels.clone());
    if pixels.width() > 16_383 || pixels.height() > 16_383 {
        return Err("it cannot be written: a side of a WebP has at most 16383 pixels".to_owned());
    }
    let mut bytes = Vec::new();
    let mut encoder = WebPEncoder::new_lossless(&mut bytes);
    with_metadata(&mut encoder, picture, format);
    let (width, height) = (pixels.width(), pixels.height());
    encoder.write_image(pixels.as_bytes(), width, height, pixels.color().into()).map_err(|e| failed(&e))?;
    Ok(bytes)
}

/// Of 1 to 30: how fast the palette of a frame is found. The colours of slower ones differ little.
const GIF_SPEED: i32 = 10;

fn gif(pictures: &[Picture], format: &Format) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new_with_speed(&mut bytes, GIF_SPEED);
    if pictures.len() > 1 {
        let repeat = if format.repeat == 0 { Repeat::Infinite } else { Repeat::Finite(format.repeat) };
        encoder.set_repeat(repeat).map_err(|e| failed(&e))?;
    }
    let size = pictures[0].size();
    for picture in pictures {
        let (width, height) = picture.size();
        if width > u32::from(u16::MAX) || height > u32::from(u16::MAX) {
            return Err("it cannot be written: a side of a GIF has at most 65535 pixels".to_owned());
        }
        let mut image = picture.pixels.to_rgba8();
        if picture.size() != size {
            // A frame on its own canvas, so that what does not fit is cut off.
            let mut canvas = RgbaImage::new(size.0, size.1);
            image::imageops::overlay(&mut canvas, &image, 0, 0);
            image = canvas;
        }
        // A pixel is transparent or is not.
        image.as_chunks_mut_pixels().iter_mut().for_each(|pixel| pixel[3] = if pixel[3] < 128 { 0 } else { 255 });
        let delay = Delay::from_numer_denom_ms(picture.delay_ms, 1);
        encoder.encode_frame(Frame::from_parts(image, 0, 0, delay)).map_err(|e| failed(&e))?;
    }
    drop(encoder);
    Ok(bytes)
}

fn tiff(pictures: &[Picture]) -> Result<Vec<u8>, String> {
    let failed = |e: tiff::TiffError| format!("it cannot be written: {}", crate::source::one_line(&e.to_string()));
    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut bytes).map_err(failed)?.with_compression(Compression::Lzw);
    for picture in pictures {
        let (width, height) = picture.size();
        match simplify(picture.pixels.clone()) {
            DynamicImage::ImageLuma8(image) => encoder.write_image::<colortype::Gray8>(width, height, image.as_raw()),
            DynamicImage::ImageRgb8(image) => encoder.write_image::<colortype::RGB8>(width, height, image.as_raw()),
            other => encoder.write_image::<colortype::RGBA8>(width, height, other.into_rgba8().as_raw()),
        }
        .map_err(failed)?;
    }
    Ok(bytes.into_inner())
}

fn pnm(picture: &Picture, format: &Format) -> Result<Vec<u8>, String> {
    let flat = flatten(picture.pixels.clone(), format.background);
    let (subtype, pixels) = match format.ending.as_str() {
        "pgm" => (PnmSubtype::Graymap(SampleEncoding::Binary), DynamicImage::ImageLuma8(flat.into_luma8())),
        "pbm" => {
            let mut gray = flat.into_luma8();
            let samples: &mut [u8] = gray.as_mut();
            samples.iter_mut().for_each(|level| *level = u8::from(*level >= 128));
            (PnmSubtype::Bitmap(SampleEncoding::Binary), DynamicImage::ImageLuma8(gray))
        }
        _ => (PnmSubtype::Pixmap(SampleEncoding::Binary), DynamicImage::ImageRgb8(flat.into_rgb8())),
    };
    let mut bytes = Vec::new();
    let encoder = PnmEncoder::new(&mut bytes).with_subtype(subtype);
    let (width, height) = (pixels.width(), pixels.height());
    let color = match format.ending.as_str() {
        "pbm" => image::ExtendedColorType::L1,
        _ => pixels.color().into(),
    };
    if color == image::ExtendedColorType::L1 {
        return Ok(bitmap(&pixels));
    }
    encoder.write_image(pixels.as_bytes(), width, height, color).map_err(|e| failed(&e))?;
    Ok(bytes)
}

/// A PBM, whose ones are black.
fn bitmap(pixels: &DynamicImage) -> Vec<u8> {
    let mut bytes = format!("P4\n{} {}\n", pixels.width(), pixels.height()).into_bytes();
    for row in pixels.as_bytes().chunks(pixels.width() as usize) {
        for eight in row.chunks(8) {
            let bits = eight.iter().enumerate().fold(0, |bits, (at, level)| bits | ((level ^ 1) << (7 - at)));
            bytes.push(bits);
        }
    }
    bytes
}

/// Reduces a picture to this many colours, 1 to 256.
pub fn few_colors(mut image: RgbaImage, count: usize) -> RgbaImage {
    if image.width() == 0 {
        return image;
    }
    let network = color_quant::NeuQuant::new(10, count.clamp(64, 256), image.as_raw());
    let map = network.color_map_rgba();
    let mut used = vec![0_u64; map.len() / 4];
    // Neighbours have the same colour so often that looking one up costs less than finding it.
    let mut known = HashMap::new();
    let mut index_of = |pixel: &[u8; 4]| match known.get(pixel) {
        Some(index) => *index,
        None => {
            let index = network.index_of(pixel);
            if known.len() < MAX_KNOWN {
                known.insert(*pixel, index);
            }
            index
        }
    };
    for pixel in image.as_chunks_mut_pixels() {
        used[index_of(pixel)] += 1;
    }
    let kept = merged(&map, &used, count.max(1));
    for pixel in image.as_chunks_mut_pixels() {
        *pixel = kept[index_of(pixel)];
    }
    image
}

/// Colours of a picture whose place in the palette is remembered.
const MAX_KNOWN: usize = 1 << 16;

/// Maps each colour of a palette to the nearest of those that are used most.
fn merged(map: &[u8], used: &[u64], count: usize) -> Vec<[u8; 4]> {
    let colors = map.as_chunks::<4>().0;
    let mut order: Vec<usize> = (0..colors.len()).filter(|index| used[*index] > 0).collect();
    order.sort_by_key(|index| std::cmp::Reverse(used[*index]));
    order.truncate(count);
    let distance = |a: &[u8; 4], b: &[u8; 4]| -> u32 {
        a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b)) * u32::from(a.abs_diff(*b))).sum()
    };
    let nearest = |color: &[u8; 4]| order.iter().map(|index| colors[*index]).min_by_key(|kept| distance(kept, color));
    colors.iter().map(|color| nearest(color).unwrap_or(*color)).collect()
}

/// Checks that the copies that encoding makes fit into memory.
pub fn check_copies(pictures: &[Picture]) -> Result<(), String> {
    let all: u64 = pictures.iter().map(Picture::bytes).sum();
    let largest = pictures.iter().map(Picture::bytes).max().unwrap_or_default();
    limits::check_bytes(all + largest)
}

/// Encodes a picture as PNG for a model.
pub(crate) fn plain_png(pixels: &DynamicImage) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, FilterType::Adaptive);
    let (width, height) = (pixels.width(), pixels.height());
    encoder.write_image(pixels.as_bytes(), width, height, pixels.color().into()).map_err(|e| failed(&e))?;
    Ok(bytes)
}

/// Encodes a picture as JPEG for a model.
pub(crate) fn plain_jpeg(pixels: &DynamicImage, quality: u8) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
    let pixels = if pixels.color().has_alpha() { &without_alpha(pixels.clone()) } else { pixels };
    let (width, height) = (pixels.width(), pixels.height());
    encoder.write_image(pixels.as_bytes(), width, height, pixels.color().into()).map_err(|e| failed(&e))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::source::Source;

    fn back(bytes: Vec<u8>) -> Source {
        Source::new(bytes).unwrap()
    }

    #[test]
    fn every_format_is_read_back() {
        let picture = Picture::new(samples::photo(40, 30), Kind::Png);
        for kind in [Kind::Jpeg, Kind::Png, Kind::Webp, Kind::Gif, Kind::Bmp, Kind::Tiff, Kind::Pnm] {
            let bytes = encode(std::slice::from_ref(&picture), &Format::new(kind)).unwrap();
            let source = back(bytes);
            assert_eq!(source.kind, kind);
            assert_eq!(source.decode(0).unwrap().size(), (40, 30), "{kind:?}");
        }
        for ending in ["pbm", "pgm", "ppm"] {
            let format = Format { ending: ending.to_owned(), ..Format::new(Kind::Pnm) };
            let source = back(encode(std::slice::from_ref(&picture), &format).unwrap());
            assert_eq!(source.decode(0).unwrap().size(), (40, 30), "{ending}");
        }
    }

    #[test]
    fn several_pictures_are_frames_or_pages() {
        let mut picture = Picture::new(samples::photo(12, 9), Kind::Png);
        picture.delay_ms = 70;
        let pictures = vec![picture; 3];
        for kind in [Kind::Gif, Kind::Tiff] {
            let source = back(encode(&pictures, &Format::new(kind)).unwrap());
            assert_eq!(source.count(), 3, "{kind:?}");
            assert_eq!(source.decode_all().unwrap().len(), 3);
        }
        let gif = back(encode(&pictures, &Format::new(Kind::Gif)).unwrap());
        assert_eq!(gif.decode_all().unwrap()[1].delay_ms, 70);
    }

    #[test]
    fn metadata_is_kept_or_dropped() {
        let source = back(samples::jpeg_with_exif(&samples::photo(20, 10), 6));
        let picture = source.decode(0).unwrap();
        for kind in [Kind::Jpeg, Kind::Png, Kind::Webp] {
            let kept = encode(std::slice::from_ref(&picture), &Format::new(kind)).unwrap();
            assert!(back(kept).header(0).unwrap().exif.is_some(), "{kind:?}");
            let format = Format { metadata: false, ..Format::new(kind) };
            let dropped = encode(std::slice::from_ref(&picture), &format).unwrap();
            assert!(back(dropped).header(0).unwrap().exif.is_none(), "{kind:?}");
        }
    }

    #[test]
    fn a_jpeg_fits_its_limit_and_colours_their_number() {
        let picture = Picture::new(samples::photo(200, 200), Kind::Png);
        let whole = encode(std::slice::from_ref(&picture), &Format::new(Kind::Jpeg)).unwrap();
        let format = Format { most_bytes: Some(whole.len() / 2), ..Format::new(Kind::Jpeg) };
        assert!(encode(std::slice::from_ref(&picture), &format).unwrap().len() <= whole.len() / 2);
        let reduced = few_colors(picture.pixels.to_rgba8(), 4);
        let colors: std::collections::BTreeSet<_> = reduced.pixels().map(|pixel| pixel.0).collect();
        assert!(colors.len() <= 4 && colors.len() > 1, "{colors:?}");
    }
}
