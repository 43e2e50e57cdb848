//! Hides constructs that the parser would misread, before it reads a source.
//!
//! brush-parser changes blanks inside of `${…}`, takes the first `)` for the end of a `$(…)`, and knows neither `select`
//! nor `{name}>`. It gets a text in which each expansion is a word without any meaning, and `lower` puts the expansions
//! back.

use std::collections::BTreeSet;

use crate::expand::scan::{self, MAX_DEPTH};
use crate::variable::is_name;

/// The parser knows numbers only: those from here on stand for the names in `{name}>`.
const FIRST_NAME: u32 = 1_000_000;

/// One that is longer is left to the parser, so that brackets without an end are not looked for again and again.
const LONGEST_SUBSCRIPT: usize = 1000;

pub struct Masked<'a> {
    source: &'a str,
    pub text: String,
    /// Stands at both ends of the number of something that was put aside; it is nowhere in the source.
    mark: char,
    aside: Vec<&'a str>,
    names: Vec<&'a str>,
    /// Where a `for` of the text is a `select` of the source.
    selects: BTreeSet<usize>,
    changes: Vec<Change>,
    /// Whether the source ends within a quote or an expansion.
    pub unclosed: bool,
}

/// Behind a change: the same place in the text (in characters) and in the source (in bytes).
struct Change {
    text: usize,
    source: usize,
    /// Lines of the source that the text does not have so far.
    lines: usize,
}

pub fn mask(source: &str) -> Masked<'_> {
    let mark = ('\u{f0000}'..'\u{10fffe}').find(|&mark| !source.contains(mark)).unwrap_or('\u{f0000}');
    let masked = Masked {
        source,
        text: String::with_capacity(source.len()),
        mark,
        aside: Vec::new(),
        names: Vec::new(),
        selects: BTreeSet::new(),
        changes: vec![Change { text: 0, source: 0, lines: 0 }],
        unclosed: false,
    };
    let mut walker =
        Walker { masked, bytes: source.as_bytes(), copied: 0, characters: 0, documents: Vec::new(), elements: false };
    // The parser reports constructs that do not end.
    let _ = walker.commands();
    walker.copy(source.len());
    walker.masked
}

impl<'a> Masked<'a> {
    /// A part of the text with all that was put aside.
    pub fn unmasked(&self, text: &str) -> String {
        let mut parts = text.split(self.mark);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        while let (Some(number), Some(behind)) = (parts.next(), parts.next()) {
            whole.push_str(number.parse().ok().and_then(|number: usize| self.aside.get(number)).unwrap_or(&""));
            whole.push_str(behind);
        }
        whole
    }

    pub fn is_select(&self, index: usize) -> bool {
        self.selects.contains(&index)
    }

    /// The name that a redirection's number stands for.
    pub fn name(&self, number: u32) -> Option<&'a str> {
        self.names.get(number.checked_sub(FIRST_NAME)? as usize).copied()
    }

    /// The line of the source that a line of the text is.
    pub fn line(&self, line: usize, index: usize) -> usize {
        line + self.change(index).lines
    }

    /// Line and column of the source for a character of the text.
    pub fn position(&self, index: usize) -> (usize, usize) {
        let before = &self.source[..self.place(index)];
        let line = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
    }

    /// Where a character of the text is in the source, in bytes.
    pub fn place(&self, index: usize) -> usize {
        let change = self.change(index);
        let behind = self.source[change.source..].char_indices().nth(index - change.text);
        behind.map_or(self.source.len(), |(at, _)| change.source + at)
    }

    fn change(&self, index: usize) -> &Change {
        let behind = self.changes.partition_point(|change| change.text <= index);
        &self.changes[behind.saturating_sub(1)]
    }
}

struct Walker<'a> {
    masked: Masked<'a>,
    bytes: &'a [u8],
    /// So much of the source is in the text already.
    copied: usize,
    /// The length of the text.
    characters: usize,
    documents: Vec<scan::Announced>,
    /// Between the brackets of `name=(…)`.
    elements: bool,
}

impl<'a> Walker<'a> {
    fn push(&mut self, text: &str) {
        self.masked.text.push_str(text);
        self.characters += text.chars().count();
    }

    fn copy(&mut self, to: usize) {
        let source = self.masked.source;
        self.push(&source[self.copied..to]);
        self.copied = to;
    }

    fn replace(&mut self, from: usize, to: usize, with: &str) {
        self.copy(from);
        self.push(with);
        self.copied = to;
        let hidden = self.bytes[from..to].iter().filter(|&&byte| byte == b'\n').count();
        let lines = self.masked.changes.last().map_or(0, |change| change.lines) + hidden;
        self.masked.changes.push(Change { text: self.characters, source: to, lines });
    }

    fn put_aside(&mut self, from: usize, to: usize) {
        let (mark, number) = (self.masked.mark, self.masked.aside.len());
        self.masked.aside.push(&self.masked.source[from..to]);
        self.replace(from, to, &format!("{mark}{number}{mark}"));
    }

    /// Nothing: something that was opened is not closed.
    fn commands(&mut self) -> Option<()> {
        let mut at = 0;
        // The next word would be a command's name.
        let mut first = true;
        while let Some(&byte) = self.bytes.get(at) {
            let was_first = std::mem::replace(&mut first, false);
            match byte {
                b' ' | b'\t' => (at, first) = (at + 1, was_first),
                b'\n' => (at, first) = (scan::bodies(self.bytes, at + 1, &mut self.documents)?, true),
                b'\\' if self.bytes.get(at + 1) == Some(&b'\n') => (at, first) = (at + 2, was_first),
                b'#' => at += self.bytes[at..].iter().position(|&byte| byte == b'\n')?,
                b'(' if was_first && self.bytes.get(at + 1) == Some(&b'(') => {
                    (at, first) = (self.arithmetic(at), true);
                }
                b'(' | b')' => {
                    self.elements = byte == b'(' && at > 0 && self.bytes[at - 1] == b'=';
                    (at, first) = (at + 1, true);
                }
                b';' | b'&' | b'|' => (at, first) = (at + 1, true),
                b'<' if self.bytes[at..].starts_with(b"<<<") => at += 3,
                b'<' if self.bytes[at..].starts_with(b"<<") => {
                    let announced = scan::announce(self.bytes, at + 2, &mut self.documents);
                    self.masked.unclosed = announced.is_none() && !self.bytes[at + 2..].trim_ascii().is_empty();
                    at = announced?;
                }
                b'<' | b'>' => at += 1,
                _ => {
                    let word = self.word(at, was_first);
                    self.masked.unclosed = word.is_none();
                    (at, first) = word?;
                }
            }
        }
        Some(())
    }

    /// At `((`: what stands in it is not for the parser.
    fn arithmetic(&mut self, at: usize) -> usize {
        match scan::arithmetic(self.bytes, at + 2, MAX_DEPTH) {
            Some(end) if end > at + 2 => {
                self.put_aside(at + 2, end);
                end + 2
            }
            // Two subshells, or an error that the parser will find.
            _ => at + 1,
        }
    }

    /// At the start of a word. Returns its end, and whether a command's name may follow.
    fn word(&mut self, start: usize, first: bool) -> Option<(usize, bool)> {
        let mut at = start;
        if let Some(end) = self.named_channel(start) {
            return Some((end, first));
        }
        if (first || self.elements)
            && let Some(end) = self.subscript(start)
        {
            at = end;
        }
        while let Some(&byte) = self.bytes.get(at) {
            at = match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'\\' if at + 1 == self.bytes.len() => {
                    self.put_aside(at, at + 1);
                    at + 1
                }
                b'\\' => at + 2,
                b'\'' => scan::single(self.bytes, at + 1)? + 1,
                b'$' if self.bytes.get(at + 1) == Some(&b'\'') => scan::ansi(self.bytes, at + 2)? + 1,
                b'"' => self.double(at + 1)?,
                b'$' | b'`' => self.expansion(at, false)?,
                _ => at + 1,
            };
        }
        let word = &self.masked.source[start..at];
        let first = match word {
            "select" if first && self.is_select(at) => {
                let index = self.characters + self.masked.source[self.copied..start].chars().count();
                self.masked.selects.insert(index);
                self.replace(start, at, "for");
                at = self.nothing(at);
                false
            }
            "for" if first => {
                at = self.counting(at);
                at = self.nothing(at);
                false
            }
            "if" | "then" | "else" | "elif" | "do" | "while" | "until" | "!" | "{" | "time" => first,
            _ => first && is_assignment(word),
        };
        Some((at, first))
    }

    /// Behind `"`: the index behind the closing one.
    fn double(&mut self, mut at: usize) -> Option<usize> {
        loop {
            at = match self.bytes.get(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at + 2,
                b'$' | b'`' => self.expansion(at, true)?,
                _ => at + 1,
            };
        }
    }

    /// At `$` or a backquote.
    fn expansion(&mut self, at: usize, quoted: bool) -> Option<usize> {
        let end = match self.bytes[at] {
            b'`' => scan::backquote(self.bytes, at + 1)? + 1,
            _ if self.bytes.get(at + 1) == Some(&b'[') => scan::bracketed(self.bytes, at + 2, MAX_DEPTH)? + 1,
            _ => scan::dollar(self.bytes, at, quoted, MAX_DEPTH)?,
        };
        if end > at + 1 {
            self.put_aside(at, end.min(self.bytes.len()));
        }
        Some(end)
    }

    /// Behind `for` or `select`: `name in` without words gets one that stands for none, because for the parser it would be
    /// the same as no `in`.
    fn nothing(&mut self, at: usize) -> usize {
        let rest = &self.masked.source[at..];
        let Some((_, behind)) = rest.trim_start_matches([' ', '\t']).split_once([' ', '\t', '\n']) else { return at };
        let Some(behind) = behind.trim_start_matches([' ', '\t', '\n']).strip_prefix("in") else { return at };
        let end = at + rest.len() - behind.len();
        if !behind.trim_start_matches([' ', '\t']).starts_with([';', '\n']) || rest.starts_with('#') {
            return at;
        }
        self.copy(end);
        self.push(" ");
        self.put_aside(end, end);
        end
    }

    /// `{name}>`: the index at the operator.
    fn named_channel(&mut self, at: usize) -> Option<usize> {
        let name = name(self.masked.source.get(at + 1..)?);
        let behind = self.bytes.get(at + 1 + name.len()..)?;
        if self.bytes[at] != b'{' || !is_name(name) || !behind.starts_with(b"}<") && !behind.starts_with(b"}>") {
            return None;
        }
        let number = FIRST_NAME + u32::try_from(self.masked.names.len()).ok()?;
        self.masked.names.push(name);
        let end = at + name.len() + 2;
        self.replace(at, end, &number.to_string());
        Some(end)
    }

    /// `a[i + 1]=`, or `[i + 1]=` for an element: the subscript may hold blanks. The index behind it.
    fn subscript(&mut self, at: usize) -> Option<usize> {
        let name = name(self.masked.source.get(at..)?);
        let start = at + name.len() + 1;
        if self.bytes.get(start - 1) != Some(&b'[') || !(is_name(name) || name.is_empty() && self.elements) {
            return None;
        }
        let most = self.bytes.len().min(start + LONGEST_SUBSCRIPT);
        let end = scan::bracketed(&self.bytes[..most], start, MAX_DEPTH)?;
        let behind = self.bytes.get(end + 1..)?;
        if end == start || !behind.starts_with(b"=") && !behind.starts_with(b"+=") {
            return None;
        }
        self.put_aside(start, end);
        Some(end + 1)
    }

    /// Whether a name follows, as it does behind the keyword.
    fn is_select(&self, at: usize) -> bool {
        let rest = &self.masked.source[at..];
        let name = rest.split_whitespace().next().unwrap_or_default().trim_end_matches(';');
        rest.starts_with([' ', '\t']) && is_name(name)
    }

    /// Behind `for`: each of the three expressions of `for ((…; …; …))` is put aside. The parser would take `;;` for the
    /// end of a `case` branch.
    fn counting(&mut self, at: usize) -> usize {
        let blanks = self.bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let start = at + blanks + 2;
        if !self.bytes[at + blanks..].starts_with(b"((") {
            return at;
        }
        let Some(end) = scan::arithmetic(self.bytes, start, MAX_DEPTH) else { return at };
        let mut from = start;
        for part in self.masked.source[start..end].split(';') {
            match part.len() {
                0 => self.replace(from, from, " "),
                length => self.put_aside(from, from + length),
            }
            from += part.len() + 1;
        }
        end + 2
    }
}

/// The part at the start of a text that could be a name.
fn name(text: &str) -> &str {
    let length = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    &text[..length]
}

fn is_assignment(word: &str) -> bool {
    let name = name(word);
    is_name(name) && word[name.len()..].starts_with(['=', '+', '['])
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    #[track_caller]
    fn reads(source: &str, expected: &str) {
        assert_eq!(parse(source).map(|list| list.to_string()).map_err(|error| error.message), Ok(expected.to_owned()));
    }

    #[test]
    fn expansions_stay_as_they_were_written() {
        for line in [
            r#"echo "${x//  /_}" ${y:-a  b} "ä${z:-	}""#,
            "echo ${x#*(} ${x%@(}",
            "echo $(case x in x) echo match ;; esac)",
            "echo \"$(cat <<E\na ) b\nE\n)\"",
            r#"echo "${a:-'}'}" "${a:-it's}""#,
            "((x = y[1 ] << 2))",
            "x=`echo  a`",
        ] {
            reads(line, line);
        }
        reads("cat <<E\n${x:-a  b}\nE\necho $(a)", "cat <<< \"${x:-a  b}\"; echo $(a)");
    }

    #[test]
    fn reads_what_the_parser_does_not_know() {
        reads("a[j + 1]=$t b[ \"x y\" ]+=2 c", "a[j + 1]=$t b[ \"x y\" ]+=2 c");
        reads("a=([1 + 1]=x [k l]=y)", "a=([1 + 1]=x [k l]=y)");
        reads("select x in a $b; do echo; done", "select x in a $b; do echo; done");
        reads("echo select x in; select=1", "echo select x in; select=1");
        reads("exec {fd}> f {in}<&-", "exec {fd}> f {in}<&-");
        reads("for ((;;)); do a; done", "for ((; ; )); do a; done");
        reads("for ((i = 0; i < 2; i++)); do a; done", "for ((i = 0;  i < 2;  i++)); do a; done");
        reads("echo a\\", "echo a\\");
    }

    #[test]
    fn places_are_those_of_the_source() {
        let list = parse("echo $(a\nb)\n\nc \"${x:-\n}\" &&\nd").expect("a program");
        assert_eq!(list.0[1].first.stages[0].line, 4);
        assert_eq!(list.0[1].rest[0].1.stages[0].line, 6);
        let error = parse("echo ${x} $(a\nb) ä; fi").expect_err("no if");
        assert!(error.message.starts_with("line 2, column 7: "), "{}", error.message);
    }

    #[test]
    fn takes_time_in_proportion() {
        for piece in ["a[;", "echo; ", "x=1 ", "${a}", "'", "a=([", "$[", "select "] {
            drop(parse(&piece.repeat(200_000 / piece.len())));
        }
    }

    #[test]
    fn a_mark_in_the_source_is_text() {
        reads("echo '\u{f0000}0\u{f0000}' ${x}", "echo '\u{f0000}0\u{f0000}' ${x}");
    }
}
