//! The words that ExifTool has for numbers of cameras.

use exif::{Field, Rational, Tag, Value};

type Table = (Tag, &'static [(u32, &'static str)]);

const LEVELS: &[(u32, &str)] = &[(0, "Normal"), (1, "Low"), (2, "High")];

/// The numbers that are found in photos, with their words.
const TABLES: [Table; 26] = [
    (
        Tag::Orientation,
        &[
            (1, "Horizontal (normal)"),
            (2, "Mirror horizontal"),
            (3, "Rotate 180"),
            (4, "Mirror vertical"),
            (5, "Mirror horizontal and rotate 270 CW"),
            (6, "Rotate 90 CW"),
            (7, "Mirror horizontal and rotate 90 CW"),
            (8, "Rotate 270 CW"),
        ],
    ),
    (
        Tag::Flash,
        &[
            (0x00, "No Flash"),
            (0x01, "Fired"),
            (0x05, "Fired, Return not detected"),
            (0x07, "Fired, Return detected"),
            (0x08, "On, Did not fire"),
            (0x09, "On, Fired"),
            (0x0d, "On, Return not detected"),
            (0x0f, "On, Return detected"),
            (0x10, "Off, Did not fire"),
            (0x18, "Auto, Did not fire"),
            (0x19, "Auto, Fired"),
            (0x1d, "Auto, Fired, Return not detected"),
            (0x1f, "Auto, Fired, Return detected"),
            (0x20, "No flash function"),
            (0x41, "Fired, Red-eye reduction"),
            (0x45, "Fired, Red-eye reduction, Return not detected"),
            (0x47, "Fired, Red-eye reduction, Return detected"),
            (0x49, "On, Red-eye reduction"),
            (0x50, "Off, Red-eye reduction"),
            (0x58, "Auto, Did not fire, Red-eye reduction"),
            (0x59, "Auto, Fired, Red-eye reduction"),
        ],
    ),
    (
        Tag::MeteringMode,
        &[
            (0, "Unknown"),
            (1, "Average"),
            (2, "Center-weighted average"),
            (3, "Spot"),
            (4, "Multi-spot"),
            (5, "Multi-segment"),
            (6, "Partial"),
            (255, "Other"),
        ],
    ),
    (
        Tag::ExposureProgram,
        &[
            (0, "Not Defined"),
            (1, "Manual"),
            (2, "Program AE"),
            (3, "Aperture-priority AE"),
            (4, "Shutter speed priority AE"),
            (5, "Creative (Slow speed)"),
            (6, "Action (High speed)"),
            (7, "Portrait"),
            (8, "Landscape"),
        ],
    ),
    (Tag::ExposureMode, &[(0, "Auto"), (1, "Manual"), (2, "Auto bracket")]),
    (Tag::WhiteBalance, &[(0, "Auto"), (1, "Manual")]),
    (Tag::SceneCaptureType, &[(0, "Standard"), (1, "Landscape"), (2, "Portrait"), (3, "Night")]),
    (Tag::CustomRendered, &[(0, "Normal"), (1, "Custom")]),
    (
        Tag::LightSource,
        &[
            (0, "Unknown"),
            (1, "Daylight"),
            (2, "Fluorescent"),
            (3, "Tungsten (Incandescent)"),
            (4, "Flash"),
            (9, "Fine Weather"),
            (10, "Cloudy"),
            (11, "Shade"),
            (255, "Other"),
        ],
    ),
    (
        Tag::SensingMethod,
        &[(1, "Not defined"), (2, "One-chip color area"), (3, "Two-chip color area"), (7, "Trilinear")],
    ),
    (Tag::FileSource, &[(1, "Film Scanner"), (2, "Reflection Print Scanner"), (3, "Digital Camera")]),
    (Tag::SceneType, &[(1, "Directly photographed")]),
    (Tag::Sharpness, &[(0, "Normal"), (1, "Soft"), (2, "Hard")]),
    (Tag::Contrast, LEVELS),
    (Tag::Saturation, LEVELS),
    (Tag::GainControl, &[(0, "None"), (1, "Low gain up"), (2, "High gain up"), (3, "Low gain down")]),
    (Tag::ColorSpace, &[(1, "sRGB"), (2, "Adobe RGB"), (0xffff, "Uncalibrated")]),
    (Tag::YCbCrPositioning, &[(1, "Centered"), (2, "Co-sited")]),
    (
        Tag::Compression,
        &[
            (1, "Uncompressed"),
            (2, "CCITT 1D"),
            (3, "T4/Group 3 Fax"),
            (4, "T6/Group 4 Fax"),
            (5, "LZW"),
            (6, "JPEG (old-style)"),
            (7, "JPEG"),
            (8, "Adobe Deflate"),
            (32_773, "PackBits"),
            (32_946, "Deflate"),
        ],
    ),
    (Tag::PlanarConfiguration, &[(1, "Chunky"), (2, "Planar")]),
    (
        Tag::PhotometricInterpretation,
        &[
            (0, "WhiteIsZero"),
            (1, "BlackIsZero"),
            (2, "RGB"),
            (3, "RGB Palette"),
            (4, "Transparency Mask"),
            (5, "CMYK"),
            (6, "YCbCr"),
            (8, "CIELab"),
        ],
    ),
    (Tag::SubjectDistanceRange, &[(0, "Unknown"), (1, "Macro"), (2, "Close"), (3, "Distant")]),
    (Tag::GPSAltitudeRef, &[(0, "Above Sea Level"), (1, "Below Sea Level")]),
    (Tag::GPSDifferential, &[(0, "No Correction"), (1, "Differential Corrected")]),
    (Tag::FocalPlaneResolutionUnit, &[(1, "None"), (2, "inches"), (3, "cm")]),
    (Tag::ResolutionUnit, &[(1, "None"), (2, "inches"), (3, "cm")]),
];

/// Returns the words for a field's number, or its number in the usual unit. `None` for a field that needs neither.
pub(super) fn of_field(field: &Field) -> Option<String> {
    if let Some((_, words)) = TABLES.iter().find(|(tag, _)| *tag == field.tag) {
        let number = match &field.value {
            Value::Undefined(bytes, _) => u32::from(*bytes.first()?),
            value => value.get_uint(0)?,
        };
        let found = words.iter().find(|(known, _)| *known == number);
        return Some(found.map_or_else(|| format!("Unknown ({number})"), |(_, words)| (*words).to_owned()));
    }
    let first = match &field.value {
        Value::Rational(numbers) => numbers.first().map(Rational::to_f64),
        Value::SRational(numbers) => numbers.first().map(|number| number.to_f64()),
        _ => None,
    };
    match (field.tag, &field.value) {
        (Tag::ExposureTime, _) => first.map(exposure),
        (Tag::ShutterSpeedValue, _) => first.map(|value| exposure((-value).exp2())),
        (Tag::FNumber, _) => first.map(|value| format!("{value:.1}")),
        (Tag::ApertureValue | Tag::MaxApertureValue, _) => first.map(|value| format!("{:.1}", (value / 2.0).exp2())),
        (Tag::FocalLength, _) => first.map(|value| format!("{value:.1} mm")),
        (Tag::FocalLengthIn35mmFilm, value) => value.get_uint(0).map(|value| format!("{value} mm")),
        (Tag::GPSAltitude, _) => first.map(|value| format!("{} m", decimal(value))),
        (
            Tag::ExposureBiasValue
            | Tag::BrightnessValue
            | Tag::XResolution
            | Tag::YResolution
            | Tag::FocalPlaneXResolution
            | Tag::FocalPlaneYResolution
            | Tag::DigitalZoomRatio,
            _,
        ) => first.filter(|value| value.is_finite()).map(decimal),
        (Tag::ExifVersion | Tag::FlashpixVersion, Value::Undefined(bytes, _)) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        (Tag::ComponentsConfiguration, Value::Undefined(bytes, _)) => {
            const NAMES: [&str; 7] = ["-", "Y", "Cb", "Cr", "R", "G", "B"];
            let names = bytes.iter().take(4).map(|at| NAMES.get(usize::from(*at)).copied().unwrap_or("?"));
            Some(names.collect::<Vec<_>>().join(", "))
        }
        (Tag::PixelXDimension | Tag::PixelYDimension | Tag::ImageWidth | Tag::ImageLength, value) => {
            value.get_uint(0).map(|value| value.to_string())
        }
        (_, Value::Short(numbers)) if numbers.len() > 1 => {
            Some(numbers.iter().take(64).map(u16::to_string).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

fn exposure(seconds: f64) -> String {
    if seconds > 0.0 && seconds < 0.25001 { format!("1/{}", (1.0 / seconds).round()) } else { decimal(seconds) }
}

/// Writes a number without zeros at its end.
pub fn decimal(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
