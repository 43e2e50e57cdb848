//! Decodes the escapes in a text: those of URLs, JSON, HTML, CSV and shells, of any characters, and nested escapes. Text and
//! value are compared in this form, so it does not matter which characters were escaped.
//!
//! | written by | escape | decoded |
//! |---|---|---|
//! | URLs | `%2F`, `%2f`, `+` | the byte; a space |
//! | JSON | `\u0026`, `\ud83d\udd11` | the character |
//! | JSON, programming languages | `\"`, `\/`, `\n`, `\\` | see below |
//! | HTML | `&amp;`, `&#39;`, `&#x27;` | the character |
//! | CSV, SQL, shells | `""`, `''`, `'\''` | one quote |
//!
//! The number of backslashes before a quote depends only on the number of encoders. So any number of backslashes is decoded to
//! one, and each byte that encoders may escape with a backslash gets one: `"` becomes `\"`, `/` becomes `\/`, and a line break
//! `\n`. Several quotes in a row become one.

/// A byte of the decoded text, with its place in the original text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecodedByte {
    pub byte: u8,
    pub start: usize,
    pub end: usize,
    /// False for the `n` of a line break and similar letters, which cannot begin a value.
    begins: bool,
    /// False for a backslash that is not in the original text, which cannot end a value.
    ends: bool,
    /// Number of escapes in the text before this byte, and including it.
    escapes: (usize, usize),
}

/// Whether the text from one decoded byte to another may be a value. Text without an escape is searched in its original form.
pub(super) fn may_be_value(first: &DecodedByte, last: &DecodedByte) -> bool {
    first.begins && last.ends && first.escapes.0 < last.escapes.1
}

/// Decodes a text that may arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// `%`, or `%` and a digit, which may be the beginning of an encoded byte.
    percent: Vec<Unit>,
    /// Beginnings of the other escapes, each in place of the next byte of the one before it.
    escapes: Vec<Escape>,
    writer: Writer,
}

/// A byte inside the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unit {
    byte: u8,
    start: usize,
    end: usize,
    /// Number of nested escapes in its place.
    depth: u32,
}

/// The beginning of an escape.
#[derive(Debug)]
enum Escape {
    /// `&` and following bytes.
    Entity(Vec<Unit>),
    /// Backslashes, followed by `u` and digits.
    Backslash { backslashes: Vec<Unit>, code: Vec<Unit> },
}

/// The longest entity is `&#x10ffff;`; some programs write zeros before the digits.
const LONGEST_ENTITY: usize = 12;

/// Maximum nested beginnings of escapes, so that a text of many `&` is not held back until its end.
const DEEPEST: usize = 8;

const ENTITIES: [(&[u8], char); 5] =
    [(b"&amp;", '&'), (b"&lt;", '<'), (b"&gt;", '>'), (b"&quot;", '"'), (b"&apos;", '\'')];

/// For each byte: whether an escape begins with it, or a backslash is added before it.
static IS_SPECIAL: [bool; 256] = {
    let special = b"%+&\\\"'/\n\r\t\x08\x0C";
    let mut table = [false; 256];
    let mut at = 0;
    while at < special.len() {
        table[special[at] as usize] = true;
        at += 1;
    }
    table
};

impl Decoder {
    /// Takes the next byte of the text, at position `at`. Appends the bytes that are now final to `out`.
    pub(super) fn push(&mut self, byte: u8, at: usize, out: &mut Vec<DecodedByte>) {
        self.push_unit(Unit { byte, start: at, end: at + 1, depth: 0 }, out);
    }

    fn push_unit(&mut self, unit: Unit, out: &mut Vec<DecodedByte>) {
        self.percent.push(unit);
        loop {
            match self.percent[..] {
                [percent, high, low] if percent.byte == b'%' => match (digit(high.byte), digit(low.byte)) {
                    // The decoded character may be a percent sign, which begins the next escape.
                    (Some(a), Some(b)) => {
                        let (byte, start, end, depth) = (a << 4 | b, percent.start, low.end, percent.depth + 1);
                        self.percent.clear();
                        self.percent.push(Unit { byte, start, end, depth });
                    }
                    _ => self.settle_percent(out),
                },
                [percent, high] if percent.byte == b'%' && digit(high.byte).is_some() => return,
                [percent] if percent.byte == b'%' => return,
                [] => return,
                _ => self.settle_percent(out),
            }
        }
    }

    fn settle_percent(&mut self, out: &mut Vec<DecodedByte>) {
        let mut first = self.percent.remove(0);
        if first.byte == b'+' {
            first = Unit { byte: b' ', depth: first.depth + 1, ..first };
        }
        self.follow(first, out);
    }

    /// Takes a byte that is not part of a URL escape.
    fn follow(&mut self, unit: Unit, out: &mut Vec<DecodedByte>) {
        let is_deep = self.escapes.len() >= DEEPEST;
        match (self.escapes.last_mut(), unit.byte) {
            (Some(Escape::Backslash { backslashes, code }), b'\\') if code.is_empty() => backslashes.push(unit),
            (Some(Escape::Backslash { code, .. }), b'u') if code.is_empty() => {
                code.push(unit);
            }
            (Some(Escape::Backslash { code, .. }), byte) if !code.is_empty() && digit(byte).is_some() => {
                code.push(unit);
                if code.len() == 5 {
                    self.end_code(out);
                }
            }
            (Some(Escape::Entity(entity)), byte) if is_in_entity(byte) && entity.len() < LONGEST_ENTITY => {
                entity.push(unit);
            }
            (Some(Escape::Entity(entity)), b';') => {
                entity.push(unit);
                self.end_entity(out);
            }
            // The next byte of an escape may be escaped itself, except for digits and letters.
            (Some(Escape::Entity(_)) | None, b'\\') if !is_deep => {
                self.escapes.push(Escape::Backslash { backslashes: vec![unit], code: Vec::new() });
            }
            (Some(Escape::Entity(_)) | None, b'&') if !is_deep => self.escapes.push(Escape::Entity(vec![unit])),
            (Some(Escape::Backslash { code, .. }), b'&') if code.is_empty() && !is_deep => {
                self.escapes.push(Escape::Entity(vec![unit]));
            }
            (Some(_), _) => {
                self.flush_escapes(out);
                self.follow(unit, out);
            }
            (None, _) => self.writer.write(unit, out),
        }
    }

    /// Ends an entity at its semicolon.
    fn end_entity(&mut self, out: &mut Vec<DecodedByte>) {
        let Some(Escape::Entity(entity)) = self.escapes.pop() else { return };
        if let Some(c) = character_of(&bytes_of(&entity)) {
            self.push_character(c, &entity, out);
        } else {
            self.flush_escapes(out);
            self.writer.write_all(&entity, out);
        }
    }

    /// Ends a `\u` escape after its four digits.
    fn end_code(&mut self, out: &mut Vec<DecodedByte>) {
        let Some(Escape::Backslash { backslashes, code }) = self.escapes.pop() else { return };
        // Each encoder doubles all backslashes: of six before `u`, two belong to the escape, and the others are backslashes of
        // the text. The same for one that was itself a deeper escape.
        let depth = backslashes.last().map(|last| last.depth);
        let alike = backslashes.iter().rev().take_while(|one| Some(one.depth) == depth).count();
        let (others, own) = backslashes.split_at(backslashes.len() - (1 << alike.trailing_zeros()));
        if !others.is_empty() {
            self.flush_escapes(out);
            self.writer.write_all(others, out);
        }
        let number = number_of(&bytes_of(&code[1..]), 16).unwrap_or_default();
        let escape = [own, &code].concat();
        if let Some(c) = char::from_u32(number) {
            self.push_character(c, &escape, out);
        } else {
            self.flush_escapes(out);
            self.writer.write_surrogate(number, escape, out);
        }
    }

    /// Writes the beginnings of escapes as text.
    fn flush_escapes(&mut self, out: &mut Vec<DecodedByte>) {
        for escape in self.escapes.drain(..) {
            match escape {
                Escape::Entity(entity) => self.writer.write_all(&entity, out),
                Escape::Backslash { backslashes, code } => {
                    self.writer.write_all(&backslashes, out);
                    self.writer.write_all(&code, out);
                }
            }
        }
    }

    /// Continues with the decoded character, which may begin the next escape. `percent` is empty here, because no escape ends
    /// with a percent sign.
    fn push_character(&mut self, c: char, escape: &[Unit], out: &mut Vec<DecodedByte>) {
        let [first, .., last] = escape else { return };
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            self.push_unit(Unit { byte, start: first.start, end: last.end, depth: first.depth + 1 }, out);
        }
    }

    /// Ends the text.
    pub(super) fn finish(&mut self, out: &mut Vec<DecodedByte>) {
        while !self.percent.is_empty() {
            self.settle_percent(out);
        }
        self.flush_escapes(out);
        self.writer.finish(out);
    }

    /// Whether everything is final.
    fn is_idle(&self) -> bool {
        self.percent.is_empty() && self.escapes.is_empty() && self.writer.unsettled().is_none()
    }

    /// Returns the position of the first byte that is not final.
    pub(super) fn unsettled(&self) -> Option<usize> {
        let in_escape = self.escapes.first().and_then(|escape| match escape {
            Escape::Entity(entity) => entity.first(),
            Escape::Backslash { backslashes, .. } => backslashes.first(),
        });
        let first = self.writer.unsettled().or(in_escape).or(self.percent.first());
        first.map(|first| first.start)
    }
}

/// Writes the remaining bytes, with one backslash in place of any number.
#[derive(Debug, Default)]
struct Writer {
    /// A pending backslash (or several as one), whose next byte has not arrived.
    backslash: Option<Unit>,
    /// The first half of a character that JSON writes as two, and its escape.
    high: Option<(u32, Vec<Unit>)>,
    last: u8,
    escapes: usize,
}

impl Writer {
    fn unsettled(&self) -> Option<&Unit> {
        self.backslash.as_ref().or(self.high.as_ref().and_then(|(_, escape)| escape.first()))
    }

    fn write_all(&mut self, units: &[Unit], out: &mut Vec<DecodedByte>) {
        for unit in units {
            self.write(*unit, out);
        }
    }

    /// Writes half of a character: the whole character once its other half is there, or its escape if that does not follow.
    fn write_surrogate(&mut self, half: u32, escape: Vec<Unit>, out: &mut Vec<DecodedByte>) {
        if let Some((high, first)) = self.high.take() {
            let low = half.checked_sub(0xDC00);
            let c = low.and_then(|low| char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + low));
            match (c, &first[..], &escape[..]) {
                (Some(c), [first, ..], [.., last]) => {
                    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                        self.write(Unit { byte, start: first.start, end: last.end, depth: first.depth + 1 }, out);
                    }
                    return;
                }
                _ => self.write_all(&first, out),
            }
        }
        match half {
            0xD800..0xDC00 => self.high = Some((half, escape)),
            _ => self.write_all(&escape, out),
        }
    }

    fn write(&mut self, unit: Unit, out: &mut Vec<DecodedByte>) {
        self.flush_surrogate(out);
        if unit.byte == b'\\' {
            let first = self.backslash.unwrap_or(unit);
            let depth = unit.depth + u32::from(self.backslash.is_some());
            self.backslash = Some(Unit { start: first.start, end: unit.end, depth, ..unit });
            return;
        }
        let is_quote = matches!(unit.byte, b'"' | b'\'');
        if is_quote && self.last == unit.byte {
            self.backslash = None;
            self.escapes += 1;
            return;
        }
        let (start, letter) = (unit.start, letter_after_backslash(unit.byte));
        match self.backslash.take() {
            Some(backslash) => {
                let is_escape = letter.is_some() || b"nrtbf".contains(&unit.byte);
                self.put(Unit { depth: backslash.depth + u32::from(is_escape), ..backslash }, true, true, out);
            }
            None if letter.is_some() => {
                self.put(Unit { byte: b'\\', start, end: start, depth: 0 }, true, false, out);
            }
            None => {}
        }
        let byte = letter.unwrap_or(unit.byte);
        self.put(Unit { byte, ..unit }, byte == unit.byte, true, out);
    }

    fn flush_surrogate(&mut self, out: &mut Vec<DecodedByte>) {
        if let Some((_, escape)) = self.high.take() {
            self.write_all(&escape, out);
        }
    }

    fn put(&mut self, unit: Unit, begins: bool, ends: bool, out: &mut Vec<DecodedByte>) {
        let before = self.escapes;
        self.escapes += usize::from(unit.depth > 0);
        self.last = unit.byte;
        let Unit { byte, start, end, .. } = unit;
        out.push(DecodedByte { byte, start, end, begins, ends, escapes: (before, self.escapes) });
    }

    fn finish(&mut self, out: &mut Vec<DecodedByte>) {
        self.flush_surrogate(out);
        if let Some(backslash) = self.backslash.take() {
            self.put(backslash, true, true, out);
        }
    }
}

/// Returns the byte after the backslash if encoders may escape this byte with a backslash; `None` for all others.
fn letter_after_backslash(byte: u8) -> Option<u8> {
    match byte {
        b'"' | b'\'' | b'/' => Some(byte),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        0x08 => Some(b'b'),
        0x0C => Some(b'f'),
        _ => None,
    }
}

fn is_in_entity(byte: u8) -> bool {
    byte == b'#' || byte.is_ascii_alphanumeric()
}

/// Returns the character of an entity; `None` if the entity is unknown.
fn character_of(entity: &[u8]) -> Option<char> {
    let number = match entity {
        [b'&', b'#', b'x' | b'X', digits @ .., b';'] => number_of(digits, 16)?,
        [b'&', b'#', digits @ .., b';'] => number_of(digits, 10)?,
        _ => return ENTITIES.iter().find(|(name, _)| *name == entity).map(|(_, c)| *c),
    };
    char::from_u32(number)
}

/// Parses digits; `None` if there are none, or too many.
fn number_of(digits: &[u8], radix: u32) -> Option<u32> {
    let add = |number: u32, digit: &u8| number.checked_mul(radix)?.checked_add(char::from(*digit).to_digit(radix)?);
    digits.iter().try_fold(0, add).filter(|_| !digits.is_empty())
}

fn bytes_of(units: &[Unit]) -> Vec<u8> {
    units.iter().map(|unit| unit.byte).collect()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Whether the text may contain an escape.
pub(super) fn has_escapes(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut last = 0;
    bytes.iter().any(|&byte| {
        let doubled = byte == last && matches!(byte, b'"' | b'\'');
        last = byte;
        doubled || matches!(byte, b'%' | b'+' | b'\\' | b'&')
    })
}

/// An escape that the next bytes cannot change, or a byte that does not begin one.
struct ShortEscape {
    length: usize,
    has_backslash: bool,
    byte: u8,
}

/// Reads the escape at the beginning of the bytes, unless the full decoder is necessary.
fn short_escape(bytes: &[u8]) -> Option<ShortEscape> {
    const OPENERS: &[u8] = b"\\%&+";
    let short = |length, byte| Some(ShortEscape { length, has_backslash: false, byte });
    match bytes {
        [b'+', ..] => short(1, b' '),
        [b'%', next, ..] if *next != b'%' && digit(*next).is_none() => short(1, b'%'),
        [b'&', rest @ ..] => {
            let name = rest.iter().take(LONGEST_ENTITY).take_while(|byte| is_in_entity(**byte)).count();
            match rest.get(name)? {
                b';' => {
                    let c = character_of(&bytes[..name + 2]).filter(char::is_ascii)?;
                    let byte = u8::try_from(c).ok().filter(|byte| !OPENERS.contains(byte))?;
                    short(name + 2, byte)
                }
                next if OPENERS.contains(next) => None,
                _ => short(1, b'&'),
            }
        }
        [b'\\', ..] => {
            let run = bytes.iter().take_while(|byte| **byte == b'\\').count();
            let byte = *bytes.get(run).filter(|next| **next != b'u' && !OPENERS.contains(next))?;
            Some(ShortEscape { length: run + 1, has_backslash: true, byte })
        }
        [byte, ..] if !OPENERS.contains(byte) => short(1, *byte),
        _ => None,
    }
}

/// Returns only the decoded text. Most escapes are read here; the full decoder is for nested ones.
pub(super) fn decoded_text(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut decoder, mut out, mut settled) = (Decoder::default(), Vec::with_capacity(bytes.len()), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        if decoder.is_idle() {
            let plain = bytes[at..].iter().take_while(|byte| !IS_SPECIAL[usize::from(**byte)]).count();
            if plain > 0 {
                out.extend_from_slice(&bytes[at..at + plain]);
                at += plain;
                decoder.writer.last = bytes[at - 1];
                continue;
            }
            if let Some(ShortEscape { length, has_backslash, byte }) = short_escape(&bytes[at..]) {
                let letter = letter_after_backslash(byte);
                let is_doubled = matches!(byte, b'"' | b'\'') && decoder.writer.last == byte;
                if !is_doubled {
                    if has_backslash || letter.is_some() {
                        out.push(b'\\');
                    }
                    out.push(letter.unwrap_or(byte));
                    decoder.writer.last = letter.unwrap_or(byte);
                }
                at += length;
                continue;
            }
        }
        decoder.push(bytes[at], at, &mut settled);
        out.extend(settled.drain(..).map(|decoded| decoded.byte));
        at += 1;
    }
    decoder.finish(&mut settled);
    out.extend(settled.iter().map(|decoded| decoded.byte));
    out
}

/// Returns the decoded text with the original position of each byte.
pub(super) fn decode(text: &str) -> Vec<DecodedByte> {
    let (mut decoder, mut out) = (Decoder::default(), Vec::with_capacity(text.len()));
    for (at, byte) in text.bytes().enumerate() {
        decoder.push(byte, at, &mut out);
    }
    decoder.finish(&mut out);
    out
}

/// Returns a value in the form for searching decoded text; `None` if it is no longer valid UTF-8, because matches must begin and
/// end between characters, or if it has fewer than `least` characters.
pub(super) fn decoded_value(value: &str, least: usize) -> Option<String> {
    let decoded = String::from_utf8(decoded_text(value)).ok()?;
    (decoded.chars().filter(|c| *c != '\\').count() >= least).then_some(decoded)
}

#[cfg(test)]
mod tests;
