//! Content of messages: texts, or parts of several kinds, in the formats of both endpoints.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};

use crate::attachment::Attachment;
use crate::error::ApiError;

/// Maximum number of parts in a message.
const MAX_PARTS: usize = 100;

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ChatRole")]
pub(super) enum Speaker {
    System,
    Developer,
    User,
    Assistant,
    /// A tool of another model; kiso calls its own tools.
    Tool,
    Function,
}

/// A text, or parts.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged, rename = "ChatContent")]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a message's content. Files are included in base64.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "ChatPart")]
pub(super) enum Part {
    Text { text: String },
    InputText { text: String },
    OutputText { text: String },
    Refusal { refusal: String },
    ImageUrl { image_url: ImageUrl },
    InputImage { image_url: Option<String> },
    File { file: InlineFile },
    InputFile(InlineFile),
    InputAudio { input_audio: InlineAudio },
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "ChatImage")]
pub(super) struct ImageUrl {
    /// `data:image/png;base64,…`
    url: String,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "ChatFile")]
pub(super) struct InlineFile {
    filename: Option<String>,
    /// `data:text/csv;base64,…`
    file_data: Option<String>,
    file_url: Option<String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "ChatAudio")]
pub(super) struct InlineAudio {
    /// Encoded in base64.
    data: String,
    format: String,
}

impl<'de> Deserialize<'de> for Content {
    /// Implemented manually, so that an error names the problem in a part instead of "no variant matches".
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        struct TextOrParts;

        impl<'de> Visitor<'de> for TextOrParts {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Content, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(parts)).map(Content::Parts)
            }
        }

        deserializer.deserialize_any(TextOrParts)
    }
}

impl Content {
    /// Returns its texts, joined.
    pub(super) fn text(&self) -> String {
        match self {
            Content::Text(text) => text.clone(),
            Content::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| match part {
                    Part::Text { text } | Part::InputText { text } | Part::OutputText { text } => Some(text.as_str()),
                    Part::Refusal { refusal } => Some(refusal),
                    _ => None,
                });
                texts.collect::<Vec<_>>().join("\n\n")
            }
        }
    }

    /// Returns its files. `param` is the location of the content in the request.
    pub(super) fn files(&self, param: &str) -> Result<Vec<Attachment>, ApiError> {
        let Content::Parts(parts) = self else { return Ok(Vec::new()) };
        if parts.len() > MAX_PARTS {
            let message = format!("a message has at most {MAX_PARTS} parts, and this one has {}", parts.len());
            return Err(ApiError::bad_request(message).param(param));
        }
        let mut files = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let param = format!("{param}[{at}]");
            files.extend(part.file().map_err(|error| error.param(param))?);
        }
        Ok(files)
    }
}

impl Part {
    fn file(&self) -> Result<Option<Attachment>, ApiError> {
        match self {
            Part::Text { .. } | Part::InputText { .. } | Part::OutputText { .. } | Part::Refusal { .. } => Ok(None),
            Part::ImageUrl { image_url } => Attachment::image(&image_url.url).map(Some),
            Part::InputImage { image_url: Some(url) } => Attachment::image(url).map(Some),
            Part::InputImage { image_url: None } => Err(not_inline("file_id")),
            Part::File { file } | Part::InputFile(file) => match file {
                InlineFile { file_data: Some(data), filename, .. } => {
                    Attachment::file(data, filename.as_deref()).map(Some)
                }
                InlineFile { file_url: Some(_), .. } => Err(not_inline("file_url")),
                _ => Err(not_inline("file_id")),
            },
            Part::InputAudio { input_audio: InlineAudio { data, format } } => Attachment::audio(data, format).map(Some),
        }
    }
}

fn not_inline(member: &str) -> ApiError {
    ApiError::bad_request(format!("`{member}` is not supported"))
        .hint("send the file itself, as `data:TYPE;base64,…`, or upload it with PUT /sessions/SESSION/files/PATH")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(content: Value) -> Result<Content, serde_json::Error> {
        serde_json::from_value(content)
    }

    #[test]
    fn texts_of_every_form_are_one_text() {
        assert_eq!(read(json!("hi")).unwrap().text(), "hi");
        let parts = json!([
            { "type": "text", "text": "a" },
            { "type": "input_text", "text": "b" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==", "detail": "low" } },
            { "type": "output_text", "text": "c", "annotations": [] },
        ]);
        let content = read(parts).unwrap();
        assert_eq!(content.text(), "a\n\nb\n\nc");
        assert_eq!(content.files("input").unwrap().len(), 1);
    }

    #[test]
    fn an_error_names_the_part_that_is_wrong() {
        let wrong = read(json!([{ "type": "video", "video": 1 }])).unwrap_err().to_string();
        assert!(wrong.contains("video") && wrong.contains("input_audio"), "{wrong}");
        let wrong = read(json!(7)).unwrap_err().to_string();
        assert!(wrong.contains("a text or a list of parts"), "{wrong}");
        let by_id = read(json!([{ "type": "text", "text": "a" }, { "type": "file", "file": { "file_id": "f" } }]));
        let error = by_id.unwrap().files("messages[3].content").unwrap_err();
        assert_eq!(error.param.as_deref(), Some("messages[3].content[1]"));
        assert!(error.message.contains("file_id"), "{error:?}");
        let many = vec![json!({ "type": "text", "text": "" }); MAX_PARTS + 1];
        assert!(read(many.into()).unwrap().files("input").unwrap_err().message.contains("101"));
    }
}
