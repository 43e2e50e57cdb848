//! A picture as a model can be shown it: upright, small enough, and without anything but its pixels.

use crate::encode::{plain_jpeg, plain_png};
use crate::picture::{flatten, is_transparent};
use crate::scale::{Filter, Rectangle, fit, resize, simplify};
use crate::source::{Source, is_turned};
use image::DynamicImage;
use serde::Serialize;

/// The part of a file that is shown, and the limits of the copy.
#[derive(Debug, Clone)]
pub struct View {
    /// Left, top, width and height of the upright picture: in pixels, or in fractions of its size if none is above 1.
    pub region: Option<[f64; 4]>,
    /// Whether pixels of the region are those of the copy of the whole picture with these limits, which a model has seen.
    pub as_shown: bool,
    /// Pixels of the longer side.
    pub longest: u32,
    /// Pixels altogether.
    pub pixels: u64,
    /// Bytes of the encoded picture.
    pub max_bytes: usize,
    /// Frame or page, counted from 0.
    pub page: usize,
}

/// Models scale down what is larger than this themselves, and then see less than they could.
pub const LONGEST: u32 = 1568;

/// About 1,600 tokens.
pub const PIXELS: u64 = 1_150_000;

/// As base64 it fits into 128 KiB, so that JSON which is taken as text and as data stays within the 256 KiB of an answer.
pub const MAX_BYTES: usize = 95_000;

impl Default for View {
    fn default() -> Self {
        Self { region: None, as_shown: false, longest: LONGEST, pixels: PIXELS, max_bytes: MAX_BYTES, page: 0 }
    }
}

/// The picture for the model.
pub struct Shown {
    pub media_type: &'static str,
    pub width: u32,
    pub height: u32,
    pub bytes: Vec<u8>,
    /// Which part of the upright picture it is.
    pub region: Rectangle,
    pub source: Origin,
}

/// The file that it comes from.
#[derive(Debug, Clone, Serialize)]
pub struct Origin {
    pub format: &'static str,
    /// Of the upright picture.
    pub width: u32,
    pub height: u32,
    pub bytes: usize,
    /// Frames or pages, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pictures: Option<usize>,
    #[serde(skip_serializing_if = "is_false")]
    pub transparent: bool,
    /// The file ends early, and what is missing is grey.
    #[serde(skip_serializing_if = "is_false")]
    pub cut: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

const FIRST_QUALITY: u8 = 80;

/// The qualities that are tried before the picture is made smaller.
const QUALITIES: [u8; 4] = [FIRST_QUALITY, 65, 50, 35];

/// How often it is made smaller before that is given up.
const MAX_STEPS: usize = 12;

/// Prepares a picture of a file for a model.
pub fn look(source: &Source, view: &View) -> Result<Shown, String> {
    let mut picture = source.decode(view.page)?;
    let stored = picture.size();
    let upright = if is_turned(picture.orientation) { (stored.1, stored.0) } else { stored };
    let region = match view.region {
        Some(region) => {
            let seen = if view.as_shown { fit(upright, view.longest, view.pixels) } else { upright };
            region_of(region, upright, seen)?
        }
        None => Rectangle::whole(upright),
    };
    let mut size = fit((region.width, region.height), view.longest, view.pixels);
    // The whole picture is turned only where it is small by then.
    let before = region.before(picture.orientation, stored);
    picture.pixels = simplify(picture.pixels);
    let turned = if is_turned(picture.orientation) { (size.1, size.0) } else { size };
    let mut small = resize(&picture.pixels, before, turned, Filter::Lanczos)?;
    picture.pixels = DynamicImage::new_luma8(1, 1);
    small.apply_orientation(picture.orientation);
    let transparent = is_transparent(&small);
    let behind = if transparent { backdrop(&small) } else { [255; 3] };
    let mut small = flatten(small, behind);
    let count = source.count();
    let origin = Origin {
        format: source.kind.name(),
        width: upright.0,
        height: upright.1,
        bytes: source.bytes().len(),
        pictures: (count > 1).then_some(count),
        transparent,
        cut: source.is_cut(),
    };
    for _ in 0..MAX_STEPS {
        if let Some((media_type, bytes)) = encode_within(&small, view.max_bytes)? {
            return Ok(Shown { media_type, width: size.0, height: size.1, bytes, region, source: origin });
        }
        let smaller = |side: u32| (side * 3 / 4).max(1);
        size = (smaller(size.0), smaller(size.1));
        small = resize(&small, Rectangle::whole((small.width(), small.height())), size, Filter::Lanczos)?;
    }
    Err(format!("it does not fit into {} bytes", view.max_bytes))
}

/// Returns the region of a picture of `size` as pixels; its own are counted in a copy of the size `seen`.
fn region_of(region: [f64; 4], size: (u32, u32), seen: (u32, u32)) -> Result<Rectangle, String> {
    let [x, y, width, height] = region;
    let outside = || {
        format!("the region {x}, {y}, {width}, {height} is not in the picture, which has {}x{} pixels", seen.0, seen.1)
    };
    if !region.iter().all(|number| number.is_finite() && *number >= 0.0) || width <= 0.0 || height <= 0.0 {
        return Err(outside());
    }
    let whole = (f64::from(size.0), f64::from(size.1));
    let (w, h) = match region.iter().all(|number| *number <= 1.0) {
        true => whole,
        false => (whole.0 / f64::from(seen.0), whole.1 / f64::from(seen.1)),
    };
    // A side may not vanish.
    let (left, top) = ((x * w).floor(), (y * h).floor());
    let (right, bottom) = (((x + width) * w).ceil(), ((y + height) * h).ceil());
    let part = Rectangle {
        x: left as u32,
        y: top as u32,
        width: (right - left).max(1.0) as u32,
        height: (bottom - top).max(1.0) as u32,
    };
    part.within(size).ok_or_else(outside)
}

/// Returns the colour that goes behind a transparent picture: white, or dark grey if the picture itself is nearly white. What a provider
/// would put there is often black, on which black letters vanish.
fn backdrop(pixels: &DynamicImage) -> [u8; 3] {
    let gray = pixels.to_luma_alpha8();
    let (mut weight, mut light) = (0_u64, 0_u64);
    for pixel in gray.pixels() {
        weight += u64::from(pixel[1]);
        light += u64::from(pixel[1]) * u64::from(pixel[0]);
    }
    let is_light = light > weight.max(1) * 210;
    if is_light { [64; 3] } else { [255; 3] }
}

/// Encodes as PNG what has few colours or is small, and as JPEG what is a photo. `None` if nothing fits.
fn encode_within(pixels: &DynamicImage, most: usize) -> Result<Option<(&'static str, Vec<u8>)>, String> {
    let pixels_of = u64::from(pixels.width()) * u64::from(pixels.height());
    if pixels_of <= SMALL || evenness(pixels) >= EVEN {
        let png = plain_png(pixels)?;
        // The lower qualities of JPEG blur letters.
        let larger = plain_jpeg(pixels, FIRST_QUALITY)?.len().saturating_mul(3) / 2;
        if png.len() <= most && (png.len() <= larger || pixels_of <= SMALL && png.len() <= SMALL_BYTES) {
            return Ok(Some(("image/png", png)));
        }
    }
    for quality in QUALITIES {
        let jpeg = plain_jpeg(pixels, quality)?;
        if jpeg.len() <= most {
            return Ok(Some(("image/jpeg", jpeg)));
        }
    }
    Ok(None)
}

/// Pixels of a small picture, such as an icon.
const SMALL: u64 = 128 * 128;

const SMALL_BYTES: usize = 64 << 10;

/// The share of pixels like their left neighbour from which a picture is a drawing or a screenshot. Photos stay below a tenth.
const EVEN: f64 = 0.35;

fn evenness(pixels: &DynamicImage) -> f64 {
    let channels = usize::from(pixels.color().channel_count());
    let row = pixels.width() as usize * channels;
    let mut same = 0_usize;
    for row in pixels.as_bytes().chunks_exact(row.max(1)) {
        let neighbours = row.chunks_exact(channels).zip(row.chunks_exact(channels).skip(1));
        same += neighbours.filter(|(left, right)| left == right).count();
    }
    let all = pixels.as_bytes().len() / channels;
    same as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use image::{ImageFormat, Rgba, RgbaImage};

    fn seen(bytes: Vec<u8>, view: &View) -> Shown {
        look(&Source::new(bytes).unwrap(), view).unwrap()
    }

    fn back(shown: &Shown) -> DynamicImage {
        image::load_from_memory(&shown.bytes).unwrap()
    }

    #[test]
    fn a_photo_is_small_and_upright_and_says_nothing_else() {
        let photo = samples::photo(2000, 1000);
        let shown = seen(samples::jpeg_with_exif(&photo, 6), &View::default());
        assert_eq!((shown.media_type, shown.width, shown.height), ("image/jpeg", 758, 1517));
        assert_eq!((shown.source.width, shown.source.height), (1000, 2000));
        assert!(shown.bytes.len() <= MAX_BYTES);
        let source = Source::new(shown.bytes.clone()).unwrap();
        assert!(source.header(0).unwrap().exif.is_none());
        // The dark corner of the stored picture, top left, is at the top right.
        let small = back(&shown).to_rgb8();
        assert!(small.get_pixel(750, 5)[0] < 40 && small.get_pixel(750, 5)[1] < 40);
        assert!(small.get_pixel(5, 5)[1] > 200, "{:?}", small.get_pixel(5, 5));
    }

    #[test]
    fn a_region_is_in_pixels_or_fractions_of_the_upright_picture() {
        let bytes = samples::jpeg_with_exif(&samples::photo(400, 200), 8);
        let fractions = View { region: Some([0.5, 0.0, 0.5, 0.25]), ..View::default() };
        let pixels = View { region: Some([100.0, 0.0, 100.0, 100.0]), ..View::default() };
        let (a, b) = (seen(bytes.clone(), &fractions), seen(bytes.clone(), &pixels));
        assert_eq!(a.region, Rectangle { x: 100, y: 0, width: 100, height: 100 });
        assert_eq!((a.width, a.height, &a.bytes), (100, 100, &b.bytes));
        let source = Source::new(bytes).unwrap();
        for region in [[500.0, 0.0, 5.0, 5.0], [0.0, 0.0, 0.0, 1.0], [-1.0, 0.0, 5.0, 5.0], [f64::NAN, 0.0, 1.0, 1.0]] {
            let view = View { region: Some(region), ..View::default() };
            assert!(look(&source, &view).err().unwrap().contains("is not in the picture"));
        }
    }

    #[test]
    fn a_page_of_text_stays_sharp() {
        let shown = seen(samples::encoded(&samples::page(900, 700), ImageFormat::Png), &View::default());
        assert_eq!((shown.media_type, shown.width), ("image/png", 900));
        assert_eq!(back(&shown).to_rgb8(), samples::page(900, 700).to_rgb8());
    }

    #[test]
    fn a_transparent_picture_gets_a_colour_behind_it() {
        for (ink, behind) in [(0, 255), (255, 64)] {
            let image =
                RgbaImage::from_fn(60, 60, |x, _| if x < 30 { Rgba([ink, ink, ink, 255]) } else { Rgba([0; 4]) });
            let shown = seen(samples::encoded(&DynamicImage::ImageRgba8(image), ImageFormat::Png), &View::default());
            assert!(shown.source.transparent && shown.media_type == "image/png");
            assert_eq!(back(&shown).to_rgb8().get_pixel(50, 5).0, [behind; 3]);
        }
    }

    #[test]
    fn the_first_frame_is_shown_and_all_are_counted() {
        let shown = seen(samples::gif(4), &View::default());
        assert_eq!((shown.source.pictures, shown.source.format), (Some(4), "GIF"));
        let second = seen(samples::gif(4), &View { page: 2, ..View::default() });
        assert_ne!(back(&shown).to_rgb8(), back(&second).to_rgb8());
        let source = Source::new(samples::gif(4)).unwrap();
        assert!(look(&source, &View { page: 9, ..View::default() }).err().unwrap().contains("it has 4"));
    }

    #[test]
    fn it_is_made_smaller_until_it_fits() {
        let bytes = samples::encoded(&samples::photo(800, 800), ImageFormat::Png);
        let shown = seen(bytes.clone(), &View { max_bytes: 20_000, ..View::default() });
        assert!(shown.bytes.len() <= 20_000 && shown.width < 800);
        assert!(look(&Source::new(bytes).unwrap(), &View { max_bytes: 10, ..View::default() }).is_err());
    }
}
