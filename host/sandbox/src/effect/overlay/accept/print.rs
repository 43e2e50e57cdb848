//! A short form of an upper layer, to recognize it later.

use serde::{Deserialize, Serialize};

/// The content of an upper layer in short: names, kinds, sizes and times of files. Two layers with the same one have the same changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LayerPrint(pub(super) String);
