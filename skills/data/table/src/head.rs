//! Heads of tables: the columns that the first bytes of a file tell, for those who only name them to somebody.

use crate::cell::Survey;
use crate::{Format, Kind, MAX_COLUMNS, delimited, json, text};

/// Whether the ending of `file` promises a table.
pub fn is_table(file: &str) -> bool {
    let Some((_, ending)) = file.rsplit_once('.') else { return false };
    ["csv", "tsv", "json", "jsonl", "ndjson"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// The names and kinds of the columns of `file`, which begins with `bytes` and goes on after them if they are `cut`; none if
/// that does not read as a table. What is not a table as a whole is refused, too, as far as its head tells.
pub fn columns(file: &str, mut bytes: Vec<u8>, cut: bool) -> Option<Vec<(String, Kind)>> {
    // The cut may go through a character.
    if cut
        && let Err(e) = std::str::from_utf8(&bytes)
        && e.error_len().is_none()
    {
        bytes.truncate(e.valid_up_to());
    }
    let (text, _) = text::decode(file, bytes).ok()?;
    let mut survey = Survey::default();
    let mut decimal_comma = false;
    match Format::detect(file, &text) {
        Format::Delimited => {
            let layout = delimited::survey(file, &text, cut, &mut survey, &mut Vec::new()).ok()?;
            decimal_comma = layout.delimiter != b',';
        }
        // A head that ends inside a row has told all rows before it.
        Format::Json => match json::document(&text, &mut survey) {
            Ok(found) => found.then_some(())?,
            Err(e) => (cut && e.is_eof() && survey.rows() > 0).then_some(())?,
        },
        Format::JsonLines => {
            let whole = if cut { &text[..text.rfind('\n')?] } else { text.as_str() };
            json::walk_lines(file, whole, &mut survey).ok()?;
        }
    }
    (1..=MAX_COLUMNS).contains(&survey.columns()).then(|| survey.finish(decimal_comma))
}
