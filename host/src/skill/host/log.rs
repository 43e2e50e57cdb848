//! `kiso:skill/log`: lines for the trace.

use crate::skill::ctx::Ctx;
use crate::skill::wit::since_v0_1::kiso::skill::log::Host;

impl Host for Ctx {
    fn write(&mut self, level: String, message: String) -> wasmtime::Result<()> {
        Ok(self.log.push(&level, &message)?)
    }
}
