//! `kiso:skill/log`: lines for the trace.

use super::{Capability, Doc, GuestState};
use crate::engine::limits::{Budget, HitCell, Limit, LimitHit, cut};
use crate::skill::error::SkillError;
use crate::skill::input::CallInput;
use crate::skill::wit::{DRAFT, ImportSpec, V0_1, draft, since_v0_1};
use kiso_plan::report::LogLine;
use wasmtime::component::{HasSelf, Linker};

/// The lines of one call, within their limits.
#[derive(Debug)]
pub(crate) struct TraceLog {
    lines: Vec<LogLine>,
    bytes: u64,
    budget: Budget,
    hit: HitCell,
}

/// Longest message that is kept.
const MESSAGE_BYTES: usize = 8 << 10;

impl Capability for TraceLog {
    const IMPORTS: &'static [ImportSpec] =
        &[ImportSpec::skill("kiso:skill/log", V0_1), ImportSpec::skill("kiso:skill/log", DRAFT)];
    const DOC: Doc = Doc { about: "write lines into the trace", asked: "" };
    type Allowed = ();

    fn link<T: GuestState>(linker: &mut Linker<T>, state: fn(&mut T) -> &mut Self) -> wasmtime::Result<()> {
        draft::skill::log::add_to_linker::<T, HasSelf<Self>>(linker, state)?;
        since_v0_1::kiso::skill::log::add_to_linker::<T, HasSelf<Self>>(linker, state)
    }

    fn prepare(call: &CallInput<'_>, _: &(), hit: &HitCell) -> Result<Self, SkillError> {
        Ok(Self { lines: Vec::new(), bytes: 0, budget: call.budget.clone(), hit: hit.clone() })
    }
}

impl TraceLog {
    /// Adds a line; the message is cut at 8 KiB.
    fn push(&mut self, level: &str, message: &str) -> Result<(), LimitHit> {
        let level = match level {
            "error" | "warn" | "debug" => level,
            _ => "info",
        };
        let message = cut(message, MESSAGE_BYTES);
        self.bytes += message.len() as u64;
        if self.lines.len() as u64 >= self.budget.log_lines || self.bytes > self.budget.log_kib << 10 {
            return Err(self.hit.set(self.budget.hit(Limit::Log)));
        }
        self.lines.push(LogLine { level: level.to_owned(), message: message.to_owned() });
        Ok(())
    }

    /// The lines so far.
    pub(crate) fn take(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.lines)
    }
}

impl since_v0_1::kiso::skill::log::Host for TraceLog {
    fn write(&mut self, level: String, message: String) -> wasmtime::Result<()> {
        Ok(self.push(&level, &message)?)
    }
}

impl draft::skill::log::Host for TraceLog {
    fn write(&mut self, level: String, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        let mut line = message;
        for (name, value) in fields {
            // The rest would be cut off in any case.
            if line.len() > MESSAGE_BYTES {
                break;
            }
            line += &format!(" {name}={value}");
        }
        Ok(self.push(&level, &line)?)
    }
}
