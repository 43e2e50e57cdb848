//! Text in lines.

use std::rc::Rc;

use super::chunk::chunks;
use super::{Frag, Item, ItemKind, Layout, Line, Placed};
use crate::make::css::style::{Align, Style, Transform, Vertical, White};
use crate::make::css::value::Length;
use crate::make::font::is_invisible;
use crate::make::tree::{Inline, Text, Words, count_spaces};

/// A part of text that no line breaks, or the space between two.
pub struct Unit {
    pub width: f32,
    pub kind: UnitKind,
    /// Whether a line may begin with it.
    pub may_begin: bool,
    link: Option<Text>,
    span: Option<Rc<Style>>,
}

pub enum UnitKind {
    Word { style: Rc<Style>, glyphs: Vec<Placed> },
    Space { style: Rc<Style>, glyph: Placed },
    Break,
    Other { kind: ItemKind, style: Rc<Style> },
}

impl Layout<'_> {
    /// Breaks text into lines of a width.
    pub fn lines(&mut self, inlines: &[Inline], style: &Rc<Style>, width: f32) -> Vec<Frag> {
        let mut lines = Vec::new();
        for chunk in chunks(inlines) {
            self.push_lines(&chunk, style, width, &mut lines);
        }
        lines
    }

    fn push_lines(&mut self, inlines: &[Inline], style: &Rc<Style>, width: f32, lines: &mut Vec<Frag>) {
        let units = self.units(inlines, width, true);
        let mut start = 0;
        while start < units.len() && self.takes_more() {
            let indent = if lines.is_empty() { style.indent } else { 0.0 };
            let (end, next) = fill(&units, start, width - indent);
            let is_last = next >= units.len() || matches!(units[end.min(units.len() - 1)].kind, UnitKind::Break);
            let mut line = self.line(&units[start..end], style);
            place(&mut line, style, width, indent, is_last);
            lines.push(Frag::Line(line));
            start = next;
        }
    }

    /// The parts of text. Words wider than a line are cut into letters if `cuts`.
    pub fn units(&mut self, inlines: &[Inline], width: f32, cuts: bool) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        let mut column = 0;
        let mut last = ' ';
        for inline in inlines {
            let (kind, own, link, unit_width, style) = match inline {
                Inline::Text(words) => {
                    self.words(words, (width, cuts), &mut units, &mut column, &mut last);
                    continue;
                }
                Inline::Break => {
                    last = ' ';
                    units.push(Unit { width: 0.0, kind: UnitKind::Break, may_begin: false, link: None, span: None });
                    continue;
                }
                Inline::Gap { width, span } => {
                    let Some(style) = span.clone().or_else(|| units.last().and_then(|unit| unit.span.clone())) else {
                        if let Some(style) = first_style(inlines) {
                            let kind = UnitKind::Other { kind: ItemKind::Gap, style };
                            let may_begin = last == ' ';
                            units.push(Unit { width: *width, kind, may_begin, link: None, span: None });
                        }
                        continue;
                    };
                    (ItemKind::Gap, span.clone(), None, *width, style)
                }
                Inline::Picture { number, style, link, alt } => {
                    let (unit_width, height) = self.picture_size(*number, style, width);
                    let kind = ItemKind::Picture { number: *number, height, alt: alt.clone() };
                    (kind, None, link.clone(), unit_width, style.clone())
                }
                Inline::Box(node) => {
                    let (min, max) = self.intrinsic(node);
                    let own = match node.style.width {
                        Length::Auto => max.min(width).max(min.min(width)),
                        _ => width,
                    };
                    let forced = matches!(node.style.width, Length::Auto).then_some(own);
                    let block = self.block(node, width, forced);
                    let unit_width = block.x + block.width + node.style.margin[1].or_zero(width);
                    (ItemKind::Box(Rc::new(block)), None, None, unit_width, node.style.clone())
                }
                Inline::PageOf { id, style } => {
                    let digit = self.fonts.glyph(style.family, style.is_bold, style.is_italic, '0').advance;
                    let kind = ItemKind::PageOf { id: id.clone(), style: style.clone() };
                    (kind, None, Some(format!("#{id}").into()), digit * style.size * 4.0, style.clone())
                }
                Inline::Anchor(id) => {
                    let Some(style) = first_style(inlines) else { continue };
                    (ItemKind::Anchor(id.clone()), None, None, 0.0, style)
                }
            };
            let is_text = matches!(kind, ItemKind::Gap | ItemKind::Anchor(_));
            let may_begin = !is_text || last == ' ';
            if !is_text {
                last = '\u{fffc}';
            }
            units.push(Unit { width: unit_width, kind: UnitKind::Other { kind, style }, may_begin, link, span: own });
        }
        units
    }

    fn words(
        &mut self,
        words: &Words,
        (width, cuts): (f32, bool),
        units: &mut Vec<Unit>,
        column: &mut usize,
        last: &mut char,
    ) {
        let style = &words.style;
        let keeps = style.keeps_spaces();
        let wraps = !matches!(style.white, White::NoWrap | White::Pre);
        let unit = |kind: UnitKind, width: f32, may_begin: bool| Unit {
            width,
            kind,
            may_begin,
            link: words.link.clone(),
            span: words.span.clone(),
        };
        let mut word: Vec<Placed> = Vec::new();
        let mut begins = breaks(*last, words.text.chars().next().unwrap_or(' ')) && wraps;
        let flush = |word: &mut Vec<Placed>, begins: bool, units: &mut Vec<Unit>| {
            if word.is_empty() {
                return;
            }
            let own: f32 = word.iter().map(|placed| placed.advance).sum();
            if own > width && cuts {
                for (number, placed) in std::mem::take(word).into_iter().enumerate() {
                    let kind = UnitKind::Word { style: style.clone(), glyphs: vec![placed] };
                    units.push(unit(kind, placed.advance, number == 0 && begins));
                }
                return;
            }
            let kind = UnitKind::Word { style: style.clone(), glyphs: std::mem::take(word) };
            units.push(unit(kind, own, begins));
        };
        for c in words.text.chars() {
            match c {
                '\n' => {
                    flush(&mut word, begins, units);
                    units.push(unit(UnitKind::Break, 0.0, false));
                    (*column, begins) = (0, wraps);
                }
                ' ' | '\t' => {
                    flush(&mut word, begins, units);
                    let count = if c == '\t' && keeps { count_spaces(*column) } else { 1 };
                    for _ in 0..count {
                        let glyph = self.placed(style, ' ');
                        units.push(unit(UnitKind::Space { style: style.clone(), glyph }, glyph.advance, false));
                    }
                    *column += count;
                    begins = wraps;
                }
                '\u{200b}' => {
                    flush(&mut word, begins, units);
                    begins = true;
                }
                c if is_invisible(c) => continue,
                c => {
                    // Options (`-o`) and paths (`/dev`) stay whole.
                    let least = if matches!(*last, '-' | '/') { 3 } else { 1 };
                    if breaks(*last, c) && word.len() >= least && wraps {
                        flush(&mut word, begins, units);
                        begins = true;
                    }
                    let placed = self.placed(style, c);
                    if let Some(before) = word.last_mut()
                        && before.glyph.font == placed.glyph.font
                    {
                        before.advance +=
                            self.fonts.kerning(placed.glyph.font, before.glyph.id, placed.glyph.id) * style.size;
                    }
                    word.push(placed);
                    *column += 1;
                }
            }
            *last = if matches!(c, '\n' | '\t' | '\u{200b}') { ' ' } else { c };
        }
        flush(&mut word, begins, units);
    }

    fn placed(&mut self, style: &Style, c: char) -> Placed {
        let glyph = self.fonts.glyph(style.family, style.is_bold, style.is_italic, c);
        Placed { glyph, c, advance: glyph.advance * style.size + style.letter_spacing }
    }

    /// The size of a picture in points.
    pub fn picture_size(&self, number: usize, style: &Style, whole: f32) -> (f32, f32) {
        let Some(picture) = self.pictures.all.get(number) else { return (0.0, 0.0) };
        let natural = (picture.width as f32 * 0.75, picture.height as f32 * 0.75);
        let ratio = natural.1 / natural.0;
        let height = match style.height {
            Length::Percent(_) => None,
            height => height.resolve(0.0),
        };
        let (mut width, mut height) = match (style.width.resolve(whole), height) {
            (Some(width), Some(height)) => (width, height),
            (Some(width), None) => (width, width * ratio),
            (None, Some(height)) => (height / ratio, height),
            (None, None) => natural,
        };
        let widest = style.max_width.resolve(whole).unwrap_or(whole).min(whole);
        for (limit, size) in [(widest, width), (self.page_height * 0.95, height * (widest / width).min(1.0))] {
            if size > limit && limit > 0.0 {
                width *= limit / size;
                height *= limit / size;
            }
        }
        (width.max(0.5), height.max(0.5))
    }

    /// A line of the units.
    fn line(&mut self, units: &[Unit], style: &Rc<Style>) -> Line {
        let (mut above, mut below) = self.extent(style);
        let mut line = Line { height: 0.0, baseline: 0.0, items: Vec::new(), width: 0.0 };
        for unit in units {
            let (rise, extent) = match &unit.kind {
                UnitKind::Word { style: own, glyphs } => {
                    let rise = self.rise(own);
                    let extent = self.extent(own);
                    self.push_glyphs(&mut line, unit, own, glyphs, rise);
                    (rise, extent)
                }
                UnitKind::Space { style: own, glyph } => {
                    let rise = self.rise(own);
                    let extent = self.extent(own);
                    self.push_glyphs(&mut line, unit, own, std::slice::from_ref(glyph), rise);
                    (rise, extent)
                }
                UnitKind::Break => continue,
                UnitKind::Other { kind, style: own } => {
                    let (rise, extent) = match kind {
                        ItemKind::Picture { height, .. } => (self.middle(own, style, *height), (*height, 0.0)),
                        ItemKind::Box(block) => {
                            let height = block.height + block.margin_top + block.margin_bottom;
                            let top = first_baseline(&block.children)
                                .map_or(height, |top| top + block.inset[0] + block.margin_top);
                            let rise = self.middle(own, style, height);
                            if rise == 0.0 && own.vertical == Vertical::Baseline {
                                (0.0, (top, height - top))
                            } else {
                                (rise, (height, 0.0))
                            }
                        }
                        ItemKind::PageOf { style, .. } => (0.0, self.extent(style)),
                        _ => (0.0, (0.0, 0.0)),
                    };
                    let item = Item {
                        x: line.width,
                        width: unit.width,
                        rise: if let ItemKind::Box(_) = kind { rise + extent.0 } else { rise },
                        kind: kind.clone(),
                        link: unit.link.clone(),
                        span: unit.span.clone(),
                    };
                    line.items.push(item);
                    (rise, extent)
                }
            };
            line.width += unit.width;
            above = above.max(extent.0 + rise);
            below = below.max(extent.1 - rise);
        }
        line.baseline = above;
        line.height = above + below;
        line
    }

    /// Adds glyphs to the last item if they belong to it.
    fn push_glyphs(&self, line: &mut Line, unit: &Unit, style: &Rc<Style>, glyphs: &[Placed], rise: f32) {
        let x = line.width;
        if let Some(last) = line.items.last_mut()
            && let ItemKind::Glyphs { style: known, glyphs: before } = &mut last.kind
            && Rc::ptr_eq(known, style)
            && last.link == unit.link
            && last.span.as_ref().map(Rc::as_ptr) == unit.span.as_ref().map(Rc::as_ptr)
        {
            before.extend_from_slice(glyphs);
            last.width = x + unit.width - last.x;
            return;
        }
        line.items.push(Item {
            x,
            width: unit.width,
            rise,
            kind: ItemKind::Glyphs { style: style.clone(), glyphs: glyphs.to_vec() },
            link: unit.link.clone(),
            span: unit.span.clone(),
        });
    }

    /// How far a line of this style reaches above and below the letters' line.
    fn extent(&self, style: &Style) -> (f32, f32) {
        let leading = style.leading();
        // As high as those of the text around them, so that lines stay even.
        if matches!(style.vertical, Vertical::Sub | Vertical::Super) {
            return (style.size * 0.8, style.size * 0.2);
        }
        let (ascent, descent) = self.metrics(style);
        let half = (leading - (ascent + descent) * style.size) / 2.0;
        let above = half + ascent * style.size;
        (above, leading - above)
    }

    /// Height above and below the line, in parts of the size.
    pub fn metrics(&self, style: &Style) -> (f32, f32) {
        self.fonts.primary(style.family, style.is_bold, style.is_italic).map_or((0.9, 0.2), |loaded| {
            let em = loaded.em();
            (f32::from(loaded.face.ascender()) / em, -f32::from(loaded.face.descender()) / em)
        })
    }

    fn rise(&self, style: &Style) -> f32 {
        match style.vertical {
            Vertical::Super => style.size * 0.45,
            Vertical::Sub => -style.size * 0.2,
            _ => 0.0,
        }
    }

    /// How far above the line something of a height stands.
    fn middle(&self, own: &Style, around: &Style, height: f32) -> f32 {
        match own.vertical {
            Vertical::Middle => around.size * 0.25 - height / 2.0,
            Vertical::Top => around.size * 0.9 - height,
            Vertical::Bottom => -around.size * 0.2,
            _ => 0.0,
        }
    }

    /// One line of plain text, such as a bullet.
    pub fn plain_line(&mut self, text: &str, style: &Rc<Style>) -> Line {
        let mut own = (**style).clone();
        own.transform = Transform::None;
        own.is_underlined = false;
        own.white = White::NoWrap;
        let own = Rc::new(own);
        let words = Words { text: text.to_owned(), style: own.clone(), link: None, span: None };
        let units = self.units(&[Inline::Text(words)], f32::MAX, false);
        self.line(&units, &own)
    }
}

fn first_style(inlines: &[Inline]) -> Option<Rc<Style>> {
    inlines.iter().find_map(|inline| match inline {
        Inline::Text(words) => Some(words.style.clone()),
        Inline::Picture { style, .. } => Some(style.clone()),
        _ => None,
    })
}

/// The first line on which letters stand, from the top of the frags.
fn first_baseline(frags: &[Frag]) -> Option<f32> {
    match frags.first()? {
        Frag::Line(line) => Some(line.baseline),
        Frag::Block(block) => Some(first_baseline(&block.children)? + block.inset[0] + block.margin_top),
        _ => None,
    }
}

/// Whether a line may end between two characters.
fn breaks(before: char, after: char) -> bool {
    if before == ' ' {
        return true;
    }
    let is_wide = |c: char| matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}' | '\u{20000}'..='\u{3ffff}');
    let closes = matches!(
        after,
        '、' | '。'
            | '，'
            | '．'
            | '！'
            | '？'
            | '）'
            | '」'
            | '』'
            | '：'
            | '；'
            | '…'
            | ')'
            | ']'
            | '}'
            | ','
            | '.'
            | '!'
            | '?'
            | ':'
            | ';'
            | '\''
            | '"'
            | '”'
            | '’'
    );
    let opens = matches!(before, '（' | '「' | '『' | '(' | '[' | '{' | '“' | '‘');
    if closes || opens {
        return false;
    }
    if before == '\u{fffc}' || is_wide(before) || is_wide(after) {
        return true;
    }
    matches!(before, '-' | '–' | '—' | '/' | '‐') && after.is_alphabetic()
}

/// Where a line from `start` ends, and where the next one begins.
fn fill(units: &[Unit], start: usize, width: f32) -> (usize, usize) {
    let mut used = 0.0;
    let mut last_break = None;
    for (at, unit) in units.iter().enumerate().skip(start) {
        match &unit.kind {
            UnitKind::Break => return (trim(units, start, at), at + 1),
            UnitKind::Space { .. } => {
                used += unit.width;
                continue;
            }
            _ => {}
        }
        if unit.may_begin && at > start {
            last_break = Some(at);
        }
        used += unit.width;
        if used > width + 0.01 && at > start && unit.width > 0.0 {
            let end = last_break.unwrap_or(at);
            // Spaces that are kept may be all that is before.
            if end > start {
                return (trim(units, start, end), end);
            }
        }
    }
    (trim(units, start, units.len()), units.len())
}

/// The end without spaces.
fn trim(units: &[Unit], start: usize, end: usize) -> usize {
    let mut end = end;
    while end > start && matches!(&units[end - 1].kind, UnitKind::Space { style, .. } if style.white != White::Pre) {
        end -= 1;
    }
    end
}

/// Moves the items of a line to where the alignment wants them.
fn place(line: &mut Line, style: &Style, width: f32, indent: f32, is_last: bool) {
    let free = (width - indent - line.width).max(0.0);
    let mut shift = indent;
    match style.align {
        Align::Left => {}
        Align::Center => shift += free / 2.0,
        Align::Right => shift += free,
        Align::Justify if !is_last => justify(line, free),
        Align::Justify => {}
    }
    line.items.iter_mut().for_each(|item| item.x += shift);
}

fn justify(line: &mut Line, free: f32) {
    let spaces: usize = line
        .items
        .iter()
        .map(|item| match &item.kind {
            ItemKind::Glyphs { glyphs, .. } => glyphs.iter().filter(|placed| placed.c == ' ').count(),
            _ => 0,
        })
        .sum();
    // A line of few words would fall apart.
    if spaces == 0 || free / spaces as f32 > 14.0 {
        return;
    }
    let more = free / spaces as f32;
    let mut shift = 0.0;
    for item in &mut line.items {
        item.x += shift;
        if let ItemKind::Glyphs { glyphs, .. } = &mut item.kind {
            let mut own = 0.0;
            for placed in glyphs.iter_mut().filter(|placed| placed.c == ' ') {
                placed.advance += more;
                own += more;
            }
            item.width += own;
            shift += own;
        }
    }
    line.width += free;
}
