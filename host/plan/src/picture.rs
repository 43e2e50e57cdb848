//! Pictures that models are shown, and recordings that they are played.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pixels for each token that a picture takes of a model's window, as Anthropic documents it. Others count up to twice as much.
const PIXELS_PER_TOKEN: u64 = 750;

/// Tokens that a recording takes: a minute or two, at the ten tokens a second that OpenAI documents.
const SOUND_TOKENS: usize = 1_200;

/// Pictures of one result or message.
pub const MAX_PICTURES: usize = 8;

/// A copy of a picture as it is sent to models: upright, scaled down, without metadata; or a recording as it came. The store has its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Picture {
    /// The file and the part of it, such as "/work/receipt.jpg" or "/work/scan.pdf, page 3".
    pub name: String,
    /// SHA-256 of the bytes, in hexadecimal.
    pub digest: String,
    /// Such as "image/jpeg" or "audio/mpeg".
    pub media_type: String,
    /// Pixels; 0 for a recording.
    pub width: u32,
    pub height: u32,
}

impl Picture {
    pub fn is_sound(&self) -> bool {
        self.media_type.starts_with("audio/")
    }

    /// Tokens that it takes of a model's window.
    pub fn tokens(&self) -> usize {
        if self.is_sound() {
            return SOUND_TOKENS;
        }
        let pixels = u64::from(self.width) * u64::from(self.height);
        usize::try_from(pixels.div_ceil(PIXELS_PER_TOKEN)).unwrap_or(usize::MAX)
    }

    /// The name and the size, as prompts and traces say it.
    pub fn title(&self) -> String {
        if self.is_sound() {
            return self.name.clone();
        }
        format!("{} ({}x{} pixels)", self.name, self.width, self.height)
    }
}
