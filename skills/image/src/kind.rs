//! The formats, told apart by their first bytes: a file's name may lie.

use image::ImageFormat;

/// A format that can be read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Jpeg,
    Png,
    Webp,
    Gif,
    Bmp,
    Tiff,
    Pnm,
}

/// The formats, as errors list them.
pub const KNOWN: &str = "JPEG, PNG, WebP, GIF, BMP, TIFF and PNM";

/// File name endings and the names that `identify` prints.
const NAMES: [(Kind, &[&str], &str, &str); 7] = [
    (Kind::Jpeg, &["jpg", "jpeg", "jpe", "jfif", "pjpeg"], "JPEG", "image/jpeg"),
    (Kind::Png, &["png", "apng", "png8", "png24", "png32"], "PNG", "image/png"),
    (Kind::Webp, &["webp"], "WEBP", "image/webp"),
    (Kind::Gif, &["gif"], "GIF", "image/gif"),
    (Kind::Bmp, &["bmp", "dib"], "BMP", "image/bmp"),
    (Kind::Tiff, &["tif", "tiff"], "TIFF", "image/tiff"),
    (Kind::Pnm, &["pnm", "ppm", "pgm", "pbm", "pam"], "PNM", "image/x-portable-anymap"),
];

/// Other formats by their first bytes, with a sentence for each.
const OTHERS: [(usize, &[u8], &str); 15] = [
    (0, b"%PDF", "it is a PDF; pdftoppm makes pictures of its pages"),
    (0, b"8BPS", "it is a Photoshop document, which cannot be read here"),
    (0, b"\0\0\x01\0", "it is a Windows icon, which cannot be read here"),
    (0, b"\xff\x0a", "it is JPEG XL, which cannot be read here"),
    (0, b"\0\0\0\x0cJXL ", "it is JPEG XL, which cannot be read here"),
    (0, b"\0\0\0\x0cjP  ", "it is JPEG 2000, which cannot be read here"),
    (0, b"\xff\x4f\xff\x51", "it is JPEG 2000, which cannot be read here"),
    (0, b"qoif", "it is QOI, which cannot be read here"),
    (0, b"DDS ", "it is a DirectDraw texture, which cannot be read here"),
    (0, b"v/1\x01", "it is OpenEXR, which cannot be read here"),
    (0, b"#?RADIANCE", "it is Radiance HDR, which cannot be read here"),
    (0, b"\xc5\xd0\xd3\xc6", "it is PostScript, which cannot be read here"),
    (0, b"%!PS", "it is PostScript, which cannot be read here"),
    (0, b"PK\x03\x04", "it is a ZIP archive or an Office document; unzip lists what is in it"),
    (0, b"\x1f\x8b", "it is compressed with gzip; gunzip unpacks it"),
];

impl Kind {
    /// Returns the format of a file's content, or a sentence about why it cannot be read.
    pub fn detect(bytes: &[u8]) -> Result<Self, String> {
        let found = match bytes {
            [] => return Err("it is empty".to_owned()),
            [0xff, 0xd8, 0xff, ..] => Self::Jpeg,
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Self::Png,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Self::Webp,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Self::Gif,
            [b'I', b'I', b'*' | b'+', 0, ..] | [b'M', b'M', 0, b'*' | b'+', ..] => Self::Tiff,
            [b'P', b'1'..=b'7', b' ' | b'\t' | b'\n' | b'\r' | b'#', ..] => Self::Pnm,
            // The reserved words behind the size are zero, unlike in a text that begins with these letters.
            [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Self::Bmp,
            _ => return Err(other(bytes)),
        };
        Ok(found)
    }

    /// Returns the format that a file name's ending or a prefix such as `png:` stands for.
    pub fn from_ending(ending: &str) -> Option<Self> {
        let ending = ending.to_ascii_lowercase();
        NAMES.iter().find(|entry| entry.1.contains(&ending.as_str())).map(|entry| entry.0)
    }

    /// Returns the name that `identify` prints.
    pub fn name(self) -> &'static str {
        self.entry().2
    }

    /// Returns the usual ending of a file's name.
    pub fn ending(self) -> &'static str {
        self.entry().1[0]
    }

    pub fn media_type(self) -> &'static str {
        self.entry().3
    }

    /// Whether one file can hold several pictures.
    pub fn holds_several(self) -> bool {
        matches!(self, Self::Gif | Self::Tiff)
    }

    pub(crate) fn as_image(self) -> ImageFormat {
        match self {
            Self::Jpeg => ImageFormat::Jpeg,
            Self::Png => ImageFormat::Png,
            Self::Webp => ImageFormat::WebP,
            Self::Gif => ImageFormat::Gif,
            Self::Bmp => ImageFormat::Bmp,
            Self::Tiff => ImageFormat::Tiff,
            Self::Pnm => ImageFormat::Pnm,
        }
    }

    fn entry(self) -> &'static (Self, &'static [&'static str], &'static str, &'static str) {
        let at = NAMES.iter().position(|entry| entry.0 == self).unwrap_or_default();
        &NAMES[at]
    }
}

/// Returns a sentence about content in a format that cannot be read.
fn other(bytes: &[u8]) -> String {
    if bytes.get(4..8) == Some(b"ftyp") {
        return container(bytes).to_owned();
    }
    let known = OTHERS.iter().find(|(at, start, _)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(start)));
    if let Some((.., sentence)) = known {
        return (*sentence).to_owned();
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]).to_lowercase();
    if head.contains("<svg") {
        return "it is SVG, a drawing in XML, which cannot be read here".to_owned();
    }
    if head.contains("<html") || head.contains("<!doctype html") {
        return "it is a web page and not a picture".to_owned();
    }
    format!("it is not a picture in a known format ({KNOWN})")
}

/// The kinds of files that are boxes with a brand.
fn container(bytes: &[u8]) -> &'static str {
    const HEIC: &str = "HEIC pictures cannot be read here; save it as JPEG on the device that made it (on an iPhone: Settings, Camera, Formats, Most Compatible)";
    const AVIF: &str = "AVIF pictures cannot be read here; save it as JPEG or PNG with the program that made it";
    let end = bytes.len().min(64);
    let brands: Vec<&[u8]> = bytes[8..end].chunks(4).collect();
    let has = |names: &[&[u8]]| brands.iter().any(|brand| names.contains(brand));
    if has(&[b"avif", b"avis"]) {
        AVIF
    } else if has(&[b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"]) {
        HEIC
    } else if has(&[b"crx "]) {
        "it is a raw file of a Canon camera, which cannot be read here"
    } else {
        "it is a film or a sound and not a picture"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_its_bytes() {
        for (start, kind) in [
            (&b"\xff\xd8\xff\xe0"[..], Kind::Jpeg),
            (b"\x89PNG\r\n\x1a\n", Kind::Png),
            (b"RIFF\x01\0\0\0WEBPVP8 ", Kind::Webp),
            (b"GIF89a", Kind::Gif),
            (b"BM\x46\0\0\0\0\0\0\0\x36\0", Kind::Bmp),
            (b"II*\0", Kind::Tiff),
            (b"MM\0+", Kind::Tiff),
            (b"P6\n1 1\n255\n", Kind::Pnm),
        ] {
            assert_eq!(Kind::detect(start), Ok(kind));
        }
    }

    #[test]
    fn every_other_content_has_its_sentence() {
        for (start, words) in [
            (&b""[..], "empty"),
            (b"\0\0\0\x1cftypavif\0\0\0\0mif1", "AVIF"),
            (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC"),
            (b"\0\0\0\x18ftyp", "film"),
            (b"\0\0\0\x18ftypisom\0\0", "film"),
            (b"%PDF-1.4", "pdftoppm"),
            (b"<?xml version='1.0'?><svg>", "SVG"),
            (b"BM is a text", "not a picture"),
            (b"hello", "not a picture"),
            (b"\xff", "not a picture"),
        ] {
            let said = Kind::detect(start).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn endings_and_names_belong_together() {
        for kind in [Kind::Jpeg, Kind::Png, Kind::Webp, Kind::Gif, Kind::Bmp, Kind::Tiff, Kind::Pnm] {
            assert_eq!(Kind::from_ending(kind.ending()), Some(kind));
            assert_eq!(Kind::from_ending(&kind.name().to_uppercase()), Some(kind));
        }
        assert_eq!(Kind::from_ending("heic"), None);
    }
}
