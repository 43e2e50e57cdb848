//! `kiso config preset`.

use crate::cli::{Exit, Failure, Shared, is_set};
use kiso_base::config::{Config, ConfigError, NotMerged, PRESETS, Preset};
use kiso_base::home::{Home, HomeError};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct PresetArgs {
    /// openrouter, openai, anthropic, gemini, groq, ollama, lmstudio, llama.cpp or vllm [default: list them]
    name: Option<String>,
    /// Write it to config.toml, unless it already sets a provider or a model
    #[arg(long, requires = "name")]
    write: bool,
}

impl PresetArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let Some(name) = &self.name else {
            list(shared);
            return Ok(Exit::Done);
        };
        let Some(preset) = Preset::named(name) else {
            let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
            let message = format!("there is no preset {name:?}; the presets are {}", names.join(", "));
            return Err(Failure::new(Exit::Usage, message));
        };
        if self.write {
            return write(preset, shared);
        }
        if shared.json {
            outln!("{}", json!({ "type": "preset", "name": preset.name, "toml": preset.text() }));
        } else {
            out!("{}", preset.text());
        }
        Ok(Exit::Done)
    }
}

/// Prints the presets, and how to use one.
fn list(shared: &Shared) {
    for preset in &PRESETS {
        if shared.json {
            outln!(
                "{}",
                json!({ "type": "preset", "name": preset.name, "model": preset.model, "about": preset.advice() })
            );
        } else {
            outln!("{:<11} {}", preset.name, preset.advice());
        }
    }
    if !shared.json {
        outln!("\n`kiso config preset NAME` prints the lines for config.toml; with --write it adds them.");
    }
}

fn write(preset: &Preset, shared: &Shared) -> Result<Exit, Failure> {
    let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
    // Writes the file of a fresh home, and reports the mistakes of an older one.
    Config::load(&home)?;
    let path = home.config_path();
    let shown = path.display().to_string();
    let unreadable = |error| Failure::from(ConfigError::Unreadable { path: path.clone(), error });
    let text = std::fs::read_to_string(&path).map_err(unreadable)?;
    let merged = match preset.merge(&text) {
        // Writing through a link would change another file.
        Ok(Some(_)) if path.is_symlink() => Err("it is a link".to_owned()),
        Ok(merged) => Ok(merged),
        Err(NotMerged::Invalid(problems)) => return Err(ConfigError::Invalid { path, problems }.into()),
        Err(NotMerged::Decided(why)) => Err(why),
    };
    let merged = merged.map_err(|why| {
        let name = preset.name;
        let message = format!(
            "{shown} was not changed: {why}. Add what `kiso config preset {name}` prints by hand, and set model = {:?}",
            preset.model
        );
        Failure::new(Exit::Failed, message)
    })?;
    let changed = merged.is_some();
    if let Some(merged) = merged {
        home.write_atomic(&path, merged.as_bytes()).map_err(|error: HomeError| Failure::from(error))?;
    }
    if shared.json {
        outln!("{}", json!({ "type": "written", "file": shown, "changed": changed, "model": preset.model }));
        return Ok(Exit::Done);
    }
    match changed {
        true => outln!("{shown}: every role now uses {}", preset.model),
        false => outln!("{shown} already has it"),
    }
    if let Some(variable) = preset.key_env().filter(|variable| !is_set(variable)) {
        outln!("next: export {variable}=…, then `kiso doctor` asks the model what it can do");
    } else {
        outln!("next: `kiso doctor` asks the model what it can do");
    }
    Ok(Exit::Done)
}
