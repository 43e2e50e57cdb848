//! Pages as pictures.

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings};

use crate::error::{Error, Result};
use crate::limits;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scaling {
    /// Pixels to an inch, across and down.
    Dpi(f64, f64),
    /// Pixels of the longer side.
    Longer(f64),
    /// Pixels across and down; 0 keeps the ratio.
    Box(f64, f64),
}

#[derive(Debug)]
pub struct Picture {
    pub number: usize,
    pub width: usize,
    pub height: usize,
    /// Red, green and blue.
    pub pixels: Vec<u8>,
}

/// Draws one page on white; pages count from 1.
pub fn render(pdf: &Pdf, number: usize, scaling: Scaling) -> Result<Picture> {
    let pages = pdf.pages();
    let page = number.checked_sub(1).and_then(|index| pages.get(index));
    let page = page.ok_or_else(|| Error::new(format!("page {number}: the file has {} pages", pages.len())))?;
    super::guard::check(page, number)?;
    let (width, height) = page.render_dimensions();
    let (width, height) = (f64::from(width), f64::from(height));
    if !(width.is_finite() && height.is_finite()) || width <= 0.0 || height <= 0.0 {
        return Err(Error::new(format!("page {number} has no size")));
    }
    let (x, y) = match scaling {
        Scaling::Dpi(x, y) => (x / 72.0, y / 72.0),
        Scaling::Longer(side) => (side / width.max(height), side / width.max(height)),
        Scaling::Box(x, y) if x > 0.0 && y > 0.0 => (x / width, y / height),
        Scaling::Box(x, y) => (x.max(0.0) / width + y.max(0.0) / height, x.max(0.0) / width + y.max(0.0) / height),
    };
    let (wide, high) = ((width * x).max(1.0), (height * y).max(1.0));
    if !(wide <= limits::SIDE && high <= limits::SIDE && wide * high <= limits::PIXELS) {
        return Err(Error::limit(
            &format!("page {number} would have {wide:.0} x {high:.0} pixels: use a smaller resolution"),
            format!("{} pixels, and {} on a side", limits::PIXELS, limits::SIDE),
        ));
    }
    // A fraction of a pixel more, since the renderer cuts fractions off.
    let settings = PixmapSettings {
        x_scale: ((wide + 0.001) / width) as f32,
        y_scale: ((high + 0.001) / height) as f32,
        bg_color: WHITE,
    };
    let cache = RenderCache::new();
    let drawn = hayro::render(page, &cache, &InterpreterSettings::default(), &RenderSettings::default(), &settings);
    let (width, height) = (usize::from(drawn.width()), usize::from(drawn.height()));
    let pixels = drawn.data_as_u8_slice().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    Ok(Picture { number, width, height, pixels })
}

impl Picture {
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let wrong = |e: png::EncodingError| Error::new(format!("page {}: {e}", self.number));
        let mut bytes = Vec::new();
        let (width, height) = (self.width as u32, self.height as u32);
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_depth(png::BitDepth::Eight);
        // A page of black text needs a third of the bytes without colours.
        let gray = self.pixels.chunks_exact(3).all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]);
        encoder.set_color(if gray { png::ColorType::Grayscale } else { png::ColorType::Rgb });
        let mut writer = encoder.write_header().map_err(wrong)?;
        if gray {
            let pixels: Vec<u8> = self.pixels.iter().copied().step_by(3).collect();
            writer.write_image_data(&pixels).map_err(wrong)?;
        } else {
            writer.write_image_data(&self.pixels).map_err(wrong)?;
        }
        writer.finish().map_err(wrong)?;
        Ok(bytes)
    }

    pub fn to_ppm(&self) -> Vec<u8> {
        let mut bytes = format!("P6\n{} {}\n255\n", self.width, self.height).into_bytes();
        bytes.extend_from_slice(&self.pixels);
        bytes
    }

    /// JPEG of a quality from 1 to 100.
    pub fn to_jpeg(&self, quality: u8, gray: bool) -> Result<Vec<u8>> {
        let wrong = |e: jpeg_encoder::EncodingError| Error::new(format!("page {}: {e}", self.number));
        let sides = [self.width, self.height].map(u16::try_from);
        let [Ok(width), Ok(height)] = sides else {
            return Err(Error::new(format!("page {} is too large", self.number)));
        };
        let mut bytes = Vec::new();
        let encoder = jpeg_encoder::Encoder::new(&mut bytes, quality);
        if gray {
            encoder.encode(&self.luma(), width, height, jpeg_encoder::ColorType::Luma).map_err(wrong)?;
        } else {
            encoder.encode(&self.pixels, width, height, jpeg_encoder::ColorType::Rgb).map_err(wrong)?;
        }
        Ok(bytes)
    }

    pub fn to_pgm(&self) -> Vec<u8> {
        let mut bytes = format!("P5\n{} {}\n255\n", self.width, self.height).into_bytes();
        bytes.extend(self.luma());
        bytes
    }

    fn luma(&self) -> Vec<u8> {
        let luma = |pixel: &[u8]| {
            let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
            ((red * 299 + green * 587 + blue * 114) / 1_000) as u8
        };
        self.pixels.chunks_exact(3).map(luma).collect()
    }
}
