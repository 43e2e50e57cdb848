//! Digests and random bytes.

use boa_engine::{Context, JsArgs, JsNativeError, JsResult, JsValue};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::{Function, buffer, content, text};

pub const FUNCTIONS: &[(&str, Function)] = &[("digest", digest), ("random", random)];

/// Random bytes of one call.
const MAX_RANDOM: u32 = 64 << 20;

/// `digest(algorithm, bytes)`; undefined for an unknown algorithm.
fn digest(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (algorithm, bytes) = (text(arguments, 0, context)?, content(arguments, 1, context)?);
    let digest = match algorithm.as_str() {
        "md5" => Md5::digest(&bytes).to_vec(),
        "sha1" => Sha1::digest(&bytes).to_vec(),
        "sha224" => Sha224::digest(&bytes).to_vec(),
        "sha256" => Sha256::digest(&bytes).to_vec(),
        "sha384" => Sha384::digest(&bytes).to_vec(),
        "sha512" => Sha512::digest(&bytes).to_vec(),
        _ => return Ok(JsValue::undefined()),
    };
    buffer(&digest, context)
}

fn random(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let count = arguments.get_or_undefined(0).to_u32(context)?;
    if count > MAX_RANDOM {
        return Err(JsNativeError::range().with_message("more random bytes than 64 MiB").into());
    }
    let mut bytes = vec![0; count as usize];
    getrandom::fill(&mut bytes).map_err(|e| JsNativeError::error().with_message(e.to_string()))?;
    buffer(&bytes, context)
}
