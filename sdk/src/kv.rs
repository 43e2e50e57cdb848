//! Small values that outlive a call, in a space of this session and skill.
//!
//! Limits: keys 1 to 256 bytes, values 64 KiB, 1,000 keys and 1 MiB in all.

use crate::Failure;
use crate::bindings::kiso::skill::kv;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes under `key`, if there is such a key.
pub fn get(key: &str) -> Result<Option<Vec<u8>>, Failure> {
    Ok(kv::get(key)?)
}

/// Sets a value; it is on disk when this returns.
pub fn set(key: &str, value: &[u8]) -> Result<(), Failure> {
    Ok(kv::set(key, value)?)
}

/// Removes a key; true if there was one.
pub fn delete(key: &str) -> Result<bool, Failure> {
    Ok(kv::delete(key)?)
}

/// The keys that start with `prefix`, in byte order.
pub fn keys(prefix: &str) -> Result<Vec<String>, Failure> {
    Ok(kv::keys(prefix)?)
}

/// A value that [`set_json`] wrote. A value of another form fails with code "bad-value".
pub fn get_json<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Failure> {
    let Some(bytes) = get(key)? else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|e| Failure::new("bad-value", format!("the value under {key:?} is not what was expected: {e}")))
}

/// Sets a value in its JSON form.
pub fn set_json(key: &str, value: &impl Serialize) -> Result<(), Failure> {
    let bytes = serde_json::to_vec(value)
        .map_err(|e| Failure::new("bad-value", format!("the value for {key:?} has no JSON form: {e}")))?;
    set(key, &bytes)
}
