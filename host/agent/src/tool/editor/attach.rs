//! Files of a message in their form for models: pictures as pictures, documents as text, and scans as both.

use super::look::{CUT, PictureSource, ShownSize};
use crate::tool::{Tools, files};
use kiso_plan::attached::{AttachedDocument, AttachedFiles, NamedFile};
use kiso_plan::estimate::tokens;
use kiso_plan::plan::CallerScope;
use kiso_plan::prompt::FileCard;
use kiso_sandbox::skill::Caller;
use kiso_store::scratchpad::truncate_middle;

/// Maximum number of files of a message that are examined.
const MAX_FILES: usize = 16;

/// Shares of a context for the texts and the pictures of a message, and the maximum for texts.
const TEXTS: usize = 5;
const PICTURES: usize = 4;
const MOST_TEXT: usize = 8_000;

/// Maximum number of pictures of a message that are shown.
const MAX_SHOWN: usize = 16;

/// Precedes the names of files above the limit.
const LEFT_OUT: &str = "There are more files or pages than are shown at once; look at these when they matter:";

/// Maximum number of pages of a scan that are shown; the outline contains their total number.
const SCANNED: usize = 4;

/// Maximum length of an outline in characters.
const OUTLINE: usize = 3_000;

/// Number of bytes at the beginning of a file that determine its kind.
const HEAD: u64 = 512;

/// `$1` is the file, `$2` the number of characters: prints the whole document if it is not longer, otherwise its outline; then,
/// after a zero byte, the pages that are pictures.
const READ_DOCUMENT: &str = r#"
text=$(document --max "$2" "$1") || exit
case $text in
*$'\n[cut after '*) echo "(too long to stand here whole; its outline)"; document --outline --max "$3" "$1" ;;
*) printf '%s\n' "$text" ;;
esac
printf '\0'
document --outline --json "$1" | jq -r '.pictures[]?'"#;

/// How a file is shown to a model.
#[derive(Debug, PartialEq, Eq)]
enum FileKind {
    Picture,
    /// A format that needs a converter.
    Document,
    Text,
    Empty,
    Other,
}

impl Tools {
    /// Reads the files that a message names, for models whose context has `context_budget` tokens. An unreadable file is replaced
    /// by a sentence with the reason.
    pub async fn attached(
        &self,
        files: &[NamedFile<'_>],
        context_budget: usize,
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> AttachedFiles {
        let mut attached = AttachedFiles::default();
        let (mut room, mut room_of_pictures) = (text_room(context_budget), context_budget / PICTURES);
        let size = ShownSize::for_context(context_budget);
        // The lock of a call that reads.
        let _held = self.workspaces.get_lock(caller.session).read_owned().await;
        let mut left_out = Vec::new();
        for (number, NamedFile { card, came_along }) in files.iter().enumerate() {
            let path = format!("/work/{}", card.path);
            let mut say = |text: &str| {
                attached.documents.push(AttachedDocument { path: card.path.clone(), text: text.to_owned() })
            };
            if number >= MAX_FILES {
                left_out.push(card.path.clone());
                continue;
            }
            let pages = match self.kind_of(caller, card) {
                FileKind::Empty if *came_along => {
                    say("This file is empty.");
                    continue;
                }
                FileKind::Other | FileKind::Empty => continue,
                // A program that is to be changed is read by the model that changes it.
                FileKind::Text if !came_along => continue,
                FileKind::Picture => vec![1],
                FileKind::Document | FileKind::Text => {
                    let (document, pages) = self.document(&path, room, role, caller, &mut attached).await;
                    room = room.saturating_sub(tokens(&document.text));
                    attached.documents.push(document);
                    if let Some(next) = pages.get(SCANNED) {
                        left_out.push(format!("{} from page {next} on", card.path));
                    }
                    pages.into_iter().take(SCANNED).collect()
                }
            };
            for page in pages {
                if attached.pictures.len() == MAX_SHOWN || room_of_pictures == 0 {
                    left_out.push(card.path.clone());
                    break;
                }
                let source = PictureSource::Page { path: &path, page, region: None };
                let mut say =
                    |text: String| attached.documents.push(AttachedDocument { path: card.path.clone(), text });
                match self.picture(source, size, role, caller).await {
                    Ok(seen) => {
                        if seen.is_cut {
                            say(format!("The picture is shown, but {CUT}."));
                        }
                        attached.label.join(&seen.label);
                        room_of_pictures = room_of_pictures.saturating_sub(seen.picture.tokens());
                        attached.pictures.push(seen.picture);
                    }
                    Err(refused) => {
                        say(refused.error.map(|error| error.message).unwrap_or_default());
                        attached.label.join(&refused.label);
                    }
                }
            }
        }
        if !left_out.is_empty() {
            let text = format!("{LEFT_OUT} {}.", left_out.join(", "));
            attached.documents.push(AttachedDocument { path: "not shown here".to_owned(), text });
        }
        attached
    }

    fn kind_of(&self, caller: &Caller<'_>, card: &FileCard) -> FileKind {
        let work = self.skills.home().open_work(caller.session);
        match work.map(|work| files::bytes(&work, &card.path, HEAD)) {
            // A table is described by its columns.
            Ok(Ok(head)) if card.columns.is_none() => kind_of(&card.path, &head),
            _ => FileKind::Other,
        }
    }

    /// Reads a document as text, and its pages that are pictures.
    async fn document(
        &self,
        path: &str,
        room: usize,
        role: CallerScope,
        caller: &Caller<'_>,
        attached: &mut AttachedFiles,
    ) -> (AttachedDocument, Vec<u64>) {
        let short = path.trim_start_matches("/work/").to_owned();
        let told =
            |text: &str| (AttachedDocument { path: short.clone(), text: caller.secrets.redact(text) }, Vec::new());
        // About four characters per token: other text is cut to its limit below.
        let args = vec![path.to_owned(), room.saturating_mul(4).max(OUTLINE).to_string(), OUTLINE.to_string()];
        let ran = match self.run_fixed(READ_DOCUMENT, args, b"", role, caller).await {
            Ok(ran) => ran,
            Err(error) => return told(&error.message),
        };
        attached.label.join(&ran.label);
        let task = kiso_plan::plan::Task::new(kiso_plan::plan::TaskKind::Exec, super::READ);
        if let Some(error) = ran.failure(&task, path, caller).and_then(|report| report.error) {
            return told(&error.message);
        }
        let text = String::from_utf8_lossy(&ran.output);
        let (text, pages) = text.split_once('\0').unwrap_or((&text, ""));
        let text = truncate_middle(text.trim_end(), room.max(OUTLINE / 4));
        let pages = pages.lines().filter_map(|page| page.trim().parse().ok()).collect();
        (told(&text).0, pages)
    }
}

/// Returns the maximum size in tokens of the texts of all files of a message.
pub fn text_room(context_budget: usize) -> usize {
    (context_budget / TEXTS).min(MOST_TEXT)
}

/// Detects the kind by the first bytes, and for text by the name.
fn kind_of(path: &str, head: &[u8]) -> FileKind {
    let begins = |marks: &[&[u8]]| marks.iter().any(|mark| head.starts_with(mark));
    let ends = |endings: &[&str]| {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        endings.contains(&ending.as_str())
    };
    let is_webp = head.len() > 12 && head.starts_with(b"RIFF") && &head[8..12] == b"WEBP";
    if head.is_empty() {
        return FileKind::Empty;
    }
    // HEIC and AVIF are refused with an explanation.
    let is_camera = head.len() > 12
        && &head[4..8] == b"ftyp"
        && ["heic", "heix", "mif1", "avif"].iter().any(|brand| head[8..12] == *brand.as_bytes());
    if is_camera {
        return FileKind::Picture;
    }
    if begins(&[b"\xff\xd8\xff", b"\x89PNG\r\n", b"GIF8", b"II*\0", b"MM\0*"])
        || is_webp
        || begins(&[b"BM"]) && ends(&["bmp"])
    {
        return FileKind::Picture;
    }
    let packed = begins(&[b"PK\x03\x04", b"\xd0\xcf\x11\xe0"]);
    let office = ends(&["docx", "doc", "pptx", "ppt", "xlsx", "xls", "xlsb", "odt", "ods", "odp", "epub", "msg"]);
    if begins(&[b"%PDF-", b"{\\rtf"]) || packed && office {
        return FileKind::Document;
    }
    let is_printed = |byte: &u8| *byte >= b' ' || b"\t\n\r\x0c\x1b".contains(byte);
    // A character may be cut off at the end.
    let is_utf8 = std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    let is_text = head.iter().all(is_printed) && is_utf8;
    let is_table = ends(&["csv", "tsv", "jsonl", "ndjson"]);
    match is_text && !is_table {
        _ if ends(&["eml", "mbox"]) => FileKind::Document,
        true => FileKind::Text,
        false => FileKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_first_bytes_say() {
        for (path, head, kind) in [
            ("a.txt", &b"\xff\xd8\xff\xe0"[..], FileKind::Picture),
            ("a", b"RIFF\0\0\0\0WEBPVP8 ", FileKind::Picture),
            ("a.bmp", b"BM\x01\0\0", FileKind::Picture),
            ("a.txt", b"BM is short for", FileKind::Text),
            ("a.jpg", b"%PDF-1.7", FileKind::Document),
            ("a.docx", b"PK\x03\x04", FileKind::Document),
            ("a.zip", b"PK\x03\x04", FileKind::Other),
            ("a.py", "print('ä".as_bytes(), FileKind::Text),
            ("a.csv", b"a,b\n", FileKind::Other),
            ("a.bin", b"\0\x01", FileKind::Other),
            ("a.eml", b"\xff\xfe", FileKind::Document),
            ("empty.txt", b"", FileKind::Empty),
            ("a.heic", b"\0\0\0\x18ftypheic\0\0", FileKind::Picture),
        ] {
            assert_eq!(kind_of(path, head), kind, "{path}");
        }
        // The head ends within a character.
        assert_eq!(kind_of("a.txt", &"aä".as_bytes()[..2]), FileKind::Text);
    }
}
