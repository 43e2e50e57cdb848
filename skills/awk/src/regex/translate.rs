//! From POSIX syntax, with what gawk adds, to the one of regex-automata.

use crate::value::characters;

/// Translates an expression; also whether its first match may not be its longest.
pub fn translated(source: &[u8]) -> Result<(String, bool), String> {
    let mut translation = Translation { source, at: 0, out: String::new(), atom: None, open: Vec::new(), choices: 0 };
    translation.run()?;
    Ok((translation.out, translation.choices > 1))
}

struct Translation<'s> {
    source: &'s [u8],
    at: usize,
    out: String,
    /// Where the atom begins that a quantifier would belong to, and whether it has one.
    atom: Option<(usize, bool)>,
    open: Vec<usize>,
    /// Alternatives count twice, quantifiers once.
    choices: usize,
}

impl Translation<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(&c) = self.source.get(self.at) {
            match c {
                b'\\' => self.escape()?,
                b'[' => self.bracket()?,
                b'(' => {
                    self.open.push(self.out.len());
                    self.out.push('(');
                    self.atom = None;
                    self.at += 1;
                }
                // One that closes nothing is a character.
                b')' if self.open.is_empty() => self.literal("\\)"),
                b')' => {
                    self.out.push(')');
                    self.atom = self.open.pop().map(|start| (start, false));
                    self.at += 1;
                }
                b'|' => {
                    self.out.push('|');
                    self.choices += 2;
                    self.atom = None;
                    self.at += 1;
                }
                b'^' | b'$' => {
                    self.out.push(char::from(c));
                    self.atom = None;
                    self.at += 1;
                }
                b'*' | b'+' | b'?' if self.atom.is_some() => {
                    self.quantifier(&char::from(c).to_string());
                    self.at += 1;
                }
                b'{' => match self.interval()? {
                    Some((text, length)) if self.atom.is_some() => {
                        self.quantifier(&text);
                        self.at += length;
                    }
                    _ => self.literal("\\{"),
                },
                b'*' | b'+' | b'?' | b'}' => self.literal(&format!("\\{}", char::from(c))),
                b'.' => self.literal("."),
                b']' => self.literal("\\]"),
                _ => self.character(),
            }
        }
        if self.open.is_empty() { Ok(()) } else { Err("a ( without its )".into()) }
    }

    /// An atom of one byte of the source.
    fn literal(&mut self, text: &str) {
        self.atom = Some((self.out.len(), false));
        self.out.push_str(text);
        self.at += 1;
    }

    fn character(&mut self) {
        let bytes = characters(&self.source[self.at..]).next().unwrap_or_default();
        self.atom = Some((self.out.len(), false));
        push(&mut self.out, bytes);
        self.at += bytes.len();
    }

    fn quantifier(&mut self, text: &str) {
        let Some((start, quantified)) = self.atom else { return };
        if quantified {
            self.out.insert_str(start, "(?:");
            self.out.push(')');
        }
        self.out.push_str(text);
        self.atom = Some((start, true));
        self.choices += 1;
    }

    /// `{n}`, `{n,}`, `{n,m}` or `{,m}` and its length; nothing if it is a brace.
    fn interval(&self) -> Result<Option<(String, usize)>, String> {
        let rest = &self.source[self.at + 1..];
        let Some(end) = rest.iter().position(|c| *c == b'}') else { return Ok(None) };
        let inner = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let (low, high) = inner.split_once(',').map_or((inner, None), |(low, high)| (low, Some(high)));
        let digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
        if inner.is_empty() || inner == "," || !digits(low) || !high.is_none_or(digits) {
            return Ok(None);
        }
        let bound = |text: &str| match text.parse::<u32>() {
            Ok(count) if count <= 32767 => Ok(count),
            _ => Err(format!("{{{inner}}} repeats more than 32767 times")),
        };
        let low = if low.is_empty() { 0 } else { bound(low)? };
        let text = match high {
            None => format!("{{{low}}}"),
            Some("") => format!("{{{low},}}"),
            Some(high) if bound(high)? < low => return Err(format!("{{{inner}}} ends before it begins")),
            Some(high) => format!("{{{low},{}}}", bound(high)?),
        };
        Ok(Some((text, end + 2)))
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(&next) = self.source.get(self.at + 1) else {
            self.literal("\\\\");
            return Ok(());
        };
        // Word and buffer boundaries match no character.
        let boundary = match next {
            b'y' => Some("\\b"),
            b'B' => Some("\\B"),
            b'<' => Some("\\b{start}"),
            b'>' => Some("\\b{end}"),
            b'`' => Some("\\A"),
            b'\'' => Some("\\z"),
            _ => None,
        };
        if let Some(boundary) = boundary {
            self.out.push_str(boundary);
            self.atom = None;
            self.at += 2;
            return Ok(());
        }
        let start = self.out.len();
        self.at += 1;
        match next {
            b'w' | b'W' | b's' | b'S' => {
                self.out.extend(['\\', char::from(next)]);
                self.at += 1;
            }
            _ => {
                let byte = self.escaped();
                match byte {
                    Some(byte) => push(&mut self.out, &[byte]),
                    None => {
                        let bytes = characters(&self.source[self.at..]).next().unwrap_or_default();
                        push(&mut self.out, bytes);
                        self.at += bytes.len();
                    }
                }
            }
        }
        self.atom = Some((start, false));
        Ok(())
    }

    /// The byte that the letter or the octal number behind a backslash stands for.
    fn escaped(&mut self) -> Option<u8> {
        let byte = match self.source[self.at] {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'f' => 0x0c,
            b'v' => 0x0b,
            b'a' => 0x07,
            b'b' => 0x08,
            b'0'..=b'7' => {
                let digits = self.source[self.at..].iter().take(3).take_while(|c| (b'0'..=b'7').contains(c)).count();
                let digits = &self.source[self.at..self.at + digits];
                self.at += digits.len();
                return Some(digits.iter().fold(0_u32, |sum, c| sum * 8 + u32::from(c - b'0')) as u8);
            }
            b'x' if self.source.get(self.at + 1).is_some_and(u8::is_ascii_hexdigit) => {
                self.at += 1;
                let digits = self.source[self.at..].iter().take(2).take_while(|c| c.is_ascii_hexdigit()).count();
                let digits = &self.source[self.at..self.at + digits];
                self.at += digits.len();
                return Some(digits.iter().fold(0, |sum, c| sum << 4 | char::from(*c).to_digit(16).unwrap_or(0) as u8));
            }
            c if c.is_ascii() => c,
            _ => return None,
        };
        self.at += 1;
        Some(byte)
    }

    fn bracket(&mut self) -> Result<(), String> {
        let start = self.out.len();
        self.at += 1;
        self.out.push('[');
        if self.source.get(self.at) == Some(&b'^') {
            self.out.push('^');
            self.at += 1;
        }
        let mut first = true;
        loop {
            let rest = &self.source[self.at..];
            match rest.first() {
                None => return Err("a [ without its ]".into()),
                Some(b']') if !first => break,
                Some(b'[') if rest.get(1) == Some(&b':') => self.class()?,
                Some(b'[') if matches!(rest.get(1), Some(b'.' | b'=')) => {
                    let mark = rest[1];
                    let end = rest.windows(2).skip(2).position(|two| two == [mark, b']']).map(|end| end + 2);
                    let end = end.ok_or("a [ without its ]")?;
                    member(&mut self.out, &rest[2..end]);
                    self.at += end + 2;
                }
                Some(_) => self.range()?,
            }
            first = false;
        }
        self.at += 1;
        self.out.push(']');
        self.atom = Some((start, false));
        Ok(())
    }

    fn class(&mut self) -> Result<(), String> {
        let rest = &self.source[self.at + 2..];
        let end = rest.windows(2).position(|two| two == b":]").ok_or("a [: without its :]")?;
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        self.out.push_str(match name.as_str() {
            "alpha" => "\\p{Alphabetic}",
            "digit" => "0-9",
            "alnum" => "\\p{Alphabetic}0-9",
            "upper" => "\\p{Uppercase}",
            "lower" => "\\p{Lowercase}",
            "space" => "\\s",
            "blank" => " \\t",
            "punct" => "\\p{P}\\p{S}",
            "print" => "[^\\p{C}]",
            "graph" => "[^\\p{C}\\s]",
            "cntrl" => "\\p{Cc}",
            "xdigit" => "0-9A-Fa-f",
            _ => return Err(format!("there is no class [:{name}:]")),
        });
        self.at += end + 4;
        Ok(())
    }

    /// One member of a bracket, or a range from it to another.
    fn range(&mut self) -> Result<(), String> {
        let low = self.one();
        let rest = &self.source[self.at..];
        if rest.first() != Some(&b'-') || rest.get(1).is_none_or(|c| *c == b']') {
            member(&mut self.out, &low);
            return Ok(());
        }
        self.at += 1;
        let high = self.one();
        if low > high {
            let (low, high) = (String::from_utf8_lossy(&low), String::from_utf8_lossy(&high));
            return Err(format!("the range {low}-{high} ends before it begins"));
        }
        member(&mut self.out, &low);
        self.out.push('-');
        member(&mut self.out, &high);
        Ok(())
    }

    fn one(&mut self) -> Vec<u8> {
        if self.source[self.at] == b'\\' && self.at + 1 < self.source.len() {
            self.at += 1;
            if let Some(byte) = self.escaped() {
                return vec![byte];
            }
        }
        let bytes = characters(&self.source[self.at..]).next().unwrap_or_default();
        self.at += bytes.len();
        bytes.to_vec()
    }
}

/// Writes a literal character.
fn push(out: &mut String, character: &[u8]) {
    match std::str::from_utf8(character) {
        Ok(text) => out.push_str(&regex_syntax::escape(text)),
        Err(_) => out.extend(character.iter().map(|byte| format!("(?-u:\\x{byte:02x})"))),
    }
}

/// A character inside brackets.
fn member(out: &mut String, character: &[u8]) {
    match std::str::from_utf8(character) {
        Ok(text) if text.chars().all(char::is_alphanumeric) => out.push_str(text),
        Ok(text) => out.extend(text.chars().map(|c| format!("\\u{{{:x}}}", u32::from(c)))),
        // A byte that is not a character cannot be in a set of characters.
        Err(_) => out.extend(character.iter().map(|byte| format!("\\u{{{byte:x}}}"))),
    }
}
