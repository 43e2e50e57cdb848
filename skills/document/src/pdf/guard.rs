//! Refuses contents of pages that unpack to more than the memory has room for. The library unpacks them as a whole.

use std::io::Read;

use flate2::read::ZlibDecoder;
use hayro::hayro_syntax::Filter;
use hayro::hayro_syntax::object::{Array, Stream};
use hayro::hayro_syntax::page::Page;

use crate::error::{Error, Result};
use crate::limits;

/// The most bytes that one byte of deflate can become.
const DEFLATE_RATIO: usize = 1_032;

/// Checks the contents of a page.
pub fn check(page: &Page, number: usize) -> Result<()> {
    let contents = page.raw().get::<Stream>("Contents");
    let array = page.raw().get::<Array>("Contents");
    let parts = array.iter().flat_map(|array| array.iter::<Stream>());
    let mut room = limits::CONTENT_BYTES;
    for stream in contents.into_iter().chain(parts) {
        let layers = stream.filters().iter().filter(|filter| matches!(filter, Filter::FlateDecode)).count();
        let raw = stream.raw_data();
        // Most contents are too short to become long.
        let most = raw.len().saturating_mul(DEFLATE_RATIO.saturating_pow(u32::try_from(layers).unwrap_or(u32::MAX)));
        let length = if most <= room { raw.len() } else { unpacked(&raw, layers, room) };
        if length > room {
            let sentence = format!("page {number} unpacks to too many bytes");
            return Err(Error::limit(&sentence, format!("{} MiB", limits::CONTENT_BYTES >> 20)));
        }
        room -= length;
    }
    Ok(())
}

/// Unpacked size, counted up to one more than the limit.
fn unpacked(raw: &[u8], layers: usize, limit: usize) -> usize {
    let mut reader: Box<dyn Read + '_> = Box::new(raw);
    for _ in 0..layers.min(8) {
        reader = Box::new(ZlibDecoder::new(reader));
    }
    let mut reader = reader.take(limit as u64 + 1);
    let mut buffer = vec![0; 32 << 10];
    let mut total = 0;
    while let Ok(length @ 1..) = reader.read(&mut buffer) {
        total += length;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_bomb_is_counted_up_to_the_limit() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
        let packed = encoder.finish().unwrap();
        assert_eq!(unpacked(&packed, 1, 2 << 20), 1 << 20);
        assert_eq!(unpacked(&packed, 1, 1_000), 1_001);
        assert_eq!(unpacked(b"not packed", 1, 1_000), 0);
    }
}
