//! Scaling, and cutting out what is scaled.

use crate::limits;
use crate::picture::{is_transparent, without_alpha};
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::metadata::Orientation;
use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};

/// A rectangle of pixels inside a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rectangle {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
}

/// How pixels between pixels are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    Nearest,
    Box,
    Bilinear,
    Cubic,
    Mitchell,
    #[default]
    Lanczos,
}

impl Filter {
    /// Returns the filter of this name, as ImageMagick has it.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "point" | "nearest" => Self::Nearest,
            "box" => Self::Box,
            "triangle" | "bilinear" => Self::Bilinear,
            "catrom" | "cubic" | "hermite" => Self::Cubic,
            "mitchell" => Self::Mitchell,
            "lanczos" | "lanczos2" | "undefined" => Self::Lanczos,
            _ => return None,
        })
    }

    fn algorithm(self) -> ResizeAlg {
        let kind = match self {
            Self::Nearest => return ResizeAlg::Nearest,
            Self::Box => FilterType::Box,
            Self::Bilinear => FilterType::Bilinear,
            Self::Cubic => FilterType::CatmullRom,
            Self::Mitchell => FilterType::Mitchell,
            Self::Lanczos => FilterType::Lanczos3,
        };
        ResizeAlg::Convolution(kind)
    }
}

impl Rectangle {
    pub fn whole((width, height): (u32, u32)) -> Self {
        Self { x: 0, y: 0, width, height }
    }

    /// Returns the part of it that lies in a picture of this size, or `None` if no pixel does.
    pub fn within(self, (width, height): (u32, u32)) -> Option<Self> {
        let (x, y) = (self.x.min(width), self.y.min(height));
        let right = self.x.saturating_add(self.width).min(width);
        let bottom = self.y.saturating_add(self.height).min(height);
        let cut = Self { x, y, width: right - x, height: bottom - y };
        (cut.width > 0 && cut.height > 0).then_some(cut)
    }

    /// Returns where a rectangle of the upright picture is in the stored one, whose size is given.
    pub fn before(self, orientation: Orientation, (width, height): (u32, u32)) -> Self {
        let Self { x, y, width: w, height: h } = self;
        let (right, bottom) =
            (|from: u32, length: u32| width - from - length, |from: u32, length: u32| height - from - length);
        match orientation {
            Orientation::NoTransforms => self,
            Orientation::FlipHorizontal => Self { x: right(x, w), ..self },
            Orientation::FlipVertical => Self { y: bottom(y, h), ..self },
            Orientation::Rotate180 => Self { x: right(x, w), y: bottom(y, h), ..self },
            Orientation::Rotate90 => Self { x: y, y: bottom(x, w), width: h, height: w },
            Orientation::Rotate270 => Self { x: right(y, h), y: x, width: h, height: w },
            Orientation::Rotate90FlipH => Self { x: y, y: x, width: h, height: w },
            Orientation::Rotate270FlipH => Self { x: right(y, h), y: bottom(x, w), width: h, height: w },
        }
    }
}

/// Scales a part of a picture to a size.
pub fn resize(
    pixels: &DynamicImage,
    part: Rectangle,
    (width, height): (u32, u32),
    filter: Filter,
) -> Result<DynamicImage, String> {
    let channels = u64::from(pixels.color().channel_count());
    limits::check(width, height, channels)?;
    let of = (pixels.width(), pixels.height());
    let scaled = u64::from(width) * u64::from(height) * channels;
    // Between the two passes there is a picture of the old height and the new width, and alpha needs a copy.
    let between = u64::from(part.height) * u64::from(width) * channels;
    let copies = if pixels.color().has_alpha() { 2 } else { 1 };
    limits::check_bytes(pixels.as_bytes().len() as u64 * copies + scaled + between)?;
    if part == Rectangle::whole(of) && of == (width, height) {
        return Ok(pixels.clone());
    }
    let kind = match pixels {
        DynamicImage::ImageLuma8(_) => PixelType::U8,
        DynamicImage::ImageLumaA8(_) => PixelType::U8x2,
        DynamicImage::ImageRgb8(_) => PixelType::U8x3,
        _ => PixelType::U8x4,
    };
    let failed = |e: &dyn std::fmt::Display| format!("it cannot be scaled: {e}");
    let source = ImageRef::new(of.0, of.1, pixels.as_bytes(), kind).map_err(|e| failed(&e))?;
    let mut target = Image::new(width, height, kind);
    let (x, y) = (f64::from(part.x), f64::from(part.y));
    let options =
        ResizeOptions::new().resize_alg(filter.algorithm()).crop(x, y, f64::from(part.width), f64::from(part.height));
    Resizer::new().resize(&source, &mut target, &options).map_err(|e| failed(&e))?;
    let data = target.into_vec();
    let made = match kind {
        PixelType::U8 => GrayImage::from_raw(width, height, data).map(DynamicImage::ImageLuma8),
        PixelType::U8x2 => GrayAlphaImage::from_raw(width, height, data).map(DynamicImage::ImageLumaA8),
        PixelType::U8x3 => RgbImage::from_raw(width, height, data).map(DynamicImage::ImageRgb8),
        _ => RgbaImage::from_raw(width, height, data).map(DynamicImage::ImageRgba8),
    };
    made.ok_or_else(|| "it cannot be scaled".to_owned())
}

/// Returns the size that a picture has after scaling it down to these limits, and never up.
pub fn fit((width, height): (u32, u32), longest: u32, most_pixels: u64) -> (u32, u32) {
    let (w, h) = (f64::from(width), f64::from(height));
    let by_side = f64::from(longest) / w.max(h);
    let by_pixels = (most_pixels as f64 / (w * h)).sqrt();
    let scale = by_side.min(by_pixels).min(1.0);
    let side = |length: f64| ((length * scale).round() as u32).max(1);
    (side(w), side(h))
}

/// Drops an alpha channel that says nothing, which makes scaling faster and files smaller.
pub fn simplify(pixels: DynamicImage) -> DynamicImage {
    if pixels.color().has_alpha() && !is_transparent(&pixels) { without_alpha(pixels) } else { pixels }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    #[test]
    fn a_size_fits_both_limits() {
        assert_eq!(fit((4000, 3000), 1568, u64::MAX), (1568, 1176));
        assert_eq!(fit((4000, 3000), 1568, 1_150_000), (1238, 929));
        assert_eq!(fit((100, 50), 1568, 1_150_000), (100, 50));
        assert_eq!(fit((60_000, 2), 1568, 1_150_000), (1568, 1));
    }

    #[test]
    fn a_part_is_found_in_the_stored_picture() {
        let stored = RgbImage::from_fn(7, 5, |x, y| Rgb([x as u8, y as u8, 0]));
        for number in 1..=8 {
            let orientation = Orientation::from_exif(number).unwrap();
            let mut upright = DynamicImage::ImageRgb8(stored.clone());
            upright.apply_orientation(orientation);
            let part = Rectangle { x: 1, y: 2, width: 3, height: 2 };
            let wanted = upright.crop_imm(part.x, part.y, part.width, part.height);
            let before = part.before(orientation, (7, 5));
            let found = resize(
                &DynamicImage::ImageRgb8(stored.clone()),
                before,
                (before.width, before.height),
                Filter::Lanczos,
            );
            let mut found = found.unwrap();
            found.apply_orientation(orientation);
            assert_eq!(found.as_bytes(), wanted.as_bytes(), "orientation {number}");
        }
    }

    #[test]
    fn a_rectangle_is_cut_at_the_edges() {
        let far = Rectangle { x: 5, y: 5, width: u32::MAX, height: 9 };
        assert_eq!(far.within((8, 8)), Some(Rectangle { x: 5, y: 5, width: 3, height: 3 }));
        assert_eq!(far.within((5, 8)), None);
    }

    #[test]
    fn too_large_a_target_is_refused() {
        let image = DynamicImage::new_rgb8(4, 4);
        let whole = Rectangle::whole((4, 4));
        assert!(resize(&image, whole, (60_000, 60_000), Filter::Lanczos).is_err());
        assert!(resize(&image, whole, (0, 5), Filter::Lanczos).is_err());
    }
}
