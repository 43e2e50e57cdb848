//! The output of a command line while it runs, for people who wait for its end.

use crate::engine::output::OutputBuffer;
use kiso_store::secret::{RedactionStream, Secrets};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// Time between two reports. A guest may write a byte at a time, and each piece goes to every watcher.
const PACE: Duration = Duration::from_millis(150);

/// Bytes of each stream that are reported while a line runs. The result contains what is kept beyond that.
const MOST: usize = 256 << 10;

/// Standard output and standard error of a running line. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    came: Arc<Notify>,
    outputs: OnceLock<[OutputBuffer; 2]>,
}

impl Watch {
    /// Outputs notify this when bytes arrive.
    pub(super) fn came(&self) -> Arc<Notify> {
        self.0.came.clone()
    }

    /// Records that the line has begun.
    pub(super) fn begin(&self, stdout: &OutputBuffer, stderr: &OutputBuffer) {
        let _ = self.0.outputs.set([stdout.clone(), stderr.clone()]);
    }

    /// Calls `tell` with the output on "stdout" and "stderr", without secrets, until this is dropped.
    pub async fn follow(&self, secrets: &Secrets, tell: &mut (dyn FnMut(&'static str, &str) + Send)) {
        let mut followed = ["stdout", "stderr"].map(|stream| Followed::new(stream, secrets));
        loop {
            self.0.came.notified().await;
            let Some(outputs) = self.0.outputs.get() else { continue };
            for (followed, output) in followed.iter_mut().zip(outputs) {
                followed.look(output, tell);
            }
            tokio::time::sleep(PACE).await;
        }
    }
}

/// One of the two streams.
struct Followed {
    stream: &'static str,
    secrets: RedactionStream,
    at: u64,
    told: usize,
    /// The first bytes of a character that is not complete yet.
    half: Vec<u8>,
}

impl Followed {
    fn new(stream: &'static str, secrets: &Secrets) -> Self {
        Self { stream, secrets: secrets.streaming(), at: 0, told: 0, half: Vec::new() }
    }

    fn look(&mut self, output: &OutputBuffer, tell: &mut (dyn FnMut(&'static str, &str) + Send)) {
        if self.told >= MOST {
            return;
        }
        let (bytes, at) = output.since(self.at);
        self.at = at;
        let mut all = std::mem::take(&mut self.half);
        all.extend(bytes);
        if let Err(error) = std::str::from_utf8(&all)
            && error.error_len().is_none()
        {
            self.half = all.split_off(error.valid_up_to());
        }
        let mut text = self.secrets.push(&String::from_utf8_lossy(&all));
        if text.is_empty() {
            return;
        }
        self.told += text.len();
        if self.told >= MOST {
            text.truncate(text.floor_char_boundary(text.len() - (self.told - MOST)));
            text.push_str("\n[… the rest is shown when the command has ended …]\n");
        }
        tell(self.stream, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::limits::{Budget, HitCell};
    use kiso_base::config::Config;
    use kiso_store::secret::SecretValue;

    fn heard(pieces: &[&[u8]], secrets: &Secrets) -> Vec<String> {
        let config = Config::default();
        let output = OutputBuffer::new(4 << 20, Budget::exec(&config.exec, &config.engine), HitCell::default(), None);
        let mut followed = Followed::new("stdout", secrets);
        let mut heard = Vec::new();
        for piece in pieces {
            output.push(piece).unwrap();
            followed.look(&output, &mut |_, text| heard.push(text.to_owned()));
        }
        heard
    }

    #[test]
    fn a_secret_in_two_pieces_is_not_told() {
        let mut secrets = Secrets::default();
        secrets.add_session("token".to_owned(), SecretValue::new("correct-horse-battery".to_owned()));
        let told =
            heard(&[b"a correct-horse-", b"battery b\n", b"the end of it, which is long enough\n"], &secrets).concat();
        assert!(told.starts_with("a ") && !told.contains("correct-horse"), "{told}");
    }

    #[test]
    fn a_character_in_two_pieces_is_one() {
        assert_eq!(heard(&[&"zwö".as_bytes()[..3], &"zwö".as_bytes()[3..]], &Secrets::default()).concat(), "zwö");
    }

    #[test]
    fn a_flood_is_told_up_to_its_limit() {
        let flood = vec![b'x'; 1 << 20];
        let told = heard(&[&flood, &flood], &Secrets::default()).concat();
        assert!(told.len() < MOST + 100 && told.ends_with("has ended …]\n"), "{}", told.len());
    }
}
