//! MBOX: the mails of a mailbox, each as a part.

use mail_parser::MessageParser;

use super::message;
use crate::document::Document;
use crate::error::Result;
use crate::kind::Kind;
use crate::limits;
use crate::out::Out;
use crate::read::Reading;

/// Reads a mailbox.
pub fn read(bytes: &[u8], reading: &Reading) -> Result<Document> {
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    let mut attachments = Vec::new();
    let mails = split(bytes);
    let total = mails.len();
    for mail in mails.into_iter().take(limits::MESSAGES) {
        if out.part("") {
            // Lines of the text that begin with `From ` were marked.
            let unmarked = unmark(mail);
            if message::check(&unmarked).is_ok()
                && let Some(mail) = MessageParser::default().parse(&unmarked)
            {
                let subject = mail.subject().unwrap_or("without a subject").to_owned();
                out.title(&subject);
                out.record_heading(1, &subject);
                message::write_fields(&mail, &mut out);
                message::write_body(&mail, &mut out, &mut attachments, reading, 0);
            }
        }
        if out.is_done() {
            break;
        }
    }
    out.set_total(total);
    let mut document = Document::new(Kind::Mbox, out);
    document.attachments = attachments;
    if total > limits::MESSAGES {
        document.notes.push(format!("only the first {} of {total} messages were read", limits::MESSAGES));
    }
    Ok(document)
}

/// The mails between lines that begin with `From `.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut mails = Vec::new();
    let mut start: Option<usize> = None;
    let mut position = 0;
    let mut blank = true;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if blank && line.starts_with(b"From ") {
            mails.extend(start.map(|start| &bytes[start..position]));
            start = Some(position + line.len());
        }
        blank = line == b"\n" || line == b"\r\n";
        position += line.len();
    }
    mails.extend(start.map(|start| &bytes[start..]));
    mails
}

fn unmark(mail: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(mail.len());
    for line in mail.split_inclusive(|byte| *byte == b'\n') {
        let marks = line.iter().take_while(|byte| **byte == b'>').count();
        let marked = marks > 0 && line[marks..].starts_with(b"From ");
        result.extend_from_slice(if marked { &line[1..] } else { line });
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_are_parts() {
        let text = "From a@b Wed May  1 10:00:00 2024\nFrom: a@b\nSubject: one\n\nhello\n>From here\n\nFrom c@d Thu\nSubject: two\n\nFrom x\n";
        let document = read(text.as_bytes(), &Reading::default()).unwrap();
        assert_eq!(document.total, 3);
        assert_eq!(document.label(&document.parts[0]), "Message 1: one");
        assert_eq!(document.parts[0].text, "subject: one  \nfrom: a@b\n\nhello\nFrom here");
    }
}
