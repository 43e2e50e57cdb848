//! Pictures that are decoded and packed again.

use std::io::{Cursor, Write};

use super::{Picture, Pixels};
use crate::error::{Error, Result};
use crate::limits;

pub fn png(bytes: Vec<u8>) -> Result<Picture> {
    let damaged = |e: png::DecodingError| Error::damaged("PNG", e);
    let mut decoder = png::Decoder::new(Cursor::new(&bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(damaged)?;
    let (width, height) = (reader.info().width, reader.info().height);
    check(width, height)?;
    let size = reader.output_buffer_size().ok_or("it has too many pixels")?;
    let mut samples = vec![0; size];
    let frame = reader.next_frame(&mut samples).map_err(damaged)?;
    samples.truncate(frame.buffer_size());
    let channels = match frame.color_type {
        png::ColorType::Grayscale => 1,
        png::ColorType::GrayscaleAlpha => 2,
        png::ColorType::Rgba => 4,
        _ => 3,
    };
    drop(reader);
    Ok(picture(width, height, &samples, channels, bytes, "png"))
}

pub fn gif(bytes: Vec<u8>) -> Result<Picture> {
    let damaged = |e: gif::DecodingError| Error::damaged("GIF", e);
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    options.set_memory_limit(gif::MemoryLimit::Bytes(
        std::num::NonZeroU64::new(limits::PIXELS as u64 * 4).unwrap_or(std::num::NonZeroU64::MIN),
    ));
    let mut decoder = options.read_info(Cursor::new(&bytes)).map_err(damaged)?;
    let frame = decoder.read_next_frame().map_err(damaged)?.ok_or("it has no frame")?;
    let (width, height) = (u32::from(frame.width), u32::from(frame.height));
    check(width, height)?;
    let samples = frame.buffer.to_vec();
    drop(decoder);
    if samples.len() < width as usize * height as usize * 4 {
        return Err(Error::new("it is damaged: its frame is too short"));
    }
    Ok(picture(width, height, &samples, 4, bytes, "gif"))
}

pub fn webp(bytes: Vec<u8>) -> Result<Picture> {
    let damaged = |e: image_webp::DecodingError| Error::damaged("WebP", e);
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(&bytes)).map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    check(width, height)?;
    decoder.set_memory_limit(limits::PIXELS as usize * 8);
    let size = decoder.output_buffer_size().ok_or("it has too many pixels")?;
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut samples = vec![0; size];
    decoder.read_image(&mut samples).map_err(damaged)?;
    // Few programs know it: they get PNG.
    let file = to_png(width, height, &samples, channels)?;
    Ok(picture(width, height, &samples, channels, file, "png"))
}

/// BMP with 24 or 32 bits and no compression, as programs write it.
pub fn bmp(bytes: Vec<u8>) -> Result<Picture> {
    let damaged = || Error::new("it is damaged: it ends too early");
    let long = |at: usize| {
        let four: Option<[u8; 4]> = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map(i32::from_le_bytes).ok_or_else(damaged)
    };
    let (start, width, rows) = (long(10)?, long(18)?, long(22)?);
    let bits = long(28)? & 0xffff;
    if !matches!(bits, 24 | 32) || !matches!(long(30)?, 0 | 3) {
        return Err(Error::new("it is BMP with a palette or packed: make it PNG"));
    }
    let (width, height) = (u32::try_from(width).map_err(|_| damaged())?, rows.unsigned_abs());
    check(width, height)?;
    let step = bits as usize / 8;
    let stride = (width as usize * step).div_ceil(4) * 4;
    let start = usize::try_from(start).map_err(|_| damaged())?;
    let mut samples = Vec::with_capacity(width as usize * height as usize * 3);
    for row in 0..height as usize {
        let row = if rows > 0 { height as usize - 1 - row } else { row };
        let line =
            bytes.get(start + row * stride..).and_then(|line| line.get(..width as usize * step)).ok_or_else(damaged)?;
        samples.extend(line.chunks_exact(step).flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]));
    }
    let file = to_png(width, height, &samples, 3)?;
    Ok(picture(width, height, &samples, 3, file, "png"))
}

fn check(width: u32, height: u32) -> Result<()> {
    if width == 0 || height == 0 {
        return Err(Error::new("it is empty"));
    }
    if f64::from(width) * f64::from(height) > limits::PIXELS {
        return Err(Error::limit("it has too many pixels", limits::PIXELS));
    }
    Ok(())
}

fn picture(width: u32, height: u32, samples: &[u8], channels: usize, file: Vec<u8>, end: &'static str) -> Picture {
    let is_gray = channels < 3;
    let mut rgb = Deflate::new();
    let mut alpha = Deflate::new();
    let mut is_opaque = true;
    let mut line = Vec::new();
    for row in samples.chunks(width as usize * channels) {
        line.clear();
        row.chunks_exact(channels).for_each(|pixel| {
            line.extend(if is_gray { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] });
        });
        rgb.write(&line);
        if channels.is_multiple_of(2) {
            line.clear();
            line.extend(row.chunks_exact(channels).map(|pixel| pixel[channels - 1]));
            is_opaque &= line.iter().all(|value| *value == 255);
            alpha.write(&line);
        }
    }
    let alpha = (!is_opaque).then(|| alpha.finish());
    Picture { stored: (width, height), width, height, pixels: Pixels::Samples { rgb: rgb.finish(), alpha }, file, end }
}

struct Deflate(flate2::write::ZlibEncoder<Vec<u8>>);

impl Deflate {
    fn new() -> Self {
        Self(flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default()))
    }

    fn write(&mut self, bytes: &[u8]) {
        // Writing to memory does not fail.
        let _ = self.0.write_all(bytes);
    }

    fn finish(self) -> Vec<u8> {
        self.0.finish().unwrap_or_default()
    }
}

fn to_png(width: u32, height: u32, samples: &[u8], channels: usize) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(if channels == 4 { png::ColorType::Rgba } else { png::ColorType::Rgb });
    let failed = |e: png::EncodingError| Error::damaged("PNG", e);
    encoder.write_header().map_err(failed)?.write_image_data(samples).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A red PNG whose left half is clear.
    pub fn sample(width: u32, height: u32) -> Vec<u8> {
        let pixel = |at: u32| [200, 30, 40, if at % width < width / 2 { 0 } else { 255 }];
        let samples: Vec<u8> = (0..width * height).flat_map(pixel).collect();
        to_png(width, height, &samples, 4).unwrap()
    }

    #[test]
    fn pictures_are_decoded() {
        let found = png(sample(8, 4)).unwrap();
        assert_eq!((found.width, found.height, found.end), (8, 4, "png"));
        assert!(matches!(found.pixels, Pixels::Samples { alpha: Some(_), .. }));
        let mut bytes = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x18\0".to_vec();
        bytes.resize(54, 0);
        bytes.extend([1, 2, 3, 4, 5, 6, 0, 0]);
        assert_eq!(bmp(bytes.clone()).unwrap().width, 2);
        let mut file = Vec::new();
        let mut encoder = gif::Encoder::new(&mut file, 2, 2, &[255, 0, 0, 0, 255, 0]).unwrap();
        encoder.write_frame(&gif::Frame::from_indexed_pixels(2, 2, vec![0, 1, 1, 0], None)).unwrap();
        drop(encoder);
        assert_eq!(gif(file.clone()).unwrap().height, 2);
        for (bytes, read) in [(sample(8, 4), png as fn(Vec<u8>) -> Result<Picture>), (bytes, bmp), (file, gif)] {
            for end in 0..bytes.len() {
                let _ = read(bytes[..end].to_vec());
            }
        }
        assert!(webp(b"RIFF\x04\0\0\0WEBP".to_vec()).is_err());
    }
}
