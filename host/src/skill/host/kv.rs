//! `kiso:skill/kv`: small values that outlive a call.

use super::{failure, refused};
use crate::home::SessionName;
use crate::skill::ctx::Ctx;
use crate::skill::wit::since_v0_1::kiso::skill::kv::Host;
use crate::skill::wit::since_v0_1::kiso::skill::types::Failure;
use crate::store::KvOwner;

/// Whether values of `kv` reach the disk. A self-test and `kiso skill test` leave nothing behind, and find nothing: what is to
/// be tried out may be anybody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    Disk(KvOwner),
    Nothing,
}

impl Ctx {
    /// The space that values belong to; none in a test.
    fn space(&self) -> Option<(SessionName, KvOwner)> {
        match &self.keep {
            Keep::Disk(owner) => Some((self.session.clone(), owner.clone())),
            Keep::Nothing => None,
        }
    }
}

fn in_a_test() -> Failure {
    failure("unavailable", "values are not kept in a test")
}

impl Host for Ctx {
    async fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<Vec<u8>>, Failure>> {
        let Some((session, owner)) = self.space() else { return Ok(Ok(None)) };
        Ok(self.store.read(move |view| view.kv_get(&session, &owner, &key)).await.map_err(|e| refused(&e)))
    }

    async fn set(&mut self, key: String, value: Vec<u8>) -> wasmtime::Result<Result<(), Failure>> {
        let Some((session, owner)) = self.space() else { return Ok(Err(in_a_test())) };
        Ok(self.store.write(move |tx| tx.kv_set(&session, &owner, &key, &value)).await.map_err(|e| refused(&e)))
    }

    async fn delete(&mut self, key: String) -> wasmtime::Result<Result<bool, Failure>> {
        let Some((session, owner)) = self.space() else { return Ok(Err(in_a_test())) };
        Ok(self.store.write(move |tx| tx.kv_delete(&session, &owner, &key)).await.map_err(|e| refused(&e)))
    }

    async fn keys(&mut self, prefix: String) -> wasmtime::Result<Result<Vec<String>, Failure>> {
        let Some((session, owner)) = self.space() else { return Ok(Ok(Vec::new())) };
        Ok(self.store.read(move |view| view.kv_keys(&session, &owner, &prefix)).await.map_err(|e| refused(&e)))
    }
}
