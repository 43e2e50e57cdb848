//! Operations on one picture, as command lines and calls name them.

use crate::color::{distance, opaque};
use crate::geometry::{Geometry, Gravity};
use crate::picture::{AsPixels, Picture, flatten, without_alpha};
use crate::scale::{Filter, Rectangle, resize, simplify};
use crate::{limits, tone};
use image::metadata::Orientation;
use image::{DynamicImage, Rgba, RgbaImage, imageops};

/// Settings that operations go by: those that were said before.
#[derive(Debug, Clone)]
pub struct Settings {
    pub background: Rgba<u8>,
    pub border: Rgba<u8>,
    pub fill: Rgba<u8>,
    pub gravity: Gravity,
    pub filter: Filter,
    /// A share of the largest difference between two colours.
    pub fuzz: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            background: Rgba([255; 4]),
            border: Rgba([0xdf, 0xdf, 0xdf, 255]),
            fill: Rgba([0, 0, 0, 255]),
            gravity: Gravity::default(),
            filter: Filter::default(),
            fuzz: 0.0,
        }
    }
}

/// Changes of the alpha channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alpha {
    On,
    Off,
    Remove,
    Opaque,
    Transparent,
    Extract,
}

/// An operation on one picture.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    Resize(Geometry, Option<Filter>),
    Thumbnail(Geometry),
    Crop(Geometry),
    Shave(u32, u32),
    Extent(Geometry),
    Rotate(f64),
    Flip,
    Flop,
    Transpose,
    Transverse,
    AutoOrient,
    Orient(Orientation),
    Strip,
    Border(u32, u32),
    Trim,
    Alpha(Alpha),
    Flatten,
    /// Makes a colour transparent.
    Transparent(Rgba<u8>),
    /// Paints over a colour.
    Opaque(Rgba<u8>),
    Colors(u32),
    Tone(tone::Tone),
    Delay(u32),
}

impl Operation {
    /// Changes the picture.
    pub fn apply(&self, picture: &mut Picture, settings: &Settings) -> Result<(), String> {
        // Most operations make a picture beside the one that is there.
        limits::check_bytes(picture.bytes() * 2)?;
        match self {
            Self::Resize(geometry, filter) => {
                let size = geometry.scaled(picture.size());
                let whole = Rectangle::whole(picture.size());
                picture.pixels = resize(&picture.pixels, whole, size, filter.unwrap_or(settings.filter))?;
            }
            Self::Thumbnail(geometry) => {
                Self::Resize(*geometry, None).apply(picture, settings)?;
                picture.exif = None;
            }
            Self::Crop(geometry) => {
                let size = geometry.sides(picture.size());
                let part = settings.gravity.part(picture.size(), size, geometry.offset());
                let part = part.ok_or_else(|| "what is to be cut out is not in the picture".to_owned())?;
                cut(picture, part);
            }
            Self::Shave(x, y) => {
                let (width, height) = picture.size();
                let inner = (width.saturating_sub(x.saturating_mul(2)), height.saturating_sub(y.saturating_mul(2)));
                if inner.0 == 0 || inner.1 == 0 {
                    return Err("nothing is left of the picture".to_owned());
                }
                cut(picture, Rectangle { x: *x, y: *y, width: inner.0, height: inner.1 });
            }
            Self::Extent(geometry) => {
                let size = geometry.sides(picture.size());
                let at = settings.gravity.place(size, picture.size(), geometry.offset());
                // Without gravity, the offset is where the new edge is in the old picture.
                let at = if settings.gravity == Gravity::default() { (-at.0, -at.1) } else { at };
                onto(picture, size, at, settings.background)?;
            }
            Self::Rotate(degrees) => rotate(picture, *degrees, settings.background)?,
            Self::Flip => picture.pixels.apply_orientation(Orientation::FlipVertical),
            Self::Flop => picture.pixels.apply_orientation(Orientation::FlipHorizontal),
            Self::Transpose => picture.pixels.apply_orientation(Orientation::Rotate90FlipH),
            Self::Transverse => picture.pixels.apply_orientation(Orientation::Rotate270FlipH),
            Self::AutoOrient => picture.make_upright(),
            Self::Orient(orientation) => {
                picture.orientation = *orientation;
                if let Some(exif) = &mut picture.exif {
                    let _ = Orientation::remove_from_exif_chunk(exif);
                }
            }
            Self::Strip => picture.strip(),
            Self::Border(x, y) => {
                let (width, height) = picture.size();
                let size = (width.saturating_add(x.saturating_mul(2)), height.saturating_add(y.saturating_mul(2)));
                onto(picture, size, (i64::from(*x), i64::from(*y)), settings.border)?;
            }
            Self::Trim => trim(picture, settings.fuzz),
            Self::Alpha(alpha) => set_alpha(picture, *alpha, settings.background),
            Self::Flatten => replace(picture, |pixels| flatten(pixels, opaque(settings.background))),
            Self::Transparent(color) => recolor(picture, *color, Rgba([0; 4]), settings.fuzz)?,
            Self::Opaque(color) => recolor(picture, *color, settings.fill, settings.fuzz)?,
            Self::Colors(count) => {
                limits::check(picture.size().0, picture.size().1, 12)?;
                replace(picture, |pixels| {
                    let few = crate::encode::few_colors(pixels.into_rgba8(), *count as usize);
                    simplify(DynamicImage::ImageRgba8(few))
                });
            }
            Self::Tone(tone) => tone.apply(picture)?,
            Self::Delay(delay_ms) => picture.delay_ms = *delay_ms,
        }
        Ok(())
    }
}

/// Changes the pixels by value, so that their memory can be used again.
pub fn replace(picture: &mut Picture, change: impl FnOnce(DynamicImage) -> DynamicImage) {
    let pixels = std::mem::replace(&mut picture.pixels, DynamicImage::new_luma8(1, 1));
    picture.pixels = change(pixels);
}

/// Cuts a part out, which lies in the picture.
pub fn cut(picture: &mut Picture, part: Rectangle) {
    picture.pixels = picture.pixels.crop_imm(part.x, part.y, part.width, part.height);
}

/// Puts the picture onto a canvas of a colour.
pub fn onto(picture: &mut Picture, size: (u32, u32), (x, y): (i64, i64), color: Rgba<u8>) -> Result<(), String> {
    let keeps_alpha = color[3] < 255 || picture.pixels.color().has_alpha();
    limits::check(size.0, size.1, 4)?;
    limits::check_bytes(picture.bytes() + u64::from(size.0) * u64::from(size.1) * if keeps_alpha { 8 } else { 3 })?;
    let pixels = if keeps_alpha {
        let mut canvas = RgbaImage::from_pixel(size.0, size.1, color);
        imageops::overlay(&mut canvas, &picture.pixels.to_rgba8(), x, y);
        DynamicImage::ImageRgba8(canvas)
    } else {
        let mut canvas = image::RgbImage::from_pixel(size.0, size.1, image::Rgb([color[0], color[1], color[2]]));
        match &picture.pixels {
            DynamicImage::ImageRgb8(image) => imageops::replace(&mut canvas, image, x, y),
            other => imageops::replace(&mut canvas, &other.to_rgb8(), x, y),
        }
        DynamicImage::ImageRgb8(canvas)
    };
    let is_gray = !picture.pixels.color().has_color() && color[0] == color[1] && color[1] == color[2];
    picture.pixels = match pixels {
        DynamicImage::ImageRgb8(_) if is_gray => DynamicImage::ImageLuma8(pixels.into_luma8()),
        pixels => pixels,
    };
    Ok(())
}

/// Turns clockwise. What comes into the corners has the background's colour.
fn rotate(picture: &mut Picture, degrees: f64, background: Rgba<u8>) -> Result<(), String> {
    if !degrees.is_finite() {
        return Err("the angle is not a number".to_owned());
    }
    let degrees = degrees.rem_euclid(360.0);
    let quarter = (degrees / 90.0).round();
    if (degrees - quarter * 90.0).abs() < 1e-6 {
        let orientation = match quarter as u8 % 4 {
            1 => Orientation::Rotate90,
            2 => Orientation::Rotate180,
            3 => Orientation::Rotate270,
            _ => Orientation::NoTransforms,
        };
        picture.pixels.apply_orientation(orientation);
        return Ok(());
    }
    let (sin, cos) = degrees.to_radians().sin_cos();
    let (width, height) = picture.size();
    let (w, h) = (f64::from(width), f64::from(height));
    let new = ((w * cos.abs() + h * sin.abs()).round(), (w * sin.abs() + h * cos.abs()).round());
    let size = (new.0.max(1.0) as u32, new.1.max(1.0) as u32);
    limits::check(size.0, size.1, 4)?;
    limits::check_bytes(u64::from(width) * u64::from(height) * 4 + u64::from(size.0) * u64::from(size.1) * 4)?;
    let source = std::mem::replace(&mut picture.pixels, DynamicImage::new_luma8(1, 1)).into_rgba8();
    let turned = RgbaImage::from_fn(size.0, size.1, |x, y| {
        let (dx, dy) = (f64::from(x) + 0.5 - new.0 / 2.0, f64::from(y) + 0.5 - new.1 / 2.0);
        let from = (cos * dx + sin * dy + w / 2.0 - 0.5, cos * dy - sin * dx + h / 2.0 - 0.5);
        between(&source, from, background)
    });
    picture.pixels = simplify(DynamicImage::ImageRgba8(turned));
    Ok(())
}

/// Returns the colour at a place between pixels.
fn between(source: &RgbaImage, (x, y): (f64, f64), background: Rgba<u8>) -> Rgba<u8> {
    let (left, top) = (x.floor(), y.floor());
    let (right_share, bottom_share) = (x - left, y - top);
    let mut sums = [0.0; 4];
    for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let share = (if dx == 0 { 1.0 - right_share } else { right_share })
            * (if dy == 0 { 1.0 - bottom_share } else { bottom_share });
        let (px, py) = (left as i64 + dx, top as i64 + dy);
        let pixel = match (u32::try_from(px), u32::try_from(py)) {
            (Ok(px), Ok(py)) if px < source.width() && py < source.height() => source.get_pixel(px, py),
            _ => &background,
        };
        let alpha = share * f64::from(pixel[3]);
        for channel in 0..3 {
            sums[channel] += alpha * f64::from(pixel[channel]);
        }
        sums[3] += alpha;
    }
    let level = |sum: f64| if sums[3] > 0.0 { (sum / sums[3]).round() as u8 } else { 0 };
    Rgba([level(sums[0]), level(sums[1]), level(sums[2]), sums[3].round() as u8])
}

/// Cuts off the edges that have the colour of a corner.
fn trim(picture: &mut Picture, fuzz: f64) {
    let image = picture.pixels.to_rgba8();
    let (width, height) = image.dimensions();
    let most = (fuzz * 255.0).round() as u8;
    let corner = image.get_pixel(0, 0).0;
    let is_edge = |x: u32, y: u32| distance(image.get_pixel(x, y).0, corner) <= most;
    let row = |y: u32| (0..width).all(|x| is_edge(x, y));
    let Some(top) = (0..height).find(|y| !row(*y)) else { return };
    let bottom = (top..height).rev().find(|y| !row(*y)).unwrap_or(top);
    let column = |x: u32| (top..=bottom).all(|y| is_edge(x, y));
    let left = (0..width).find(|x| !column(*x)).unwrap_or(0);
    let right = (left..width).rev().find(|x| !column(*x)).unwrap_or(left);
    cut(picture, Rectangle { x: left, y: top, width: right - left + 1, height: bottom - top + 1 });
}

fn set_alpha(picture: &mut Picture, alpha: Alpha, background: Rgba<u8>) {
    replace(picture, |pixels| match alpha {
        Alpha::Off => without_alpha(pixels),
        Alpha::Remove => flatten(pixels, opaque(background)),
        Alpha::On => DynamicImage::ImageRgba8(pixels.into_rgba8()),
        Alpha::Opaque | Alpha::Transparent => {
            let mut image = pixels.into_rgba8();
            let level = if alpha == Alpha::Opaque { 255 } else { 0 };
            image.as_chunks_mut_pixels().iter_mut().for_each(|pixel| pixel[3] = level);
            DynamicImage::ImageRgba8(image)
        }
        Alpha::Extract => {
            let image = pixels.into_luma_alpha8();
            let (width, height) = image.dimensions();
            let levels = image.pixels().map(|pixel| pixel[1]).collect();
            let levels = image::GrayImage::from_raw(width, height, levels);
            DynamicImage::ImageLuma8(levels.unwrap_or_default())
        }
    });
}

fn recolor(picture: &mut Picture, from: Rgba<u8>, to: Rgba<u8>, fuzz: f64) -> Result<(), String> {
    limits::check(picture.size().0, picture.size().1, 4)?;
    let most = (fuzz * 255.0).round() as u8;
    replace(picture, |pixels| {
        let mut image = pixels.into_rgba8();
        for pixel in image.as_chunks_mut_pixels().iter_mut().filter(|pixel| distance(**pixel, from.0) <= most) {
            *pixel = to.0;
        }
        simplify(DynamicImage::ImageRgba8(image))
    });
    Ok(())
}
