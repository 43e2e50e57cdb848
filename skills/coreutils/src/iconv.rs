//! `iconv`: texts from one encoding into another.

mod codec;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};
use codec::{Codec, Decoder};

const USAGE: &str = "Usage: iconv -f ENCODING -t ENCODING [OPTION]... [FILE]...
Convert texts from one encoding into another. Without -f or -t it is UTF-8.

  -c                      leave out what cannot be converted
  -o FILE                 write there
  -l                      list the encodings
  -t ENCODING//TRANSLIT   write letters that look alike, or `?`
  -t ENCODING//IGNORE     like -c
";

/// How to handle a character that the encoding does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Refused,
    LeftOut,
    Similar,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let (mut from, mut to, mut output) = ("UTF-8".to_owned(), "UTF-8".to_owned(), None);
        let mut missing = Missing::Refused;
        let mut files = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('f') | Long("from-code") => from = cli::value(&mut parser)?,
                Short('t') | Long("to-code") => to = cli::value(&mut parser)?,
                Short('c') => missing = Missing::LeftOut,
                Short('o') | Long("output") => output = Some(cli::value(&mut parser)?),
                Short('s') | Long("silent" | "verbose") => {}
                Short('l') | Long("list") => {
                    println!("{}", codec::names().join("\n"));
                    return Ok(0);
                }
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let (target, suffix) = to.split_once("//").unwrap_or((&to, ""));
        missing = match suffix.to_ascii_uppercase().split("//").next() {
            Some("TRANSLIT") if missing == Missing::Refused => Missing::Similar,
            Some("IGNORE") => Missing::LeftOut,
            _ => missing,
        };
        let source = from.split("//").next().unwrap_or_default();
        let unknown = |way: &str, name: &str| format!("conversion {way} `{name}' is not supported (see iconv -l)");
        let source = Codec::named(source).ok_or_else(|| unknown("from", source))?;
        let target = Codec::named(target).ok_or_else(|| unknown("to", target))?;
        let mut out: Box<dyn Write> = match &output {
            Some(path) => Box::new(BufWriter::new(File::create(path).map_err(cli::with_path(path))?)),
            None => Box::new(io::stdout().lock()),
        };
        let mut conversion = Conversion { encoder: target.encoder(), missing, left_out: false };
        let mut code = 0;
        for file in cli::files_or_stdin(files) {
            let input = match cli::open(&file) {
                Ok(input) => input,
                Err(e) => {
                    cli::complain("iconv", &file, &e);
                    code = 1;
                    continue;
                }
            };
            let converted = conversion.run(source.decoder(), input, &mut out);
            out.flush()?;
            converted.map_err(|e| if file == "-" { e } else { format!("{file}: {e}").into() })?;
        }
        // As GNU's: -c leaves out, and the code says that it did.
        Ok(if conversion.left_out { 1 } else { code })
    })
}

struct Conversion {
    encoder: codec::Encoder,
    missing: Missing,
    left_out: bool,
}

impl Conversion {
    /// Piece by piece: neither text is held as a whole.
    fn run(&mut self, mut decoder: Decoder, mut input: impl Read, out: &mut impl Write) -> Result<(), Error> {
        let mut piece = vec![0; 64 << 10];
        let mut at = 0;
        loop {
            let count = input.read(&mut piece)?;
            let mut rest = &piece[..count];
            loop {
                let mut text = String::new();
                let used = decoder.decode(rest, count == 0, &mut text);
                self.write(&text, out)?;
                match used {
                    Ok(()) => break,
                    Err(wrong) => {
                        if self.missing == Missing::Refused || self.missing == Missing::Similar {
                            let position = at + (count - rest.len()) + wrong.saturating_sub(1);
                            return Err(match count == 0 {
                                true => "incomplete character or shift sequence at end of buffer".into(),
                                false => {
                                    format!("cannot convert: illegal input sequence near position {position}").into()
                                }
                            });
                        }
                        self.left_out = true;
                        rest = &rest[wrong.min(rest.len())..];
                    }
                }
            }
            if count == 0 {
                return Ok(());
            }
            at += count;
        }
    }

    fn write(&mut self, text: &str, out: &mut impl Write) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(text.len());
        for character in text.chars() {
            if self.encoder.encode(character, &mut bytes) {
                continue;
            }
            match self.missing {
                Missing::LeftOut => self.left_out = true,
                Missing::Similar => {
                    for similar in codec::similar(character).chars() {
                        self.encoder.encode(similar, &mut bytes);
                    }
                }
                Missing::Refused => {
                    out.write_all(&bytes)?;
                    let code = u32::from(character);
                    return Err(format!("cannot convert the character `{character}' (U+{code:04X})").into());
                }
            }
        }
        Ok(out.write_all(&bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(from: &str, to: &str, missing: Missing, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let encoder = Codec::named(to).unwrap().encoder();
        let mut conversion = Conversion { encoder, missing, left_out: false };
        conversion.run(Codec::named(from).unwrap().decoder(), bytes, &mut out).map_err(|e| e.to_string())?;
        Ok(out)
    }

    #[test]
    fn texts_go_there_and_back() {
        for (name, text) in [
            ("UTF-8", "grün 🎉"),
            ("UTF-16LE", "grün 🎉"),
            ("UTF-16BE", "grün 🎉"),
            ("UTF-32LE", "grün 🎉"),
            ("UTF-32BE", "grün 🎉"),
            ("UTF-16", "grün 🎉"),
            ("UTF-32", "grün 🎉"),
            ("ISO-8859-1", "grün"),
            ("latin1", "grün"),
            ("ISO-8859-15", "5 €"),
            ("CP1252", "“5 €”"),
            ("SHIFT_JIS", "日本語"),
            ("EUC-KR", "한국어"),
            ("GB18030", "中文 🎉"),
            ("KOI8-R", "привет"),
        ] {
            let there = convert("UTF-8", name, Missing::Refused, text.as_bytes()).unwrap();
            assert_eq!(convert(name, "UTF-8", Missing::Refused, &there), Ok(text.as_bytes().to_vec()), "{name}");
        }
        assert_eq!(convert("UTF-8", "latin1", Missing::Refused, "ü".as_bytes()), Ok(vec![0xfc]));
        assert_eq!(convert("UTF-8", "UTF-16", Missing::Refused, b"a"), Ok(vec![0xff, 0xfe, b'a', 0]));
        // A byte of the range that Windows uses otherwise is itself.
        assert_eq!(convert("latin1", "UTF-8", Missing::Refused, &[0x80]), Ok("\u{80}".as_bytes().to_vec()));
        // Characters may lie across the pieces.
        let long = "ü".repeat(100_000);
        let there = convert("UTF-8", "UTF-32LE", Missing::Refused, format!("a{long}").as_bytes()).unwrap();
        assert_eq!(there.len(), 400_004);
    }

    #[test]
    fn what_cannot_be_converted() {
        let refused = |from, to, bytes| convert(from, to, Missing::Refused, bytes).unwrap_err();
        assert!(refused("UTF-8", "ASCII", "aü".as_bytes()).contains("U+00FC"));
        assert!(refused("UTF-8", "latin1", b"a\xffb").contains("position 1"));
        assert!(refused("ASCII", "UTF-8", b"a\xff").contains("position 1"));
        assert!(refused("UTF-8", "latin1", b"a\xc3").contains("incomplete"));
        assert!(refused("UTF-32LE", "UTF-8", &[0, 0, 0x11, 0]).contains("illegal"));
        assert!(refused("UTF-16LE", "UTF-8", &[0, 0xd8, 0x61, 0]).contains("illegal"));
        assert_eq!(convert("UTF-8", "ASCII", Missing::LeftOut, "aüb".as_bytes()), Ok(b"ab".to_vec()));
        assert_eq!(convert("UTF-8", "ASCII", Missing::LeftOut, b"a\xffb\xc3"), Ok(b"ab".to_vec()));
        let similar = convert("UTF-8", "ASCII", Missing::Similar, "“é” – 5 € …".as_bytes());
        assert_eq!(similar, Ok(b"\"e\" - 5 EUR ...".to_vec()));
        assert!(Codec::named("nonsense").is_none());
    }
}
