//! `kiso role`: the prompts of the roles, and the administrator's overrides.

use super::show::{Show, printable_line};
use super::{Exit, Failure, Shared};
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use kiso_agent::node::RoleError;
use kiso_agent::node::prompt::{built_in_prompt, override_of, override_path, prompt_of, strays};
use kiso_base::home::Home;
use kiso_base::role::Role;
use kiso_plan::estimate::tokens;
use kiso_sandbox::skill::near_names;
use serde_json::json;
use similar::TextDiff;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum RoleCommand {
    /// List the roles and which of them are overridden
    List,
    /// Print the prompt in effect for a role
    Show {
        #[arg(value_parser = role())]
        role: Role,
        /// The built-in prompt, even if it is overridden
        #[arg(long)]
        builtin: bool,
    },
    /// Show what an override changes
    Diff {
        #[arg(value_parser = role())]
        role: Role,
    },
    /// Go back to the built-in prompt; the override is kept as NAME.md.old
    Reset {
        #[arg(value_parser = role())]
        role: Role,
    },
    /// Print where the override of a role belongs
    Path {
        #[arg(value_parser = role())]
        role: Role,
    },
}

/// Returns clap's parser of roles, for errors, `--help` and completions.
#[expect(clippy::expect_used, reason = "it is one of the values")]
fn role() -> impl TypedValueParser<Value = Role> {
    let values = Role::ALL.map(|role| PossibleValue::new(role.name()).help(sentence(role)));
    PossibleValuesParser::new(values).map(|name| Role::named(&name).expect("it is one of the values"))
}

/// Returns the role's description without a full stop, as in clap and listings.
fn sentence(role: Role) -> &'static str {
    role.declaration().does.trim_end_matches('.')
}

/// The message about a file that overrides nothing.
pub(super) fn stray(path: &Path) -> Failure {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let near = near_names(&name, Role::ALL.into_iter().map(Role::name));
    let hint = if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) };
    Failure::new(Exit::Config, format!("{} overrides nothing, because no role has this name{hint}", path.display()))
}

impl RoleCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let show = Show::new(shared.json);
        match self {
            Self::List => Ok(list(&home, shared.json)),
            Self::Show { role, builtin } => print(&home, *role, *builtin, shared.json, &show),
            Self::Diff { role } => diff(&home, *role, shared.json, &show),
            Self::Reset { role } => reset(&home, *role, shared.json, &show),
            Self::Path { role } => {
                let path = override_path(&home, *role);
                if shared.json {
                    let exists = path.symlink_metadata().is_ok();
                    outln!("{}", json!({ "type": "path", "role": role, "path": path, "exists": exists }));
                } else {
                    outln!("{}", path.display());
                }
                Ok(Exit::Done)
            }
        }
    }
}

fn list(home: &Home, json: bool) -> Exit {
    let mut exit = Exit::Done;
    for role in Role::ALL {
        let found = override_of(home, role);
        let source = if matches!(found, Ok(None)) { "built-in" } else { "override" };
        let size = match &found {
            Ok(text) => Some(tokens(text.as_deref().unwrap_or(built_in_prompt(role)))),
            Err(_) => None,
        };
        let error = found.err().map(|error: RoleError| error.to_string());
        if json {
            let object = json!({ "type": "role", "role": role, "source": source, "tokens": size, "error": error });
            outln!("{object}");
        } else {
            let size = size.map(|size| format!("about {size} tokens")).unwrap_or_default();
            let line = format!("{:12} {source:10} {size:18} {}", role.name(), sentence(role));
            outln!("{}", line.trim_end());
            if let Some(error) = &error {
                errln!("error: {}", printable_line(error));
            }
        }
        if error.is_some() {
            exit = Exit::Config;
        }
    }
    for path in strays(home) {
        stray(&path).print(json);
        exit = Exit::Config;
    }
    exit
}

fn print(home: &Home, role: Role, builtin: bool, json: bool, show: &Show) -> Result<Exit, Failure> {
    let path = override_path(home, role);
    // The override is only read if it is needed, so that a broken one does not hide the built-in prompt.
    let overridden = !builtin && override_of(home, role)?.is_some();
    let text = if overridden { prompt_of(home, role)? } else { built_in_prompt(role).to_owned() };
    if json {
        let source = if overridden { "override" } else { "built-in" };
        let path = overridden.then_some(path);
        outln!("{}", json!({ "type": "prompt", "role": role, "source": source, "path": path, "text": text }));
        return Ok(Exit::Done);
    }
    if overridden {
        show.line(&show.dim(&format!("overridden by {}", path.display())));
    }
    out!("{text}");
    if !text.ends_with('\n') {
        outln!();
    }
    Ok(Exit::Done)
}

fn diff(home: &Home, role: Role, json: bool, show: &Show) -> Result<Exit, Failure> {
    let found = override_of(home, role)?;
    let path = override_path(home, role);
    let text = found.as_ref().map_or_else(String::new, |text| {
        let names = (format!("{role} (built-in)"), path.display().to_string());
        TextDiff::from_lines(built_in_prompt(role), text).unified_diff().header(&names.0, &names.1).to_string()
    });
    if json {
        let path = found.is_some().then_some(path);
        outln!(
            "{}",
            json!({ "type": "diff", "role": role, "overridden": found.is_some(), "path": path, "diff": text })
        );
        return Ok(Exit::Done);
    }
    match found {
        None => show.line(&format!("{role} is not overridden; create {} to override it", path.display())),
        Some(_) if text.is_empty() => show.line(&format!("{} is identical to the built-in prompt", path.display())),
        Some(_) => out!("{text}"),
    }
    Ok(Exit::Done)
}

fn reset(home: &Home, role: Role, json: bool, show: &Show) -> Result<Exit, Failure> {
    let path = override_path(home, role);
    // An override that cannot be read, or a dangling link, can be moved as well.
    let kept = match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        _ => Some(set_aside(&path)?),
    };
    if json {
        outln!("{}", json!({ "type": "reset", "role": role, "kept": kept }));
        return Ok(Exit::Done);
    }
    match kept {
        Some(kept) => {
            show.line(&format!("{role} uses its built-in prompt again; the override was moved to {}", kept.display()))
        }
        None => show.line(&format!("{role} is not overridden; nothing changed")),
    }
    Ok(Exit::Done)
}

/// Maximum kept copies; nobody needs more.
const MAX_OLD: u32 = 100;

/// Moves the file to the first free name among `NAME.md.old`, `NAME.md.old2`…, so that no earlier copy is lost.
fn set_aside(path: &Path) -> Result<PathBuf, Failure> {
    let name = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if n == 1 { ".old".to_owned() } else { format!(".old{n}") });
        PathBuf::from(name)
    };
    let free = (1..=MAX_OLD).map(name).find(|kept| kept.symlink_metadata().is_err());
    let Some(kept) = free else {
        let message = format!("there are already {MAX_OLD} old copies of {}; remove some of them", path.display());
        return Err(Failure::new(Exit::Failed, message));
    };
    match fs::rename(path, &kept) {
        Ok(()) => Ok(kept),
        Err(error) => Err(Failure::new(Exit::Failed, format!("failed to move {}: {error}", path.display()))),
    }
}
