//! The interfaces that every component for WASI may import: streams, clocks, random numbers, its arguments and environment.
//! Sockets are included because programs are linked with them; they answer "access-denied".

use super::{Capability, Doc, GuestState};
use crate::engine::limits::HitCell;
use crate::engine::stdio;
use crate::skill::error::SkillError;
use crate::skill::input::CallInput;
use crate::skill::wit::since_v0_1::kiso::skill::types;
use crate::skill::wit::{ImportSpec, V0_1};
use wasmtime::component::{HasSelf, Linker};

/// wasmtime has its state.
#[derive(Debug)]
pub(crate) struct Basics;

const WORLD: &str = "wasi:cli/imports";

impl Capability for Basics {
    const IMPORTS: &'static [ImportSpec] = &[
        ImportSpec::skill("kiso:skill/types", V0_1),
        ImportSpec::wasi("wasi:cli/environment", WORLD),
        ImportSpec::wasi("wasi:cli/exit", WORLD),
        ImportSpec::wasi("wasi:cli/stderr", WORLD),
        ImportSpec::wasi("wasi:cli/stdin", WORLD),
        ImportSpec::wasi("wasi:cli/stdout", WORLD),
        ImportSpec::wasi("wasi:cli/terminal-input", WORLD),
        ImportSpec::wasi("wasi:cli/terminal-output", WORLD),
        ImportSpec::wasi("wasi:cli/terminal-stderr", WORLD),
        ImportSpec::wasi("wasi:cli/terminal-stdin", WORLD),
        ImportSpec::wasi("wasi:cli/terminal-stdout", WORLD),
        ImportSpec::wasi("wasi:clocks/monotonic-clock", WORLD),
        ImportSpec::wasi("wasi:clocks/wall-clock", WORLD),
        ImportSpec::wasi("wasi:io/error", WORLD),
        ImportSpec::wasi("wasi:io/poll", WORLD),
        ImportSpec::wasi("wasi:io/streams", WORLD),
        ImportSpec::wasi("wasi:random/insecure", WORLD),
        ImportSpec::wasi("wasi:random/insecure-seed", WORLD),
        ImportSpec::wasi("wasi:random/random", WORLD),
        ImportSpec::wasi("wasi:sockets/instance-network", WORLD),
        ImportSpec::wasi("wasi:sockets/ip-name-lookup", WORLD),
        ImportSpec::wasi("wasi:sockets/network", WORLD),
        ImportSpec::wasi("wasi:sockets/tcp", WORLD),
        ImportSpec::wasi("wasi:sockets/tcp-create-socket", WORLD),
        ImportSpec::wasi("wasi:sockets/udp", WORLD),
        ImportSpec::wasi("wasi:sockets/udp-create-socket", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/environment", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/exit", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/stderr", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/stdin", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/stdout", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/terminal-input", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/terminal-output", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/terminal-stderr", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/terminal-stdin", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/terminal-stdout", WORLD),
        ImportSpec::wasi_0_3("wasi:cli/types", WORLD),
        ImportSpec::wasi_0_3("wasi:clocks/monotonic-clock", WORLD),
        ImportSpec::wasi_0_3("wasi:clocks/system-clock", WORLD),
        ImportSpec::wasi_0_3("wasi:clocks/types", WORLD),
        ImportSpec::wasi_0_3("wasi:random/insecure", WORLD),
        ImportSpec::wasi_0_3("wasi:random/insecure-seed", WORLD),
        ImportSpec::wasi_0_3("wasi:random/random", WORLD),
        ImportSpec::wasi_0_3("wasi:sockets/ip-name-lookup", WORLD),
        ImportSpec::wasi_0_3("wasi:sockets/types", WORLD),
    ];
    const DOC: Doc = Doc {
        about: "read its input and arguments, write its output, read the clock, draw random numbers; sockets answer \"access-denied\"",
        asked: "",
    };
    type Allowed = ();

    fn link<T: GuestState>(linker: &mut Linker<T>, state: fn(&mut T) -> &mut Self) -> wasmtime::Result<()> {
        wasmtime_wasi::p2::add_to_linker_async(linker)?;
        types::add_to_linker::<T, HasSelf<Self>>(linker, state)
    }

    fn link_wasi_0_3<T: GuestState>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        wasmtime_wasi::p3::add_to_linker(linker)?;
        stdio::add_to_linker(linker)
    }

    fn prepare(_: &CallInput<'_>, _: &(), _: &HitCell) -> Result<Self, SkillError> {
        Ok(Self)
    }
}

/// The types have no functions of their own.
impl types::Host for Basics {}
