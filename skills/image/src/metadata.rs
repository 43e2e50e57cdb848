//! EXIF, the metadata that cameras write, as fields with names and values.

mod words;

use crate::source::Source;
pub use words::decimal;

use exif::{Context, Exif, Field, In, Rational, Reader, Tag, Value};

/// A field of a file's metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// `EXIF`, `GPS` or `File`, and so on.
    pub group: &'static str,
    /// As the standard has it.
    pub standard: String,
    /// As ExifTool has it.
    pub name: String,
    pub label: String,
    /// For people.
    pub value: String,
    /// Numbers as they are stored.
    pub raw: String,
    /// As a decimal number where it is one.
    pub number: Option<f64>,
}

/// Fields that are read; a file may claim many more.
const MAX_FIELDS: usize = 2_000;

/// Characters of a value that are shown.
const MAX_VALUE: usize = 2_000;

/// Names of ExifTool that differ from the standard's.
const NAMES: [(Tag, &str); 11] = [
    (Tag::DateTime, "ModifyDate"),
    (Tag::DateTimeDigitized, "CreateDate"),
    (Tag::PhotographicSensitivity, "ISO"),
    (Tag::ExposureBiasValue, "ExposureCompensation"),
    (Tag::BodySerialNumber, "SerialNumber"),
    (Tag::LensSpecification, "LensInfo"),
    (Tag::FocalLengthIn35mmFilm, "FocalLengthIn35mmFormat"),
    (Tag::PixelXDimension, "ExifImageWidth"),
    (Tag::PixelYDimension, "ExifImageHeight"),
    (Tag::JPEGInterchangeFormat, "ThumbnailOffset"),
    (Tag::JPEGInterchangeFormatLength, "ThumbnailLength"),
];

/// Labels that are not the name in words.
const LABELS: [(&str, &str); 10] = [
    ("Model", "Camera Model Name"),
    ("DateTimeOriginal", "Date/Time Original"),
    ("FNumber", "F Number"),
    ("ISO", "ISO"),
    ("XResolution", "X Resolution"),
    ("YResolution", "Y Resolution"),
    ("YCbCrPositioning", "Y Cb Cr Positioning"),
    ("FocalLengthIn35mmFormat", "Focal Length In 35mm Format"),
    ("GPSDateStamp", "GPS Date Stamp"),
    ("MIMEType", "MIME Type"),
];

/// Returns the fields of a file, in the order in which they are stored. Damaged ones are left out.
pub fn entries(source: &Source, block: Option<&[u8]>) -> Vec<Entry> {
    let bytes = match block {
        Some(block) => block.to_vec(),
        // A TIFF is itself what the block of other formats is.
        None if source.kind == crate::kind::Kind::Tiff => source.bytes().to_vec(),
        None => return Vec::new(),
    };
    parse(bytes)
}

/// Returns the fields of a block.
pub fn parse(block: Vec<u8>) -> Vec<Entry> {
    let mut reader = Reader::new();
    reader.continue_on_error(true);
    let read = reader.read_raw(block).or_else(|e| e.distill_partial_result(|_| ()));
    let Ok(exif) = read else { return Vec::new() };
    let mut found: Vec<Entry> = exif
        .fields()
        .filter(|field| field.ifd_num == In::PRIMARY && !is_internal(field.tag))
        .take(MAX_FIELDS)
        .map(|field| entry(&exif, field))
        .collect();
    found.extend(composite(&exif));
    found
}

/// Whether a field only says where pixels or other fields are.
fn is_internal(tag: Tag) -> bool {
    const NUMBERS: [u16; 8] = [0x111, 0x117, 0x144, 0x145, 0x8769, 0x8825, 0xa005, 0x927c];
    NUMBERS.contains(&tag.number())
}

fn entry(exif: &Exif, field: &Field) -> Entry {
    let standard = field.tag.to_string();
    let name = NAMES.iter().find(|(tag, _)| *tag == field.tag).map_or(standard.clone(), |(_, name)| (*name).to_owned());
    Entry {
        group: if field.tag.context() == Context::Gps { "GPS" } else { "EXIF" },
        label: label(&name),
        value: cut(readable(exif, field)),
        raw: cut(raw(&field.value)),
        number: number(field),
        standard,
        name,
    }
}

/// Returns the label of a name: its words apart.
pub fn label(name: &str) -> String {
    if let Some((_, label)) = LABELS.iter().find(|(known, _)| *known == name) {
        return (*label).to_owned();
    }
    let mut words = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() || letters.get(at + 1).is_some_and(|after| after.is_lowercase())
            });
        if begins {
            words.push(' ');
        }
        words.push(*letter);
    }
    words
}

fn cut(text: String) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_VALUE).collect();
    text.trim().to_owned()
}

fn readable(exif: &Exif, field: &Field) -> String {
    if let Some(words) = words::of_field(field) {
        return words;
    }
    let value = &field.value;
    match (field.tag, value) {
        (_, Value::Ascii(_)) => raw(value),
        (Tag::GPSLatitude | Tag::GPSDestLatitude, Value::Rational(parts)) => with_ref(exif, parts, Tag::GPSLatitudeRef),
        (Tag::GPSLongitude | Tag::GPSDestLongitude, Value::Rational(parts)) => {
            with_ref(exif, parts, Tag::GPSLongitudeRef)
        }
        (Tag::UserComment, Value::Undefined(bytes, _)) => {
            let text = bytes.get(8..).unwrap_or_default();
            String::from_utf8_lossy(text).trim_matches('\0').to_owned()
        }
        (_, Value::Undefined(bytes, _) | Value::Byte(bytes)) if bytes.len() > 64 => {
            format!("(Binary data {} bytes)", bytes.len())
        }
        _ => field.display_value().with_unit(exif).to_string(),
    }
}

fn with_ref(exif: &Exif, parts: &[Rational], tag: Tag) -> String {
    let letter = exif.get_field(tag, In::PRIMARY).map(|field| raw(&field.value)).unwrap_or_default();
    format!("{} {letter}", sexagesimal(degrees(parts)))
}

/// Returns degrees of degrees, minutes and seconds.
fn degrees(parts: &[Rational]) -> f64 {
    let part = |at: usize| parts.get(at).map(Rational::to_f64).filter(|part| part.is_finite()).unwrap_or_default();
    part(0) + part(1) / 60.0 + part(2) / 3600.0
}

fn sexagesimal(degrees: f64) -> String {
    // Rounded as a whole, so that no 60 seconds are left.
    let hundredths = (degrees * 360_000.0).round();
    let (degrees, rest) = ((hundredths / 360_000.0).floor(), hundredths % 360_000.0);
    format!("{degrees} deg {}' {:.2}\"", (rest / 6_000.0).floor(), rest % 6_000.0 / 100.0)
}

/// Returns the value as it is stored: numbers with commas, fractions as two numbers.
fn raw(value: &Value) -> String {
    fn list<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
        items.iter().take(64).map(write).collect::<Vec<_>>().join(", ")
    }
    match value {
        Value::Ascii(texts) => {
            let texts = texts.iter().map(|text| String::from_utf8_lossy(text).trim_matches('\0').trim().to_owned());
            texts.filter(|text| !text.is_empty()).take(64).collect::<Vec<_>>().join(", ")
        }
        Value::Byte(items) | Value::Undefined(items, _) => list(items, u8::to_string),
        Value::Short(items) => list(items, u16::to_string),
        Value::Long(items) => list(items, u32::to_string),
        Value::SByte(items) => list(items, i8::to_string),
        Value::SShort(items) => list(items, i16::to_string),
        Value::SLong(items) => list(items, i32::to_string),
        Value::Rational(items) => list(items, |item| format!("{}/{}", item.num, item.denom)),
        Value::SRational(items) => list(items, |item| format!("{}/{}", item.num, item.denom)),
        Value::Float(items) => list(items, f32::to_string),
        Value::Double(items) => list(items, f64::to_string),
        Value::Unknown(..) => String::new(),
    }
}

fn number(field: &Field) -> Option<f64> {
    let number = match &field.value {
        Value::Rational(parts) if matches!(field.tag, Tag::GPSLatitude | Tag::GPSLongitude) => degrees(parts),
        Value::Rational(parts) if parts.len() == 1 => parts[0].to_f64(),
        Value::SRational(parts) if parts.len() == 1 => parts[0].to_f64(),
        value => f64::from(value.get_uint(0).filter(|_| value.get_uint(1).is_none())?),
    };
    number.is_finite().then_some(number)
}

/// Returns latitude and longitude in degrees, south and west below zero.
fn position(exif: &Exif) -> Option<(f64, f64)> {
    let one = |tag, letter, negative: &str| {
        let field = exif.get_field(tag, In::PRIMARY)?;
        let Value::Rational(parts) = &field.value else { return None };
        let letter = exif.get_field(letter, In::PRIMARY).map(|field| raw(&field.value)).unwrap_or_default();
        let degrees = degrees(parts);
        Some(if letter.starts_with(negative) { -degrees } else { degrees })
    };
    Some((one(Tag::GPSLatitude, Tag::GPSLatitudeRef, "S")?, one(Tag::GPSLongitude, Tag::GPSLongitudeRef, "W")?))
}

/// The fields that ExifTool makes of others.
fn composite(exif: &Exif) -> Option<Entry> {
    let (latitude, longitude) = position(exif)?;
    let readable = |degrees: f64, letters: [&str; 2]| {
        format!("{} {}", sexagesimal(degrees.abs()), letters[usize::from(degrees < 0.0)])
    };
    Some(Entry {
        group: "Composite",
        standard: "GPSPosition".to_owned(),
        name: "GPSPosition".to_owned(),
        label: "GPS Position".to_owned(),
        value: format!("{}, {}", readable(latitude, ["N", "S"]), readable(longitude, ["E", "W"])),
        raw: format!("{} {}", decimal(latitude), decimal(longitude)),
        number: None,
    })
}

/// Whether the standard or ExifTool knows a field of this name.
pub fn is_known(name: &str) -> bool {
    let contexts = [Context::Tiff, Context::Exif, Context::Gps, Context::Interop];
    NAMES.iter().any(|(_, known)| known.eq_ignore_ascii_case(name))
        || name.eq_ignore_ascii_case("GPSPosition")
        || contexts.iter().any(|context| {
            let mut tags = (0..=u16::MAX).map(|number| Tag(*context, number)).filter(|tag| tag.description().is_some());
            tags.any(|tag| tag.to_string().eq_ignore_ascii_case(name))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn value<'a>(entries: &'a [Entry], name: &str) -> &'a str {
        &entries.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("{name}: {entries:?}")).value
    }

    #[test]
    fn fields_are_readable() {
        let entries = parse(samples::exif_block(6));
        for (name, wanted) in [
            ("Make", "Acme"),
            ("Model", "Camera 3"),
            ("Orientation", "Rotate 90 CW"),
            ("ModifyDate", "2024:05:01 10:20:30"),
            ("DateTimeOriginal", "2024:05:01 10:20:30"),
            ("ExposureTime", "1/125"),
            ("FNumber", "2.8"),
            ("GPSLatitude", "59 deg 54' 45.00\" N"),
            ("GPSPosition", "59 deg 54' 45.00\" N, 10 deg 45' 12.30\" E"),
        ] {
            assert_eq!(value(&entries, name), wanted);
        }
        assert_eq!(entries[0].label, "Make");
        assert_eq!(label("GPSLatitudeRef"), "GPS Latitude Ref");
        assert_eq!(label("ExposureTime"), "Exposure Time");
    }

    #[test]
    fn a_damaged_block_gives_what_can_be_read() {
        let block = samples::exif_block(1);
        for end in 0..block.len() {
            let _ = parse(block[..end].to_vec());
        }
        for at in 0..block.len() {
            let mut damaged = block.clone();
            damaged[at] ^= 0xff;
            let _ = parse(damaged);
        }
        assert!(parse(Vec::new()).is_empty());
    }

    #[test]
    fn names_are_known() {
        assert!(is_known("make") && is_known("CreateDate") && is_known("GPSLatitude"));
        assert!(!is_known("foo"));
    }
}
