//! Text as it reads when its URL-encoding is undone: `%2F`, `%2f`, `+` for a space, whatever else needed no encoding, and
//! encodings of encodings. Text and value are compared in this form, so it does not matter who encoded what of it.

/// A byte of the decoded text, and where it stands in the text itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecodedByte {
    pub byte: u8,
    pub start: usize,
    pub end: usize,
}

/// Decodes a text that may arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// What may be the beginning of an encoded byte: `%`, or `%` and a digit.
    pending: Vec<DecodedByte>,
}

impl Decoder {
    /// The next byte of the text, which stands at `at`; `out` gets what is settled by it.
    pub(super) fn push(&mut self, byte: u8, at: usize, out: &mut Vec<DecodedByte>) {
        self.pending.push(DecodedByte { byte, start: at, end: at + 1 });
        loop {
            match self.pending[..] {
                [percent, high, low] if percent.byte == b'%' => match (digit(high.byte), digit(low.byte)) {
                    // What was decoded may be a percent sign, and so the beginning of the next.
                    (Some(a), Some(b)) => {
                        self.pending = vec![DecodedByte { byte: a << 4 | b, start: percent.start, end: low.end }];
                    }
                    _ => self.settle(out),
                },
                [percent, high] if percent.byte == b'%' && digit(high.byte).is_some() => return,
                [percent] if percent.byte == b'%' => return,
                [] => return,
                _ => self.settle(out),
            }
        }
    }

    fn settle(&mut self, out: &mut Vec<DecodedByte>) {
        let mut first = self.pending.remove(0);
        if first.byte == b'+' {
            first.byte = b' ';
        }
        out.push(first);
    }

    /// The text is at its end.
    pub(super) fn finish(&mut self, out: &mut Vec<DecodedByte>) {
        while !self.pending.is_empty() {
            self.settle(out);
        }
    }

    /// Where the first byte stands that is not settled.
    pub(super) fn unsettled(&self) -> Option<usize> {
        self.pending.first().map(|first| first.start)
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Whether decoding changes anything.
pub(super) fn is_encoded(text: &str) -> bool {
    text.contains(['%', '+'])
}

pub(super) fn decode(text: &str) -> Vec<DecodedByte> {
    let (mut decoder, mut out) = (Decoder::default(), Vec::with_capacity(text.len()));
    for (at, byte) in text.bytes().enumerate() {
        decoder.push(byte, at, &mut out);
    }
    decoder.finish(&mut out);
    out
}

/// The bytes alone.
pub(super) fn bytes(decoded: &[DecodedByte]) -> Vec<u8> {
    decoded.iter().map(|decoded| decoded.byte).collect()
}

/// A value as it is looked for in decoded text. One that would not be text any more is looked for as it is: what is found
/// must begin and end between two characters.
pub(super) fn decoded_value(value: &str) -> String {
    String::from_utf8(bytes(&decode(value))).unwrap_or_else(|_| value.replace('+', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_was_encoded_reads_the_same() {
        for text in ["a/b c", "a%2Fb%20c", "a%2fb+c", "%61%2F%62%20%63", "a%252Fb%252520c", "%2561/b c"] {
            assert_eq!(decoded_value(text), "a/b c", "{text}");
        }
        for (text, decoded) in [("100%", "100%"), ("%zz%2", "%zz%2"), ("%%41", "%A"), ("5%4", "5%4"), ("%C3%A9", "é")]
        {
            assert_eq!(decoded_value(text), decoded, "{text}");
        }
        assert_eq!(decoded_value("%A9x+"), "%A9x ", "no text when decoded");
    }

    #[test]
    fn each_byte_knows_where_it_stood() {
        let places: Vec<_> = decode("a%2541+").iter().map(|d| (char::from(d.byte), d.start, d.end)).collect();
        assert_eq!(places, [('a', 0, 1), ('A', 1, 6), (' ', 6, 7)]);
    }
}
