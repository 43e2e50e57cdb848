//! Tables as a skill reads them.

use crate::{Error, Table, too_large};
use kiso_sdk::Failure;

impl Table {
    /// Reads a file of the workspace, keeping within `budget` bytes of memory for the file and its columns.
    ///
    /// Codes: those of [`kiso_sdk::read_bytes`], "too-large", and those of [`Table::parse`].
    pub fn read(path: &str, budget: usize) -> Result<Self, Failure> {
        let full = kiso_sdk::resolve(path)?;
        if let Ok(meta) = std::fs::metadata(&full)
            && meta.len() > (budget / 2) as u64
        {
            return Err(too_large(path, budget).into());
        }
        Ok(Self::parse(path, kiso_sdk::read_bytes(path)?, budget)?)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.code, error.message)
    }
}
