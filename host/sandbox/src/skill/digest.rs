//! The digest that identifies a component.

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256, digest};
use std::io::{Read, Result};

/// SHA-256 of a component's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn compute(bytes: &[u8]) -> Self {
        let mut sum = [0; 32];
        sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Self(sum)
    }

    /// The digest of everything that the reader returns.
    pub(super) fn of_reader(reader: &mut impl Read) -> Result<Self> {
        let (mut context, mut piece) = (Context::new(&SHA256), vec![0; 256 << 10]);
        loop {
            match reader.read(&mut piece)? {
                0 => break,
                read => context.update(&piece[..read]),
            }
        }
        let mut sum = [0; 32];
        sum.copy_from_slice(context.finish().as_ref());
        Ok(Self(sum))
    }

    pub(super) fn bytes(&self) -> [u8; 32] {
        self.0
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}
