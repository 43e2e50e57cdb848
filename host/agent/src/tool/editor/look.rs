//! `look`: pictures and pages of documents in the form for models. The command `image` creates the copy in its sandbox, and the
//! store keeps it.

use super::{FileCall, Ran, failed, plain_path, shown, wrong};
use crate::tool::builtin::ToolFault;
use crate::tool::{FITTING, Tools};
use data_encoding::{BASE64, HEXLOWER};
use kiso_base::clock::now_ms;
use kiso_plan::code::ErrorCode;
use kiso_plan::label::Label;
use kiso_plan::picture::{MAX_PICTURES, Picture};
use kiso_plan::plan::{CallerScope, Task, TaskKind};
use kiso_plan::report::{TaskReport, TaskStatus};
use kiso_sandbox::skill::Caller;
use kiso_store::store::MAX_PICTURE_BYTES;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::Value;

pub(in crate::tool) const LOOK: &str = "look";

/// `$1` is the file, `$2` the page, `$3` the region or nothing, `$4` and `$5` the maximum pixels of the longer side and in total,
/// `$6` the maximum bytes. The number of pages precedes the picture.
pub(super) const LOOK_AT: &str = r#"
if head -c 1024 <"$1" | grep -qa '%PDF-'; then
  pdfinfo "$1" | sed -n 's/^Pages: */pages /p'
  set -o pipefail
  pdftoppm -r 200 -png -f "$2" -l "$2" "$1" |
    image look ${3:+--as-shown --region "$3"} --longest "$4" --pixels "$5" --max-bytes "$6" -
else
  image look ${3:+--as-shown --region "$3"} --longest "$4" --pixels "$5" --max-bytes "$6" --page "$(($2 - 1))" "$1"
fi"#;

/// The same for bytes on standard input.
const LOOK_AT_INPUT: &str = r#"image look --longest "$4" --pixels "$5" --max-bytes "$6" -"#;

/// Maximum number of characters of a path in the name of a picture.
const MAX_NAME: usize = 120;

/// Context in tokens below which pictures are smaller, so that more of them fit.
const SMALL_CONTEXT: usize = 32_000;

/// The size of pictures for models.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct ShownSize {
    /// Maximum pixels of the longer side.
    longest: u32,
    /// Maximum pixels in total.
    pixels: u32,
}

impl ShownSize {
    /// The size to which providers scale pictures down: about 1,500 tokens.
    pub(in crate::tool) const FULL: Self = Self { longest: 1_568, pixels: 1_150_000 };
    /// About 500 tokens, for a model with a small window.
    const SMALL: Self = Self { longest: 896, pixels: 400_000 };

    /// Returns the size for a model with this context. A picture has the same size everywhere, so that regions have the same
    /// meaning.
    pub(in crate::tool) fn for_context(context_budget: usize) -> Self {
        if context_budget < SMALL_CONTEXT { Self::SMALL } else { Self::FULL }
    }

    /// Returns the last arguments of the line that draws: pixels of the longer side, total pixels, bytes.
    pub(super) fn limits(self, bytes: u32) -> [String; 3] {
        [self.longest, self.pixels, bytes].map(|limit| limit.to_string())
    }
}

/// The picture or the pages that a call requests.
#[derive(Debug, Clone)]
pub(in crate::tool) struct LookCall {
    path: String,
    /// Counted from 1; also frames of a picture.
    pages: Vec<u64>,
    /// Left, top, width and height.
    region: Option<String>,
}

impl LookCall {
    pub(super) fn path_mut(&mut self) -> &mut String {
        &mut self.path
    }
}

/// The output of `image look`.
#[derive(Deserialize)]
pub(super) struct LookOutput {
    pub media_type: String,
    width: u32,
    height: u32,
    source: Source,
    pub base64: String,
}

#[derive(Deserialize)]
struct Source {
    format: String,
    width: u32,
    height: u32,
    pictures: Option<u64>,
    #[serde(default)]
    cut: bool,
}

/// The source of a picture.
pub(in crate::tool) enum PictureSource<'a> {
    Page { path: &'a str, page: u64, region: Option<&'a str> },
    Bytes { name: &'a str, bytes: &'a [u8] },
}

/// A stored picture, with a description of its file.
pub(in crate::tool) struct SeenPicture {
    pub picture: Picture,
    pub label: Label,
    /// Format and size of its source.
    about: String,
    /// Whether the end of the file is missing.
    pub is_cut: bool,
}

/// The note on a picture whose end is missing.
pub(in crate::tool) const CUT: &str = "the file is damaged: its end is missing, and what is missing is grey";

pub(super) fn parse(given: &Value) -> Result<FileCall, ToolFault> {
    let path = plain_path(given["path"].as_str().unwrap_or_default())?;
    let pages = given["pages"].as_array().map(|pages| pages.iter().filter_map(Value::as_u64).collect::<Vec<_>>());
    let mut pages = pages.unwrap_or_else(|| vec![1]);
    pages.dedup();
    let region = given["region"].as_array().map(|parts| parts.iter().map(ToString::to_string).collect::<Vec<_>>());
    if region.as_ref().is_some_and(|region| region.len() != 4) {
        return Err(wrong("`region` is [left, top, width, height]".to_owned(), FITTING));
    }
    Ok(FileCall::Look(LookCall { path, pages, region: region.map(|region| region.join(",")) }))
}

impl Tools {
    /// Shows the model the pictures that a call names.
    pub(super) async fn look(
        &self,
        view: &LookCall,
        size: ShownSize,
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> TaskReport {
        let task = Task::new(TaskKind::Exec, LOOK);
        let (mut report, mut lines) = (TaskReport::new(task, TaskStatus::Done, ""), Vec::new());
        for page in view.pages.iter().take(MAX_PICTURES) {
            let source = PictureSource::Page { path: &view.path, page: *page, region: view.region.as_deref() };
            match self.picture(source, size, role, caller).await {
                Ok(seen) => {
                    report.label.join(&seen.label);
                    let cut = if seen.is_cut { format!("; {CUT}") } else { String::new() };
                    lines.push(format!("{}: {}{cut}.", seen.picture.title(), seen.about));
                    report.pictures.push(seen.picture);
                }
                // The earlier pages are still useful.
                Err(refused) if report.pictures.is_empty() => return *refused,
                Err(refused) => {
                    report.label.join(&refused.label);
                    lines.extend(refused.error.map(|error| format!("Page {page}: {}", error.message)));
                }
            }
        }
        report.text = lines.join("\n");
        report
    }

    /// Stores a copy of a picture for models. The error is the report of the task that requested it.
    pub(in crate::tool) async fn picture(
        &self,
        source: PictureSource<'_>,
        size: ShownSize,
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> Result<SeenPicture, Box<TaskReport>> {
        let task = || Task::new(TaskKind::Exec, LOOK);
        let (program, path, page, region, input) = match source {
            PictureSource::Page { path, page, region } => (LOOK_AT, path, page, region, &[][..]),
            PictureSource::Bytes { name, bytes } => (LOOK_AT_INPUT, name, 1, None, bytes),
        };
        let mut args = vec![path.to_owned(), page.to_string(), region.unwrap_or_default().to_owned()];
        args.extend(size.limits(MAX_PICTURE_BYTES as u32 / 2));
        let ran = self.run_fixed(program, args, input, role, caller).await;
        let ran = ran.map_err(|error| TaskReport::failed(task(), error))?;
        if let Some(report) = ran.failure(&task(), path, caller) {
            return Err(Box::new(report));
        }
        let refused = |why: String| {
            let report = failed(task(), ErrorCode::Failed, format!("{}: {why}", shown(path)));
            Box::new(TaskReport { label: ran.label.clone(), ..report })
        };
        let (answer, pages) = read(&ran).map_err(&refused)?;
        let bytes = BASE64.decode(answer.base64.as_bytes()).map_err(|error| refused(error.to_string()))?;
        let digest = HEXLOWER.encode(digest(&SHA256, &bytes).as_ref());
        let several = pages > 1 || page > 1;
        let part = if several { format!(", page {page} of {pages}") } else { String::new() };
        let region = region.map(|region| format!(", region {region}")).unwrap_or_default();
        let (name, media_type) = (format!("{}{part}{region}", plain(path)), answer.media_type);
        let picture = Picture { name, digest: digest.clone(), media_type, width: answer.width, height: answer.height };
        let session = caller.session.clone();
        let kept = self.store.write(move |tx| tx.keep_picture(&session, &digest, &bytes, now_ms())).await;
        kept.map_err(|error| refused(error.to_string()))?;
        let Source { format, width, height, cut, .. } = answer.source;
        Ok(SeenPicture { picture, label: ran.label, about: format!("{format}, {width}x{height}"), is_cut: cut })
    }
}

/// Returns a name for use outside of the fence in a prompt: it cannot end the surrounding text, and is short.
fn plain(path: &str) -> String {
    path.chars().take(MAX_NAME).map(|c| if c.is_control() || "[]<>".contains(c) { '_' } else { c }).collect()
}

/// Parses the output of the line, and the number of pages.
pub(super) fn read(ran: &Ran) -> Result<(LookOutput, u64), String> {
    let text = String::from_utf8_lossy(&ran.output);
    let (pages, json) = match text.strip_prefix("pages ").and_then(|rest| rest.split_once('\n')) {
        Some((pages, json)) => (pages.trim().parse().ok(), json),
        None => (None, text.as_ref()),
    };
    let answer: LookOutput = serde_json::from_str(json).map_err(|error| format!("it could not be shown: {error}"))?;
    let pages = pages.or(answer.source.pictures).unwrap_or(1);
    Ok((answer, pages))
}
