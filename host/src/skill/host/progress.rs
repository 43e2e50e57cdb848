//! `kiso:skill/progress`: how far a call has come.

use crate::skill::ctx::{Ctx, cut};
use crate::skill::wit::since_v0_1::kiso::skill::progress::Host;

/// A line on a terminal holds no more.
const NOTE_BYTES: usize = 200;

impl Host for Ctx {
    fn report(&mut self, done: Option<f64>, note: String) -> wasmtime::Result<()> {
        let done = done.filter(|d| !d.is_nan()).map(|d| d.clamp(0.0, 1.0));
        // The note goes to a terminal: what a guest chose must not move its cursor.
        let note: String = cut(&note, NOTE_BYTES).chars().filter(|c| !c.is_control()).collect();
        self.progress.progress(self.skill.as_str(), done, &note);
        Ok(())
    }
}
