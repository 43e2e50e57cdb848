//! What a guest may import: one file for each interface.

mod files;
mod http;
mod kv;
mod log;
mod output;
mod progress;
mod publish;
mod quota;
mod secrets;

pub use self::files::{FileNote, note};
pub use self::http::{HttpGate, HttpRules};
pub use self::kv::Keep;
pub use self::output::Capture;
pub use self::quota::{Quota, Usage};

use super::ctx::Ctx;
use super::wit::since_v0_1::kiso::skill;
use wasmtime::component::{HasSelf, Linker};

/// Everything that the world `kiso:skill/skill` and `wasi:cli/command` may import.
pub fn add_to_linker(linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
    let mut options = wasmtime_wasi::p2::bindings::LinkOptions::default();
    // Without it `process::exit(3)` reaches the host as 1.
    options.cli_exit_with_code(true);
    wasmtime_wasi::p2::add_to_linker_with_options_async(linker, &options)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    skill::types::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::log::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::progress::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::secrets::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::publish::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    skill::kv::add_to_linker::<Ctx, HasSelf<Ctx>>(linker, |ctx| ctx)?;
    files::add_to_linker(linker)
}

/// A failure that the guest may handle.
fn failure(code: &str, message: impl Into<String>) -> skill::types::Failure {
    skill::types::Failure { code: code.to_owned(), message: message.into(), retryable: false }
}
