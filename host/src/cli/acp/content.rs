//! A person's input in an editor: texts, links and files, as one message with attachments.

use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::diff::relative;
use kiso_base::home::PROJECT;
use kiso_base::rpc::RpcError;
use kiso_gateway::{Attachment, MAX_ATTACHMENTS};

/// Maximum parts of a prompt.
const MAX_PARTS: usize = 200;

/// A prompt whose files do not have their names in the workspace yet.
#[derive(Debug)]
pub(super) struct PromptContent {
    parts: Vec<Part>,
    pub files: Vec<Attachment>,
}

#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    /// The file with this index.
    File(usize),
    /// A file of the project, as command lines see it.
    InProject(String),
    /// The same, when the file's content was sent as well.
    AlsoInProject(String),
}

impl PromptContent {
    /// Reads content blocks. A link to a file below `project` becomes the path that command lines use.
    pub(super) fn read(blocks: &[Value], project: Option<&Path>) -> Result<PromptContent, RpcError> {
        if blocks.len() > MAX_PARTS {
            return Err(RpcError::params(format!("a prompt has at most {MAX_PARTS} content blocks")));
        }
        let mut content = PromptContent { parts: Vec::new(), files: Vec::new() };
        for block in blocks {
            let text = |name: &str| {
                let missing = || RpcError::params(format!("`{name}` of a content block must be a text"));
                block[name].as_str().ok_or_else(missing)
            };
            match text("type")? {
                "text" => content.parts.push(Part::Text(text("text")?.to_owned())),
                "resource_link" => {
                    let uri = text("uri")?;
                    let named = block["name"].as_str().unwrap_or(uri);
                    content.parts.push(match in_project(uri, project) {
                        Some(path) => Part::InProject(path),
                        None => Part::Text(format!("[{}]({uri})", named.replace([']', '\n'], " "))),
                    });
                }
                "resource" => content.resource(&block["resource"], project)?,
                "image" => {
                    let url = format!("data:{};base64,{}", text("mimeType")?, text("data")?);
                    content.file(Attachment::image(&url).map_err(|error| RpcError::params(error.message))?)?;
                }
                other => {
                    let message = format!(
                        "{other:?} is not content that kiso takes: it takes text, resource_link, resource and image"
                    );
                    return Err(RpcError::params(message));
                }
            }
        }
        Ok(content)
    }

    /// Reads a file that the editor sends with its content, which may not be saved on disk yet.
    fn resource(&mut self, resource: &Value, project: Option<&Path>) -> Result<(), RpcError> {
        let uri = resource["uri"].as_str().ok_or_else(|| RpcError::params("a resource has a `uri`"))?;
        let bytes = match (&resource["text"], &resource["blob"]) {
            (Value::String(text), _) => text.clone().into_bytes(),
            (_, Value::String(blob)) => BASE64
                .decode(blob.as_bytes())
                .map_err(|error| RpcError::params(format!("the `blob` of a resource is not base64: {error}")))?,
            _ => return Err(RpcError::params("a resource has a `text` or a `blob`")),
        };
        let decoded = percent_decode_str(uri).decode_utf8_lossy();
        self.file(Attachment::of_bytes(decoded.split(['?', '#']).next().unwrap_or_default(), bytes))?;
        if let Some(path) = in_project(uri, project) {
            self.parts.push(Part::AlsoInProject(path));
        }
        Ok(())
    }

    fn file(&mut self, file: Attachment) -> Result<(), RpcError> {
        if self.files.len() >= MAX_ATTACHMENTS {
            return Err(RpcError::params(format!("a message has at most {MAX_ATTACHMENTS} files")));
        }
        self.parts.push(Part::File(self.files.len()));
        self.files.push(file);
        Ok(())
    }

    /// Returns the message, with the names that the files have in the workspace.
    pub(super) fn message(&self, names: &[String]) -> String {
        // In a command line, names must be quoted for the shell.
        let is_line = matches!(self.parts.first(), Some(Part::Text(text)) if text.trim_start().starts_with('$'));
        let named = |name: &str| match is_line {
            true => format!("'{}'", name.replace('\'', r"'\''")),
            false => format!("`{name}`"),
        };
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::File(index) => named(names.get(*index).map_or("", String::as_str)),
            Part::InProject(path) => named(path),
            Part::AlsoInProject(_) if is_line => String::new(),
            Part::AlsoInProject(path) => format!(" (`{path}`)"),
        };
        let text: String = self.parts.iter().map(part).collect();
        match is_line || names.is_empty() {
            true => text,
            false => format!("{text}\n\nFiles: {}", names.join(", ")),
        }
    }
}

/// Returns the path of a file below the project, as command lines see it.
fn in_project(uri: &str, project: Option<&Path>) -> Option<String> {
    let path = uri.strip_prefix("file://")?.split(['?', '#']).next()?;
    let path = PathBuf::from(percent_decode_str(path).decode_utf8().ok()?.into_owned());
    // Resolves links, because the project's path is resolved, too.
    let found = path.canonicalize().unwrap_or(path);
    relative(project?, &found).map(|relative| format!("{PROJECT}/{relative}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(blocks: Value) -> Result<PromptContent, RpcError> {
        PromptContent::read(blocks.as_array().unwrap(), Some(Path::new("/p")))
    }

    #[test]
    fn links_and_files_stand_where_the_person_put_them() {
        let content = read(json!([
            { "type": "text", "text": "Compare " },
            { "type": "resource_link", "uri": "file:///p/src/a%20b.rs", "name": "a b.rs" },
            { "type": "text", "text": " with " },
            { "type": "resource", "resource": { "uri": "file:///p/c.csv#L1", "text": "a,b" } },
            { "type": "text", "text": " and " },
            { "type": "resource_link", "uri": "https://example.com/x", "name": "x" },
            { "type": "image", "mimeType": "image/png", "data": "iVBORw==" },
        ]))
        .unwrap();
        let names = ["c.csv".to_owned(), "image-1.png".to_owned()];
        assert_eq!(
            content.message(&names),
            "Compare `/project/src/a b.rs` with `c.csv` (`/project/c.csv`) and [x](https://example.com/x)`image-1.png`\n\nFiles: c.csv, image-1.png"
        );
        let line = read(json!([
            { "type": "text", "text": " $ cat " },
            { "type": "resource_link", "uri": "file:///p/it's.txt", "name": "it's.txt" },
        ]));
        assert_eq!(line.unwrap().message(&[]), r" $ cat '/project/it'\''s.txt'");
        assert_eq!(content.files, [Attachment::of_bytes("c.csv", b"a,b".to_vec()), content.files[1].clone()]);
    }

    #[test]
    fn what_cannot_be_taken_is_refused_with_its_reason() {
        for (block, why) in [
            (json!({ "type": "audio", "mimeType": "audio/wav", "data": "" }), "not content that kiso takes"),
            (json!({ "type": "image", "mimeType": "text/html", "data": "" }), "not a known type of image"),
            (json!({ "type": "resource", "resource": { "uri": "file:///a" } }), "a `text` or a `blob`"),
            (json!({ "type": "resource", "resource": { "uri": "file:///a", "blob": "?" } }), "not base64"),
            (json!({ "text": "without a type" }), "`type` of a content block"),
        ] {
            assert!(read(json!([block])).unwrap_err().message.contains(why), "{block}");
        }
        assert!(read(json!(vec![json!({ "type": "text", "text": "" }); 201])).is_err());
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "" });
        assert!(read(json!(vec![image; 17])).unwrap_err().message.contains("at most 16 files"));
    }
}
