//! Which model answers for which role.

use crate::config::Config;
use crate::llm::reflex::Reflex;
use crate::llm::scripted::Scripted;
use crate::llm::{Model, Role};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The models of all roles. Cheap to clone.
#[derive(Clone)]
pub struct Models(HashMap<Role, Arc<dyn Model>>);

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(role, model)| (role, model.name()))).finish()
    }
}

/// A model string that names nothing.
#[derive(Debug, thiserror::Error)]
#[error("the model {name:?} of the role {role} cannot be used: {why}")]
pub struct ModelError {
    pub role: Role,
    pub name: String,
    pub why: String,
}

impl Models {
    /// Opens the models that `config.toml` names; roles with the same string share one.
    pub fn open(config: &Config) -> Result<Self, ModelError> {
        let mut opened: HashMap<&str, Arc<dyn Model>> = HashMap::new();
        let mut models = HashMap::new();
        for role in Role::ALL {
            let name = config.model_of(role.name());
            let model = match opened.get(name) {
                Some(model) => model.clone(),
                None => open(name).map_err(|why| ModelError { role, name: name.to_owned(), why })?,
            };
            opened.insert(name, model.clone());
            models.insert(role, model);
        }
        Ok(Self(models))
    }

    /// The model of a role.
    pub fn of(&self, role: Role) -> &dyn Model {
        self.0[&role].as_ref()
    }
}

fn open(name: &str) -> Result<Arc<dyn Model>, String> {
    match name.split_once(':') {
        None if name == "reflex" => Ok(Arc::new(Reflex)),
        Some(("scripted", file)) => Ok(Arc::new(Scripted::load(Path::new(file)).map_err(|e| e.to_string())?)),
        _ => Err("this version of kiso has the models \"reflex\" and \"scripted:FILE\"".to_owned()),
    }
}
