//! Operations on the colours of each pixel, and those on their neighbours.

use crate::limits;
use crate::operation::replace;
use crate::picture::{AsPixels, Picture};
use image::{DynamicImage, RgbaImage, imageops};

/// An operation that leaves the size as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tone {
    Gray,
    /// Three channels, also for grey.
    Color,
    Negate,
    /// Stretches all channels together so that the darkest level of any is black and the lightest white.
    Widest,
    /// Stretches all channels together so that these shares of the pixels, by their light, become black and white.
    Stretch(f64, f64),
    /// Percent each, from -100 to 100.
    BrightnessContrast(f64, f64),
    Gamma(f64),
    /// Black point and white point as shares, and gamma.
    Level(f64, f64, f64),
    /// Percent of brightness, saturation and hue.
    Modulate(f64, f64, f64),
    Threshold(f64),
    /// Black and white dots.
    Monochrome,
    Posterize(u32),
    Sepia(f64),
    Blur(f32),
    Sharpen(f32),
}

/// The shares that ImageMagick's `-normalize` cuts off.
pub const NORMALIZE: Tone = Tone::Stretch(0.0015, 0.0005);

/// Largest radius of a blur, in standard deviations of pixels.
const MAX_SIGMA: f32 = 200.0;

impl Tone {
    pub fn apply(self, picture: &mut Picture) -> Result<(), String> {
        let (width, height) = picture.size();
        limits::check(width, height, 4)?;
        match self {
            Self::Gray => replace(picture, |pixels| match pixels {
                DynamicImage::ImageRgba8(_) => DynamicImage::ImageLumaA8(pixels.into_luma_alpha8()),
                DynamicImage::ImageRgb8(_) => DynamicImage::ImageLuma8(pixels.into_luma8()),
                gray => gray,
            }),
            Self::Color => replace(picture, |pixels| match pixels {
                DynamicImage::ImageLuma8(_) => DynamicImage::ImageRgb8(pixels.into_rgb8()),
                DynamicImage::ImageLumaA8(_) => DynamicImage::ImageRgba8(pixels.into_rgba8()),
                color => color,
            }),
            Self::Negate => levels(picture, |level| 255 - level),
            Self::Widest => {
                let pixels = crate::picture::without_alpha(picture.pixels.clone());
                let levels = || pixels.as_bytes().iter().copied();
                stretch(picture, levels().min().unwrap_or(0), levels().max().unwrap_or(255));
            }
            Self::Stretch(black, white) => {
                let (low, high) = bounds(picture, black, white);
                stretch(picture, low, high);
            }
            Self::BrightnessContrast(brightness, contrast) => {
                // ImageMagick's: a line whose slope is a tangent.
                let slope = (std::f64::consts::PI * (contrast.clamp(-100.0, 100.0) / 200.0 + 0.5) / 2.0).tan();
                let slope = slope.clamp(0.0, 1e4);
                let intercept = brightness / 100.0 + (100.0 - brightness) / 200.0 * (1.0 - slope);
                curve(picture, |share| share * slope + intercept);
            }
            Self::Gamma(gamma) => {
                let gamma = positive(gamma)?;
                curve(picture, |share| share.powf(1.0 / gamma));
            }
            Self::Level(black, white, gamma) => {
                let gamma = positive(gamma)?;
                let range = (white - black).max(1e-9);
                curve(picture, |share| ((share - black) / range).clamp(0.0, 1.0).powf(1.0 / gamma));
            }
            Self::Modulate(brightness, saturation, hue) => {
                colors(picture, |rgb| modulate(rgb, brightness, saturation, hue))
            }
            Self::Threshold(share) => {
                Self::Gray.apply(picture)?;
                let most = share * 255.0;
                levels(picture, |level| if f64::from(level) > most { 255 } else { 0 });
            }
            Self::Monochrome => replace(picture, |pixels| {
                let mut gray = pixels.into_luma8();
                imageops::dither(&mut gray, &imageops::BiLevel);
                DynamicImage::ImageLuma8(gray)
            }),
            Self::Posterize(steps) => {
                let steps = f64::from(steps.clamp(2, 256) - 1);
                curve(picture, |share| (share * steps).round() / steps);
            }
            Self::Sepia(share) => {
                let threshold = share.clamp(0.0, 1.0);
                let light = |[r, g, b]: [u8; 3]| {
                    (0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)) / 255.0
                };
                colors(picture, |rgb| sepia(light(rgb), threshold));
                NORMALIZE.apply(picture)?;
                colors(picture, contrast);
            }
            Self::Blur(sigma) => {
                limits::check_bytes(picture.bytes() * 3)?;
                let sigma = checked_sigma(sigma)?;
                replace(picture, |pixels| pixels.fast_blur(sigma));
            }
            Self::Sharpen(sigma) => {
                // The filter works on decimal fractions.
                limits::check_bytes(picture.bytes() * 6)?;
                let sigma = checked_sigma(sigma)?;
                replace(picture, |pixels| pixels.unsharpen(sigma, 0));
            }
        }
        Ok(())
    }
}

/// Makes one level black and another white.
fn stretch(picture: &mut Picture, low: u8, high: u8) {
    let range = f64::from(high) - f64::from(low);
    if range > 0.0 {
        curve(picture, |share| (share * 255.0 - f64::from(low)) / range);
    }
}

fn positive(gamma: f64) -> Result<f64, String> {
    if gamma.is_finite() && gamma > 0.0 { Ok(gamma) } else { Err("gamma must be more than 0".to_owned()) }
}

fn checked_sigma(sigma: f32) -> Result<f32, String> {
    if sigma.is_finite() && sigma > 0.0 && sigma <= MAX_SIGMA {
        return Ok(sigma);
    }
    Err(format!("the radius must be more than 0 and at most {MAX_SIGMA}"))
}

/// Changes each level of the colours, and leaves alpha.
fn levels(picture: &mut Picture, change: impl Fn(u8) -> u8) {
    let table: Vec<u8> = (0..=255).map(change).collect();
    let alpha = picture.pixels.color().has_alpha();
    let channels = usize::from(picture.pixels.color().channel_count());
    let samples: &mut [u8] = match &mut picture.pixels {
        DynamicImage::ImageLuma8(image) => image.as_mut(),
        DynamicImage::ImageLumaA8(image) => image.as_mut(),
        DynamicImage::ImageRgb8(image) => image.as_mut(),
        DynamicImage::ImageRgba8(image) => image.as_mut(),
        _ => return,
    };
    let colors = channels - usize::from(alpha);
    for pixel in samples.chunks_exact_mut(channels) {
        pixel[..colors].iter_mut().for_each(|level| *level = table[usize::from(*level)]);
    }
}

/// Changes each level as a share of the largest.
fn curve(picture: &mut Picture, change: impl Fn(f64) -> f64) {
    levels(picture, |level| (change(f64::from(level) / 255.0) * 255.0).round().clamp(0.0, 255.0) as u8);
}

fn colors(picture: &mut Picture, change: impl Fn([u8; 3]) -> [u8; 3]) {
    let alpha = picture.pixels.color().has_alpha();
    replace(picture, |pixels| {
        let mut image: RgbaImage = pixels.into_rgba8();
        for pixel in image.as_chunks_mut_pixels() {
            let [r, g, b] = change([pixel[0], pixel[1], pixel[2]]);
            (pixel[0], pixel[1], pixel[2]) = (r, g, b);
        }
        let image = DynamicImage::ImageRgba8(image);
        if alpha { image } else { crate::picture::without_alpha(image) }
    });
}

/// Returns the levels below and above which these shares of all levels are.
fn bounds(picture: &Picture, black: f64, white: f64) -> (u8, u8) {
    let mut counts = [0_u64; 256];
    let gray = picture.pixels.to_luma8();
    gray.as_raw().iter().for_each(|level| counts[usize::from(*level)] += 1);
    let all = gray.as_raw().len() as f64;
    let reach = |levels: &mut dyn Iterator<Item = u8>, share: f64| {
        let mut sum = 0;
        let mut last = 0;
        for level in levels {
            sum += counts[usize::from(level)];
            last = level;
            if sum as f64 > share * all {
                break;
            }
        }
        last
    };
    (reach(&mut (0..=255), black), reach(&mut (0..=255).rev(), white))
}

/// Brightness, saturation and hue in percent, 100 each for no change.
fn modulate([r, g, b]: [u8; 3], brightness: f64, saturation: f64, hue: f64) -> [u8; 3] {
    let (r, g, b) = (f64::from(r) / 255.0, f64::from(g) / 255.0, f64::from(b) / 255.0);
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let chroma = most - least;
    let light = (most + least) / 2.0;
    let mut angle = if chroma == 0.0 {
        0.0
    } else if most == r {
        ((g - b) / chroma).rem_euclid(6.0)
    } else if most == g {
        (b - r) / chroma + 2.0
    } else {
        (r - g) / chroma + 4.0
    };
    let full = if chroma == 0.0 { 0.0 } else { chroma / (1.0 - (2.0 * light - 1.0).abs()).max(1e-9) };
    angle = (angle + (hue - 100.0) * 0.03).rem_euclid(6.0);
    let full = (full * saturation / 100.0).clamp(0.0, 1.0);
    let light = (light * brightness / 100.0).clamp(0.0, 1.0);
    let chroma = (1.0 - (2.0 * light - 1.0).abs()) * full;
    let second = chroma * (1.0 - (angle % 2.0 - 1.0).abs());
    let (r, g, b) = match angle as u8 {
        0 => (chroma, second, 0.0),
        1 => (second, chroma, 0.0),
        2 => (0.0, chroma, second),
        3 => (0.0, second, chroma),
        4 => (second, 0.0, chroma),
        _ => (chroma, 0.0, second),
    };
    let level = |share: f64| ((share + light - chroma / 2.0) * 255.0).round().clamp(0.0, 255.0) as u8;
    [level(r), level(g), level(b)]
}

fn sepia(light: f64, threshold: f64) -> [u8; 3] {
    let red = if light > threshold { 1.0 } else { light + 1.0 - threshold };
    let edge = 7.0 * threshold / 6.0;
    let green = if light > edge { 1.0 } else { light + 1.0 - edge };
    let edge = threshold / 6.0;
    let blue = if light < edge { 0.0 } else { light - edge };
    let level = |share: f64| (share.clamp(0.0, 1.0) * 255.0).round() as u8;
    [level(red), level(green.max(threshold / 7.0)), level(blue.max(threshold / 7.0))]
}

/// Makes light pixels lighter and dark ones darker, once.
fn contrast(rgb: [u8; 3]) -> [u8; 3] {
    let most = f64::from(rgb.iter().copied().max().unwrap_or(0)) / 255.0;
    if most == 0.0 {
        return rgb;
    }
    let more = most + 0.5 * (0.5 * ((std::f64::consts::PI * (most - 0.5)).sin() + 1.0) - most);
    rgb.map(|level| (f64::from(level) * more / most).round().clamp(0.0, 255.0) as u8)
}
