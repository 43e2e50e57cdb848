//! Encodings by name, their characters as bytes and back.

use encoding_rs::{DecoderResult, EncoderResult, Encoding};

/// How characters are written down.
#[derive(Debug, Clone, Copy)]
pub enum Codec {
    Ascii,
    /// Of encoding_rs it would be that of Windows.
    Latin1,
    /// With a mark at the beginning that says the order of bytes.
    Utf16Marked,
    Utf16 {
        little: bool,
    },
    Utf32Marked,
    Utf32 {
        little: bool,
    },
    Other(&'static Encoding),
}

/// Names that `-l` shows.
const NAMES: &[&str] = &[
    "ASCII",
    "UTF-8",
    "UTF-16",
    "UTF-16LE",
    "UTF-16BE",
    "UTF-32",
    "UTF-32LE",
    "UTF-32BE",
    "ISO-8859-1",
    "ISO-8859-2",
    "ISO-8859-3",
    "ISO-8859-4",
    "ISO-8859-5",
    "ISO-8859-6",
    "ISO-8859-7",
    "ISO-8859-8",
    "ISO-8859-10",
    "ISO-8859-13",
    "ISO-8859-14",
    "ISO-8859-15",
    "ISO-8859-16",
    "WINDOWS-874",
    "WINDOWS-1250",
    "WINDOWS-1251",
    "WINDOWS-1252",
    "WINDOWS-1253",
    "WINDOWS-1254",
    "WINDOWS-1255",
    "WINDOWS-1256",
    "WINDOWS-1257",
    "WINDOWS-1258",
    "IBM866",
    "KOI8-R",
    "KOI8-U",
    "MACINTOSH",
    "BIG5",
    "EUC-JP",
    "EUC-KR",
    "GB18030",
    "GBK",
    "ISO-2022-JP",
    "SHIFT_JIS",
];

pub fn names() -> &'static [&'static str] {
    NAMES
}

impl Codec {
    pub fn named(name: &str) -> Option<Codec> {
        let name = name.trim().to_ascii_uppercase().replace('_', "-");
        Some(match name.as_str() {
            "ASCII" | "US-ASCII" | "ANSI-X3.4-1968" | "646" | "C" => Codec::Ascii,
            "ISO-8859-1" | "ISO8859-1" | "LATIN1" | "LATIN-1" | "L1" => Codec::Latin1,
            "UTF-16" | "UTF16" | "UCS-2" | "UCS2" => Codec::Utf16Marked,
            "UTF-16LE" | "UTF16LE" | "UCS-2LE" => Codec::Utf16 { little: true },
            "UTF-16BE" | "UTF16BE" | "UCS-2BE" => Codec::Utf16 { little: false },
            "UTF-32" | "UTF32" | "UCS-4" | "UCS4" => Codec::Utf32Marked,
            "UTF-32LE" | "UTF32LE" | "UCS-4LE" => Codec::Utf32 { little: true },
            "UTF-32BE" | "UTF32BE" | "UCS-4BE" => Codec::Utf32 { little: false },
            "" => Codec::Other(encoding_rs::UTF_8),
            name => {
                let labels = [name.to_owned(), name.replace("CP", "windows-"), name.replace('-', "_")];
                Codec::Other(labels.iter().find_map(|label| Encoding::for_label_no_replacement(label.as_bytes()))?)
            }
        })
    }

    pub fn decoder(self) -> Decoder {
        let state = match self {
            Codec::Other(encoding) => State::Other(Box::new(encoding.new_decoder_without_bom_handling())),
            Codec::Utf16 { little: true } => {
                State::Other(Box::new(encoding_rs::UTF_16LE.new_decoder_without_bom_handling()))
            }
            Codec::Utf16 { little: false } => {
                State::Other(Box::new(encoding_rs::UTF_16BE.new_decoder_without_bom_handling()))
            }
            // Without a mark the order is that of most machines.
            Codec::Utf16Marked => State::Other(Box::new(encoding_rs::UTF_16LE.new_decoder())),
            Codec::Ascii => State::Bytes { most: 0x7f },
            Codec::Latin1 => State::Bytes { most: 0xff },
            Codec::Utf32 { little } => State::Words { little: Some(little), pending: Vec::new() },
            Codec::Utf32Marked => State::Words { little: None, pending: Vec::new() },
        };
        Decoder { state }
    }

    pub fn encoder(self) -> Encoder {
        Encoder {
            codec: self,
            begun: false,
            other: if let Codec::Other(e) = self { Some(e.new_encoder()) } else { None },
        }
    }
}

pub struct Decoder {
    state: State,
}

enum State {
    Bytes { most: u8 },
    Words { little: Option<bool>, pending: Vec<u8> },
    Other(Box<encoding_rs::Decoder>),
}

impl Decoder {
    /// Decodes a piece. At bytes that mean nothing it stops behind them, and says how many it had used.
    pub fn decode(&mut self, bytes: &[u8], last: bool, text: &mut String) -> Result<(), usize> {
        match &mut self.state {
            State::Bytes { most } => {
                for (at, byte) in bytes.iter().enumerate() {
                    if byte > most {
                        return Err(at + 1);
                    }
                    text.push(*byte as char);
                }
                Ok(())
            }
            State::Words { little, pending } => {
                for (at, byte) in bytes.iter().enumerate() {
                    pending.push(*byte);
                    let Ok(word) = <[u8; 4]>::try_from(pending.as_slice()) else { continue };
                    pending.clear();
                    let known = *little;
                    if known.is_none() {
                        *little = Some(word != [0, 0, 0xfe, 0xff]);
                        if matches!(word, [0, 0, 0xfe, 0xff] | [0xff, 0xfe, 0, 0]) {
                            continue;
                        }
                    }
                    let code = if *little == Some(false) { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
                    match char::from_u32(code) {
                        Some(character) => text.push(character),
                        None => return Err(at + 1),
                    }
                }
                if last && !pending.is_empty() {
                    pending.clear();
                    return Err(0);
                }
                Ok(())
            }
            State::Other(decoder) => {
                let mut used = 0;
                loop {
                    text.reserve(decoder.max_utf8_buffer_length_without_replacement(bytes.len() - used).unwrap_or(64));
                    let (result, read) = decoder.decode_to_string_without_replacement(&bytes[used..], text, last);
                    used += read;
                    match result {
                        DecoderResult::InputEmpty => return Ok(()),
                        DecoderResult::OutputFull => {}
                        DecoderResult::Malformed(..) => return Err(used),
                    }
                }
            }
        }
    }
}

pub struct Encoder {
    codec: Codec,
    begun: bool,
    other: Option<encoding_rs::Encoder>,
}

impl Encoder {
    /// Appends a character. `false`: the encoding does not have it.
    pub fn encode(&mut self, character: char, into: &mut Vec<u8>) -> bool {
        let first = !std::mem::replace(&mut self.begun, true);
        let code = u32::from(character);
        match self.codec {
            Codec::Ascii | Codec::Latin1 => {
                let most = if matches!(self.codec, Codec::Ascii) { 0x7f } else { 0xff };
                match u8::try_from(code) {
                    Ok(byte) if byte <= most => into.push(byte),
                    _ => return false,
                }
            }
            Codec::Utf16 { .. } | Codec::Utf16Marked => {
                let little = !matches!(self.codec, Codec::Utf16 { little: false });
                if first && matches!(self.codec, Codec::Utf16Marked) {
                    into.extend_from_slice(&[0xff, 0xfe]);
                }
                for unit in character.encode_utf16(&mut [0; 2]) {
                    into.extend(if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
                }
            }
            Codec::Utf32 { .. } | Codec::Utf32Marked => {
                let little = !matches!(self.codec, Codec::Utf32 { little: false });
                if first && matches!(self.codec, Codec::Utf32Marked) {
                    into.extend_from_slice(&[0xff, 0xfe, 0, 0]);
                }
                into.extend(if little { code.to_le_bytes() } else { code.to_be_bytes() });
            }
            Codec::Other(_) => {
                let Some(encoder) = &mut self.other else { return false };
                let (mut text, mut bytes) = ([0; 4], [0; 32]);
                let text = character.encode_utf8(&mut text);
                let (result, _, written) = encoder.encode_from_utf8_without_replacement(text, &mut bytes, false);
                into.extend_from_slice(&bytes[..written]);
                return matches!(result, EncoderResult::InputEmpty);
            }
        }
        true
    }
}

/// A replacement for a character that an encoding does not have.
pub fn similar(character: char) -> &'static str {
    match character {
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' => " ",
        '‘' | '’' | '‚' | '′' => "'",
        '“' | '”' | '„' | '″' => "\"",
        '«' => "<<",
        '»' => ">>",
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => "-",
        '…' => "...",
        '•' | '·' => "*",
        '€' => "EUR",
        '£' => "GBP",
        '©' => "(C)",
        '®' => "(R)",
        '™' => "(TM)",
        '×' => "x",
        '÷' => ":",
        '½' => " 1/2 ",
        '¼' => " 1/4 ",
        '¾' => " 3/4 ",
        'À'..='Å' | 'Ā' | 'Ă' | 'Ą' => "A",
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'Æ' => "AE",
        'æ' => "ae",
        'Ç' | 'Ć' | 'Č' => "C",
        'ç' | 'ć' | 'č' => "c",
        'Ď' | 'Đ' => "D",
        'ď' | 'đ' => "d",
        'È'..='Ë' | 'Ē' | 'Ę' | 'Ě' => "E",
        'è'..='ë' | 'ē' | 'ę' | 'ě' => "e",
        'Ğ' => "G",
        'ğ' => "g",
        'Ì'..='Ï' | 'Ī' | 'İ' => "I",
        'ì'..='ï' | 'ī' | 'ı' => "i",
        'Ł' => "L",
        'ł' => "l",
        'Ñ' | 'Ń' | 'Ň' => "N",
        'ñ' | 'ń' | 'ň' => "n",
        'Ò'..='Ö' | 'Ø' | 'Ō' | 'Ő' => "O",
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => "o",
        'Œ' => "OE",
        'œ' => "oe",
        'Ř' => "R",
        'ř' => "r",
        'Ś' | 'Š' | 'Ş' => "S",
        'ś' | 'š' | 'ş' => "s",
        'ß' => "ss",
        'Ť' => "T",
        'ť' => "t",
        'Ù'..='Ü' | 'Ū' | 'Ů' | 'Ű' => "U",
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => "u",
        'Ý' | 'Ÿ' => "Y",
        'ý' | 'ÿ' => "y",
        'Ź' | 'Ż' | 'Ž' => "Z",
        'ź' | 'ż' | 'ž' => "z",
        _ => "?",
    }
}
