//! `kiso skill trust`: the publishers whose signatures are trusted.

mod project;

use super::read_key;
use crate::cli::listing::typed;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Opened, Shared};
use clap::Subcommand;
use kiso_sandbox::skill::TrustedKey;
use kiso_sandbox::skill::signature::{PublisherKey, SecretKey};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TrustCommand {
    /// Trust a publisher's signatures
    Add {
        /// The public key of minisign: its line, or a file with it
        key: String,
        /// A label for it
        #[arg(long, value_name = "NAME", default_value = "")]
        label: String,
    },
    /// List the trusted keys, with the skills that are pinned to them
    List,
    /// Stop trusting a publisher's signatures; installed skills stay
    Remove {
        /// The number or label of the key
        key: String,
    },
    /// Install the Agent Skills of a project, as they are now
    Project(project::TrustProjectArgs),
    /// Create a pair of keys to sign skills with: FILE and FILE.pub
    New {
        /// The file of the secret key
        file: PathBuf,
    },
}

impl TrustCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let show = Arc::new(Show::new(shared.json));
        let opened = Opened::new(shared, show.clone())?;
        let skills = &opened.skills;
        match self {
            Self::Project(command) => return command.execute(skills, &show, shared.json),
            Self::Add { key, label } => {
                let path = Path::new(key);
                let text = if path.is_file() { read_key(path)? } else { key.clone() };
                let key = PublisherKey::read(&text)?;
                skills.trust(key.clone(), label)?;
                tell(shared, "trusted", &TrustedKey { key, label: label.clone() }, &[]);
            }
            Self::List => {
                let locked = skills.locked();
                for known in skills.trusted_keys()? {
                    let of_key = locked.iter().filter(|skill| skill.signer.as_deref() == Some(known.key.text.as_str()));
                    let pinned: Vec<&str> = of_key.map(|skill| skill.name.as_str()).collect();
                    tell(shared, "key", &known, &pinned);
                }
            }
            Self::Remove { key } => {
                let gone = skills.distrust(key)?;
                tell(shared, "distrusted", &gone, &[]);
            }
            Self::New { file } => {
                let key = SecretKey::generate()?;
                let public = PathBuf::from(format!("{}.pub", file.display()));
                write_new(file, &key.to_file(), 0o600)?;
                write_new(&public, &key.public_file(), 0o644)?;
                let PublisherKey { id, text } = key.public();
                if shared.json {
                    let object =
                        json!({ "type": "created", "id": id.to_string(), "key": text, "file": file, "public": public });
                    outln!("{object}");
                } else {
                    outln!("{text}");
                    errln!(
                        "{} has the secret key: whoever has it can sign. Give away {}",
                        printable_line(&file.display().to_string()),
                        printable_line(&public.display().to_string())
                    );
                }
            }
        }
        Ok(Exit::Done)
    }
}

fn tell(shared: &Shared, kind: &str, known: &TrustedKey, pinned: &[&str]) {
    let TrustedKey { key, label } = known;
    if shared.json {
        let shown: Value = json!({ "id": key.id.to_string(), "key": key.text, "label": label, "pinned": pinned });
        outln!("{}", typed(kind, &shown));
        return;
    }
    let done = if kind == "key" { String::new() } else { format!("{kind} ") };
    let label = if label.is_empty() { String::new() } else { format!("  {}", printable_line(label)) };
    let pinned = if pinned.is_empty() { String::new() } else { format!("  ({})", pinned.join(", ")) };
    outln!("{done}{}  {}{label}{pinned}", key.id, key.text);
}

/// Never overwrites a key.
fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    made.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot make {}: {error}", path.display())))
}
