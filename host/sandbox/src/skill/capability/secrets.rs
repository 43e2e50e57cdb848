//! `kiso:skill/secrets`: values that the manifest declares and an administrator granted.

use super::{Capability, Doc, Flag, GrantByName, GuestState, failure};
use crate::engine::limits::HitCell;
use crate::skill::error::SkillError;
use crate::skill::input::CallInput;
use crate::skill::usage::CapabilityUse;
use crate::skill::wit::since_v0_1::kiso::skill::secrets::{Host, add_to_linker};
use crate::skill::wit::since_v0_1::kiso::skill::types::Failure;
use crate::skill::wit::{ImportSpec, V0_1};
use kiso_base::home::SkillName;
use kiso_plan::code::{Blame, ErrorCode};
use kiso_store::secret::{SecretValue, variable};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::WasiCtxBuilder;

/// The kind of use of a secret.
const RECEIVED: &str = "received";

/// The secrets that a call may read.
#[derive(Debug, Default)]
pub struct ReadableSecrets {
    /// Values by name, for secrets that are declared, granted and set.
    values: BTreeMap<String, SecretValue>,
    /// For values that were declared by the end of the name: the declaration.
    by_end: BTreeMap<String, String>,
    /// Variables of the environment: the [`ReadableSecrets::values`] that come from it.
    variables: Vec<(String, String)>,
    /// Declared for injection into requests only. The guest never gets them.
    injected: BTreeSet<String>,
    /// Declared, but not granted.
    denied: Vec<String>,
    /// Declared and granted, or injected, but without a value: name and how to set it.
    unset: Vec<(String, String)>,
    /// Whether the guest asked for a secret that it may not have.
    refusal: Option<String>,
    /// Secrets that the guest has received. Everything in its environment counts.
    received: BTreeSet<String>,
}

impl Capability for ReadableSecrets {
    const IMPORTS: &'static [ImportSpec] = &[ImportSpec::skill("kiso:skill/secrets", V0_1)];
    const DOC: Doc = Doc {
        about: "read secrets by name",
        asked: "secrets = [\"token\"]` in `[kiso.skill]`, or a key of `[kiso.skill.env]",
    };
    type Allowed = BTreeSet<String>;

    fn link<T: GuestState>(linker: &mut Linker<T>, state: fn(&mut T) -> &mut Self) -> wasmtime::Result<()> {
        add_to_linker::<T, HasSelf<Self>>(linker, state)
    }

    fn prepare(call: &CallInput<'_>, allowed: &Self::Allowed, _: &HitCell) -> Result<Self, SkillError> {
        let mut secrets = Self { injected: call.declared.injected.clone(), ..Self::default() };
        let declared = call.declared.session.iter().chain(call.declared.environment.keys());
        for name in declared.filter(|name| !call.declared.injected.contains(*name)) {
            if !allowed.contains(name) {
                secrets.denied.push(name.clone());
                continue;
            }
            if name.starts_with('*') {
                for (known, value) in call.secrets.session_by_end(name) {
                    secrets.values.insert(known.to_owned(), value.clone());
                    secrets.by_end.insert(known.to_owned(), name.clone());
                }
                continue;
            }
            match find(call, name)? {
                Ok(value) => {
                    if call.declared.environment.contains_key(name)
                        && let Some(value) = call.secrets.environment(&call.skill, name)
                    {
                        secrets.variables.push((variable(&call.skill, name), value.expose().to_owned()));
                        secrets.received.insert(name.clone());
                    }
                    secrets.values.insert(name.clone(), value);
                }
                Err(how) => secrets.unset.push((name.clone(), how)),
            }
        }
        // A skill may learn that a secret has no value, so that it can do without.
        for name in &secrets.injected {
            if let Ok(Err(how)) = find(call, name) {
                secrets.unset.push((name.clone(), how));
            }
        }
        Ok(secrets)
    }

    fn show(&self, wasi: &mut WasiCtxBuilder) -> Result<(), String> {
        wasi.envs(&self.variables);
        Ok(())
    }

    fn used(&self) -> CapabilityUse {
        let mut used = CapabilityUse::default();
        let declared = |name| self.by_end.get(name).unwrap_or(name);
        self.received.iter().for_each(|name| used.add(RECEIVED, declared(name)));
        used
    }
}

impl GrantByName for ReadableSecrets {
    const FLAG: Flag = Flag {
        name: "secret",
        value: Some("NAME"),
        help: "Also receive this secret",
        requires: None,
        conflicts_with: None,
    };

    fn check_name(_: &str) -> Result<(), String> {
        // A secret that is not declared has no effect.
        Ok(())
    }

    fn line(name: &str) -> String {
        match name.strip_prefix('*') {
            Some(end) => format!("receive every secret of the conversation whose name ends with `{end}`"),
            None => format!("receive the secret `{name}`"),
        }
    }

    fn not_asked(name: &str, skill: &str) -> String {
        format!("{skill} declares no secret `{name}` that it reads itself, so a grant of it would have no effect")
    }

    fn least_names(granted: &BTreeSet<String>, used: &CapabilityUse) -> BTreeSet<String> {
        if used.has_more() {
            return granted.clone();
        }
        used.names(RECEIVED).filter_map(|name| granted.get(name).cloned()).collect()
    }

    fn names_json(key: &str, names: &BTreeSet<String>, into: &mut Map<String, Value>) {
        into.insert(key.to_owned(), names.iter().map(|name| json!({ "name": name })).collect());
    }
}

impl ReadableSecrets {
    /// The values that the guest may read, by name.
    pub fn values(&self) -> &BTreeMap<String, SecretValue> {
        &self.values
    }

    /// Marks all values as received, because a command's input contains all of them.
    pub fn hand_over(&mut self) {
        self.received.extend(self.values.keys().cloned());
    }

    /// Puts all values into the environment, for a command whose standard input is the command line's.
    pub fn hand_over_in_environment(&mut self, skill: &SkillName) {
        for (name, value) in &self.values {
            let variable = variable(skill, name);
            if !self.variables.iter().any(|(known, _)| *known == variable) {
                self.variables.push((variable, value.expose().to_owned()));
            }
        }
        self.hand_over();
    }

    /// Whether a variable of the environment contains one of them.
    pub fn is_variable(&self, variable: &str) -> bool {
        self.variables.iter().any(|(known, _)| known == variable)
    }
}

/// The value of a declared secret, or how to set it. A call that needs a secret without a value fails.
pub(super) fn find(call: &CallInput<'_>, name: &str) -> Result<Result<SecretValue, String>, SkillError> {
    let declared = &call.declared;
    let given = declared.session.iter().any(|declared| declared == name).then(|| call.secrets.session(name));
    let Some(required) = declared.environment.get(name) else {
        return Ok(given.flatten().cloned().ok_or_else(|| "give it in the conversation".to_owned()));
    };
    match call.secrets.environment(&call.skill, name) {
        Some(value) => Ok(Ok(value.clone())),
        None if *required => {
            let how = in_environment(call, name);
            let message = format!("it needs the secret `{name}`, which is not set; {how}");
            Err(SkillError::new(call.skill.as_str(), Blame::Caller, ErrorCode::SecretMissing, message))
        }
        None => Ok(given.flatten().cloned().ok_or_else(|| in_environment(call, name))),
    }
}

fn in_environment(call: &CallInput<'_>, name: &str) -> String {
    format!("set {} where kiso runs", variable(&call.skill, name))
}

impl ReadableSecrets {
    /// The message to the guest when it was refused a secret.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

impl Host for ReadableSecrets {
    async fn get(&mut self, name: String) -> wasmtime::Result<Result<String, Failure>> {
        if let Some(value) = self.values.get(&name) {
            let value = value.expose().to_owned();
            self.received.insert(name);
            return Ok(Ok(value));
        }
        let unset = self.unset.iter().find(|(unset, _)| *unset == name);
        let refusal = if unset.is_some() {
            None
        } else if self.injected.contains(&name) {
            Some(format!(
                "the secret `{name}` goes into the headers of requests (`inject` in kiso.toml); kiso adds it there, and no skill can read it"
            ))
        } else if self.denied.contains(&name) {
            Some(format!("the secret `{name}` is not granted to this skill"))
        } else {
            None
        };
        if let Some(message) = refusal {
            self.refusal = Some(message.clone());
            return Ok(Err(failure(ErrorCode::Denied, message)));
        }
        Ok(Err(match unset {
            Some((_, how)) => failure(ErrorCode::NotFound, format!("the secret `{name}` is not set; {how}")),
            None => {
                failure(ErrorCode::Undeclared, format!("the skill's kiso.toml does not declare the secret `{name}`"))
            }
        }))
    }
}
