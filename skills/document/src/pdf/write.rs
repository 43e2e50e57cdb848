//! Writes the blocks of a page: headings, paragraphs, lists and tables, or lines as they stand.

use super::glyphs::Glyphs;
use super::table::{Section, row_mark, sections};
use super::words::{Piece, pieces};
use super::{layout, order};
use crate::inline::escape;
use crate::out::{Out, Style};

/// Letters of a page by the size of its type, in tenths.
pub type Sizes = std::collections::BTreeMap<u32, usize>;

/// Letters that a scanner or a stamp adds to a page that is a picture.
const STAMP_LETTERS: usize = 60;

/// A page between reading and writing.
#[derive(Debug, Default)]
pub struct PageText {
    pub sections: Vec<Section>,
    pub picture: bool,
    /// The page as lines, if the layout is to be kept.
    pub lines: Option<String>,
}

/// Puts the glyphs of a page in order.
pub fn arrange(glyphs: &Glyphs, keep_layout: bool, sizes: &mut Sizes) -> PageText {
    let letters = glyphs.glyphs.iter().filter(|glyph| !glyph.text.is_space()).count();
    let mut page = PageText {
        picture: match letters {
            0 => glyphs.pictures > 0.05 || glyphs.paths > 20,
            1..STAMP_LETTERS => glyphs.pictures > 0.5,
            _ => false,
        },
        ..PageText::default()
    };
    if keep_layout {
        page.lines = Some(layout::lines(&glyphs.glyphs));
        return page;
    }
    // The direction of most text first.
    let mut turns: Vec<(u8, usize)> =
        (0..4).map(|turn| (turn, glyphs.glyphs.iter().filter(|glyph| glyph.turn == turn).count())).collect();
    turns.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (turn, _) in turns.into_iter().filter(|(_, count)| *count > 0) {
        let pieces = pieces(&glyphs.glyphs, turn);
        for piece in &pieces {
            *sizes.entry((piece.size * 10.0) as u32).or_default() += piece.text.len();
        }
        for block in order::blocks(pieces) {
            page.sections.extend(sections(block));
        }
    }
    page
}

/// The sizes of headings, the largest first, and the size of most text.
pub struct Scale {
    body: f32,
    levels: Vec<u32>,
}

impl Scale {
    pub fn new(sizes: &Sizes) -> Self {
        let body = sizes.iter().max_by_key(|(_, letters)| **letters).map_or(0, |(size, _)| *size);
        let total: usize = sizes.values().sum();
        // Large type that makes up much of the text is a slide or a poster, not a heading.
        let large = sizes.iter().rev().filter(|(size, letters)| **size * 100 > body * 115 && **letters * 4 < total);
        let mut levels: Vec<u32> = Vec::new();
        for (size, _) in large {
            if levels.last().is_none_or(|last| *size * 100 < last * 95) {
                levels.push(*size);
            }
        }
        levels.truncate(4);
        Self { body: body as f32 / 10.0, levels }
    }

    fn level(&self, size: f32) -> Option<usize> {
        let tenths = (size * 10.0) as u32;
        if self.levels.is_empty() || size < 1.15 * self.body {
            return None;
        }
        let found = self.levels.iter().position(|level| tenths * 100 >= level * 95);
        found.map(|level| level + 1)
    }
}

/// Writes a page into the current part.
pub fn write(page: &PageText, scale: &Scale, out: &mut Out) {
    if page.picture {
        out.mark_picture();
    }
    if let Some(lines) = &page.lines {
        out.raw(lines);
        return;
    }
    for section in &page.sections {
        match section {
            Section::Table(rows) => out.table(rows),
            Section::Lines(lines) => match out.style() {
                Style::Text => write_lines(lines, scale, out),
                Style::Markdown => write_paragraphs(lines, scale, out),
            },
        }
    }
}

/// Lines as they stand, with an empty one between paragraphs.
fn write_lines(lines: &[Piece], scale: &Scale, out: &mut Out) {
    let pitch = pitch(lines);
    for (index, line) in lines.iter().enumerate() {
        if heading(lines, index, scale, pitch).is_some() {
            out.record_heading(1, &line.text);
        }
        match index.checked_sub(1).map(|above| &lines[above]) {
            Some(above) if line.baseline - above.baseline < 1.5 * pitch && line.baseline > above.baseline => {
                out.line(&line.text);
            }
            _ => out.raw(&line.text),
        }
    }
}

/// The usual distance of two lines.
fn pitch(lines: &[Piece]) -> f32 {
    let mut distances: Vec<f32> = lines.windows(2).map(|pair| pair[1].baseline - pair[0].baseline).collect();
    distances.retain(|distance| *distance > 0.0);
    distances.sort_by(f32::total_cmp);
    let size = lines.first().map_or(10.0, |line| line.size);
    // With few lines, the middle one says nothing.
    match distances.get(distances.len() / 2) {
        Some(middle) if distances.len() > 3 => middle.clamp(0.8 * size, 2.2 * size),
        _ => 1.25 * size,
    }
}

fn heading(lines: &[Piece], index: usize, scale: &Scale, pitch: f32) -> Option<usize> {
    let line = &lines[index];
    let letters = line.text.chars().filter(|c| c.is_alphabetic()).count();
    if letters < 2 || line.text.len() > 200 {
        return None;
    }
    let level = scale.level(line.size)?;
    // A heading has at most three lines.
    let same = |other: &Piece| (other.size - line.size).abs() < 0.05 * line.size;
    let start = lines[..index].iter().rev().take(4).take_while(|other| same(other)).count();
    let end = lines[index + 1..]
        .iter()
        .take(4)
        .take_while(|other| same(other) && other.baseline - line.baseline < 5.0 * pitch)
        .count();
    (start + end < 3).then_some(level)
}

fn write_paragraphs(lines: &[Piece], scale: &Scale, out: &mut Out) {
    let pitch = pitch(lines);
    let left = lines.iter().map(|line| line.left).fold(f32::MAX, f32::min);
    let right = lines.iter().map(|line| line.right).fold(f32::MIN, f32::max);
    let mut text = String::new();
    let mut level = None;
    let mut previous: Option<&Piece> = None;
    for (index, line) in lines.iter().enumerate() {
        let this = heading(lines, index, scale, pitch);
        let begins = previous.is_none_or(|above| {
            let apart = line.baseline - above.baseline > 1.35 * pitch.max(line.size) || line.baseline < above.baseline;
            let indented = line.left > above.left + 0.8 * line.size && above.left < left + 0.5 * line.size;
            let short = above.right < right - 0.25 * (right - left) && above.text.ends_with(['.', '!', '?', ':', ';']);
            apart
                || this != level
                || (line.size - above.size).abs() > 0.15 * line.size
                || indented && this.is_none()
                || short
                || begins_item(&line.text)
        });
        if begins {
            finish(&mut text, level, out);
        }
        append(&mut text, &line.text);
        level = this;
        previous = Some(line);
    }
    finish(&mut text, level, out);
}

fn begins_item(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(row_mark) && text.contains(' ')
}

/// Adds a line to a paragraph; a word that was divided is put together again.
fn append(text: &mut String, line: &str) {
    let divided = text.ends_with('-')
        && text.chars().rev().nth(1).is_some_and(char::is_lowercase)
        && line.starts_with(char::is_lowercase);
    if divided {
        text.pop();
    } else if !(text.is_empty() || text.ends_with(is_wide) && line.starts_with(is_wide)) {
        text.push(' ');
    }
    text.push_str(line);
}

/// Chinese and Japanese have no spaces between words.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}')
}

fn finish(text: &mut String, level: Option<usize>, out: &mut Out) {
    let paragraph = std::mem::take(text);
    let paragraph = paragraph.trim();
    if paragraph.is_empty() {
        return;
    }
    let escaped = |words: &str| {
        let mut escaped = String::with_capacity(words.len());
        escape(&mut escaped, words);
        escaped
    };
    match (level, paragraph.split_once(' ')) {
        (Some(level), _) => out.heading(level, &escaped(paragraph)),
        (None, Some((mark, rest))) if row_mark(mark) => {
            let number = mark.ends_with('.') && mark.starts_with(|c: char| c.is_ascii_digit());
            match mark.chars().count() {
                1 => out.item(0, "-", &escaped(rest)),
                _ if number => out.item(0, mark, &escaped(rest)),
                _ => out.item(0, "-", &escaped(paragraph)),
            }
        }
        _ => out.paragraph(&escaped(paragraph)),
    }
}
