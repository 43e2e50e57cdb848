//! A search of the indexes as a client sees it.

use super::{BUILT_IN, CATALOGUE, FoundSkill, IndexError, IndexedSkill};
use crate::skill::Skills;
use crate::skill::error::SkillError;
use crate::skill::publisher::TrustedKey;
use crate::skill::signature::{self, AGENT_SKILL, PACKAGE};
use kiso_plan::code::ErrorCode;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::time::Duration;

/// The skills found in the indexes that `config.toml` names, and after those the packages of kiso.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IndexSearch {
    /// Where the indexes are. None means that `[skills] index` names none.
    indexes: Vec<String>,
    /// The newest version of each skill that has all words in its name or summary.
    items: Vec<IndexedSkillView>,
    /// How many more there are.
    more: usize,
    /// The errors of indexes that could not be read. The items have no skills of these.
    problems: Vec<IndexProblem>,
}

/// A skill of an index. The author of the index wrote its texts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "IndexedSkill")]
pub(super) struct IndexedSkillView {
    name: String,
    version: String,
    kind: IndexedKind,
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    /// Whose signature is with it. Whether it fits the file is checked when the skill is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    publisher: Option<KeyView>,
    index: IndexView,
    /// Where its file is: a name beside the index, or an address.
    place: String,
    /// SHA-256 of the file; of a package of kiso, that of its component.
    sha256: String,
    /// Of a package, its names in command lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<String>,
    /// Bytes of the file; of a package of kiso, of everything that is fetched.
    size: u64,
    /// The command line that installs it.
    command: String,
    /// The version of the skill that has this name here already.
    #[serde(skip_serializing_if = "Option::is_none")]
    installed: Option<String>,
}

/// The kind of a file in an index.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum IndexedKind {
    Component,
    AgentSkill,
    /// A command that is fetched by digest.
    Package,
}

/// The number of a key, and its local name if it is trusted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Publisher")]
pub(super) struct KeyView {
    key: String,
    trusted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

/// The index that a skill was found in.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SkillIndex")]
pub(super) struct IndexView {
    /// Its own name.
    name: String,
    /// Its place; "built-in" for the packages of kiso.
    at: String,
    /// Number of the key that has signed it; absent for the packages of kiso, which are a part of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// Why an index was not read.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct IndexProblem {
    /// A stable word, such as "stale-index" or "bad-signature".
    code: ErrorCode,
    message: String,
}

impl Skills {
    /// Searches the indexes for as long as `within`; what did not come by then is a problem of its index. No more than `most` items.
    pub async fn index_search(
        &self,
        words: &[String],
        most: usize,
        within: Duration,
    ) -> Result<IndexSearch, SkillError> {
        let indexes = self.indexes()?.into_iter().map(|place| place.at).collect();
        let (mut found, failed) = self.search_indexes(words, Some(within)).await?;
        let (skills, packages) = (self.clone(), self.catalogue(words));
        let more = (found.len() + packages.len()).saturating_sub(most);
        let shown = tokio::task::spawn_blocking(move || {
            let keys = skills.trusted_keys()?;
            let mut times: HashMap<String, usize> = HashMap::new();
            found.iter().for_each(|one| *times.entry(one.skill.name.clone()).or_default() += 1);
            found.truncate(most);
            let view = |one: FoundSkill| {
                let FoundSkill { index, index_name, skill } = one;
                let of_index = match times[&skill.name] > 1 {
                    true => format!(" --index {}", quoted(&index.at)),
                    false => String::new(),
                };
                let index = IndexView { name: index_name, at: index.at, key: Some(index.key.id.to_string()) };
                skills.view(&keys, index, skill, &of_index)
            };
            let built_in = |skill| {
                let index = IndexView { name: CATALOGUE.to_owned(), at: BUILT_IN.to_owned(), key: None };
                skills.view(&keys, index, skill, "")
            };
            let shown = found.into_iter().map(view).chain(packages.into_iter().map(built_in));
            Ok::<Vec<IndexedSkillView>, SkillError>(shown.take(most).collect())
        });
        let items = shown.await.unwrap_or_else(|panic| Err(SkillError::host("search", panic)))?;
        Ok(IndexSearch { indexes, items, more, problems: failed.iter().map(problem).collect() })
    }

    fn view(&self, keys: &[TrustedKey], index: IndexView, skill: IndexedSkill, of_index: &str) -> IndexedSkillView {
        let publisher = skill.signature.as_deref().and_then(|text| signature::claimed_by(text).ok()).map(|id| {
            let known = keys.iter().find(|known| known.key.id == id);
            let label = known.map(|known| known.label.clone()).filter(|label| !label.is_empty());
            KeyView { key: id.to_string(), trusted: known.is_some(), label }
        });
        let kind = match skill.kind.as_str() {
            AGENT_SKILL => IndexedKind::AgentSkill,
            PACKAGE => IndexedKind::Package,
            _ => IndexedKind::Component,
        };
        let installed = match self.find(&skill.name) {
            Ok(there) => Some(there.manifest.version.clone()),
            Err(_) => self.agent_skill(&skill.name).ok().flatten().map(|there| there.version().to_owned()),
        };
        IndexedSkillView {
            command: format!("kiso skill add {}{of_index}", skill.name),
            name: skill.name,
            version: skill.version,
            kind,
            summary: skill.summary,
            license: skill.license,
            publisher,
            index,
            place: skill.place,
            sha256: skill.sha256,
            commands: skill.commands,
            size: skill.size,
            installed,
        }
    }
}

fn problem(error: &IndexError) -> IndexProblem {
    IndexProblem { code: error.code(), message: error.to_string() }
}

/// Quotes a word for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
