//! `kiso:skill/kv`: small values that outlive a call.

use super::{Capability, Doc, GuestState, failure, refused};
use crate::effect::label::{LabelCell, LabelId};
use crate::effect::undo::Transaction;
use crate::engine::limits::HitCell;
use crate::skill::error::SkillError;
use crate::skill::input::{CallInput, Keep};
use crate::skill::wit::since_v0_1::kiso::skill::kv::{Host, add_to_linker};
use crate::skill::wit::since_v0_1::kiso::skill::types::Failure;
use crate::skill::wit::{ImportSpec, V0_1};
use kiso_base::home::SessionName;
use kiso_plan::code::ErrorCode;
use kiso_plan::label::Label;
use kiso_store::store::{KvOwner, Store, StoreError};
use std::sync::Arc;
use wasmtime::component::{HasSelf, Linker};

/// The values of one session and skill.
#[derive(Debug)]
pub(crate) struct Kv {
    /// The owner of the values; `None` in a test.
    space: Option<(SessionName, KvOwner)>,
    store: Store,
    /// The transaction that the call belongs to. It does not undo values.
    transaction: Option<Arc<Transaction>>,
    /// The label of everything that the call has read.
    label: LabelCell,
}

impl Capability for Kv {
    const IMPORTS: &'static [ImportSpec] = &[ImportSpec::skill("kiso:skill/kv", V0_1)];
    const DOC: Doc = Doc { about: "keep small values that outlive a call", asked: "" };
    type Allowed = ();

    fn link<T: GuestState>(linker: &mut Linker<T>, state: fn(&mut T) -> &mut Self) -> wasmtime::Result<()> {
        add_to_linker::<T, HasSelf<Self>>(linker, state)
    }

    fn prepare(call: &CallInput<'_>, _: &(), _: &HitCell) -> Result<Self, SkillError> {
        let space = match &call.keep {
            Keep::Disk(owner) => Some((call.session.clone(), owner.clone())),
            Keep::Nothing => None,
        };
        Ok(Self {
            space,
            store: call.store.clone(),
            transaction: call.transaction.clone(),
            label: call.permit.read().clone(),
        })
    }
}

fn in_a_test() -> Failure {
    failure(ErrorCode::Unavailable, "values are not kept in a test")
}

impl Kv {
    /// Adds the label of the result to the call, which has read it.
    fn seen<T>(&self, found: Result<(T, Label), StoreError>) -> Result<T, Failure> {
        let (found, label) = found.map_err(|e| refused(&e))?;
        self.label.join(LabelId::from_label(&label));
        Ok(found)
    }

    /// Records that a value is about to change.
    fn leaving(&self) -> Result<(), Failure> {
        let left = self.transaction.as_ref().map_or(Ok(()), |work| work.leaving("a value that outlives the call"));
        left.map_err(|error| failure(ErrorCode::Unavailable, format!("it could not be put on record: {error}")))
    }
}

impl Host for Kv {
    async fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<Vec<u8>>, Failure>> {
        let Some((session, owner)) = self.space.clone() else { return Ok(Ok(None)) };
        let read =
            self.store.read(move |view| Ok((view.kv_get(&session, &owner, &key)?, view.kv_label(&session, &owner)?)));
        Ok(self.seen(read.await))
    }

    async fn set(&mut self, key: String, value: Vec<u8>) -> wasmtime::Result<Result<(), Failure>> {
        let Some((session, owner)) = self.space.clone() else { return Ok(Err(in_a_test())) };
        if let Err(failure) = self.leaving() {
            return Ok(Err(failure));
        }
        let label = self.label.get().label();
        let write = self.store.write(move |tx| {
            tx.kv_set(&session, &owner, &key, &value)?;
            tx.join_kv_label(&session, &owner, &label)
        });
        Ok(write.await.map_err(|e| refused(&e)))
    }

    async fn delete(&mut self, key: String) -> wasmtime::Result<Result<bool, Failure>> {
        let Some((session, owner)) = self.space.clone() else { return Ok(Err(in_a_test())) };
        if let Err(failure) = self.leaving() {
            return Ok(Err(failure));
        }
        let label = self.label.get().label();
        let write = self.store.write(move |tx| {
            // The absence of a value is information, too.
            tx.join_kv_label(&session, &owner, &label)?;
            Ok((tx.kv_delete(&session, &owner, &key)?, tx.kv_label(&session, &owner)?))
        });
        Ok(self.seen(write.await))
    }

    async fn keys(&mut self, prefix: String) -> wasmtime::Result<Result<Vec<String>, Failure>> {
        let Some((session, owner)) = self.space.clone() else { return Ok(Ok(Vec::new())) };
        let read = self
            .store
            .read(move |view| Ok((view.kv_keys(&session, &owner, &prefix)?, view.kv_label(&session, &owner)?)));
        Ok(self.seen(read.await))
    }
}
