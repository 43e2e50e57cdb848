//! Parts of the binary that are stored deflated, because not every start needs them.

use flate2::{Decompress, FlushDecompress, Status};

/// Bytes that `build.rs` has deflated.
#[derive(Debug)]
pub struct DeflatedBytes {
    pub deflated: &'static [u8],
    /// The number of bytes after inflation.
    pub bytes: usize,
}

impl DeflatedBytes {
    pub fn unpack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes);
        let done = Decompress::new(false).decompress_vec(self.deflated, &mut bytes, FlushDecompress::Finish);
        assert!(
            done.is_ok_and(|status| status == Status::StreamEnd) && bytes.len() == self.bytes,
            "the program's own bytes are damaged"
        );
        bytes
    }
}
