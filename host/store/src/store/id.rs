use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use ring::rand::{SecureRandom, SystemRandom};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Crockford's base 32 in lower case: without letters that look like digits; it sorts like the number.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

const TIME_DIGITS: u32 = 10;
const RANDOM_DIGITS: u32 = 4;

/// The id of a run: 14 characters, ten for the time in milliseconds and four random ones, so that ids sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// Not a valid id of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of a run: those have 14 digits and lower-case letters")]
pub struct BadRunId(String);

/// The system provided no random numbers, so ids would be neither unique nor secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system provides no random numbers")]
pub struct NoRandomNumbers;

impl RunId {
    /// Creates an id. Two ids of the same millisecond are equal with a probability of one in a million, so
    /// [`super::Tx::new_run_id`] checks.
    pub(super) fn new(at_ms: i64) -> Result<RunId, NoRandomNumbers> {
        let time = u128::from(at_ms.max(0).unsigned_abs()) % 32_u128.pow(TIME_DIGITS);
        Ok(RunId(base32(time, TIME_DIGITS) + &base32(random()?, RANDOM_DIGITS)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for RunId {
    type Err = BadRunId;

    fn from_str(text: &str) -> Result<RunId, BadRunId> {
        if text.len() == (TIME_DIGITS + RANDOM_DIGITS) as usize && text.bytes().all(|byte| ALPHABET.contains(&byte)) {
            return Ok(RunId(text.to_owned()));
        }
        Err(BadRunId(text.chars().take(80).collect()))
    }
}

impl JsonSchema for RunId {
    fn schema_name() -> Cow<'static, str> {
        "RunId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "Id of a run.", "pattern": "^[0-9a-hjkmnp-tv-z]{14}$" })
    }
}

impl TryFrom<String> for RunId {
    type Error = BadRunId;

    fn try_from(text: String) -> Result<RunId, BadRunId> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.0
    }
}

/// 128 random bits in 26 characters, which cannot be guessed.
pub(super) fn secret_id() -> Result<String, NoRandomNumbers> {
    Ok(base32(random()?, 26))
}

fn random() -> Result<u128, NoRandomNumbers> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomNumbers)?;
    Ok(u128::from_be_bytes(bytes))
}

/// Returns the last `digits` digits of the number.
fn base32(mut number: u128, digits: u32) -> String {
    let mut text = vec![0; digits as usize];
    for place in text.iter_mut().rev() {
        *place = ALPHABET[(number % 32) as usize];
        number /= 32;
    }
    text.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_read_back() {
        let times = [0, 1, 31, 32, 1_700_000_000_000, 1_700_000_000_001, 32_i64.pow(10) - 1];
        let ids: Vec<RunId> = times.iter().map(|time| RunId::new(*time).unwrap()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
        assert!(ids.iter().all(|id| id.as_str().parse::<RunId>().as_ref() == Ok(id)));
        for bad in ["", "last", "01234567890123x", "0123456789012U", "../../etc/pass"] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn secret_ids_are_long_and_never_the_same() {
        let (one, other) = (secret_id().unwrap(), secret_id().unwrap());
        assert_eq!((one.len(), other.len()), (26, 26));
        assert_ne!(one, other);
    }
}
