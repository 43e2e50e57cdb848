//! Pictures for the tests, made in code.

use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, DynamicImage, Frame, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use std::io::Cursor;
use tiff::encoder::{TiffEncoder, colortype};

/// A picture whose corners differ, with many colours like a photo.
pub fn photo(width: u32, height: u32) -> DynamicImage {
    let mut seed = 7_u32;
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, |x, y| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = (seed >> 28) as u8;
        let (x, y) = (255 * x / width.max(1), 255 * y / height.max(1));
        Rgb([(x as u8).saturating_add(noise), (y as u8).saturating_add(noise), 255 - x as u8 / 2 - y as u8 / 2])
    }))
}

/// A white page with black bars.
pub fn page(width: u32, height: u32) -> DynamicImage {
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, |x, y| {
        if y % 20 < 3 && x % 50 < 40 { Rgb([0; 3]) } else { Rgb([255; 3]) }
    }))
}

pub fn encoded(pixels: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A JPEG with an EXIF block of these fields.
pub fn jpeg_with_exif(pixels: &DynamicImage, orientation: u16) -> Vec<u8> {
    let jpeg = encoded(pixels, ImageFormat::Jpeg);
    let exif = exif_block(orientation);
    let mut with = jpeg[..2].to_vec();
    with.extend([0xff, 0xe1]);
    with.extend(((exif.len() + 8) as u16).to_be_bytes());
    with.extend(b"Exif\0\0");
    with.extend(exif);
    with.extend(&jpeg[2..]);
    with
}

/// A block with make, model, orientation, dates and a place.
pub fn exif_block(orientation: u16) -> Vec<u8> {
    use exif::{Field, In, Rational, Tag, Value, experimental::Writer};
    let ascii = |text: &str| Value::Ascii(vec![text.as_bytes().to_vec()]);
    let degrees = |d: u32, m: u32, s: u32| Value::Rational(vec![(d, 1).into(), (m, 1).into(), (s, 100).into()]);
    let field = |tag, value| Field { tag, ifd_num: In::PRIMARY, value };
    let fields = [
        field(Tag::Make, ascii("Acme")),
        field(Tag::Model, ascii("Camera 3")),
        field(Tag::Orientation, Value::Short(vec![orientation])),
        field(Tag::DateTime, ascii("2024:05:01 10:20:30")),
        field(Tag::DateTimeOriginal, ascii("2024:05:01 10:20:30")),
        field(Tag::ExposureTime, Value::Rational(vec![Rational { num: 1, denom: 125 }])),
        field(Tag::FNumber, Value::Rational(vec![(28, 10).into()])),
        field(Tag::GPSLatitudeRef, ascii("N")),
        field(Tag::GPSLatitude, degrees(59, 54, 4500)),
        field(Tag::GPSLongitudeRef, ascii("E")),
        field(Tag::GPSLongitude, degrees(10, 45, 1230)),
    ];
    let mut writer = Writer::new();
    fields.iter().for_each(|field| writer.push_field(field));
    let mut bytes = Cursor::new(Vec::new());
    writer.write(&mut bytes, true).unwrap();
    bytes.into_inner()
}

/// An animation of frames in different colours, repeated without end.
pub fn gif(frames: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    {
        let mut encoder = GifEncoder::new_with_speed(&mut bytes, 30);
        encoder.set_repeat(Repeat::Infinite).unwrap();
        for number in 0..frames {
            let image = RgbaImage::from_pixel(12, 8, Rgba([(number * 40) as u8, 100, 200, 255]));
            let delay = Delay::from_numer_denom_ms(120, 1);
            encoder.encode_frame(Frame::from_parts(image, 0, 0, delay)).unwrap();
        }
    }
    bytes
}

/// Grey pages of these sizes.
pub fn tiff(pages: &[(u32, u32)]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut bytes).unwrap();
    for (number, (width, height)) in pages.iter().enumerate() {
        let data = vec![number as u8 * 50; (width * height) as usize];
        encoder.write_image::<colortype::Gray8>(*width, *height, &data).unwrap();
    }
    bytes.into_inner()
}
