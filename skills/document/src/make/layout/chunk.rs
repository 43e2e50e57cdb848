//! Parts of long texts, so that breaking one into lines takes little memory.

use std::borrow::Cow;

use crate::make::tree::{Inline, Words};

/// Bytes of text after which a part ends. No paragraph of a person is as long.
const CHUNK_BYTES: usize = 40_000;

/// The text in parts, which begin lines of their own.
pub fn chunks(inlines: &[Inline]) -> Vec<Cow<'_, [Inline]>> {
    if length(inlines) <= CHUNK_BYTES {
        return vec![Cow::Borrowed(inlines)];
    }
    let mut all = Vec::new();
    let mut part = Vec::new();
    let mut used = 0;
    for inline in inlines {
        let Inline::Text(words) = inline else {
            part.push(inline.clone());
            continue;
        };
        let mut rest = words.text.as_str();
        while used + rest.len() > CHUNK_BYTES {
            let (text, more) = rest.split_at(cut(rest, CHUNK_BYTES.saturating_sub(used)));
            part.push(Inline::Text(Words { text: text.to_owned(), ..words.clone() }));
            all.push(Cow::Owned(std::mem::take(&mut part)));
            (rest, used) = (more, 0);
        }
        used += rest.len();
        if !rest.is_empty() {
            part.push(Inline::Text(Words { text: rest.to_owned(), ..words.clone() }));
        }
    }
    all.push(Cow::Owned(part));
    all
}

/// Bytes of text.
pub fn length(inlines: &[Inline]) -> usize {
    inlines.iter().map(|inline| if let Inline::Text(words) = inline { words.text.len() } else { 0 }).sum()
}

/// Where to cut a text: behind a space if there is one near.
fn cut(text: &str, most: usize) -> usize {
    let end = text.floor_char_boundary(most.min(text.len()));
    let end = if end == 0 { text.ceil_char_boundary(1) } else { end };
    text[..end].rfind([' ', '\n']).filter(|at| end - at < 2_000).map_or(end, |at| at + 1)
}

/// The first part of a text.
pub fn first(inlines: &[Inline]) -> Cow<'_, [Inline]> {
    chunks(inlines).into_iter().next().unwrap_or(Cow::Borrowed(&[]))
}
