//! `kiso skill info`.

use super::open;
use crate::cli::show::printable;
use crate::cli::{Exit, Failure, Shared};
use crate::skill::grant::{Allowed, Asked};
use crate::skill::{Installed, Tool};
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
pub struct Info {
    /// The skill
    name: String,
}

impl Info {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let skill = opened.skills.find(&self.name)?;
        let allowed = opened.skills.allowed(&skill)?;
        let digest = opened.skills.digest(&skill);
        if shared.json {
            outln!("{}", object(&skill, &allowed, &digest));
            return Ok(Exit::Done);
        }
        let manifest = &skill.manifest;
        let origin = if skill.is_bundled() { "bundled" } else { "installed" };
        outln!("{} {}  ({}, {origin})", manifest.name, manifest.version, skill.shape.describe());
        outln!("{}", printable(&manifest.summary));
        outln!("sha256 {digest}");
        if let Some(sdk) = &skill.sdk {
            outln!("written with kiso-sdk for {}", printable(sdk));
        }
        for tool in &skill.tools {
            print_tool(tool);
        }
        if !manifest.examples.is_empty() {
            outln!("\nexamples:");
            for example in &manifest.examples {
                outln!("  {}", printable(example));
            }
        }
        outln!("\nallowed:");
        outln!("  workspace: {}", allowed.workspace);
        outln!("  memory: {} MiB, time: {} s", allowed.memory_mib, allowed.timeout_s);
        for (need, private) in &allowed.http {
            let private = if *private { ", private addresses too" } else { "" };
            outln!("  reach {} ({}{private})", need.host, need.methods.join(", "));
        }
        for secret in &allowed.secrets {
            outln!("  secret: {secret}");
        }
        let grant = opened.skills.grant(&skill)?;
        let missing = Asked::of(manifest, &opened.config.engine).beyond(&grant);
        // What a bundled skill needs of memory and time it has without a grant.
        let missing = if skill.is_bundled() { Asked { memory_mib: None, timeout_s: None, ..missing } } else { missing };
        if !missing.is_empty() {
            outln!("\nasks for, and was not granted (see `kiso skill grant --help`):\n{missing}");
        }
        Ok(Exit::Done)
    }
}

fn print_tool(tool: &Tool) {
    outln!("\n{}", tool.name);
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
        outln!("  {name:14} {kind:8} {}{notes}", printable(description));
    }
}

fn object(skill: &Installed, allowed: &Allowed, digest: &str) -> Value {
    let manifest = &skill.manifest;
    let tools: Vec<_> = skill.tools.iter().map(|t| json!({ "name": t.name, "args": t.args.schema() })).collect();
    let http: Vec<_> = allowed
        .http
        .iter()
        .map(|(need, private)| json!({ "host": need.host, "methods": need.methods, "private": private }))
        .collect();
    json!({
        "type": "info", "skill": manifest.name.as_str(), "version": manifest.version,
        "origin": if skill.is_bundled() { "bundled" } else { "installed" },
        "shape": skill.shape, "category": manifest.category, "summary": manifest.summary, "description": manifest.description,
        "digest": digest, "sdk": skill.sdk, "examples": manifest.examples, "tools": tools, "needs": manifest.needs,
        "allowed": {
            "workspace": allowed.workspace, "memory_mib": allowed.memory_mib, "timeout_s": allowed.timeout_s,
            "secrets": allowed.secrets, "http": http,
        },
    })
}
