//! Pictures and recordings that are sent to models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pixels of a picture per token, as documented by Anthropic. Other providers count up to twice as many tokens.
const PIXELS_PER_TOKEN: u64 = 750;

/// Tokens of a recording: one or two minutes, at ten tokens per second, as documented by OpenAI.
const SOUND_TOKENS: usize = 1_200;

/// Maximum pictures of one result or message.
pub const MAX_PICTURES: usize = 8;

/// A copy of a picture for models: upright, scaled down, without metadata; or an unchanged recording. The store contains its
/// bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Picture {
    /// The file, and the part of it if any, such as "/work/receipt.jpg" or "/work/scan.pdf, page 3".
    pub name: String,
    /// SHA-256 of the bytes, in hexadecimal.
    pub digest: String,
    /// For example "image/jpeg" or "audio/mpeg".
    pub media_type: String,
    /// Pixels; 0 for a recording.
    pub width: u32,
    pub height: u32,
}

impl Picture {
    pub fn is_sound(&self) -> bool {
        self.media_type.starts_with("audio/")
    }

    /// Estimated tokens in a prompt.
    pub fn tokens(&self) -> usize {
        if self.is_sound() {
            return SOUND_TOKENS;
        }
        let pixels = u64::from(self.width) * u64::from(self.height);
        usize::try_from(pixels.div_ceil(PIXELS_PER_TOKEN)).unwrap_or(usize::MAX)
    }

    /// Returns the name and the size, for prompts and traces.
    pub fn title(&self) -> String {
        if self.is_sound() {
            return self.name.clone();
        }
        format!("{} ({}x{} pixels)", self.name, self.width, self.height)
    }
}
