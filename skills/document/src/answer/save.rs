//! Saves attachments and pages that were drawn.

use std::path::Path;
use std::time::Instant;

use super::{folder, stem};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::kind::{self, Kind};
use crate::limits;
use crate::pages::Pages;
use crate::pdf::{self, Scaling};
use crate::request::Request;

/// Bytes of a name.
const NAME_BYTES: usize = 120;

/// Saves attachments. Returns their paths as the caller names the directory.
pub fn attachments(document: &Document, directory: &Path, shown: &str) -> Result<Vec<String>> {
    std::fs::create_dir_all(directory).map_err(|e| Error::new(format!("{shown}: {e}")))?;
    let mut taken: Vec<String> = Vec::new();
    let mut saved = Vec::new();
    for file in &document.attachments {
        let Some(bytes) = &file.bytes else {
            saved.push(format!(
                "{} (not saved: it cannot be unpacked, or the limit of {} MiB is reached)",
                file.name,
                limits::ATTACHMENT_BYTES >> 20
            ));
            continue;
        };
        let name = free_name(&safe_name(&file.name), &mut taken, directory);
        std::fs::write(directory.join(&name), bytes).map_err(|e| Error::new(format!("{shown}/{name}: {e}")))?;
        saved.push(format!("{}/{name}", shown.trim_end_matches('/')));
    }
    Ok(saved)
}

/// A name without folders, control characters and a point at its beginning.
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().map(|c| if c.is_control() || "<>:\"|?*".contains(c) { '_' } else { c }).collect();
    let plain = plain.trim().trim_start_matches('.');
    let (stem, end) = match plain.rsplit_once('.') {
        Some((stem, end)) if end.len() <= 12 => (stem, format!(".{end}")),
        _ => (plain, String::new()),
    };
    let stem = &stem[..stem.floor_char_boundary(NAME_BYTES.min(stem.len()))];
    if stem.is_empty() { format!("attachment{end}") } else { format!("{stem}{end}") }
}

/// The name, with a number if it is taken.
fn free_name(name: &str, taken: &mut Vec<String>, directory: &Path) -> String {
    let (stem, end) = name.rsplit_once('.').map_or((name, String::new()), |(stem, end)| (stem, format!(".{end}")));
    let numbered = (2..10_000).map(|number| format!("{stem}-{number}{end}"));
    let is_free = |name: &String| !taken.contains(name) && !directory.join(name).exists();
    let free = std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_else(|| name.to_owned());
    taken.push(free.clone());
    free
}

/// Draws pages beside the file, or into the directory for attachments.
pub fn render(request: &Request, pages: &Pages, bytes: Vec<u8>, path: &Path, base: &Path) -> Result<String> {
    let kind = kind::find(&bytes, &request.file)?;
    if kind != Kind::Pdf {
        return Err(Error::new(format!("it is {}: only pages of PDF files can be drawn", kind.name())));
    }
    let pdf = pdf::open(bytes, &request.passwords)?;
    let total = pdf.pages().len();
    let wanted: Vec<usize> = (1..=total).filter(|number| pages.contains(*number)).collect();
    if wanted.is_empty() {
        return Err(Error::new(format!("it has no such page; there are {total}")));
    }
    if wanted.len() > limits::RENDERED {
        return Err(Error::limit(&format!("{} pages would be drawn", wanted.len()), limits::RENDERED));
    }
    let (directory, shown) = match &request.attachments {
        Some(shown) => (base.join(shown), shown.trim_end_matches('/').to_owned()),
        None => (folder(path), request.file.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned())),
    };
    std::fs::create_dir_all(&directory)?;
    let mut answer = String::new();
    let started = Instant::now();
    for number in wanted {
        if started.elapsed() > limits::PDF_TIME {
            answer.push_str(&format!("[the time is over: render=\"{number}-\" goes on]\n"));
            break;
        }
        let picture = pdf::render(&pdf, number, Scaling::Dpi(request.dpi, request.dpi))?;
        let name = format!("{}-p{number}.png", stem(path));
        std::fs::write(directory.join(&name), picture.to_png()?)?;
        let place = if shown.is_empty() { name } else { format!("{shown}/{name}") };
        answer.push_str(&format!("page {number}: {place} ({} x {} pixels)\n", picture.width, picture.height));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe() {
        for (name, safe) in [
            ("../../etc/passwd", "passwd"),
            ("C:\\a\\b.txt", "b.txt"),
            (".bashrc", "bashrc"),
            ("..", "attachment"),
            ("a\nb?.pdf", "a_b_.pdf"),
            ("", "attachment"),
        ] {
            assert_eq!(safe_name(name), safe, "{name}");
        }
        assert!(safe_name(&"ä".repeat(500)).len() <= NAME_BYTES);
    }
}
