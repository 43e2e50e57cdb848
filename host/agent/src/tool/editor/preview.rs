//! Previews for people: a page of a document as a picture, and a document in words. The same lines make them that make what models
//! are shown, in the same sandbox; nothing of a preview is kept.

use super::Ran;
use super::look::{LOOK, LOOK_AT, ShownSize, read};
use crate::tool::Tools;
use data_encoding::BASE64;
use kiso_plan::plan::{CallerScope, Task, TaskKind};
use kiso_plan::report::TaskError;
use kiso_sandbox::skill::Caller;
use kiso_store::store::MAX_PICTURE_BYTES;
use serde::Deserialize;

/// Characters of a document that are shown.
const MAX_TEXT: usize = 150_000;

/// Parts of a document that are shown: pages, slides, sheets.
const MAX_PARTS: usize = 500;

/// `$1` the file, `$2` characters.
const READ_PARTS: &str = r#"document --json --max "$2" "$1""#;

/// A page of a document, or a picture that browsers do not show.
#[derive(Debug)]
pub struct PagePreview {
    pub bytes: Vec<u8>,
    pub media_type: String,
    /// How many pages the document has.
    pub pages: u64,
}

/// A document in words.
#[derive(Debug, Deserialize)]
pub struct DocumentPreview {
    /// As in "XLSX".
    pub kind: String,
    pub parts: Vec<DocumentPart>,
    /// Whether there is more than is shown.
    #[serde(default)]
    pub cut: bool,
}

/// A page, a slide or a sheet.
#[derive(Debug, Deserialize)]
pub struct DocumentPart {
    #[serde(default)]
    pub label: String,
    /// Markdown.
    #[serde(default)]
    pub text: String,
}

impl Tools {
    /// Draws a page, counted from 1, of a document of the caller's session.
    pub async fn page_preview(
        &self,
        path: &str,
        page: u64,
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> Result<PagePreview, TaskError> {
        let path = format!("/work/{path}");
        let mut args = vec![path.clone(), page.to_string(), String::new()];
        args.extend(ShownSize::FULL.limits(MAX_PICTURE_BYTES as u32 / 2));
        let ran = self.checked(LOOK_AT, args, &path, role, caller).await?;
        let refused = |why: String| TaskError::of_host(caller.secrets.redact(&why));
        let (answer, pages) = read(&ran).map_err(refused)?;
        let bytes = BASE64.decode(answer.base64.as_bytes()).map_err(|error| refused(error.to_string()))?;
        Ok(PagePreview { bytes, media_type: answer.media_type, pages })
    }

    /// Reads a document of the caller's session.
    pub async fn document_preview(
        &self,
        path: &str,
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> Result<DocumentPreview, TaskError> {
        let path = format!("/work/{path}");
        let args = vec![path.clone(), MAX_TEXT.to_string()];
        let ran = self.checked(READ_PARTS, args, &path, role, caller).await?;
        let read = serde_json::from_slice::<DocumentPreview>(&ran.output);
        let mut document = read.map_err(|error| TaskError::of_host(format!("it could not be read: {error}")))?;
        document.cut |= document.parts.len() > MAX_PARTS;
        document.parts.truncate(MAX_PARTS);
        for part in &mut document.parts {
            part.text = caller.secrets.redact(&part.text);
        }
        Ok(document)
    }

    async fn checked(
        &self,
        program: &str,
        args: Vec<String>,
        path: &str,
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> Result<Ran, TaskError> {
        let ran = self.run_fixed(program, args, b"", role, caller).await?;
        match ran.failure(&Task::new(TaskKind::Exec, LOOK), path, caller).and_then(|report| report.error) {
            Some(error) => Err(error),
            None => Ok(ran),
        }
    }
}
