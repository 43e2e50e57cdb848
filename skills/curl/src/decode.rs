//! Bodies that were compressed on the way.

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::io::{self, Write};

/// Takes compressed pieces and gives out what was in them.
pub enum Decoder {
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    /// Without the head of zlib, as some servers send it.
    Raw(Box<DeflateDecoder<Vec<u8>>>),
    /// The first byte of `deflate` says which of the two it is.
    Unknown,
}

/// The codings that are asked for.
pub const ACCEPTED: &str = "deflate, gzip";

/// Bytes that are decoded at once: what comes out of them is in memory, a thousand times as much at most.
const PIECE: usize = 4 << 10;

impl Decoder {
    /// For the value of `content-encoding`. The error is a coding that is not known.
    pub fn new(coding: &str) -> Result<Self, String> {
        let coding = coding.trim();
        match coding.to_ascii_lowercase().as_str() {
            "" | "identity" | "none" => Ok(Self::Plain),
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            "deflate" => Ok(Self::Unknown),
            _ => Err(coding.to_owned()),
        }
    }

    /// Decodes a piece, and hands what comes out of it over, part by part.
    pub fn write(&mut self, piece: &[u8], out: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if matches!(self, Self::Unknown)
            && let Some(first) = piece.first()
        {
            *self = match first & 0x0f == 8 {
                true => Self::Zlib(Box::new(ZlibDecoder::new(Vec::new()))),
                false => Self::Raw(Box::new(DeflateDecoder::new(Vec::new()))),
            };
        }
        for part in piece.chunks(PIECE) {
            match self {
                Self::Plain | Self::Unknown => out(part)?,
                Self::Gzip(decoder) => {
                    decoder.write_all(part)?;
                    out(&std::mem::take(decoder.get_mut()))?;
                }
                Self::Zlib(decoder) => {
                    decoder.write_all(part)?;
                    out(&std::mem::take(decoder.get_mut()))?;
                }
                Self::Raw(decoder) => {
                    decoder.write_all(part)?;
                    out(&std::mem::take(decoder.get_mut()))?;
                }
            }
        }
        Ok(())
    }

    /// The rest, when the body has ended.
    pub fn finish(&mut self, out: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let rest = match self {
            Self::Plain | Self::Unknown => return Ok(()),
            Self::Gzip(decoder) => {
                decoder.try_finish()?;
                std::mem::take(decoder.get_mut())
            }
            Self::Zlib(decoder) => {
                decoder.try_finish()?;
                std::mem::take(decoder.get_mut())
            }
            Self::Raw(decoder) => {
                decoder.try_finish()?;
                std::mem::take(decoder.get_mut())
            }
        };
        out(&rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;

    fn decoded(coding: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoder = Decoder::new(coding).unwrap();
        let mut all = Vec::new();
        let mut out = |part: &[u8]| {
            all.extend_from_slice(part);
            Ok(())
        };
        for piece in bytes.chunks(3) {
            decoder.write(piece, &mut out)?;
        }
        decoder.finish(&mut out)?;
        Ok(all)
    }

    #[test]
    fn bodies_are_unpacked_piece_by_piece() {
        let text = "the same again and again ".repeat(1_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(decoded("gzip", &gzip).unwrap(), text.as_bytes());
        assert!(decoded("gzip", &gzip[..gzip.len() - 9]).is_err() && decoded("gzip", b"no gzip at all").is_err());
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(text.as_bytes()).unwrap();
        assert_eq!(decoded("deflate", &zlib.finish().unwrap()).unwrap(), text.as_bytes());
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(text.as_bytes()).unwrap();
        assert_eq!(decoded("Deflate", &raw.finish().unwrap()).unwrap(), text.as_bytes());
        assert_eq!(decoded("identity", b"plain").unwrap(), b"plain");
        assert_eq!(Decoder::new("br").err().as_deref(), Some("br"));
    }
}
