//! Writing the body of an answer.

use super::client::Client;
use crate::decode::Decoder;
use crate::transport::{Failure, Response};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Why a body was not saved.
pub enum Trouble {
    File(io::Error),
    /// With the bytes that had come.
    Network(Failure, u64),
}

impl Client<'_> {
    /// Writes the body, and returns its bytes as they came.
    pub fn save(&mut self, response: &mut Response, path: &Path, kept: u64, is_part: bool) -> Result<u64, Trouble> {
        let options = self.options;
        let mut own;
        let mut stdout;
        let target: &mut dyn Write = match (&mut self.whole, options.output.as_deref()) {
            (Some(file), _) => file,
            (None, Some(_)) => {
                stdout = io::stdout();
                &mut stdout
            }
            (None, None) => {
                if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                    fs::create_dir_all(parent).map_err(Trouble::File)?;
                }
                own = match kept > 0 {
                    true => File::options().append(true).open(path),
                    false => File::create(path),
                }
                .map_err(Trouble::File)?;
                &mut own
            }
        };
        let coding = response.header("content-encoding").filter(|_| options.compression).unwrap_or_default();
        let mut decoder = Decoder::new(coding).unwrap_or(Decoder::Plain);
        // A server that ignores the range sends what is there already, too.
        let mut skip = if is_part { 0 } else { kept };
        let begun = Instant::now();
        let mut received = 0_u64;
        let broken = |received: u64| move |failure: Failure| Trouble::Network(failure, received);
        loop {
            let deadline =
                Some(options.read_timeout).filter(|limit| !limit.is_zero()).map(|limit| Instant::now() + limit);
            let Some(piece) = response.body.read(deadline).map_err(broken(received))? else { break };
            received += piece.len() as u64;
            decoder
                .write(&piece, &mut |part| {
                    let left_out = skip.min(part.len() as u64);
                    skip -= left_out;
                    target.write_all(&part[left_out as usize..])
                })
                .map_err(Trouble::File)?;
            if let Some(rate) = options.limit_rate {
                let due = Duration::from_secs_f64(received as f64 / rate as f64);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            }
        }
        decoder.finish(&mut |part| target.write_all(part)).map_err(Trouble::File)?;
        Ok(received)
    }
}
