//! `kiso.toml`: a skill's description of itself. Every key is enforced. An unknown key is an error with line and column, so that
//! a manifest promises nothing that kiso does not do.

mod args;

pub use self::args::{ArgError, Rules, args_schema, validator};
pub(super) use self::args::{foreign_validator, without_unreadable_patterns};
pub use super::capability::{Needs, Workspace};

use super::capability::NeedsTable;
use super::input::DeclaredSecrets;
use crate::effect::member::{MACHINE_LABEL, is_machine_label};
use crate::package::{Package, PackageSpec};
use kiso_base::home::SkillName;
use kiso_plan::sink::ToolEffect;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A manifest that was parsed and checked.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub name: SkillName,
    pub version: String,
    pub description: String,
    /// One sentence for the planner.
    pub summary: String,
    /// For pruning the tools that a model sees, such as "web"; "other" when not given.
    pub category: String,
    /// Sentences that should lead to this skill; `{arg}` stands for an argument.
    pub examples: Vec<String>,
    /// Session secrets that it may receive.
    pub secrets: Vec<String>,
    /// Environment secrets: name to whether a call needs it.
    pub env: BTreeMap<String, bool>,
    /// JSON Schema (draft 2020-12) of the arguments: always an object.
    pub args: Value,
    pub needs: Needs,
    /// The effects of its tools outside of the sandbox, by tool: which arguments are destinations, and which are content.
    pub effects: BTreeMap<String, ToolEffect>,
    /// A label that a machine must have to run it: one of `fleet.labels`.
    pub runs_on: Option<String>,
    /// The other keys, if the command is a package.
    pub package: Option<Arc<Package>>,
}

/// The reason why a manifest is refused; `line` and `column` count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ManifestError {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kiso: Kiso,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kiso {
    #[serde(rename = "type")]
    kind: toml::Spanned<String>,
    name: toml::Spanned<String>,
    version: toml::Spanned<String>,
    #[serde(default)]
    description: String,
    skill: Option<Skill>,
    package: Option<toml::Spanned<PackageSpec>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skill {
    summary: Option<String>,
    category: Option<String>,
    #[serde(default)]
    examples: Vec<String>,
    #[serde(default)]
    secrets: Vec<toml::Spanned<String>>,
    #[serde(default)]
    args: args::Args,
    #[serde(default)]
    env: BTreeMap<String, Env>,
    #[serde(default)]
    needs: NeedsTable,
    #[serde(default)]
    effects: BTreeMap<String, ToolEffect>,
    runs_on: Option<toml::Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Env {
    #[serde(default)]
    required: bool,
}

/// Largest manifest, in bytes.
pub const MAX_MANIFEST: usize = 64 << 10;
/// Longest description, for people. Models get the summary.
const MAX_DESCRIPTION: usize = 4_000;
/// Longest category: as long as a tag, because `#CATEGORY` names it.
const MAX_CATEGORY: usize = 32;
/// Sizes of text that goes into every planner's prompt. All of a skill together: `surface.rs`.
const MAX_SUMMARY: usize = 400;
const MAX_EXAMPLES: usize = 32;
const MAX_EXAMPLE: usize = 200;
const MAX_SECRETS: usize = 32;
const MAX_EFFECTS: usize = 64;

impl Manifest {
    /// Parses and checks a manifest. `file` is its name in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, ManifestError> {
        Self::read(file, text, Rules::Compiled)
    }

    /// Reads a manifest that kiso's tests have checked. Its rules are not tried again.
    pub fn parse_known(file: &str, text: &str) -> Result<Self, ManifestError> {
        Self::read(file, text, Rules::Known)
    }

    fn read(file: &str, text: &str, rules: Rules) -> Result<Self, ManifestError> {
        let source = Source { file, text };
        if text.len() > MAX_MANIFEST {
            return Err(source.error_at(0, format!("a manifest has at most {} KiB", MAX_MANIFEST >> 10)));
        }
        let File { kiso } = toml::from_str(text).map_err(|error| source.toml(&error))?;
        if kiso.kind.get_ref() != "skill" {
            return Err(source.error_at(kiso.kind.span().start, "`type` must be \"skill\""));
        }
        let name = SkillName::parse(kiso.name.get_ref())
            .map_err(|e| source.error_at(kiso.name.span().start, e.to_string()))?;
        let version = kiso.version.get_ref().clone();
        if version.is_empty() || version.len() > 64 || version.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(source.error_at(
                kiso.version.span().start,
                "`version` must be 1 to 64 characters without spaces, such as \"0.1.0\"",
            ));
        }
        if kiso.description.len() > MAX_DESCRIPTION {
            let (bytes, at) = (kiso.description.len(), text.find("description").unwrap_or(0));
            return Err(
                source.error_at(at, format!("`description` has {bytes} bytes; at most {MAX_DESCRIPTION} are allowed"))
            );
        }
        let skill = kiso.skill.unwrap_or_else(|| Skill {
            summary: None,
            category: None,
            examples: Vec::new(),
            secrets: Vec::new(),
            args: args::Args::default(),
            env: BTreeMap::new(),
            needs: NeedsTable::default(),
            effects: BTreeMap::new(),
            runs_on: None,
        });
        let summary = skill.summary.unwrap_or_else(|| kiso.description.clone());
        let of_key = |key: &str| text.find(&format!("{key} ")).or_else(|| text.find(key)).unwrap_or(0);
        if summary.trim().is_empty() || summary.len() > MAX_SUMMARY {
            return Err(source.error_at(
                of_key("summary"),
                format!("`summary` (or `description`) must say in 1 to {MAX_SUMMARY} bytes what the skill does"),
            ));
        }
        if skill.examples.len() > MAX_EXAMPLES || skill.examples.iter().any(|e| e.len() > MAX_EXAMPLE) {
            return Err(source.error_at(
                of_key("examples"),
                format!("`examples` holds at most {MAX_EXAMPLES} sentences of {MAX_EXAMPLE} bytes"),
            ));
        }
        let category = skill.category.unwrap_or_else(|| "other".to_owned());
        if !is_category(&category) {
            return Err(source.error_at(
                of_key("category"),
                format!("`category` must be 1 to {MAX_CATEGORY} letters, digits, _ and -, beginning with a letter, such as \"web\""),
            ));
        }
        if skill.secrets.len() + skill.env.len() > MAX_SECRETS {
            return Err(source.error_at(of_key("secrets"), format!("a skill declares at most {MAX_SECRETS} secrets")));
        }
        let mut secrets = Vec::new();
        for secret in skill.secrets {
            let span = secret.span();
            secrets.push(session_secret(secret.get_ref()).map_err(|m| source.error_at(span.start, m))?);
        }
        let mut env = BTreeMap::new();
        for (key, value) in skill.env {
            let name = secret_name(&key).map_err(|m| source.error_at(of_key(&key), m))?;
            env.insert(name, value.required);
        }
        if skill.effects.len() > MAX_EFFECTS {
            return Err(source.error_at(of_key("effects"), format!("`effects` names at most {MAX_EFFECTS} tools")));
        }
        if let Some(label) = skill.runs_on.as_ref().filter(|label| !is_machine_label(label.get_ref())) {
            let message = format!("`runs_on` must be a machine label: {MACHINE_LABEL}, such as \"gpu\"");
            return Err(source.error_at(label.span().start, message));
        }
        let args = args_schema(&skill.args, rules).map_err(|e| source.error_at(e.offset, e.message))?;
        let declared: Vec<&str> = secrets.iter().chain(env.keys()).map(String::as_str).collect();
        let needs = skill.needs.check(&declared).map_err(|(offset, message)| source.error_at(offset, message))?;
        let package = match kiso.package {
            None => None,
            Some(spec) => {
                let start = spec.span().start;
                let package = Package::new(name.as_str(), &version, spec.into_inner());
                Some(Arc::new(package.map_err(|message| source.error_at(start, message))?))
            }
        };
        let mut manifest = Self {
            package,
            name,
            version,
            description: kiso.description,
            summary,
            category,
            examples: skill.examples,
            secrets,
            env,
            args,
            needs,
            effects: skill.effects,
            runs_on: skill.runs_on.map(toml::Spanned::into_inner),
        };
        // Secrets that are only injected into requests are not among them.
        let declared = manifest.secrets.iter().chain(manifest.env.keys());
        manifest.needs.secrets = declared.filter(|secret| !manifest.is_injected(secret)).cloned().collect();
        Ok(manifest)
    }

    /// The secrets that the manifest names.
    pub fn declared_secrets(&self) -> DeclaredSecrets {
        let declared = self.secrets.iter().chain(self.env.keys());
        let injected = declared.filter(|secret| self.is_injected(secret)).cloned().collect();
        DeclaredSecrets { session: self.secrets.clone(), environment: self.env.clone(), injected }
    }

    /// Whether the host injects this secret into requests. The guest never gets it.
    fn is_injected(&self, secret: &str) -> bool {
        self.needs.http.iter().any(|need| need.inject.as_ref().is_some_and(|inject| inject.secret == secret))
    }

    /// The manifest of a component that has none: only its name is known.
    pub fn derived(name: SkillName, summary: String, args: Value) -> Self {
        Self {
            name,
            version: "0.0.0".to_owned(),
            description: summary.clone(),
            summary,
            category: "other".to_owned(),
            examples: Vec::new(),
            secrets: Vec::new(),
            env: BTreeMap::new(),
            args,
            needs: Needs::default(),
            effects: BTreeMap::new(),
            runs_on: None,
            package: None,
        }
    }
}

fn is_category(category: &str) -> bool {
    category.chars().count() <= MAX_CATEGORY
        && category.starts_with(char::is_alphabetic)
        && category.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// The name of a session secret, or `*` and the end of such names.
fn session_secret(declared: &str) -> Result<String, String> {
    match declared.strip_prefix('*') {
        Some(end) => secret_name(end).map(|_| declared.to_owned()),
        None => secret_name(declared),
    }
}

/// A valid name for an environment variable.
fn secret_name(name: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if fits {
        Ok(name.to_owned())
    } else {
        Err(format!("`{name}` is not a name for a secret: 1 to 64 of a-z, 0-9 and _, starting with a letter"))
    }
}

/// The text that errors point into.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn error_at(&self, offset: usize, message: impl Into<String>) -> ManifestError {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        ManifestError {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }

    fn toml(&self, error: &toml::de::Error) -> ManifestError {
        // One line: `expected` lists the allowed keys already.
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        self.error_at(error.span().map_or(0, |s| s.start), message)
    }
}
