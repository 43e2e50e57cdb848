//! Title, author and dates of old Office files ([MS-OLEPS]).

use std::io::Cursor;

use super::doc::stream;
use crate::charset::for_code_page;
use crate::document::Document;

/// Adds the properties of the stream `SummaryInformation`.
pub fn describe(file: &mut cfb::CompoundFile<Cursor<&[u8]>>, document: &mut Document) {
    let Ok(bytes) = stream(file, "\u{5}SummaryInformation") else { return };
    let long = |at: usize| {
        let four = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(four)).ok()
    };
    let Some(set) = long(44) else { return };
    let count = long(set.saturating_add(4)).unwrap_or(0).min(100);
    let property = |id: usize| {
        let entries = (0..count).map(|index| set.saturating_add(8 + 8 * index));
        let mut entries = entries.filter(|entry| long(*entry) == Some(id));
        entries.next().and_then(|entry| Some(set.saturating_add(long(entry.saturating_add(4))?)))
    };
    let page = property(1).and_then(|at| long(at.saturating_add(4))).map_or(1_252, |page| page as u32 & 0xffff);
    for (id, fact) in [(2, "title"), (3, "subject"), (4, "author"), (5, "keywords"), (6, "comment")] {
        let Some(at) = property(id) else { continue };
        let Some(length) = long(at.saturating_add(4)) else { continue };
        let Some(text) = bytes.get(at + 8..(at + 8).saturating_add(length.min(4_000))) else { continue };
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        document.fact(fact, for_code_page(page).decode_without_bom_handling(text).0);
    }
    for (id, fact) in [(12, "created"), (13, "modified")] {
        let at = property(id).map(|at| at.saturating_add(4));
        let steps = at.and_then(|at| Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?)));
        if let Some(steps) = steps.filter(|steps| *steps > 0) {
            document.fact(fact, crate::date::from_filetime(steps));
        }
    }
}
