//! `kiso:skill/kv`: small values that outlive a call.

use super::{failure, refused};
use crate::home::{SessionName, SkillName};
use crate::skill::ctx::Ctx;
use crate::skill::wit::since_v0_1::kiso::skill::kv::Host;
use crate::skill::wit::since_v0_1::kiso::skill::types::Failure;

/// Whether values of `kv` reach the disk. A self-test and `kiso skill test` leave nothing behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Disk,
    Nothing,
}

impl Ctx {
    /// The space that values belong to.
    fn owner(&self) -> (SessionName, SkillName) {
        (self.session.clone(), self.skill.clone())
    }
}

impl Host for Ctx {
    async fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<Vec<u8>>, Failure>> {
        let (session, skill) = self.owner();
        Ok(self.store.read(move |view| view.kv_get(&session, &skill, &key)).await.map_err(|e| refused(&e)))
    }

    async fn set(&mut self, key: String, value: Vec<u8>) -> wasmtime::Result<Result<(), Failure>> {
        if self.keep == Keep::Nothing {
            return Ok(Err(failure("unavailable", "values are not kept in a test")));
        }
        let (session, skill) = self.owner();
        Ok(self.store.write(move |tx| tx.kv_set(&session, &skill, &key, &value)).await.map_err(|e| refused(&e)))
    }

    async fn delete(&mut self, key: String) -> wasmtime::Result<Result<bool, Failure>> {
        if self.keep == Keep::Nothing {
            return Ok(Err(failure("unavailable", "values are not kept in a test")));
        }
        let (session, skill) = self.owner();
        Ok(self.store.write(move |tx| tx.kv_delete(&session, &skill, &key)).await.map_err(|e| refused(&e)))
    }

    async fn keys(&mut self, prefix: String) -> wasmtime::Result<Result<Vec<String>, Failure>> {
        let (session, skill) = self.owner();
        Ok(self.store.read(move |view| view.kv_keys(&session, &skill, &prefix)).await.map_err(|e| refused(&e)))
    }
}
