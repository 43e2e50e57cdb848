//! MSG: a message that Outlook saved ([MS-OXMSG]).

use std::io::{Cursor, Read};

use crate::charset;
use crate::document::{Attachment, Document};
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::limits;
use crate::out::Out;
use crate::read::Reading;
use crate::text::{html, rtf};

type File<'a> = cfb::CompoundFile<Cursor<&'a [u8]>>;

/// Messages inside messages.
const NESTING: usize = 4;

const SUBJECT: u16 = 0x0037;
const CLIENT_SUBMIT_TIME: u16 = 0x0039;
const SENDER_NAME: u16 = 0x0c1a;
const SENDER_EMAIL: u16 = 0x0c1f;
const SENDER_SMTP: u16 = 0x5d01;
const DISPLAY_BCC: u16 = 0x0e02;
const DISPLAY_CC: u16 = 0x0e03;
const DISPLAY_TO: u16 = 0x0e04;
const DELIVERY_TIME: u16 = 0x0e06;
const BODY: u16 = 0x1000;
const RTF_COMPRESSED: u16 = 0x1009;
const HTML: u16 = 0x1013;
const DISPLAY_NAME: u16 = 0x3001;
const EMAIL_ADDRESS: u16 = 0x3003;
const SMTP_ADDRESS: u16 = 0x39fe;
const RECIPIENT_TYPE: u16 = 0x0c15;
const ATTACH_DATA: u16 = 0x3701;
const ATTACH_FILENAME: u16 = 0x3704;
const ATTACH_LONG_FILENAME: u16 = 0x3707;
const INTERNET_CODE_PAGE: u16 = 0x3fde;
const MESSAGE_CODE_PAGE: u16 = 0x3ffd;

/// Reads a message.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut file = File::open(Cursor::new(bytes)).map_err(|e| Error::damaged("the container of the message", e))?;
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    let mut attachments = Vec::new();
    let mut message = Message { file: &mut file, storage: String::new(), page: 1_252, header: 32 };
    let fields = message.read(&mut out, &mut attachments, reading, 0);
    let mut document = Document::new(Kind::Msg, out);
    for (name, value) in fields {
        document.fact(name, value);
    }
    document.attachments = attachments;
    Ok(document)
}

struct Message<'f, 'a> {
    file: &'f mut File<'a>,
    /// Path of its storage, with `/` at its end unless it is the root.
    storage: String,
    /// Code page of its 8-bit texts.
    page: u32,
    /// Bytes before the properties.
    header: usize,
}

impl Message<'_, '_> {
    fn read(
        &mut self,
        out: &mut Out,
        attachments: &mut Vec<Attachment>,
        reading: &Reading,
        depth: usize,
    ) -> Vec<(&'static str, String)> {
        let root = self.storage.clone();
        let properties = self.stream(&format!("{root}__properties_version1.0")).unwrap_or_default();
        let number = |id: u16| fixed(&properties, self.header, id);
        let page = number(INTERNET_CODE_PAGE).or_else(|| number(MESSAGE_CODE_PAGE)).map(|value| value as u32);
        self.page = page.filter(|page| *page > 0).unwrap_or(1_252);
        let date = number(CLIENT_SUBMIT_TIME).or_else(|| number(DELIVERY_TIME)).map(crate::date::from_filetime);
        let recipients = self.recipients();
        let to = |kind: u64, display: u16, message: &mut Self| {
            let listed: Vec<&str> =
                recipients.iter().filter(|(of, _)| *of == kind).map(|(_, name)| name.as_str()).collect();
            if listed.is_empty() { message.text(&root, display).unwrap_or_default() } else { listed.join(", ") }
        };
        let from = self.text(&root, SENDER_NAME).unwrap_or_default();
        let address = self.text(&root, SENDER_SMTP).or_else(|| self.text(&root, SENDER_EMAIL)).unwrap_or_default();
        let fields = vec![
            ("title", self.text(&root, SUBJECT).unwrap_or_default()),
            ("from", with_address(&from, &address)),
            ("to", to(1, DISPLAY_TO, self)),
            ("cc", to(2, DISPLAY_CC, self)),
            ("bcc", to(3, DISPLAY_BCC, self)),
            ("date", date.unwrap_or_default()),
        ];
        if depth > 0 {
            out.heading(2, &format!("Attached message: {}", fields[0].1));
            let lines = fields[1..].iter().filter(|(_, value)| !value.trim().is_empty());
            out.raw(&lines.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("  \n"));
        }
        self.write_body(&root, out);
        self.attach(&root, out, attachments, reading, depth);
        fields
    }

    fn write_body(&mut self, root: &str, out: &mut Out) {
        if let Some(text) = self.text(root, BODY).filter(|text| !text.trim().is_empty()) {
            out.raw(text.replace("\r\n", "\n").trim_end());
            return;
        }
        if let Some(bytes) = self.binary(root, HTML) {
            let label = charset::html_label(&bytes);
            let page = charset::for_code_page(self.page).name();
            html::write(&charset::decode(&bytes, label.as_deref().or(Some(page))), out);
            return;
        }
        if let Some(unpacked) = self.binary(root, RTF_COMPRESSED).and_then(|bytes| decompress(&bytes)) {
            // HTML that Outlook wrapped into RTF.
            match rtf::wrapped_html(&unpacked) {
                Some(page) => drop(html::write(&page, out)),
                None => drop(rtf::write(&unpacked, out)),
            }
        }
    }

    fn stream(&mut self, path: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let stream = self.file.open_stream(path).ok()?;
        stream.take(limits::FILE_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn text(&mut self, root: &str, id: u16) -> Option<String> {
        if let Some(bytes) = self.stream(&format!("{root}__substg1.0_{id:04X}001F")) {
            let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            return Some(String::from_utf16_lossy(&units).trim_end_matches('\0').to_owned());
        }
        let bytes = self.stream(&format!("{root}__substg1.0_{id:04X}001E"))?;
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        // The code page is often a default that the text does not follow; what is valid UTF-8 is hardly anything else.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => charset::for_code_page(self.page).decode_without_bom_handling(bytes).0.into_owned(),
        };
        Some(text)
    }

    fn binary(&mut self, root: &str, id: u16) -> Option<Vec<u8>> {
        let found = self.stream(&format!("{root}__substg1.0_{id:04X}0102"));
        found.or_else(|| self.stream(&format!("{root}__substg1.0_{id:04X}001E")))
    }

    /// Storages below a path that begin with a name.
    fn storages(&mut self, root: &str, name: &str) -> Vec<String> {
        let path = if root.is_empty() { "/" } else { root };
        let Ok(entries) = self.file.read_storage(path) else { return Vec::new() };
        let found = entries.filter(|entry| entry.is_storage() && entry.name().starts_with(name));
        found.take(limits::ATTACHMENTS).map(|entry| format!("{root}{}/", entry.name())).collect()
    }

    /// Kind (1 to, 2 cc, 3 bcc) and name with address.
    fn recipients(&mut self) -> Vec<(u64, String)> {
        let root = self.storage.clone();
        let mut found = Vec::new();
        for storage in self.storages(&root, "__recip_version1.0_") {
            let properties = self.stream(&format!("{storage}__properties_version1.0")).unwrap_or_default();
            let kind = fixed(&properties, 8, RECIPIENT_TYPE).unwrap_or(1) & 0xf;
            let name = self.text(&storage, DISPLAY_NAME).unwrap_or_default();
            let address = self.text(&storage, SMTP_ADDRESS).or_else(|| self.text(&storage, EMAIL_ADDRESS));
            let text = with_address(&name, &address.unwrap_or_default());
            if !text.is_empty() {
                found.push((kind, text));
            }
        }
        found
    }

    fn attach(
        &mut self,
        root: &str,
        out: &mut Out,
        attachments: &mut Vec<Attachment>,
        reading: &Reading,
        depth: usize,
    ) {
        for (number, storage) in self.storages(root, "__attach_version1.0_").into_iter().enumerate() {
            if attachments.len() >= limits::ATTACHMENTS {
                return;
            }
            let long = self.text(&storage, ATTACH_LONG_FILENAME).or_else(|| self.text(&storage, ATTACH_FILENAME));
            let name =
                long.or_else(|| self.text(&storage, DISPLAY_NAME)).unwrap_or_else(|| format!("part-{}", number + 1));
            let inner = format!("{storage}__substg1.0_{ATTACH_DATA:04X}000D/");
            if self.file.is_storage(inner.trim_end_matches('/')) {
                if depth < NESTING {
                    let mut message = Message { file: &mut *self.file, storage: inner, page: self.page, header: 24 };
                    message.read(out, attachments, reading, depth + 1);
                }
                continue;
            }
            let path = format!("{storage}__substg1.0_{ATTACH_DATA:04X}0102");
            let size = self.file.entry(&path).map_or(0, |entry| usize::try_from(entry.len()).unwrap_or(usize::MAX));
            let used: usize = attachments.iter().filter_map(|known| known.bytes.as_ref()).map(Vec::len).sum();
            let keep = reading.attachments && used.saturating_add(size) <= limits::ATTACHMENT_BYTES;
            let bytes = if keep { self.stream(&path) } else { None };
            attachments.push(Attachment { name, size, bytes });
        }
    }
}

fn with_address(name: &str, address: &str) -> String {
    // Addresses inside an organization are paths.
    match (name, address) {
        (name, address) if !address.contains('@') || name == address => name.to_owned(),
        ("", address) => address.to_owned(),
        (name, address) => format!("{name} <{address}>"),
    }
}

/// The value of a property of fixed length.
fn fixed(properties: &[u8], header: usize, id: u16) -> Option<u64> {
    properties.get(header..)?.chunks_exact(16).find_map(|entry| {
        let found = u16::from_le_bytes([entry[2], entry[3]]);
        (found == id).then(|| {
            u64::from_le_bytes([entry[8], entry[9], entry[10], entry[11], entry[12], entry[13], entry[14], entry[15]])
        })
    })
}

/// Unpacks compressed RTF ([MS-OXRTFCP]).
fn decompress(bytes: &[u8]) -> Option<Vec<u8>> {
    const DICTIONARY: &[u8] = b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";
    const SIZE: usize = 4_096;
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (size, kind) = (word(4)? as usize, word(8)?);
    let limit = size.min(16 << 20);
    let content = bytes.get(16..)?;
    // "MELA": not compressed.
    if kind == 0x414c_454d {
        return Some(content[..content.len().min(limit)].to_vec());
    }
    let mut window = [0_u8; SIZE];
    window[..DICTIONARY.len()].copy_from_slice(DICTIONARY);
    let mut write = DICTIONARY.len();
    let mut result = Vec::new();
    let mut rest = content.iter().copied();
    while result.len() < limit {
        let Some(control) = rest.next() else { break };
        for bit in 0..8 {
            if control >> bit & 1 == 0 {
                let Some(byte) = rest.next() else { return Some(result) };
                result.push(byte);
                window[write] = byte;
                write = (write + 1) % SIZE;
                continue;
            }
            let (Some(high), Some(low)) = (rest.next(), rest.next()) else { return Some(result) };
            let reference = usize::from(u16::from_be_bytes([high, low]));
            let (offset, length) = (reference >> 4, (reference & 15) + 2);
            if offset == write {
                return Some(result);
            }
            for step in 0..length {
                let byte = window[(offset + step) % SIZE];
                result.push(byte);
                window[write] = byte;
                write = (write + 1) % SIZE;
            }
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn msg(streams: &[(&str, &[u8])]) -> Vec<u8> {
        let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
        for (path, bytes) in streams {
            if let Some((storage, _)) = path.rsplit_once('/').filter(|(storage, _)| !storage.is_empty()) {
                file.create_storage_all(storage).unwrap();
            }
            file.create_stream(path).unwrap().write_all(bytes).unwrap();
        }
        file.into_inner().into_inner()
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_message_is_read() {
        let mut properties = vec![0; 32];
        // The code page 1251 and a date.
        properties.extend([3, 0, 0xfd, 0x3f, 0, 0, 0, 0, 0xe3, 4, 0, 0, 0, 0, 0, 0]);
        properties.extend([0x40, 0, 0x39, 0, 0, 0, 0, 0]);
        properties.extend(133_590_240_000_000_000_u64.to_le_bytes());
        let bytes = msg(&[
            ("/__properties_version1.0", &properties),
            ("/__substg1.0_0037001F", &wide("A subject")),
            ("/__substg1.0_0C1A001F", &wide("Ada")),
            ("/__substg1.0_5D01001F", &wide("a@b.c")),
            ("/__substg1.0_1000001E", b"\xcf\xf0\xe8\xe2\xe5\xf2"),
            ("/__recip_version1.0_#00000000/__substg1.0_3001001F", &wide("Bob")),
            ("/__attach_version1.0_#00000000/__substg1.0_3707001F", &wide("a.txt")),
            ("/__attach_version1.0_#00000000/__substg1.0_37010102", b"hello"),
        ]);
        assert_eq!(crate::kind::find(&bytes, "x").unwrap(), Kind::Msg);
        let document = read(&bytes, &Reading { attachments: true, ..Reading::default() }).unwrap();
        assert_eq!(document.parts[0].text, "Привет");
        assert_eq!(document.find_fact("from"), Some("Ada <a@b.c>"));
        assert_eq!(document.find_fact("to"), Some("Bob"));
        assert_eq!(document.find_fact("date"), Some("2024-05-01T08:00:00Z"));
        assert_eq!(document.attachments[0].bytes.as_deref(), Some(&b"hello"[..]));
    }

    #[test]
    fn compressed_rtf_is_unpacked() {
        // The example of the specification.
        let bytes = [
            0x2d, 0, 0, 0, 0x2b, 0, 0, 0, 0x4c, 0x5a, 0x46, 0x75, 0xf1, 0xc5, 0xc7, 0xa7, 0x03, 0x00, 0x0a, 0x00, 0x72,
            0x63, 0x70, 0x67, 0x31, 0x32, 0x35, 0x42, 0x32, 0x0a, 0xf3, 0x20, 0x68, 0x65, 0x6c, 0x09, 0x00, 0x20, 0x62,
            0x77, 0x05, 0xb0, 0x6c, 0x64, 0x7d, 0x0a, 0x80, 0x0f, 0xa0,
        ];
        let text = decompress(&bytes).unwrap();
        assert_eq!(String::from_utf8_lossy(&text), "{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n");
        assert_eq!(decompress(&bytes[..10]), None);
    }
}
