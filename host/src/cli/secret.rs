//! `kiso secret`: a session's secrets, sealed in the home. Their values are never shown.

mod typed;

use super::listing::confirm;
use super::{Exit, Failure, Opened, Shared, block_on, session};
use clap::Subcommand;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_sandbox::skill::Quiet;
use kiso_store::secret::Secrets;
use kiso_store::secret::vault::{Vault, VaultError};
use serde_json::json;
use std::sync::Arc;

/// Maximum length of a name, as in a plan.
const MAX_NAME: usize = 64;

/// Shorter values are not redacted: they occur in too many words.
const SHORT: usize = 4;

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// List the names
    List {
        #[command(flatten)]
        of: SessionOption,
    },
    /// Set a secret; prompts for its value, or reads it from standard input
    Set {
        /// 1 to 64 letters, digits and underscores: what a skill asks for, such as github_token
        name: String,
        #[command(flatten)]
        of: SessionOption,
    },
    /// Forget a secret
    Remove {
        name: String,
        #[command(flatten)]
        of: SessionOption,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct SessionOption {
    /// The session that it belongs to
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
}

impl SessionOption {
    fn session(&self) -> Result<SessionName, Failure> {
        session(self.session.as_deref())
    }
}

impl SecretCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match self {
            SecretCommand::List { of } => list(&opened, &of.session()?, shared.json),
            SecretCommand::Set { name, of } => set(&opened, &of.session()?, name, shared.json),
            SecretCommand::Remove { name, of, yes } => remove(&opened, &of.session()?, name, *yes, shared.json),
        }
    }
}

fn list(opened: &Opened, session: &SessionName, json: bool) -> Result<Exit, Failure> {
    let names = opened.store.read_blocking(|view| view.secret_names(session))?;
    if names.is_empty() && !json {
        errln!("the session {session} has no secrets");
    }
    for name in names {
        if json {
            outln!("{}", json!({ "type": "secret", "session": session.as_str(), "name": name }));
        } else {
            outln!("{name}");
        }
    }
    Ok(Exit::Done)
}

fn set(opened: &Opened, session: &SessionName, name: &str, json: bool) -> Result<Exit, Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
        let message = format!("{name:?} is not a valid name: use 1 to {MAX_NAME} letters, digits and underscores");
        return Err(Failure::new(Exit::Usage, message));
    }
    let value = typed::read(name)?;
    if value.expose().chars().count() < SHORT {
        errln!("values shorter than {SHORT} characters are stored but not redacted: they would match everywhere");
    }
    let vault = Vault::open(&opened.home);
    block_on(async {
        let mut known = Secrets::default();
        for (name, value) in vault.load(&opened.store, session).await? {
            known.add_session(name, value);
        }
        // The old value must still be redacted.
        let mut kept: Vec<_> = known.displaced(name, &value).into_iter().collect();
        kept.push((name.to_owned(), value));
        vault.save(&opened.store, session, &kept, now_ms()).await
    })??;
    if json {
        outln!("{}", json!({ "type": "secret", "session": session.as_str(), "name": name, "state": "set" }));
    } else {
        outln!("{name} is set in the session {session}");
    }
    Ok(Exit::Done)
}

fn remove(opened: &Opened, session: &SessionName, name: &str, yes: bool, json: bool) -> Result<Exit, Failure> {
    if !opened.store.read_blocking(|view| view.secret_names(session))?.iter().any(|known| known == name) {
        let message = format!("the session {session} has no secret {name:?}; `kiso secret list` gives the names");
        return Err(Failure::new(Exit::Usage, message));
    }
    confirm(&format!("Forget the secret {name} of the session {session}? Its value will no longer be redacted."), yes)?;
    let (of, gone) = (session.clone(), name.to_owned());
    opened.store.write_blocking(move |tx| tx.delete_secret(&of, &gone))?;
    if json {
        outln!("{}", json!({ "type": "secret", "session": session.as_str(), "name": name, "state": "removed" }));
    } else {
        outln!("{name} is removed from the session {session}");
    }
    Ok(Exit::Done)
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Failure {
        match error {
            VaultError::Store(error) => error.into(),
            error => Failure::new(Exit::Config, error.to_string()),
        }
    }
}
