//! `kiso skill info`.

use super::open;
use crate::cli::listing::typed;
use crate::cli::show::{printable, printable_line};
use crate::cli::{Exit, Failure, Shared};
use crate::skill::Tool;
use serde_json::Value;

#[derive(Debug, clap::Args)]
pub struct InfoArgs {
    /// The skill
    name: String,
}

impl InfoArgs {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let skill = opened.skills.find(&self.name)?;
        if shared.json {
            outln!("{}", typed("info", &opened.skills.shown(&skill)?));
            return Ok(Exit::Done);
        }
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
        if let Some(sdk) = &skill.sdk {
            outln!("written with kiso-sdk for {}", printable_line(sdk));
        }
        for tool in &skill.tools {
            print_tool(tool);
        }
        if !manifest.examples.is_empty() {
            outln!("\nexamples:");
            for example in &manifest.examples {
                outln!("  {}", printable_line(example));
            }
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
