//! Speech to text: the `/audio/transcriptions` of providers with OpenAI's format.

use std::sync::Arc;

use ring::digest::{SHA256, digest};

use super::breaker::Breaker;
use super::endpoint::Endpoint;
use super::http::{KeyHeader, Wire};
use super::slots::Slots;
use super::time::Time;
use super::{LlmError, Priority};

/// The role name in the accounting of these calls.
pub const ROLE: &str = "transcriber";

/// Maximum bytes of a recording; providers accept no more.
pub const MAX_SOUND: usize = 25 << 20;

/// Maximum characters of a text. An hour of speech has about 60,000.
const MAX_TEXT: usize = 200_000;

/// A model that transcribes speech.
#[derive(Debug)]
pub struct Transcriber {
    wire: Wire,
    breaker: Arc<Breaker>,
    slots: Slots,
    time: Arc<dyn Time>,
}

impl Transcriber {
    /// `endpoint.base_url` is the part before `/audio/transcriptions`. Fails if it is not a valid address, or if the key cannot
    /// be a header; sends nothing yet.
    pub fn new(endpoint: Endpoint, breaker: Breaker, slots: Slots, time: Arc<dyn Time>) -> Result<Self, LlmError> {
        let wire = Wire::new(endpoint, "/audio/transcriptions", KeyHeader::Bearer)?;
        Ok(Self { wire, breaker: Arc::new(breaker), slots, time })
    }

    /// Returns the text of a recording of at most [`MAX_SOUND`] bytes. The end of `name` gives the format. Waits for a slot like
    /// any other call; does not retry.
    pub async fn transcribe(&self, name: &str, sound: &[u8]) -> Result<String, LlmError> {
        let alone = |_| self.wire.broken("it failed several times in a row, and is left alone for a while");
        self.breaker.check(self.time.now()).map_err(alone)?;
        let slot = self.slots.acquire(Priority::Interactive).await;
        let pass = self.breaker.enter(self.time.now()).map_err(alone)?;
        let answer = self.ask(name, sound).await;
        match &answer {
            Err(LlmError::Unavailable { .. }) => pass.failed(self.time.now()),
            _ => pass.answered(),
        }
        drop(slot);
        answer
    }

    async fn ask(&self, name: &str, sound: &[u8]) -> Result<String, LlmError> {
        let (kind, form) = form(&self.wire.endpoint.model, name, sound);
        let answer = self.wire.ask_once(ROLE, &kind, form.into()).await?;
        let text = answer["text"].as_str().ok_or_else(|| self.wire.unusable("its answer has no `text`"))?;
        Ok(text.trim().chars().take(MAX_TEXT).collect())
    }
}

/// Returns the form and its media type. The boundary is made from the sound's digest, which the sound itself cannot contain.
fn form(model: &str, name: &str, sound: &[u8]) -> (String, Vec<u8>) {
    let boundary = data_encoding::HEXLOWER.encode(&digest(&SHA256, sound).as_ref()[..16]);
    // Removes characters that cannot be quoted in a header.
    let plain = |text: &str| text.chars().filter(|c| !c.is_control() && !"\"\\".contains(*c)).collect::<String>();
    let mut form = Vec::with_capacity(sound.len() + 1_024);
    for (field, value) in [("model", model), ("response_format", "json")] {
        let head =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{}\r\n", plain(value));
        form.extend(head.into_bytes());
    }
    let file = plain(name.rsplit('/').next().unwrap_or(name));
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{file}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    form.extend(head.into_bytes());
    form.extend_from_slice(sound);
    form.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
    (format!("multipart/form-data; boundary={boundary}"), form)
}
