//! EML: one mail, its text, its attachments and mails inside it.

use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::document::{Attachment, Document};
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::limits;
use crate::out::Out;
use crate::read::Reading;
use crate::text::html;

/// Mails inside mails.
const NESTING: usize = 4;

/// Mails inside a mail, at any depth.
const INNER: usize = 300;

/// Letters below which a text is taken for a note that the mail is HTML.
const SHORT_TEXT: usize = 40;

/// Reads a mail.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    check(bytes)?;
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    let message = MessageParser::default().parse(bytes).ok_or("it is damaged: it has no header fields of a mail")?;
    let mut attachments = Vec::new();
    write_body(&message, &mut out, &mut attachments, reading, 0);
    let mut document = Document::new(Kind::Eml, out);
    for (name, value) in fields(&message) {
        document.fact(name, value);
    }
    document.attachments = attachments;
    Ok(document)
}

/// Refuses mails within mails within mails, which their library frees by calling itself.
pub fn check(bytes: &[u8]) -> Result<()> {
    let inner = bytes.windows(6).filter(|window| window.eq_ignore_ascii_case(b"rfc822")).count();
    if inner > INNER {
        return Err(Error::limit(&format!("it has {inner} mails inside"), INNER));
    }
    Ok(())
}

/// The fields that people see.
pub fn fields(message: &Message) -> Vec<(&'static str, String)> {
    let addresses = |address: Option<&Address>| address.map(write_addresses).unwrap_or_default();
    let mut fields = vec![
        ("title", message.subject().unwrap_or_default().to_owned()),
        ("from", addresses(message.from().or_else(|| message.sender()))),
        ("to", addresses(message.to())),
        ("cc", addresses(message.cc())),
        ("bcc", addresses(message.bcc())),
        ("reply to", addresses(message.reply_to())),
        ("date", message.date().map(mail_parser::DateTime::to_rfc3339).unwrap_or_default()),
    ];
    if fields[5].1 == fields[1].1 {
        fields[5].1.clear();
    }
    fields.retain(|(_, value)| !value.trim().is_empty());
    fields
}

fn write_addresses(addresses: &Address) -> String {
    let one = |address: &mail_parser::Addr| match (address.name(), address.address()) {
        (Some(name), Some(address)) if name != address => format!("{name} <{address}>"),
        (Some(word), None) | (_, Some(word)) => word.to_owned(),
        (None, None) => String::new(),
    };
    addresses.iter().take(200).map(one).filter(|address| !address.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Writes the text of a mail, and collects its attachments.
pub fn write_body(
    message: &Message,
    out: &mut Out,
    attachments: &mut Vec<Attachment>,
    reading: &Reading,
    depth: usize,
) {
    let part = |id: &u32| message.parts.get(*id as usize);
    let is_text = |part: &MessagePart| matches!(&part.body, PartType::Text(text) if text.trim().len() >= SHORT_TEXT);
    let has_html = message.html_body.iter().filter_map(part).any(|part| matches!(part.body, PartType::Html(_)));
    let body = match message.text_body.iter().filter_map(part).any(is_text) || !has_html {
        true => &message.text_body,
        false => &message.html_body,
    };
    for part in body.iter().filter_map(part) {
        match &part.body {
            PartType::Text(text) => out.raw(text.replace("\r\n", "\n").trim_end()),
            PartType::Html(text) => drop(html::write(text, out)),
            _ => {}
        }
    }
    for (number, part) in message.attachments.iter().filter_map(part).enumerate() {
        if attachments.len() >= limits::ATTACHMENTS {
            break;
        }
        attach(part, number, attachments, reading);
        if let PartType::Message(inner) = &part.body
            && depth < NESTING
        {
            out.heading(2, &format!("Attached mail: {}", inner.subject().unwrap_or("without a subject")));
            write_fields(inner, out);
            write_body(inner, out, attachments, reading, depth + 1);
        }
    }
}

fn attach(part: &MessagePart, number: usize, attachments: &mut Vec<Attachment>, reading: &Reading) {
    let bytes = match &part.body {
        PartType::Message(inner) => inner.raw_message.as_ref(),
        _ => part.contents(),
    };
    let kind = part.content_type();
    let end = || match (kind.map(mail_parser::ContentType::ctype), kind.and_then(mail_parser::ContentType::subtype)) {
        (Some("message"), _) => "eml".to_owned(),
        (_, Some("plain")) | (None, _) => "txt".to_owned(),
        (_, Some(subtype)) if subtype.len() < 6 => subtype.to_owned(),
        _ => "bin".to_owned(),
    };
    let name = part.attachment_name().map_or_else(|| format!("part-{}.{}", number + 1, end()), str::to_owned);
    let used: usize = attachments.iter().filter_map(|known| known.bytes.as_ref()).map(Vec::len).sum();
    let keep = reading.attachments && used + bytes.len() <= limits::ATTACHMENT_BYTES;
    attachments.push(Attachment { name, size: bytes.len(), bytes: keep.then(|| bytes.to_vec()) });
}

/// The fields as lines before the text.
pub fn write_fields(message: &Message, out: &mut Out) {
    let lines: Vec<String> = fields(message)
        .into_iter()
        .map(|(name, value)| {
            let name = if name == "title" { "subject" } else { name };
            format!("{name}: {}", value.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect();
    // Two spaces end a line of Markdown.
    out.raw(&lines.join("  \n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "From: =?utf-8?Q?J=C3=BCrgen?= <j@example.org>\r\nTo: a@example.org, \"B C\" <b@example.org>\r\n\
        Subject: =?iso-8859-1?Q?Gr=FC=DFe?=\r\nDate: Wed, 01 May 2024 10:00:00 +0200\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Hello <b>you</b></p>\r\n\
        --x\r\nContent-Type: application/pdf; name=\"a.pdf\"\r\nContent-Disposition: attachment; filename=\"a.pdf\"\r\n\
        Content-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n--x\r\nContent-Type: message/rfc822\r\n\r\nFrom: c@example.org\r\nSubject: inner\r\n\r\ntext inside\r\n--x--\r\n";

    #[test]
    fn a_mail_is_read() {
        let document = read(MAIL.as_bytes(), &Reading { attachments: true, ..Reading::default() }).unwrap();
        assert_eq!(document.find_fact("title"), Some("Grüße"));
        assert_eq!(document.find_fact("from"), Some("Jürgen <j@example.org>"));
        assert_eq!(document.find_fact("to"), Some("a@example.org, B C <b@example.org>"));
        assert_eq!(document.find_fact("date"), Some("2024-05-01T10:00:00+02:00"));
        assert_eq!(
            document.parts[0].text,
            "Hello **you**\n\n## Attached mail: inner\n\nsubject: inner  \nfrom: c@example.org\n\ntext inside"
        );
        assert_eq!(document.attachments[0].name, "a.pdf");
        assert_eq!(document.attachments[0].bytes.as_deref(), Some(&b"%PDF"[..]));
        assert_eq!(document.attachments[1].name, "part-2.eml");
    }

    #[test]
    fn a_cut_mail_is_read_as_far_as_it_goes() {
        for end in (10..MAIL.len()).step_by(37) {
            let _ = read(&MAIL.as_bytes()[..end], &Reading::default());
        }
    }
}
