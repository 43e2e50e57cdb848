//! `kiso token`: tokens of the HTTP interface.

use super::{Exit, Failure, Opened, Shared};
use clap::{Subcommand, ValueEnum};
use kiso_base::clock::now_ms;
use kiso_sandbox::skill::Quiet;
use kiso_store::store::TokenScope;
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Create a token and print it once; kiso stores only its hash
    Add {
        /// A name for it, such as the program that will use it
        name: String,
        /// Permissions of the token
        #[arg(long, value_enum, default_value_t = ScopeName::Chat)]
        scope: ScopeName,
    },
    /// List the tokens
    List,
    /// Revoke a token; it stops working immediately
    Revoke { name: String },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ScopeName {
    /// Send messages and read the replies
    Chat,
    /// Everything
    Admin,
}

impl From<ScopeName> for TokenScope {
    fn from(scope: ScopeName) -> TokenScope {
        match scope {
            ScopeName::Chat => TokenScope::Chat,
            ScopeName::Admin => TokenScope::Admin,
        }
    }
}

impl TokenCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let store = &opened.store;
        match self {
            TokenCommand::Add { name, scope } => {
                let scope = TokenScope::from(*scope);
                let wanted = name.clone();
                let Some(text) = store.write_blocking(move |tx| tx.add_token(&wanted, scope, now_ms()))? else {
                    return Err(Failure::new(
                        Exit::Usage,
                        format!("there is already a token {name:?}; `kiso token revoke` removes it"),
                    ));
                };
                if shared.json {
                    outln!("{}", json!({ "type": "token", "name": name, "scope": scope.as_str(), "token": text }));
                } else {
                    outln!("{text}");
                    errln!("It is shown only once. Send it as `Authorization: Bearer …`.");
                }
            }
            TokenCommand::List => {
                for token in store.read_blocking(|view| view.tokens())? {
                    if shared.json {
                        let (scope, at) = (token.scope.as_str(), token.created_ms);
                        outln!("{}", json!({ "type": "token", "name": token.name, "scope": scope, "created_ms": at }));
                    } else {
                        outln!("{}  {}", token.name, token.scope.as_str());
                    }
                }
            }
            TokenCommand::Revoke { name } => {
                let gone = name.clone();
                if !store.write_blocking(move |tx| tx.remove_token(&gone))? {
                    return Err(Failure::new(Exit::Usage, format!("there is no token {name:?}")));
                }
                if shared.json {
                    outln!("{}", json!({ "type": "token", "name": name, "state": "revoked" }));
                } else {
                    outln!("revoked {name}");
                }
            }
        }
        Ok(Exit::Done)
    }
}
