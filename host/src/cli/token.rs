//! `kiso token`: who may talk to the daemon over HTTP.

use super::{Exit, Failure, Opened, Shared};
use crate::clock::now_ms;
use crate::skill::Quiet;
use crate::store::TokenScope;
use clap::{Subcommand, ValueEnum};
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token and print it, once: kiso keeps only its hash
    Add {
        /// What you call it, such as the program that gets it
        name: String,
        /// What it allows
        #[arg(long, value_enum, default_value_t = Scope::Chat)]
        scope: Scope,
    },
    /// List the tokens
    List,
    /// Take a token away; it stops working at once
    Revoke { name: String },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Scope {
    /// Write messages and see what comes of them
    Chat,
    /// Everything
    Admin,
}

impl From<Scope> for TokenScope {
    fn from(scope: Scope) -> TokenScope {
        match scope {
            Scope::Chat => TokenScope::Chat,
            Scope::Admin => TokenScope::Admin,
        }
    }
}

impl Token {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let store = &opened.store;
        match self {
            Token::Add { name, scope } => {
                let scope = TokenScope::from(*scope);
                let wanted = name.clone();
                let Some(text) = store.write_blocking(move |tx| tx.add_token(&wanted, scope, now_ms()))? else {
                    return Err(Failure::new(
                        Exit::Usage,
                        format!("there is a token {name:?} already; `kiso token revoke` takes it away"),
                    ));
                };
                if shared.json {
                    outln!("{}", json!({ "type": "token", "name": name, "scope": scope.as_str(), "token": text }));
                } else {
                    outln!("{text}");
                    errln!("This is the only time that it is shown. Send it as `Authorization: Bearer …`.");
                }
            }
            Token::List => {
                for token in store.read_blocking(|view| view.tokens())? {
                    if shared.json {
                        let (scope, at) = (token.scope.as_str(), token.created_ms);
                        outln!("{}", json!({ "type": "token", "name": token.name, "scope": scope, "created_ms": at }));
                    } else {
                        outln!("{}  {}", token.name, token.scope.as_str());
                    }
                }
            }
            Token::Revoke { name } => {
                let gone = name.clone();
                if !store.write_blocking(move |tx| tx.remove_token(&gone))? {
                    return Err(Failure::new(Exit::Usage, format!("there is no token {name:?}")));
                }
                if shared.json {
                    outln!("{}", json!({ "type": "token", "name": name, "state": "revoked" }));
                } else {
                    outln!("{name} is revoked");
                }
            }
        }
        Ok(Exit::Done)
    }
}
