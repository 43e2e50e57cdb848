//! `kiso pill`: creates and shares workflows that are called by name.

use super::show::printable;
use super::{Exit, Failure, Opened, Shared, block_on};
use clap::Subcommand;
use kiso_agent::tool::pills::{PillError, PillOrigin, Pills};
use kiso_base::clock::now_ms;
use kiso_plan::effort::Effort;
use kiso_plan::pill::Pill;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::skill::Quiet;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum bytes of an imported line: the longest template with every character escaped.
const MAX_LINE: u64 = 128 << 10;

/// Maximum lines of an imported file.
const MAX_LINES: u64 = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum PillCommand {
    /// Create a pill; a message that begins with !NAME becomes its template
    Add {
        /// Name of the pill: 1 to 32 letters, digits, - or _
        name: String,
        /// Text that replaces the message; {input} is replaced with the text after the name
        template: String,
        /// Tool category that it may use; repeat for several [default: all]
        #[arg(long = "category", value_name = "NAME")]
        categories: Vec<String>,
        /// How much work to do: low (an answer), medium (tools without a plan), high (a plan)
        #[arg(long, default_value = "high", value_parser = effort)]
        effort: Effort,
        /// Description shown beside the name
        #[arg(long, default_value = "", hide_default_value = true)]
        description: String,
        /// Replace an existing pill
        #[arg(long)]
        force: bool,
    },
    /// List all pills, including those in config.toml
    List,
    /// Show a pill with its template
    Show { name: String },
    /// Remove a pill
    Remove { name: String },
    /// Print pills as JSON lines, to share them [default: all that you created]
    Export { names: Vec<String> },
    /// Import pills that `export` or the page wrote: all of them or none
    Import {
        /// The file, or - for standard input
        file: PathBuf,
        /// Replace existing pills
        #[arg(long)]
        force: bool,
    },
}

fn effort(text: &str) -> Result<Effort, String> {
    Effort::parse(text).ok_or_else(|| "it is low, medium or high".to_owned())
}

impl PillCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let pills = Pills::new(&opened.config, &opened.store);
        block_on(self.perform(shared, &pills))??;
        Ok(Exit::Done)
    }

    async fn perform(&self, shared: &Shared, pills: &Pills) -> Result<(), Failure> {
        // Whoever can write to the home is its administrator.
        let by = CallerScope::Admin;
        match self {
            Self::Add { name, template, categories, effort, description, force } => {
                let pill = Pill {
                    name: name.clone(),
                    template: template.clone(),
                    categories: categories.clone(),
                    effort: *effort,
                    description: description.clone(),
                };
                pills.put(vec![pill.clone()], *force, by, now_ms()).await?;
                tell(shared, &pill, PillOrigin::Made(by));
            }
            Self::List => {
                for (pill, origin) in pills.list().await? {
                    tell(shared, &pill, origin);
                }
            }
            Self::Show { name } => {
                let (pill, origin) = pills.one(name).await?;
                tell(shared, &pill, origin);
                if !shared.json {
                    outln!("\n{}", printable(&pill.template));
                }
            }
            Self::Remove { name } => {
                pills.remove(name, by).await?;
                if shared.json {
                    outln!("{}", json!({ "type": "removed", "name": name }));
                } else {
                    outln!("{name} is removed");
                }
            }
            Self::Export { names } => {
                let mut shown = Vec::new();
                for name in names {
                    shown.push(pills.one(name).await?.0);
                }
                if names.is_empty() {
                    let made = pills.list().await?.into_iter().filter(|(_, origin)| *origin != PillOrigin::Config);
                    shown = made.map(|(pill, _)| pill).collect();
                }
                for pill in shown {
                    outln!("{}", json!(pill));
                }
            }
            Self::Import { file, force } => {
                let new = pills.put(read(file)?, *force, by, now_ms()).await?;
                let added = new.iter().filter(|new| **new).count();
                if shared.json {
                    outln!("{}", json!({ "type": "imported", "added": added, "replaced": new.len() - added }));
                } else {
                    outln!("imported {added} pills, replaced {}", new.len() - added);
                }
            }
        }
        Ok(())
    }
}

/// Reads the pills of a file, one per line.
fn read(file: &Path) -> Result<Vec<Pill>, Failure> {
    let is_stdin = file == Path::new("-");
    let from = if is_stdin { "standard input".to_owned() } else { file.display().to_string() };
    let unread = |why: String| Failure::new(Exit::Failed, format!("{from} cannot be read: {why}"));
    let mut lines: Box<dyn BufRead> = if is_stdin {
        Box::new(io::stdin().lock())
    } else {
        let opened = File::open(file).map_err(|error| unread(error.to_string()))?;
        if !opened.metadata().is_ok_and(|about| about.is_file()) {
            return Err(unread("it is not a file; `-` reads standard input".to_owned()));
        }
        Box::new(BufReader::new(opened))
    };
    let mut pills: Vec<Pill> = Vec::new();
    for number in 1.. {
        let mut line = Vec::new();
        let read = lines.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line);
        let read = read.map_err(|error| unread(error.to_string()))? as u64;
        if read == 0 {
            break;
        }
        let wrong = |why: String| Failure::new(Exit::Failed, format!("{from}:{number}: {why}; nothing was imported"));
        if read > MAX_LINE || number > MAX_LINES {
            return Err(wrong(format!("a file may have at most {MAX_LINES} pills, of {} KiB each", MAX_LINE >> 10)));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let pill: Pill =
            serde_json::from_slice(&line).map_err(|error| wrong(format!("this is not a pill: {error}")))?;
        if pills.iter().any(|known| known.name == pill.name) {
            return Err(wrong(format!("the file has an earlier pill {}", printable(&pill.name))));
        }
        pills.push(pill);
    }
    Ok(pills)
}

fn tell(shared: &Shared, pill: &Pill, origin: PillOrigin) {
    if shared.json {
        let mut object = json!(pill);
        object["type"] = "pill".into();
        object["origin"] = origin.name().into();
        outln!("{object}");
        return;
    }
    let tools = if pill.categories.is_empty() { "all tools".to_owned() } else { pill.categories.join(", ") };
    let description = if pill.description.is_empty() { String::new() } else { format!("  {}", pill.description) };
    let from = if origin == PillOrigin::Config { ", config.toml" } else { "" };
    outln!("{}", printable(&format!("!{:20} {} effort, {tools}{from}{description}", pill.name, pill.effort)));
}

impl From<PillError> for Failure {
    fn from(error: PillError) -> Failure {
        match error {
            PillError::Store(error) => error.into(),
            PillError::Taken(_) => Failure::new(Exit::Usage, format!("{error}; --force replaces it")),
            PillError::TooMany => Failure::new(Exit::Limit, error.to_string()),
            error => Failure::new(Exit::Usage, error.to_string()),
        }
    }
}
