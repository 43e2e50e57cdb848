//! Previews for people: a page of a document as a picture, and the text of a document. They use the same lines and the same
//! sandbox as files for models; nothing of a preview is stored.

use super::Ran;
use super::look::{LOOK, LOOK_AT, ShownSize, read};
use crate::tool::Tools;
use data_encoding::BASE64;
use kiso_plan::plan::{CallerScope, Task, TaskKind};
use kiso_plan::report::TaskError;
use kiso_sandbox::skill::Caller;
use kiso_store::store::MAX_PICTURE_BYTES;
use serde::Deserialize;

/// Maximum number of characters of a document that are shown.
const MAX_TEXT: usize = 150_000;

/// Maximum number of parts of a document that are shown: pages, slides, sheets.
const MAX_PARTS: usize = 500;

/// `$1` is the file, `$2` the number of characters.
const READ_PARTS: &str = r#"document --json --max "$2" "$1""#;

/// A page of a document, or a picture that browsers do not show.
#[derive(Debug)]
pub struct PagePreview {
    pub bytes: Vec<u8>,
    pub media_type: String,
    /// Number of pages of the document.
    pub pages: u64,
}

/// The text of a document.
#[derive(Debug, Deserialize)]
pub struct DocumentPreview {
    /// File format, such as "XLSX".
    pub kind: String,
    pub parts: Vec<DocumentPart>,
    /// Whether the text is truncated.
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
    /// Renders a page, counted from 1, of a document of the caller's session.
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

    /// Returns the text of a document of the caller's session.
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
