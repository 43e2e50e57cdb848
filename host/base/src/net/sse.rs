//! Server-sent events, as models and MCP servers stream them: takes bytes, returns whole events.
//!
//! Tolerant of careless servers: lines may end with LF, CRLF or CR, comments may be anywhere, and the blank line after the last
//! event may be missing. The format: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

/// Maximum bytes of one line. A line is held in memory until it ends, and the server decides where. The longest legitimate lines
/// are tool calls that write a file in one delta.
pub const MAX_LINE: usize = 4 << 20;

/// Maximum bytes of all `data` lines of one event, for the same reason.
pub const MAX_EVENT: usize = 4 << 20;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// From the `event` line; empty if there is none.
    pub name: String,
    /// The `data` lines, joined by line feeds. Bytes that are not UTF-8 are replaced.
    pub data: String,
}

/// A line or an event exceeds its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} of the stream is longer than {limit} bytes")]
pub struct TooLong {
    what: &'static str,
    limit: usize,
}

/// State of a partly read stream.
#[derive(Debug, Default)]
pub struct Parser {
    /// The current, unfinished line.
    line: Vec<u8>,
    name: String,
    /// `None` until the event has a `data` line, even an empty one.
    data: Option<String>,
    /// The last byte was a CR: a following LF belongs to it.
    after_cr: bool,
    /// A line was read: a byte order mark is only valid at the beginning.
    begun: bool,
}

impl Parser {
    /// Parses further bytes. Appends completed events to `events`, in order.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), TooLong> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend(&rest[..end])?;
            events.extend(self.end_line()?);
            let cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.extend(rest)
    }

    /// Ends the stream. An event without its blank line still counts; the caller checks whether it is complete.
    pub fn finish(mut self) -> Result<Option<SseEvent>, TooLong> {
        let last = self.end_line()?;
        Ok(last.or_else(|| self.dispatch()))
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > MAX_LINE {
            return Err(TooLong { what: "a line", limit: MAX_LINE });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, TooLong> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &*text } else { text.trim_start_matches('\u{feff}') };
        self.begun = true;
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                let length = self.data.as_ref().map_or(0, |data| data.len() + 1) + value.len();
                if length > MAX_EVENT {
                    return Err(TooLong { what: "an event", limit: MAX_EVENT });
                }
                match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => self.data = Some(value.to_owned()),
                }
            }
            // `id` and `retry` are for clients that reconnect; an empty field is a comment.
            _ => {}
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let name = std::mem::take(&mut self.name);
        self.data.take().map(|data| SseEvent { name, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        for piece in pieces {
            parser.feed(piece, &mut events).unwrap();
        }
        events.extend(parser.finish().unwrap());
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    #[track_caller]
    fn check(stream: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect();
        assert_eq!(parse([stream.as_bytes()]), expected, "{stream:?}");
        assert_eq!(parse(stream.as_bytes().chunks(1)), expected, "{stream:?} byte by byte");
    }

    #[test]
    fn events_are_read() {
        check("data: one\n\ndata: two\n\n", &[("", "one"), ("", "two")]);
        check("event: ping\ndata: {}\n\ndata: x\n\n", &[("ping", "{}"), ("", "x")]);
        check("data: a\ndata: b\ndata\ndata:c\n\n", &[("", "a\nb\n\nc")]);
        check("data:  two spaces\n\n", &[("", " two spaces")]);
        check("data: a:b\n\n", &[("", "a:b")]);
    }

    #[test]
    fn every_line_end_is_one() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = ["event: e", "data: a", "data: b", "", "data: c", "", ""].join(end);
            check(&stream, &[("e", "a\nb"), ("", "c")]);
        }
        check("data: a\r\ndata: b\n\rdata: c\r\r", &[("", "a\nb"), ("", "c")]);
    }

    #[test]
    fn comments_and_unknown_fields_are_skipped() {
        check(
            ": OPENROUTER PROCESSING\n\n: again\ndata: a\n: inside\nid: 7\nretry: 3\nfoo\n\n:\n\ndata: b\n\n",
            &[("", "a"), ("", "b")],
        );
        check("event: nothing\n\ndata: a\n\n", &[("", "a")]);
        check("\u{feff}data: a\n\n", &[("", "a")]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        check("data: a\n\ndata: b\n", &[("", "a"), ("", "b")]);
        check("data: a\n\ndata: b", &[("", "a"), ("", "b")]);
        check("", &[]);
        check("no stream at all", &[]);
    }

    #[test]
    fn text_that_is_split_inside_a_character_stays_whole() {
        check("data: größer 🦀\n\n", &[("", "größer 🦀")]);
        assert_eq!(parse([b"data: \xff!\n\n".as_slice()]), [(String::new(), "\u{fffd}!".to_owned())]);
    }

    #[test]
    fn what_does_not_end_is_given_up() {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        let piece = vec![b'x'; 64 << 10];
        let error = std::iter::repeat_with(|| parser.feed(&piece, &mut events)).find_map(Result::err).unwrap();
        assert_eq!(error.to_string(), "a line of the stream is longer than 4194304 bytes");
        let mut parser = Parser::default();
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        let error = std::iter::repeat_with(|| parser.feed(&line, &mut events)).find_map(Result::err).unwrap();
        assert_eq!(error.to_string(), "an event of the stream is longer than 4194304 bytes");
        assert_eq!(events, []);
    }

    proptest! {
        /// The events do not depend on where the network splits a stream.
        #[test]
        fn any_split_gives_the_same_events(
            lines in proptest::collection::vec(
                prop_oneof!["data: ?\\PC{0,12}", "event: [a-z]{0,4}", ": ?[a-z]{0,4}", Just(String::new())], 0..24),
            ends in proptest::collection::vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], 24),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let stream: String = lines.iter().zip(&ends).flat_map(|(line, end)| [line.as_str(), *end]).collect();
            let bytes = stream.as_bytes();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(parse(pieces), parse([bytes]));
        }
    }
}
