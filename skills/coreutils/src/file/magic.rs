//! Kinds that are told by bytes at a fixed place.

use super::Kind;

/// Offset, bytes, words, media type. The first that fits is taken.
const SIGNATURES: &[(usize, &[u8], &str, &str)] = &[
    (0, b"\xff\xd8\xff", "JPEG image data", "image/jpeg"),
    (0, b"BM", "PC bitmap", "image/bmp"),
    (0, b"II*\0", "TIFF image data, little-endian", "image/tiff"),
    (0, b"MM\0*", "TIFF image data, big-endian", "image/tiff"),
    (0, b"\0\0\x01\0", "MS Windows icon resource", "image/vnd.microsoft.icon"),
    (0, b"8BPS", "Adobe Photoshop Image", "image/vnd.adobe.photoshop"),
    (4, b"ftypavif", "ISO Media, AVIF Image", "image/avif"),
    (4, b"ftypheic", "ISO Media, HEIF Image HEVC Main or Main Still Picture Profile", "image/heic"),
    (4, b"ftypM4A", "ISO Media, Apple iTunes ALAC/AAC-LC (.M4A) Audio", "audio/x-m4a"),
    (4, b"ftypqt", "ISO Media, Apple QuickTime movie", "video/quicktime"),
    (4, b"ftyp", "ISO Media, MP4", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "Matroska data", "video/x-matroska"),
    (0, b"OggS", "Ogg data", "application/ogg"),
    (0, b"fLaC", "FLAC audio bitstream data", "audio/flac"),
    (0, b"ID3", "Audio file with ID3", "audio/mpeg"),
    (0, b"MThd", "Standard MIDI data", "audio/midi"),
    (0, b"\x1f\x8b", "gzip compressed data", "application/gzip"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard compressed data", "application/zstd"),
    (0, b"\x04\x22\x4d\x18", "LZ4 compressed data", "application/x-lz4"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-zip archive data", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "RAR archive data", "application/x-rar"),
    (0, b"!<arch>\ndebian", "Debian binary package", "application/vnd.debian.binary-package"),
    (0, b"!<arch>\n", "current ar archive", "application/x-archive"),
    (257, b"ustar  \0", "POSIX tar archive (GNU)", "application/x-tar"),
    (257, b"ustar\0", "POSIX tar archive", "application/x-tar"),
    (0, b"SQLite format 3\0", "SQLite 3.x database", "application/vnd.sqlite3"),
    (0, b"PAR1", "Apache Parquet", "application/vnd.apache.parquet"),
    (0, b"ARROW1\0\0", "Apache Arrow columnar file", "application/vnd.apache.arrow.file"),
    (0, b"\x93NUMPY", "NumPy data file", "application/octet-stream"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Composite Document File V2 Document", "application/x-ole-storage"),
    (0, b"\xca\xfe\xba\xbe", "compiled Java class data", "application/x-java-applet"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O 64-bit executable", "application/x-mach-binary"),
    (0, b"MZ", "MS-DOS executable", "application/x-dosexec"),
    (0, b"wOFF", "Web Open Font Format", "font/woff"),
    (0, b"wOF2", "Web Open Font Format (Version 2)", "font/woff2"),
    (0, b"OTTO", "OpenType font data", "font/otf"),
    (0, b"\0\x01\0\0\0", "TrueType Font data", "font/sfnt"),
    (0, b"-----BEGIN PGP MESSAGE", "PGP message", "application/pgp"),
];

/// Types of zip archives, by a file name at or near the beginning.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("word/", "Microsoft Word 2007+", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xl/", "Microsoft Excel 2007+", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("ppt/", "Microsoft PowerPoint 2007+", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("META-INF/MANIFEST.MF", "Java archive data (JAR)", "application/java-archive"),
];

/// Types of zip archives that begin with a file `mimetype`, by its content.
const DECLARED: &[(&str, &str, &str)] = &[
    ("application/epub+zip", "EPUB document", "application/epub+zip"),
    ("application/vnd.oasis.opendocument.text", "OpenDocument Text", "application/vnd.oasis.opendocument.text"),
    (
        "application/vnd.oasis.opendocument.spreadsheet",
        "OpenDocument Spreadsheet",
        "application/vnd.oasis.opendocument.spreadsheet",
    ),
];

/// Entries of a zip archive that are looked at.
const MOST_ENTRIES: usize = 16;

pub fn kind(bytes: &[u8]) -> Option<Kind> {
    let read = [png, gif, riff, bzip2, xz, zip, pdf, elf, wasm];
    if let Some(kind) = read.iter().find_map(|read| read(bytes)) {
        return Some(kind);
    }
    let fits = |(at, magic, ..): &&(usize, &[u8], &str, &str)| bytes.get(*at..).is_some_and(|b| b.starts_with(magic));
    let (_, magic, words, mime) = SIGNATURES.iter().find(fits)?;
    // Two letters alone are also how a text may begin.
    if magic.len() == 2 && magic.is_ascii() && std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0')) {
        return None;
    }
    Some(Kind::binary(*words, mime))
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn little(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn png(bytes: &[u8]) -> Option<Kind> {
    bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let words = match (big(bytes, 16), big(bytes, 20), bytes.get(24..29)) {
        (Some(width), Some(height), Some([depth, color, _, _, interlaced])) => {
            let color = match color {
                0 => " grayscale",
                2 => "/color RGB",
                3 => " colormap",
                4 => " gray+alpha",
                6 => "/color RGBA",
                _ => " of an unknown color type",
            };
            let interlaced = if *interlaced == 0 { "non-interlaced" } else { "interlaced" };
            format!("PNG image data, {width} x {height}, {depth}-bit{color}, {interlaced}")
        }
        _ => "PNG image data".to_owned(),
    };
    Some(Kind::binary(words, "image/png"))
}

fn gif(bytes: &[u8]) -> Option<Kind> {
    let version = [&b"87a"[..], b"89a"]
        .into_iter()
        .find(|version| bytes.strip_prefix(b"GIF8").is_some() && bytes[3..].starts_with(version))?;
    let version = String::from_utf8_lossy(version);
    let words = match (little(bytes, 6), little(bytes, 8)) {
        (Some(width), Some(height)) => format!("GIF image data, version {version}, {width} x {height}"),
        _ => format!("GIF image data, version {version}"),
    };
    Some(Kind::binary(words, "image/gif"))
}

fn riff(bytes: &[u8]) -> Option<Kind> {
    bytes.strip_prefix(b"RIFF")?;
    Some(match bytes.get(8..12)? {
        b"WEBP" => Kind::binary("RIFF (little-endian) data, Web/P image", "image/webp"),
        b"WAVE" => Kind::binary("RIFF (little-endian) data, WAVE audio", "audio/x-wav"),
        b"AVI " => Kind::binary("RIFF (little-endian) data, AVI", "video/x-msvideo"),
        _ => Kind::binary("RIFF (little-endian) data", "application/octet-stream"),
    })
}

fn bzip2(bytes: &[u8]) -> Option<Kind> {
    let level = *bytes.strip_prefix(b"BZh")?.first().filter(|level| level.is_ascii_digit())?;
    Some(Kind::binary(format!("bzip2 compressed data, block size = {}00k", level as char), "application/x-bzip2"))
}

fn xz(bytes: &[u8]) -> Option<Kind> {
    let flags = bytes.strip_prefix(b"\xfd7zXZ\0")?;
    let checksum = match flags.get(1) {
        Some(0) => ", checksum NONE",
        Some(1) => ", checksum CRC32",
        Some(4) => ", checksum CRC64",
        Some(10) => ", checksum SHA-256",
        _ => "",
    };
    Some(Kind::binary(format!("XZ compressed data{checksum}"), "application/x-xz"))
}

fn zip(bytes: &[u8]) -> Option<Kind> {
    if bytes.starts_with(b"PK\x05\x06") {
        return Some(Kind::binary("Zip archive data (empty)", "application/zip"));
    }
    bytes.strip_prefix(b"PK\x03\x04")?;
    let mut entries = memchr::memmem::find_iter(bytes, b"PK\x03\x04").take(MOST_ENTRIES);
    let package = entries.find_map(|at| {
        let length = usize::from(little(bytes, at + 26)?);
        let name = String::from_utf8_lossy(bytes.get(at + 30..at + 30 + length)?);
        if name == "mimetype" {
            let declared = bytes.get(at + 30 + length..)?;
            return DECLARED.iter().find(|(mime, ..)| declared.starts_with(mime.as_bytes()));
        }
        PACKAGES.iter().find(|(start, ..)| name.starts_with(start))
    });
    if let Some((_, words, mime)) = package {
        return Some(Kind::binary(*words, mime));
    }
    let words = match (bytes.get(4), little(bytes, 8)) {
        (Some(version), Some(method)) => {
            let method = match method {
                0 => "store".to_owned(),
                8 => "deflate".to_owned(),
                other => other.to_string(),
            };
            let version = format!("v{}.{}", version / 10, version % 10);
            format!("Zip archive data, at least {version} to extract, compression method={method}")
        }
        _ => "Zip archive data".to_owned(),
    };
    Some(Kind::binary(words, "application/zip"))
}

fn pdf(bytes: &[u8]) -> Option<Kind> {
    let version = bytes.strip_prefix(b"%PDF-")?.iter().take(3).take_while(|b| b.is_ascii_digit() || **b == b'.');
    let version: String = version.map(|byte| *byte as char).collect();
    let words = if version.is_empty() { "PDF document".into() } else { format!("PDF document, version {version}") };
    Some(Kind::binary(words, "application/pdf"))
}

fn elf(bytes: &[u8]) -> Option<Kind> {
    bytes.strip_prefix(b"\x7fELF")?;
    let bits = if bytes.get(4) == Some(&2) { "64-bit" } else { "32-bit" };
    let order = if bytes.get(5) == Some(&2) { "MSB" } else { "LSB" };
    let number = |at| if order == "MSB" { little(bytes, at).map(u16::swap_bytes) } else { little(bytes, at) };
    let (kind, mime) = match number(16) {
        Some(1) => ("relocatable", "application/x-object"),
        Some(2) => ("executable", "application/x-executable"),
        Some(3) => ("shared object", "application/x-sharedlib"),
        Some(4) => ("core file", "application/x-coredump"),
        _ => ("file", "application/octet-stream"),
    };
    let machine = match number(18) {
        Some(3) => ", Intel 80386",
        Some(40) => ", ARM",
        Some(62) => ", x86-64",
        Some(183) => ", ARM aarch64",
        Some(243) => ", UCB RISC-V",
        _ => "",
    };
    Some(Kind::binary(format!("ELF {bits} {order} {kind}{machine}"), mime))
}

fn wasm(bytes: &[u8]) -> Option<Kind> {
    bytes.strip_prefix(b"\0asm")?;
    let words = match (little(bytes, 4), little(bytes, 6)) {
        (Some(1), Some(0)) => "WebAssembly (wasm) binary module version 0x1 (MVP)".to_owned(),
        (Some(version), Some(0)) => format!("WebAssembly (wasm) binary module version {version:#x}"),
        (Some(version), Some(_)) => format!("WebAssembly (wasm) component version {version:#x}"),
        _ => "WebAssembly (wasm) binary".to_owned(),
    };
    Some(Kind::binary(words, "application/wasm"))
}
