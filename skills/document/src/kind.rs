//! Tells what a file is: by its first bytes, by what lies inside a package, and only then by its name.

use crate::error::{Error, Result};
use crate::package::Package;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Pdf,
    Docx,
    Doc,
    Pptx,
    Ppt,
    Xlsx,
    Xlsb,
    Xls,
    Odt,
    Ods,
    Odp,
    Epub,
    Rtf,
    Html,
    Eml,
    Mbox,
    Msg,
    Vcard,
    Calendar,
    Csv,
    Markdown,
    Text,
}

impl Kind {
    /// The name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pdf => "PDF",
            Self::Docx => "DOCX",
            Self::Doc => "DOC",
            Self::Pptx => "PPTX",
            Self::Ppt => "PPT",
            Self::Xlsx => "XLSX",
            Self::Xlsb => "XLSB",
            Self::Xls => "XLS",
            Self::Odt => "ODT",
            Self::Ods => "ODS",
            Self::Odp => "ODP",
            Self::Epub => "EPUB",
            Self::Rtf => "RTF",
            Self::Html => "HTML",
            Self::Eml => "mail",
            Self::Mbox => "mailbox",
            Self::Msg => "Outlook message",
            Self::Vcard => "vCard",
            Self::Calendar => "calendar",
            Self::Csv => "CSV",
            Self::Markdown => "Markdown",
            Self::Text => "text",
        }
    }

    /// The name of its parts. Empty where it has one.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Pdf | Self::Docx | Self::Odt => "page",
            Self::Pptx | Self::Ppt | Self::Odp => "slide",
            Self::Xlsx | Self::Xlsb | Self::Xls | Self::Ods => "sheet",
            Self::Epub => "chapter",
            Self::Mbox => "message",
            _ => "",
        }
    }

    /// Whether its parts have headings even if there is one.
    pub fn is_always_labelled(self) -> bool {
        matches!(self, Self::Pdf | Self::Pptx | Self::Ppt | Self::Odp) || self.unit() == "sheet"
    }
}

/// Files that are told apart from documents so that the error can say where they belong.
const OTHERS: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG", "a picture (PNG): look at it instead"),
    (0, b"\xff\xd8\xff", "a picture (JPEG): look at it instead"),
    (0, b"GIF8", "a picture (GIF): look at it instead"),
    (8, b"WEBP", "a picture (WebP): look at it instead"),
    (0, b"BM", "a picture (BMP): look at it instead"),
    (0, b"II*\0", "a picture (TIFF): look at it instead"),
    (0, b"MM\0*", "a picture (TIFF): look at it instead"),
    (0, b"ID3", "sound (MP3)"),
    (0, b"OggS", "sound or film (Ogg)"),
    (0, b"RIFF", "sound or film (RIFF)"),
    (4, b"ftyp", "film, sound or a picture (MP4, HEIC)"),
    (0, b"\x1f\x8b", "packed with gzip: unpack it with `gunzip` first"),
    (0, b"BZh", "packed with bzip2: unpack it with `bunzip2` first"),
    (0, b"\xfd7zXZ", "packed with xz: unpack it with `unxz` first"),
    (0, b"7z\xbc\xaf", "a 7z archive, which cannot be read here"),
    (0, b"Rar!", "a RAR archive, which cannot be read here"),
    (257, b"ustar", "a tar archive: list it with `tar -tf`"),
    (0, b"SQLite format 3", "an SQLite database: query it with `sqlite3`"),
    (0, b"\x7fELF", "a program"),
    (0, b"MZ", "a program"),
    (0, b"\0asm", "a program (WebAssembly)"),
    (0, b"%!PS", "PostScript, which cannot be read here: convert it to PDF"),
    (0, b"AC10", "a drawing (DWG), which cannot be read here"),
    (0, b"\0\0\x1a\0", "Lotus 1-2-3, which cannot be read here"),
];

/// Finds the kind of a file. The name decides only where the bytes fit several.
pub fn find(bytes: &[u8], name: &str) -> Result<Kind> {
    if bytes.is_empty() {
        return Err("it is empty (0 bytes)".into());
    }
    let head = &bytes[..bytes.len().min(4_096)];
    if bytes.iter().all(|byte| *byte == 0) {
        return Err("it has only zero bytes".into());
    }
    let says_pdf = contains(&head[..head.len().min(1_024)], b"%PDF-");
    // A package may begin with anything; one that begins like a PDF file has none of its objects.
    if says_pdf && (contains(bytes, b" obj") || contains(bytes, b"endobj") || !ends_as_package(bytes)) {
        return Ok(Kind::Pdf);
    }
    if says_pdf || bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return in_package(bytes);
    }
    if bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
        return in_compound(bytes);
    }
    // Excel before 5.0 had no container: BOF of versions 2, 3 and 4.
    if let [9, 0 | 2 | 4, 4 | 6, 0, ..] = bytes {
        return Err("it is an Excel file of a version before 5.0, which cannot be read here: save it as .xlsx".into());
    }
    for (start, magic, words) in OTHERS {
        // `BM` and `MZ` begin texts, too.
        let certain = magic.len() > 2 || looks_binary(head);
        if certain && head.get(*start..).is_some_and(|rest| rest.starts_with(magic)) {
            return Err(Error::new(format!("it is not a document but {words}")));
        }
    }
    in_text(head, name)
}

/// Whether the end of the file is that of a ZIP package.
fn ends_as_package(bytes: &[u8]) -> bool {
    contains(&bytes[bytes.len().saturating_sub(66_000)..], b"PK\x05\x06")
}

fn in_text(head: &[u8], name: &str) -> Result<Kind> {
    let wide = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    if !wide && looks_binary(head) && extension(name) != "eml" {
        return Err("it is not a document but binary data of an unknown kind".into());
    }
    let text = crate::charset::decode(head, None);
    let start = text.trim_start();
    let upper = start.chars().take(64).collect::<String>().to_ascii_uppercase();
    if upper.starts_with("{\\RTF") {
        return Ok(Kind::Rtf);
    }
    if upper.starts_with("BEGIN:VCARD") {
        return Ok(Kind::Vcard);
    }
    if upper.starts_with("BEGIN:VCALENDAR") {
        return Ok(Kind::Calendar);
    }
    if start.starts_with("From ") && start.lines().nth(1).is_some_and(|line| field(line).is_some()) {
        return Ok(Kind::Mbox);
    }
    let lower = start.to_ascii_lowercase();
    let begins = ["<!doctype html", "<html", "<head", "<body", "<title", "<meta", "<table", "<div", "<p>", "<h1"];
    if begins.iter().any(|tag| lower.starts_with(tag))
        || (lower.starts_with("<?xml") || lower.starts_with("<!--"))
            && (lower.contains("<html") || lower.contains("<!doctype html"))
    {
        return Ok(Kind::Html);
    }
    if is_mail(start) {
        return Ok(Kind::Eml);
    }
    Ok(match extension(name).as_str() {
        "html" | "htm" | "xhtml" if start.contains('<') => Kind::Html,
        "eml" => Kind::Eml,
        "csv" | "tsv" | "tab" => Kind::Csv,
        "md" | "markdown" => Kind::Markdown,
        _ => Kind::Text,
    })
}

/// The part of a name after its last point, in small letters.
pub fn extension(name: &str) -> String {
    name.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or(String::new(), |(_, end)| end.to_lowercase())
}

/// The name of a header field at the beginning of a line.
fn field(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    (!name.is_empty() && name.len() < 60 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'))
        .then_some(name)
}

/// Whether the text begins with header fields that mails have.
fn is_mail(text: &str) -> bool {
    const FIELDS: [&str; 14] = [
        "received",
        "return-path",
        "from",
        "to",
        "subject",
        "date",
        "message-id",
        "mime-version",
        "delivered-to",
        "reply-to",
        "content-type",
        "x-mozilla-status",
        "sender",
        "cc",
    ];
    let mut known = 0;
    for line in text.lines().take(60) {
        if line.is_empty() {
            break;
        }
        if line.starts_with([' ', '\t']) {
            continue;
        }
        match field(line) {
            Some(name) if FIELDS.contains(&name.to_ascii_lowercase().as_str()) => known += 1,
            Some(_) => {}
            None => return false,
        }
    }
    known >= 2
}

/// Whether bytes have control characters that no text has.
fn looks_binary(head: &[u8]) -> bool {
    let odd = head.iter().filter(|byte| matches!(byte, 0 | 1..=6 | 14..=26 | 28..=31)).count();
    odd * 50 > head.len().max(1)
}

pub fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

fn in_package(bytes: &[u8]) -> Result<Kind> {
    let mut package = Package::open(bytes)?;
    let mimetype = package.read("mimetype").unwrap_or_default();
    let mimetype = String::from_utf8_lossy(&mimetype).trim().to_ascii_lowercase();
    if mimetype.contains("epub") || package.has("META-INF/container.xml") && !package.has("content.xml") {
        return Ok(Kind::Epub);
    }
    if package.has("content.xml") {
        // Templates and texts of several kinds have names that begin alike.
        return Ok(match mimetype.rsplit('.').next().unwrap_or_default() {
            kind if kind.starts_with("spreadsheet") => Kind::Ods,
            kind if kind.starts_with("presentation") || kind.starts_with("graphics") => Kind::Odp,
            _ => Kind::Odt,
        });
    }
    if package.has("[Content_Types].xml") {
        let main = package.main_part();
        let content = package.content_type(&main);
        let is = |word: &str, folder: &str| content.contains(word) || content.is_empty() && main.starts_with(folder);
        if content.contains("sheet.binary") || main.ends_with("workbook.bin") {
            return Ok(Kind::Xlsb);
        }
        if is("spreadsheetml.", "xl/") || content.contains("ms-excel.") {
            return Ok(Kind::Xlsx);
        }
        if is("wordprocessingml.", "word/") || content.contains("ms-word.") {
            return Ok(Kind::Docx);
        }
        if is("presentationml.", "ppt/") || content.contains("ms-powerpoint.") {
            return Ok(Kind::Pptx);
        }
    }
    for (part, kind) in
        [("word/document.xml", Kind::Docx), ("xl/workbook.xml", Kind::Xlsx), ("ppt/presentation.xml", Kind::Pptx)]
    {
        if package.has(part) {
            return Ok(kind);
        }
    }
    let names = package.names().iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    Err(Error::new(format!("it is not a document but a ZIP archive ({names}): unpack it with `unzip`")))
}

fn in_compound(bytes: &[u8]) -> Result<Kind> {
    let file = cfb::CompoundFile::open(std::io::Cursor::new(bytes))
        .map_err(|e| Error::damaged("the container of an old Office file", e))?;
    let has = |name: &str| file.exists(name);
    if has("EncryptedPackage") {
        return Err("it is encrypted with a password; here only PDF files can be opened with one: remove the password in Office".into());
    }
    if has("__properties_version1.0") {
        return Ok(Kind::Msg);
    }
    if has("Workbook") || has("Book") || has("WORKBOOK") || has("BOOK") {
        return Ok(Kind::Xls);
    }
    if has("WordDocument") {
        return Ok(Kind::Doc);
    }
    if has("PowerPoint Document") {
        return Ok(Kind::Ppt);
    }
    Err("it is a compound file of an unknown kind".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_before_the_name() {
        for (bytes, name, kind) in [
            (&b"%PDF-1.4\n"[..], "a.docx", Kind::Pdf),
            (b"junk\n%PDF-1.4\n", "a", Kind::Pdf),
            (b"{\\rtf1 a}", "a.doc", Kind::Rtf),
            (b"<!DOCTYPE html><p>a", "a.doc", Kind::Html),
            (b"\xef\xbb\xbfBEGIN:VCARD\nEND:VCARD", "a.txt", Kind::Vcard),
            (b"BEGIN:VCALENDAR\r\n", "a", Kind::Calendar),
            (b"From a@b Mon Jan 1\nFrom: a@b\nSubject: x\n\nhi", "a", Kind::Mbox),
            (b"Subject: hi\nFrom: a@b\n\nhello", "a.txt", Kind::Eml),
            (b"Note: this\nDate: tomorrow\n", "a.txt", Kind::Text),
            (b"a,b\n1,2\n", "a.CSV", Kind::Csv),
            (b"# a\n", "x/a.md", Kind::Markdown),
            (b"BMW is a car", "a.txt", Kind::Text),
            (b"\xff\xfeh\0i\0", "a.txt", Kind::Text),
        ] {
            assert_eq!(find(bytes, name).unwrap(), kind, "{name}: {}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_package_may_begin_like_another_file() {
        let package = crate::office::docx::tests::docx("<w:p/>");
        assert_eq!(find(&[b"%PDF-1.4\n", &package[..]].concat(), "a.pdf").unwrap(), Kind::Docx);
        assert_eq!(find(&[b"%PDF-1.4\n1 0 obj\n", &package[..]].concat(), "a.pdf").unwrap(), Kind::Pdf);
    }

    #[test]
    fn other_files_are_named() {
        for (bytes, words) in [
            (&b""[..], "empty"),
            (b"\0\0\0\0", "zero bytes"),
            (b"\x89PNG\r\n\x1a\n", "look at it"),
            (b"\x1f\x8b\x08\0", "gunzip"),
            (b"PK\x03\x04 not a package", "damaged"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 cut", "damaged"),
            (b"\x01\x02\x03\x04\x05\x06\0\0\x01\x02", "binary data"),
        ] {
            let error = find(bytes, "a.pdf").unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
