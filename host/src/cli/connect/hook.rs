//! `kiso connect hook`: lists hooks, prints the secrets for their senders, and renders an event with a template.

use crate::cli::show::printable;
use crate::cli::trace::time;
use crate::cli::{Exit, Failure, Opened, Shared, environment};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use clap::Subcommand;
use kiso_base::config::HookSettings;
use kiso_gateway::{Attachment, HookError, HookKey, OutsideEvent, render, take_files};
use kiso_sandbox::skill::Quiet;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum HookCommand {
    /// List the hooks in config.toml with what waits
    List,
    /// Print the secret that the sender needs
    Secret { name: String },
    /// Print the message that an event becomes, without sending it
    Render {
        name: String,
        /// File with the event's JSON, or - for standard input
        event: PathBuf,
        /// Header of the event, as NAME=VALUE
        #[arg(long = "header", value_name = "NAME=VALUE")]
        headers: Vec<String>,
    },
}

impl HookCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match self {
            Self::List => list(&opened, shared.json),
            Self::Secret { name } => secret(&opened, name, shared.json),
            Self::Render { name, event, headers } => rendered(&opened, name, event, headers, shared.json),
        }
    }
}

fn list(opened: &Opened, as_json: bool) -> Result<Exit, Failure> {
    if opened.config.hooks.is_empty() && !as_json {
        errln!("there are no hooks; add one as [hooks.NAME] in config.toml");
    }
    for hook in &opened.config.hooks {
        let (name, session) = (hook.name.clone(), hook.own_session());
        let line = opened.store.read_blocking(move |view| view.hook(&name, &session))?;
        let error = HookKey::open(&opened.home, hook, environment).err().map(|error| error.to_string());
        let path = format!("/hooks/{}", hook.name);
        if as_json {
            let object = json!({
                "type": "hook", "hook": hook.name, "path": path, "auth": hook.auth, "session": hook.own_session(),
                "told": hook.session, "waiting": line.waiting, "last_ms": line.last_ms, "error": error,
            });
            outln!("{object}");
        } else {
            let last = line.last_ms.map_or_else(|| "never used".to_owned(), |last| format!("last used {}", time(last)));
            let state = error.unwrap_or_else(|| format!("{} waiting, {last}", line.waiting));
            outln!("{}  {path}  {}  {state}", hook.name, json!(hook.auth).as_str().unwrap_or_default());
        }
    }
    Ok(Exit::Done)
}

fn secret(opened: &Opened, name: &str, as_json: bool) -> Result<Exit, Failure> {
    let key = HookKey::open(&opened.home, find_hook(opened, name)?, environment)?;
    let secret = key.secret().expose();
    if as_json {
        outln!("{}", json!({ "type": "hook_secret", "hook": name, "secret": secret }));
    } else {
        outln!("{secret}");
    }
    Ok(Exit::Done)
}

fn rendered(opened: &Opened, name: &str, event: &Path, headers: &[String], as_json: bool) -> Result<Exit, Failure> {
    let hook = find_hook(opened, name)?;
    let limit = hook.max_body_kib << 10;
    let mut bytes = Vec::new();
    let read = match event.to_str() {
        Some("-") => std::io::stdin().take(limit + 1).read_to_end(&mut bytes),
        _ => std::fs::File::open(event).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)),
    };
    let shown = event.display();
    read.map_err(|error| Failure::new(Exit::Usage, format!("failed to read {shown}: {error}")))?;
    if bytes.len() as u64 > limit {
        let message = format!("{shown} has more than {} KiB (max_body_kib of [hooks.{name}])", hook.max_body_kib);
        return Err(Failure::new(Exit::Limit, message));
    }
    let mut body: Value = kiso_base::json::parse(&bytes)
        .map_err(|error| Failure::new(Exit::Usage, format!("{shown} is not the JSON of an event: {error}")))?;
    let files = take_files(&mut body).map_err(|error| Failure::new(Exit::Usage, error.message))?;
    let event = OutsideEvent { headers: header_map(headers)?, body };
    let fits = event.fits(&hook.only);
    let mut text = render(&hook.template, &event).map_err(|missing| Failure::new(Exit::Failed, missing.to_string()))?;
    if !files.is_empty() {
        let names: Vec<_> = files.iter().map(Attachment::name).collect();
        text = format!("{text}\n\nFiles: {}", names.join(", "));
    }
    if as_json {
        outln!("{}", json!({ "type": "rendered", "hook": name, "ignored": !fits, "text": text }));
    } else {
        if !fits {
            errln!("the hook ignores this event, because a condition in `only` is not met");
        }
        outln!("{}", printable(&text));
    }
    Ok(Exit::Done)
}

fn header_map(given: &[String]) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for text in given {
        let parsed = text.split_once('=').and_then(|(name, value)| {
            Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, HeaderValue::from_str(value.trim()).ok()?))
        });
        let Some((name, value)) = parsed else {
            let message = format!("--header is NAME=VALUE, such as X-GitHub-Event=issues, and this is {text:?}");
            return Err(Failure::new(Exit::Usage, message));
        };
        headers.append(name, value);
    }
    Ok(headers)
}

fn find_hook<'a>(opened: &'a Opened, name: &str) -> Result<&'a HookSettings, Failure> {
    let all = &opened.config.hooks;
    all.iter().find(|hook| hook.name == name).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|hook| hook.name.as_str()).collect();
        let there =
            if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) };
        let short: String = name.chars().take(80).collect();
        Failure::new(Exit::Usage, format!("config.toml has no hook {short:?}; {there}"))
    })
}

impl From<HookError> for Failure {
    fn from(error: HookError) -> Failure {
        Failure::new(Exit::Config, error.to_string())
    }
}
