//! `kiso skill search`: searches the packages of kiso, the indexes of `config.toml`, and the tags of a registry.

use super::open;
use super::push::RegistryArgs;
use crate::cli::listing::row;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Shared, block_on};
use kiso_plan::report::size;
use kiso_sandbox::skill::signature::{AGENT_SKILL, PACKAGE};
use kiso_sandbox::skill::{BUILT_IN, CATALOGUE, FoundSkill, IndexedSkill, OciReference, Skills};
use serde_json::{Value, json};

/// Maximum tags of a name in a registry to search, newest first.
const MAX_TAGS: usize = 50;

/// Maximum skills that are shown.
const MAX_SHOWN: usize = 200;

#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// Words that must all be in the name or the summary [default: list all]
    words: Vec<String>,
    /// Search the tags of this name in a registry instead: oci://HOST/NAME; repeat for several
    #[arg(long = "registry", value_name = "OCI")]
    names: Vec<String>,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl SearchArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        if !self.names.is_empty() {
            return self.registries(&opened.skills, &show, shared.json);
        }
        show.busy("search");
        let searched = block_on(opened.skills.search_indexes(&self.words, None));
        show.rest();
        let (found, failed) = searched??;
        let packages = opened.skills.catalogue(&self.words);
        let of_indexes = found.iter().map(|FoundSkill { index, index_name, skill }| {
            (skill, index_name.as_str(), index.at.as_str(), Some(index.key.id.to_string()))
        });
        let all = of_indexes.chain(packages.iter().map(|package| (package, CATALOGUE, BUILT_IN, None)));
        for (skill, name, at, key) in all.take(MAX_SHOWN) {
            let installed = installed_version(&opened.skills, skill);
            let index = json!({ "name": name, "at": at, "key": key });
            print(skill, name, &index, installed.as_deref(), shared.json);
        }
        let count = found.len() + packages.len();
        if count > MAX_SHOWN {
            show.line(&format!("{} more; search for more words", count - MAX_SHOWN));
        }
        if count == 0 && failed.is_empty() {
            show.line("no skill has all of these words");
        }
        let mut exit = Exit::Done;
        for error in failed {
            let failure = Failure::from(error.to_skill_error("search"));
            exit = failure.exit;
            failure.print(shared.json);
        }
        Ok(exit)
    }

    fn registries(&self, skills: &Skills, show: &Show, as_json: bool) -> Result<Exit, Failure> {
        let who = self.registry.credentials()?;
        for name in &self.names {
            let of = OciReference::parse(name)?;
            show.busy(name);
            let looked = block_on(async {
                let mut tags = skills.tags(&of, &who).await?;
                tags.sort_by(|a, b| skills.later_tag(b, a));
                let mut found = Vec::new();
                for tag in tags.into_iter().take(MAX_TAGS) {
                    let at = of.tagged(&tag);
                    found.push((tag, skills.described(&at, &who).await));
                }
                Ok::<_, kiso_sandbox::skill::SkillError>(found)
            });
            show.rest();
            for (tag, described) in looked?? {
                // A name may also have tags that are not skills.
                let Ok(described) = described else { continue };
                let title = described.title.as_deref().unwrap_or_default();
                let text = format!("{title} {tag} {}", of.name()).to_lowercase();
                if !self.words.iter().all(|word| text.contains(&word.to_lowercase())) {
                    continue;
                }
                let (place, version) = (of.tagged(&tag).to_string(), described.version.as_deref());
                if as_json {
                    let object = json!({
                        "type": "tag", "name": title, "version": version, "kind": described.kind, "place": place,
                        "digest": described.digest,
                    });
                    outln!("{object}");
                } else {
                    let (version, kind) = (printable_line(version.unwrap_or_default()), kind_word(described.kind));
                    let head = format!("{:24} {version:10} {kind:9}", printable_line(title));
                    row(&head, &format!("{place}@{}", described.digest));
                }
            }
        }
        Ok(Exit::Done)
    }
}

/// Returns the installed version of a skill with this name.
fn installed_version(skills: &Skills, of: &IndexedSkill) -> Option<String> {
    match skills.find(&of.name) {
        Ok(skill) => Some(skill.manifest.version.clone()),
        Err(_) => skills.agent_skill(&of.name).ok().flatten().map(|skill| skill.version().to_owned()),
    }
}

fn print(skill: &IndexedSkill, index_name: &str, index: &Value, installed: Option<&str>, as_json: bool) {
    if as_json {
        let object = json!({
            "type": "found", "name": skill.name, "version": skill.version, "kind": skill.kind, "summary": skill.summary,
            "license": skill.license, "sha256": skill.sha256, "size": skill.size, "place": skill.place,
            "commands": skill.commands, "index": index, "installed": installed,
        });
        outln!("{object}");
        return;
    }
    let state = match installed {
        None => String::new(),
        Some(version) if version == skill.version => "installed: ".to_owned(),
        Some(version) => format!("{} is installed: ", printable_line(version)),
    };
    let about = match skill.kind == PACKAGE {
        true => format!("; {}, {}", size(skill.size), skill.license.as_deref().unwrap_or_default()),
        false => String::new(),
    };
    let head = format!("{:24} {:10} {:9}", skill.name, printable_line(&skill.version), kind_word(&skill.kind));
    row(&head, &format!("{state}{}  ({index_name}{about})", skill.summary));
}

/// Returns the word for listings.
fn kind_word(kind: &str) -> &'static str {
    match kind {
        AGENT_SKILL => "agent",
        PACKAGE => "package",
        _ => "component",
    }
}
