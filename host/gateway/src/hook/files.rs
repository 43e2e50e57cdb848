//! Files in an event: data URLs in its JSON, and files of a form.
//!
//! The files are stored in the workspace of the hook's session. In the event, each is replaced by its name, which templates then
//! show.

use axum::http::StatusCode;
use serde_json::{Map, Value};

use crate::attachment::{Attachment, MAX_ATTACHMENTS};
use crate::error::ApiError;
use kiso_base::json;

/// Maximum number of fields in a form.
const MAX_FIELDS: usize = 100;

/// Maximum size in bytes of a field's headers.
const MAX_HEADERS: usize = 4 << 10;

/// Prefix of a text that is a file.
const DATA_URL: &str = "data:";

/// Extracts the files from an event. Each is replaced by its name.
pub fn take(body: &mut Value) -> Result<Vec<Attachment>, ApiError> {
    let mut files = Vec::new();
    take_from(body, None, &mut files)?;
    Ok(files)
}

fn take_from(value: &mut Value, member: Option<&str>, files: &mut Vec<Attachment>) -> Result<(), ApiError> {
    match value {
        Value::String(text) if is_file(text) => {
            if files.len() == MAX_ATTACHMENTS {
                return Err(too_many());
            }
            let file = Attachment::of_data_url(text, &word(member.unwrap_or("file")))?;
            *text = file.name().to_owned();
            files.push(file);
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| take_from(item, member, files))?,
        Value::Object(members) => members.iter_mut().try_for_each(|(name, of)| take_from(of, Some(name), files))?,
        _ => {}
    }
    Ok(())
}

fn is_file(text: &str) -> bool {
    let head = text.strip_prefix(DATA_URL).and_then(|rest| rest.split_once(','));
    head.is_some_and(|(head, _)| head.ends_with(";base64"))
}

fn too_many() -> ApiError {
    let message = format!("an event has at most {MAX_ATTACHMENTS} files");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

/// Replaces the original names of files by their final names.
pub(super) fn rename(body: &mut Value, names: &[(String, String)]) {
    match body {
        Value::String(text) => {
            if let Some((_, new)) = names.iter().find(|(old, _)| old == text) {
                text.clone_from(new);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(members) => members.values_mut().for_each(|of| rename(of, names)),
        _ => {}
    }
}

/// Parses `multipart/form-data` into an object with a member for each field. A file becomes its name; a field of the type
/// `application/json` is parsed, and any other becomes a string.
pub(super) fn read_form(content_type: &str, bytes: &[u8]) -> Result<(Value, Vec<Attachment>), ApiError> {
    let wrong = |why: &str| ApiError::bad_request(format!("the form cannot be read: {why}"));
    let boundary = parameter(content_type, "boundary").filter(|boundary| (1..=70).contains(&boundary.len()));
    let boundary = boundary.ok_or_else(|| wrong("its content type names no boundary"))?;
    let between = format!("\r\n--{boundary}");
    // The first boundary has no line break before it.
    let mut rest =
        bytes.strip_prefix(&between.as_bytes()[2..]).ok_or_else(|| wrong("it does not begin with its boundary"))?;
    let (mut body, mut files) = (Map::new(), Vec::new());
    while !rest.starts_with(b"--") {
        if body.len() + files.len() >= MAX_FIELDS {
            return Err(wrong("it has more than 100 fields"));
        }
        let part = rest.strip_prefix(b"\r\n").ok_or_else(|| wrong("a boundary does not end its line"))?;
        let end = find(part, between.as_bytes()).ok_or_else(|| wrong("it has no end"))?;
        rest = &part[end + between.len()..];
        let (head, content) = field(&part[..end]).ok_or_else(|| wrong("a field has no headers"))?;
        let name = parameter(&head.disposition, "name").ok_or_else(|| wrong("a field has no name"))?;
        let value = match parameter(&head.disposition, "filename") {
            // A browser sends an empty field if no file was chosen.
            Some(file) if file.is_empty() && content.is_empty() => continue,
            Some(_) if files.len() == MAX_ATTACHMENTS => return Err(too_many()),
            Some(file) => {
                let file = Attachment::of_bytes(&word(&file), content.to_vec());
                let name = file.name().to_owned();
                files.push(file);
                Value::String(name)
            }
            None if head.is_json => json::parse(content).map_err(ApiError::from)?,
            None => Value::String(String::from_utf8(content.to_vec()).map_err(|_| wrong("a field is not UTF-8 text"))?),
        };
        body.insert(name, value);
    }
    Ok((Value::Object(body), files))
}

/// The relevant headers of a field.
struct FieldHead {
    disposition: String,
    is_json: bool,
}

/// Splits a field into its headers and its content.
fn field(part: &[u8]) -> Option<(FieldHead, &[u8])> {
    let end = find(&part[..part.len().min(MAX_HEADERS)], b"\r\n\r\n")?;
    let text = std::str::from_utf8(&part[..end]).ok()?;
    let header = |wanted: &str| {
        let mut lines = text.split("\r\n").filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim().to_owned())
    };
    let is_json = header("content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/json"));
    Some((FieldHead { disposition: header("content-disposition")?, is_json }, &part[end + 4..]))
}

/// Returns the value of `name="…"` or `name=…` in a header.
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (key, after) = (key.trim(), after.trim_start());
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => {
                // A quotation mark in the name is escaped as `\"`; browsers write `%22`.
                let is_end = |at: &usize| !quoted[..*at].ends_with('\\');
                let end = quoted.match_indices('"').map(|(at, _)| at).find(is_end)?;
                (quoted[..end].replace("\\\"", "\""), quoted[end + 1..].trim_start().trim_start_matches(';'))
            }
            None => {
                let (value, next) = after.split_once(';').unwrap_or((after, ""));
                (value.trim().to_owned(), next)
            }
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = next;
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Reduces a name to one word: it is outside of the message's fences, so it must not be a sentence.
fn word(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    name.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_data_url_is_a_file_and_leaves_its_name() {
        let mut body = json!({
            "camera": "door", "snapshot": "data:image/png;base64,iVBORw==", "more": [{ "log": "data:text/plain;base64,YQ==" }],
            "text": "data: none,of that", "odd": "data:image/png,abc",
        });
        let files = take(&mut body).unwrap();
        let name = |stem: &str| files.iter().map(Attachment::name).find(|name| name.starts_with(stem)).unwrap();
        let (image, log) = (name("image-"), name("log-"));
        assert_eq!((files.len(), &body["snapshot"], &body["more"][0]["log"]), (2, &json!(image), &json!(log)));
        assert_eq!((&body["text"], &body["odd"]), (&json!("data: none,of that"), &json!("data:image/png,abc")));
        rename(&mut body, &[(image.to_owned(), "other.png".to_owned())]);
        assert_eq!(body["snapshot"], "other.png");
        assert!(take(&mut json!({ "a": "data:image/png;base64,%" })).is_err());
        assert!(take(&mut json!(vec!["data:image/png;base64,iVBORw=="; MAX_ATTACHMENTS + 1])).is_err());
    }

    #[test]
    fn a_form_has_texts_json_and_files() {
        let form = b"--x-1\r\nContent-Disposition: form-data; name=\"camera\"\r\n\r\nfront door\r\n\
            --x-1\r\ncontent-disposition: form-data; name=\"event\"\r\nContent-Type: application/json\r\n\r\n{\"n\": 1}\r\n\
            --x-1\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a \\\"b\\\";.png\"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n--x\r\n\r\n--x-1--\r\n";
        let (body, files) = read_form("multipart/form-data; boundary=x-1", form).unwrap();
        assert_eq!(body, json!({ "camera": "front door", "event": { "n": 1 }, "image": "a__b__.png" }));
        let [file] = &files[..] else { panic!("{files:?}") };
        assert_eq!(file, &Attachment::of_bytes("a__b__.png", b"\x89PNG\r\n--x\r\n".to_vec()));
        for (kind, form) in [
            ("multipart/form-data", &form[..]),
            ("multipart/form-data; boundary=\"y\"", &form[..]),
            ("multipart/form-data; boundary=x-1", &form[..40]),
            ("multipart/form-data; boundary=x-1", b"--x-1\r\n\r\n\r\n--x-1--"),
            ("multipart/form-data; boundary=x-1", b"--x-1"),
        ] {
            assert!(read_form(kind, form).is_err(), "{kind}");
        }
    }
}
