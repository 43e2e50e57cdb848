//! `kiso:skill/progress`: the progress of a call.

use super::{Capability, Doc, GuestState};
use crate::engine::limits::{HitCell, cut};
use crate::skill::error::SkillError;
use crate::skill::input::{CallInput, Observer};
use crate::skill::wit::since_v0_1::kiso::skill::progress::{Host, add_to_linker};
use crate::skill::wit::{ImportSpec, V0_1};
use kiso_base::home::SkillName;
use std::sync::Arc;
use wasmtime::component::{HasSelf, Linker};

/// Receives the progress.
pub(crate) struct Progress {
    skill: SkillName,
    observer: Arc<dyn Observer>,
}

/// The width of a terminal's line.
const NOTE_BYTES: usize = 200;

impl Capability for Progress {
    const IMPORTS: &'static [ImportSpec] = &[ImportSpec::skill("kiso:skill/progress", V0_1)];
    const DOC: Doc = Doc { about: "tell how far it has come", asked: "" };
    type Allowed = ();

    fn link<T: GuestState>(linker: &mut Linker<T>, state: fn(&mut T) -> &mut Self) -> wasmtime::Result<()> {
        add_to_linker::<T, HasSelf<Self>>(linker, state)
    }

    fn prepare(call: &CallInput<'_>, _: &(), _: &HitCell) -> Result<Self, SkillError> {
        Ok(Self { skill: call.skill.clone(), observer: call.observer.clone() })
    }
}

impl Host for Progress {
    fn report(&mut self, done: Option<f64>, note: String) -> wasmtime::Result<()> {
        let done = done.filter(|d| !d.is_nan()).map(|d| d.clamp(0.0, 1.0));
        // The note goes to a terminal, so control characters are removed.
        let note: String = cut(&note, NOTE_BYTES).chars().filter(|c| !c.is_control()).collect();
        self.observer.progress(self.skill.as_str(), done, &note);
        Ok(())
    }
}
