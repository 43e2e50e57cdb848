//! The formats of compressed data: how they are told, read and written.

use std::io::{self, Read, Write};

use bzip2::read::MultiBzDecoder;
use bzip2::write::BzEncoder;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzReader, XzWriter};

/// Memory that unpacking xz may take. The greatest level asks for 65 MiB; a header can ask for 4 GiB.
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// How far back packing with xz looks. The greatest level would take a gigabyte of memory.
const XZ_DICTIONARY: u32 = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Gzip,
    Xz,
    Bzip2,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Gzip => "gzip",
            Format::Xz => "xz",
            Format::Bzip2 => "bzip2",
        }
    }

    pub fn suffix(self) -> &'static str {
        match self {
            Format::Gzip => ".gz",
            Format::Xz => ".xz",
            Format::Bzip2 => ".bz2",
        }
    }

    /// Of a compressed archive of `tar`.
    pub fn short_suffix(self) -> &'static str {
        match self {
            Format::Gzip => ".tgz",
            Format::Xz => ".txz",
            Format::Bzip2 => ".tbz2",
        }
    }

    pub fn usual_level(self) -> u32 {
        if self == Format::Bzip2 { 9 } else { 6 }
    }

    /// Whether data that begins so is of this format.
    pub fn is(self, head: &[u8]) -> bool {
        let magic: &[u8] = match self {
            Format::Gzip => b"\x1f\x8b",
            Format::Xz => b"\xfd7zXZ\0",
            Format::Bzip2 => b"BZh",
        };
        head.starts_with(magic)
    }

    /// The format of data that begins so.
    pub fn detect(head: &[u8]) -> Option<Format> {
        [Format::Gzip, Format::Xz, Format::Bzip2].into_iter().find(|format| format.is(head))
    }

    /// The format that the name of a file says.
    pub fn of_name(name: &str) -> Option<Format> {
        let mut formats = [Format::Gzip, Format::Xz, Format::Bzip2].into_iter();
        formats.find(|format| name.ends_with(format.suffix()) || name.ends_with(format.short_suffix()))
    }

    /// Reads what was compressed, also several pieces behind each other.
    pub fn decoder<'a>(self, input: impl Read + 'a) -> Box<dyn Read + 'a> {
        match self {
            Format::Gzip => Box::new(MultiGzDecoder::new(input)),
            Format::Xz => Box::new(XzReader::new_mem_limit(input, true, XZ_MEMORY_KIB)),
            Format::Bzip2 => Box::new(MultiBzDecoder::new(input)),
        }
    }

    /// Compresses all that there is to read.
    pub fn encode(self, input: &mut impl Read, output: impl Write, level: u32) -> io::Result<()> {
        let mut encoder = Encoder::new(self, output, level)?;
        io::copy(input, &mut encoder)?;
        encoder.finish().map(drop)
    }
}

fn xz_encoder<W: Write>(output: W, level: u32) -> io::Result<XzWriter<W>> {
    let mut options = XzOptions::with_preset(level);
    options.lzma_options.dict_size = options.lzma_options.dict_size.min(XZ_DICTIONARY);
    XzWriter::new(output, options)
}

/// A compressed file that is written piece by piece.
pub enum Encoder<W: Write> {
    Gzip(GzEncoder<W>),
    Xz(Box<XzWriter<W>>),
    Bzip2(BzEncoder<W>),
}

impl<W: Write> Encoder<W> {
    pub fn new(format: Format, output: W, level: u32) -> io::Result<Self> {
        Ok(match format {
            Format::Gzip => Encoder::Gzip(GzEncoder::new(output, flate2::Compression::new(level))),
            Format::Xz => Encoder::Xz(Box::new(xz_encoder(output, level)?)),
            Format::Bzip2 => Encoder::Bzip2(BzEncoder::new(output, bzip2::Compression::new(level.max(1)))),
        })
    }

    pub fn finish(self) -> io::Result<W> {
        match self {
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Xz(encoder) => encoder.finish(),
            Encoder::Bzip2(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Encoder::Gzip(encoder) => encoder.write(bytes),
            Encoder::Xz(encoder) => encoder.write(bytes),
            Encoder::Bzip2(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoder::Gzip(encoder) => encoder.flush(),
            Encoder::Xz(encoder) => encoder.flush(),
            Encoder::Bzip2(encoder) => encoder.flush(),
        }
    }
}
