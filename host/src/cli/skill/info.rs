//! `kiso skill info`.

use super::open;
use crate::cli::listing::typed;
use crate::cli::show::{printable, printable_line};
use crate::cli::{Exit, Failure, Shared};
use kiso_plan::report::size;
use kiso_sandbox::exec::installed_package;
use kiso_sandbox::package::Package;
use kiso_sandbox::skill::{AgentSkill, Skills, Tool, TrustedKey, effect_sentences, local_name};
use serde_json::Value;

#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// The skill
    name: String,
}

impl InfoArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        if shared.json {
            outln!("{}", typed("info", &opened.skills.info(&self.name)?));
            return Ok(Exit::Done);
        }
        if let Some(skill) = opened.skills.agent_skill(&self.name)? {
            print_agent_skill(&skill, &opened.skills.trusted_keys()?);
            return Ok(Exit::Done);
        }
        let skill = opened.skills.find(&self.name)?;
        let allowed = opened.skills.allowed(&skill)?;
        let digest = skill.digest();
        let manifest = &skill.manifest;
        let shape = skill.shape.describe();
        outln!("{} {}  ({shape}, {})", manifest.name, printable_line(&manifest.version), skill.origin().as_str());
        outln!("{}", printable_line(&manifest.summary));
        outln!("sha256 {digest}");
        if let Some(source) = skill.source() {
            outln!("from {}", printable(source));
        }
        if let Some(signer) = skill.signer() {
            outln!("signed by {}", printable_line(&local_name(&opened.skills.trusted_keys()?, signer)));
        }
        if let Some(sdk) = &skill.sdk {
            outln!("written with kiso-sdk for {}", printable_line(sdk));
        }
        match skill.package() {
            Some(package) => outln!("commands: {}", commands(&opened.skills, package)),
            None => skill.tools.iter().for_each(print_tool),
        }
        if !manifest.examples.is_empty() {
            outln!("\nexamples:");
            for example in &manifest.examples {
                outln!("  {}", printable_line(example));
            }
        }
        let effects = effect_sentences(manifest);
        if !effects.is_empty() {
            outln!("\nsays of its tools:");
            effects.iter().for_each(|effect| outln!("  {}", printable_line(effect)));
        }
        if let Some(label) = &manifest.runs_on {
            outln!("\nruns only on machines with the label {}", printable_line(label));
        }
        outln!("\nallowed:");
        for line in allowed.lines() {
            outln!("  {}", printable_line(&line));
        }
        let grant = opened.skills.grant(&skill)?;
        let missing = opened.skills.missing(&skill, &grant);
        if !missing.is_empty() {
            outln!(
                "\nasked for, but not granted (see `kiso skill grant --help`):\n{}",
                printable(&missing.to_string())
            );
        }
        Ok(Exit::Done)
    }
}

/// Lists the commands of an installed package. Commands with the same name in another package may be used from there
/// instead.
fn commands(skills: &Skills, package: &Package) -> String {
    let with_owner = |command: &String| match installed_package(skills, command) {
        Some(skill) if skill.package().is_some_and(|owner| owner.name != package.name) => {
            format!("{command} (used from {})", skill.name())
        }
        _ => command.clone(),
    };
    package.spec.commands.iter().map(with_owner).collect::<Vec<_>>().join(", ")
}

fn print_agent_skill(skill: &AgentSkill, keys: &[TrustedKey]) {
    let version =
        if skill.version().is_empty() { String::new() } else { format!(" {}", printable_line(skill.version())) };
    outln!("{}{version}  (Agent Skill, installed)", skill.name);
    outln!("{}", printable_line(&skill.description));
    outln!("sha256 {}", skill.digest);
    outln!("from {}", printable(&skill.source));
    if let Some(signer) = &skill.provenance.signer {
        outln!("signed by {}", printable_line(&local_name(keys, signer)));
    }
    let lines = [("license", &skill.license), ("needs", &skill.compatibility)];
    for (name, text) in lines.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
        outln!("{name}: {}", printable_line(text));
    }
    for (key, value) in &skill.metadata {
        outln!("{}: {}", printable_line(key), printable_line(value));
    }
    if let Some(tools) = &skill.allowed_tools {
        outln!("allows only these tools while it is in use: {}", printable_line(&tools.join(", ")));
    }
    if skill.by_name_only {
        outln!("models are not told of it; @{} in a message brings it into use", skill.name);
    }
    outln!("\nfiles in {}:", skill.place());
    for file in &skill.files {
        outln!("  {} ({})", printable_line(&file.path), size(file.bytes));
    }
    if !skill.warnings.is_empty() {
        outln!("\nnot as the specification says:");
        skill.warnings.iter().for_each(|warning| outln!("  {}", printable_line(warning)));
    }
}

fn print_tool(tool: &Tool) {
    outln!("\n{}", printable_line(&tool.name));
    let schema = tool.args.schema();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let kind = property.get("type").and_then(Value::as_str).unwrap_or("value");
        let mut notes = Vec::new();
        if required.contains(&name.as_str()) {
            notes.push("required".to_owned());
        }
        for (key, word) in [("default", "default"), ("enum", "one of"), ("minimum", "at least"), ("maximum", "at most")]
        {
            if let Some(value) = property.get(key) {
                notes.push(format!("{word} {value}"));
            }
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let line = format!("{name:14} {kind:8} {description}{notes}");
        outln!("  {}", printable_line(&line));
    }
}
