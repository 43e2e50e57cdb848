//! `kiso:skill/secrets`: values that the manifest declares and an administrator granted.

use super::failure;
use crate::skill::ctx::Ctx;
use crate::skill::wit::since_v0_1::kiso::skill::secrets::Host;
use crate::skill::wit::since_v0_1::kiso::skill::types::Failure;

impl Host for Ctx {
    async fn get(&mut self, name: String) -> wasmtime::Result<Result<String, Failure>> {
        let secrets = &self.secrets;
        if let Some(value) = secrets.values.get(&name) {
            return Ok(Ok(value.expose().to_owned()));
        }
        if secrets.injected.contains(&name) {
            let message = format!(
                "the secret `{name}` goes into the headers of requests (`inject` in kiso.toml); kiso adds it there, and no skill can read it"
            );
            return Ok(Err(failure("denied", message)));
        }
        if secrets.denied.contains(&name) {
            return Ok(Err(failure("denied", format!("the secret `{name}` is not granted to this skill"))));
        }
        Ok(Err(match secrets.unset.iter().find(|(unset, _)| *unset == name) {
            Some((_, how)) => failure("not-found", format!("the secret `{name}` is not set; {how}")),
            None => failure("undeclared", format!("the skill's kiso.toml does not declare the secret `{name}`")),
        }))
    }
}
