//! The views of a skill, its needs and its grant for the command line and the gateway.

use super::grant::{Grant, RequestedGrant};
use super::manifest::Manifest;
use super::{AgentFile, AgentSkill, CallEnd, InstalledSkill, Shape, SkillError, Skills};
use kiso_base::home::SessionName;
use kiso_plan::report::{FileNote, LimitUse, LogLine};
use kiso_plan::sink::{ArgumentRoles, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use strum::IntoStaticStr;

/// A skill, as in a listing. One that cannot be used has its name and an `error`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Skill")]
pub struct SkillLine {
    pub skill: String,
    #[serde(flatten)]
    pub about: Option<SkillSummary>,
    /// Its needs that were not granted, a sentence each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<Vec<String>>,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The fields of a skill that every view shows.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillSummary {
    pub version: String,
    pub origin: SkillOrigin,
    pub shape: SkillForm,
    pub category: String,
    pub summary: String,
    pub tools: Vec<ToolView>,
}

/// The kind of a skill: a component of one of three shapes, or an Agent Skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkillForm {
    Skill,
    Command,
    Functions,
    /// A folder with a `SKILL.md`.
    AgentSkill,
}

impl From<Shape> for SkillForm {
    fn from(shape: Shape) -> SkillForm {
        match shape {
            Shape::Skill => SkillForm::Skill,
            Shape::Command => SkillForm::Command,
            Shape::Functions => SkillForm::Functions,
        }
    }
}

/// The fields that only an Agent Skill has.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentSkillView {
    pub license: Option<String>,
    /// Its requirements, in its publisher's words.
    pub compatibility: Option<String>,
    pub metadata: Map<String, Value>,
    /// The tools that it leaves while it is in use; null where it takes none away.
    pub allowed_tools: Option<Vec<String>>,
    /// Whether it is hidden from models, so that it is used only when somebody names it.
    pub by_name_only: bool,
    /// Its folder, as command lines see it.
    pub place: String,
    pub files: Vec<AgentFile>,
    /// Differences from the specification, a sentence each.
    pub warnings: Vec<String>,
}

/// Where a skill is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SkillOrigin {
    Bundled,
    Installed,
}

/// Something that can be called.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tool")]
pub struct ToolView {
    pub name: String,
    /// JSON Schema of the arguments.
    #[schemars(extend("type" = "object"))]
    pub args: Value,
}

/// Everything about a skill that is worth showing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillInfo {
    pub skill: String,
    #[serde(flatten)]
    pub about: SkillSummary,
    pub description: String,
    /// SHA-256 of its file; of an Agent Skill, over all its files.
    pub digest: String,
    /// Where it came from: `file:PATH`, or `upload:DIGEST`.
    pub source: Option<String>,
    /// The key of minisign that signed it, a line of base64; the skill is pinned to it.
    pub signer: Option<String>,
    /// The version of the SDK that it was written with.
    pub sdk: Option<String>,
    pub examples: Vec<String>,
    /// The effects outside of the sandbox that its manifest declares, a sentence each; kiso enforces them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
    /// The label of machines that it runs on; absent for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_on: Option<String>,
    /// The needs in its manifest.
    pub needs: GrantView,
    /// The access of a call.
    #[schemars(with = "Map<String, Value>")]
    pub allowed: Value,
    /// Its needs that were not granted, a sentence each.
    pub asks: Vec<String>,
    pub grant: GrantView,
    /// Of an Agent Skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_skill: Option<AgentSkillView>,
}

/// The needs of a skill, the part of them beyond a grant, or a grant: one form for all three, so that a client can show the
/// difference. Each capability writes its own members.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Grant")]
pub struct GrantView {
    #[serde(default)]
    pub http: Vec<HostView>,
    #[serde(default)]
    pub secrets: Vec<SecretView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["none", "read", "write"]))]
    pub workspace: Option<String>,
    /// Capabilities that are granted by name, and what each lets the skill do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<NamedView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    /// The same time in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// The access that needs the approval of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskView>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The access that needs approval in each run: docs/approvals.md.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AskView {
    #[serde(default)]
    pub http: Vec<HostView>,
    #[serde(default)]
    pub secrets: Vec<SecretView>,
}

/// A host that may be reached.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Host")]
pub struct HostView {
    pub host: String,
    pub methods: Vec<String>,
    /// Whether its address may be a private one.
    #[serde(default)]
    pub private: bool,
    /// A secret that kiso puts into a header of each request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject: Option<InjectView>,
}

/// Which secret goes into which header.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Inject")]
pub struct InjectView {
    pub header: String,
    pub secret: String,
}

/// A secret that the skill may read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Secret")]
pub struct SecretView {
    pub name: String,
}

/// A thing by its name in the terms of a capability.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Named")]
pub struct NamedView {
    pub capability: String,
    pub name: String,
    /// The permission that it gives to the skill.
    pub text: String,
}

/// How a call ended, well or not: `ok` says so.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Called")]
pub struct EndedView {
    pub tool: String,
    pub session: SessionName,
    pub ok: bool,
    pub text: Option<String>,
    pub data: Option<Value>,
    pub files: Vec<WrittenFile>,
    pub error: Option<SkillError>,
    pub log: Vec<LogLine>,
    pub stdout: String,
    pub stderr: String,
    pub used: LimitUse,
}

/// A file that a call wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WrittenFile {
    /// In the workspace.
    pub path: String,
    /// On this machine; said on the command line only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_path: Option<PathBuf>,
    pub media_type: String,
    pub bytes: u64,
    pub title: Option<String>,
    /// `/pub/ID` when it was published.
    pub link: Option<String>,
}

impl Skills {
    /// The needs of the skill that were not granted.
    pub fn missing(&self, skill: &InstalledSkill, grant: &Grant) -> RequestedGrant {
        let missing = RequestedGrant::from_manifest(&skill.manifest, &self.config().engine).beyond(grant);
        // A bundled skill has its memory and time without a grant.
        if skill.is_bundled() {
            return RequestedGrant(Grant { memory_mib: None, timeout_s: None, ..missing.0 });
        }
        missing
    }

    /// A skill in a listing; with the error if it cannot be used.
    pub fn line_of(&self, found: &Result<Arc<InstalledSkill>, SkillError>) -> SkillLine {
        match found {
            Ok(skill) => self.line(skill),
            Err(SkillError { skill, message, .. }) => {
                SkillLine { skill: skill.clone(), about: None, asks: None, error: Some(message.clone()) }
            }
        }
    }

    /// A usable skill in a listing.
    pub fn line(&self, skill: &InstalledSkill) -> SkillLine {
        let asks = self.grant(skill).map(|grant| self.missing(skill, &grant).sentences());
        let (asks, error) = match asks {
            Ok(asks) => (Some(asks), None),
            Err(error) => (None, Some(error.message)),
        };
        SkillLine { skill: skill.name().to_string(), about: Some(skill.summary()), asks, error }
    }

    /// All information about a skill: docs/json.md, `kiso skill info`.
    pub fn shown(&self, skill: &InstalledSkill) -> Result<SkillInfo, SkillError> {
        let allowed = self.allowed(skill)?;
        let grant = self.grant(skill)?;
        let manifest = &skill.manifest;
        Ok(SkillInfo {
            skill: manifest.name.to_string(),
            about: skill.summary(),
            description: manifest.description.clone(),
            digest: skill.digest().to_owned(),
            source: skill.source().map(str::to_owned),
            signer: skill.signer().map(str::to_owned),
            sdk: skill.sdk.clone(),
            examples: manifest.examples.clone(),
            effects: effect_sentences(manifest),
            runs_on: manifest.runs_on.clone(),
            needs: needs(manifest),
            allowed: allowed.json(),
            asks: self.missing(skill, &grant).sentences(),
            grant: grant.shown(),
            agent_skill: None,
        })
    }

    /// A line for every skill: components, bundled ones first, then Agent Skills, each group by name.
    pub fn lines(&self) -> Vec<SkillLine> {
        let mut lines: Vec<SkillLine> = self.list().iter().map(|found| self.line_of(found)).collect();
        lines.extend(self.agent_skills().iter().map(agent_line));
        lines
    }

    /// [`Skills::shown`] for the skill of this name, a component or an Agent Skill.
    pub fn info(&self, name: &str) -> Result<SkillInfo, SkillError> {
        match self.agent_skill(name)? {
            Some(skill) => Ok(skill.shown()),
            None => self.shown(&*self.find(name)?),
        }
    }
}

#[expect(clippy::expect_used, reason = "each capability writes members of its form")]
fn with_limits(mut shown: Map<String, Value>, memory_mib: Option<u64>, timeout_s: Option<u64>) -> GrantView {
    if let Some(memory_mib) = memory_mib {
        shown.insert("memory_mib".to_owned(), json!(memory_mib));
    }
    if let Some(timeout_s) = timeout_s {
        shown.insert("timeout_s".to_owned(), json!(timeout_s));
        shown.insert("time_ms".to_owned(), json!(timeout_s.saturating_mul(1_000)));
    }
    serde_json::from_value(shown.into()).expect("each capability writes members of its form")
}

/// The effects outside of the sandbox that a manifest declares, a sentence each.
pub fn effect_sentences(manifest: &Manifest) -> Vec<String> {
    let sentence = |(tool, effect): (&String, &ToolEffect)| match effect {
        ToolEffect::Reads(_) => format!("{tool} changes nothing outside"),
        ToolEffect::Changes(ArgumentRoles { address, value, content }) => {
            let of =
                |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")));
            let parts = [of("where to", address), of("how much or when", value), of("words", content)];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            format!("{tool} changes something outside ({})", parts.join("; "))
        }
    };
    manifest.effects.iter().map(sentence).collect()
}

/// The needs of the manifest, also those that every skill gets.
fn needs(manifest: &Manifest) -> GrantView {
    let needs = &manifest.needs;
    with_limits(needs.json(), needs.memory_mib, needs.timeout_s)
}

impl RequestedGrant {
    /// The form in the gateway's API: docs/api.md.
    pub fn shown(&self) -> GrantView {
        self.0.shown()
    }

    /// A sentence for each need.
    pub fn sentences(&self) -> Vec<String> {
        self.to_string().lines().map(|line| line.trim().to_owned()).collect()
    }
}

impl Grant {
    /// The same form for a grant.
    pub fn shown(&self) -> GrantView {
        with_limits(self.json(), self.memory_mib, self.timeout_s)
    }
}

impl SkillOrigin {
    /// "bundled" or "installed".
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl InstalledSkill {
    pub fn origin(&self) -> SkillOrigin {
        if self.is_bundled() { SkillOrigin::Bundled } else { SkillOrigin::Installed }
    }

    fn summary(&self) -> SkillSummary {
        let tools =
            self.tools.iter().map(|tool| ToolView { name: tool.name.clone(), args: tool.args.schema().clone() });
        SkillSummary {
            version: self.manifest.version.clone(),
            origin: self.origin(),
            shape: self.shape.into(),
            category: self.manifest.category.clone(),
            summary: self.manifest.summary.clone(),
            tools: tools.collect(),
        }
    }
}

fn agent_line(found: &Result<Arc<AgentSkill>, SkillError>) -> SkillLine {
    match found {
        Ok(skill) => skill.line(),
        Err(error) => {
            SkillLine { skill: error.skill.clone(), about: None, asks: None, error: Some(error.message.clone()) }
        }
    }
}

impl AgentSkill {
    /// The skill in a listing.
    pub fn line(&self) -> SkillLine {
        SkillLine { skill: self.name.to_string(), about: Some(self.summary()), asks: Some(Vec::new()), error: None }
    }

    /// All information about the skill: docs/json.md, `kiso skill info`.
    pub fn shown(&self) -> SkillInfo {
        let nothing = || with_limits(Map::from_iter([("http".to_owned(), json!([]))]), None, None);
        let metadata = self.metadata.iter().map(|(key, value)| (key.clone(), json!(value)));
        SkillInfo {
            skill: self.name.to_string(),
            about: self.summary(),
            description: self.description.clone(),
            digest: self.digest.clone(),
            source: Some(self.source.clone()),
            signer: self.provenance.signer.clone(),
            sdk: None,
            examples: Vec::new(),
            effects: Vec::new(),
            runs_on: None,
            needs: nothing(),
            allowed: json!({}),
            asks: Vec::new(),
            grant: nothing(),
            agent_skill: Some(AgentSkillView {
                license: self.license.clone(),
                compatibility: self.compatibility.clone(),
                metadata: metadata.collect(),
                allowed_tools: self.allowed_tools.clone(),
                by_name_only: self.by_name_only,
                place: self.place(),
                files: self.files.clone(),
                warnings: self.warnings.clone(),
            }),
        }
    }

    fn summary(&self) -> SkillSummary {
        SkillSummary {
            version: self.version().to_owned(),
            origin: SkillOrigin::Installed,
            shape: SkillForm::AgentSkill,
            category: "agent-skill".to_owned(),
            summary: self.description.clone(),
            tools: Vec::new(),
        }
    }
}

impl CallEnd {
    /// The end of the call: docs/json.md, `kiso skill run`. With `work`, files also have their paths on this machine.
    pub fn shown(&self, tool: &str, session: &SessionName, work: Option<&Path>) -> EndedView {
        let (answer, error) = (self.result.as_ref().ok(), self.result.as_ref().err());
        let files = answer.map(|answer| &answer.files).into_iter().flatten();
        let files = files.map(|FileNote { path, media_type, bytes, title, link }| WrittenFile {
            path: path.clone(),
            host_path: work.map(|work| work.join(path)),
            media_type: media_type.clone(),
            bytes: *bytes,
            title: title.clone(),
            link: link.clone(),
        });
        EndedView {
            tool: tool.to_owned(),
            session: session.clone(),
            ok: error.is_none(),
            text: answer.map(|answer| answer.text.clone()),
            data: answer.and_then(|answer| answer.data.clone()),
            files: files.collect(),
            error: error.cloned(),
            log: self.log.clone(),
            stdout: self.stdout.clone(),
            stderr: self.stderr.clone(),
            used: self.used,
        }
    }
}
