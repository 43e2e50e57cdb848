//! What a guest may import: one file for each interface.

mod files;
mod home_space;
mod http;
mod kv;
mod log;
mod measure;
mod output;
mod progress;
mod publish;
mod quota;
mod secrets;
mod structure;

pub use self::files::{ChargedFiles, FileNote, add_to_linker as charge_files, media_type, note};
pub use self::home_space::{HomeSpace, SessionSpace};
pub use self::http::{HttpGate, HttpRule, HttpRules, Injection, Refused};
pub use self::kv::Keep;
pub use self::output::Capture;
pub use self::quota::{Charge, Quota, Room, Usage};
pub use self::structure::{DirId, Roots};

use super::ctx::Ctx;
use super::wit::since_v0_1::kiso::skill;
use crate::store::StoreError;
use wasmtime::component::{HasSelf, Linker};

/// Everything that the world `kiso:skill/sandbox-with-http` and `wasi:cli/command` may import.
pub fn add_to_linker(linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    skill::types::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::log::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::progress::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::secrets::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::publish::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::kv::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    charge_files(linker)
}

/// The types have no functions of their own.
impl skill::types::Host for Ctx {}

/// What the store refused, as a failure that the guest may handle.
fn refused(error: &StoreError) -> skill::types::Failure {
    let code = match error {
        StoreError::Quota { .. } => "quota",
        StoreError::BadKey { .. } => "bad-args",
        _ => "unavailable",
    };
    failure(code, error.to_string())
}

/// A failure that the guest may handle.
fn failure(code: &str, message: impl Into<String>) -> skill::types::Failure {
    skill::types::Failure { code: code.to_owned(), message: message.into(), retryable: false }
}
