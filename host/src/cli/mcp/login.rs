//! `kiso mcp login` and `kiso mcp logout`: tokens for servers that require a login.

use super::super::show::printable_line;
use super::super::{Exit, Failure, Opened, Shared, block_on, browser};
use super::servers::settings;
use kiso_agent::mcp::McpError;
use kiso_sandbox::skill::Quiet;
use serde_json::json;
use std::io::{BufRead, Read};
use std::sync::Arc;

/// Maximum bytes of a pasted address.
const MAX_PASTED: u64 = 16 << 10;

pub(super) const AFTER: &str = "The browser must return to a port on this machine within ten minutes. If it is on another machine (over ssh), it cannot: paste the address it was sent to, http://127.0.0.1:…, here. Tokens are encrypted in the home and valid only for the server's url. See docs/mcp.md.";

pub(super) fn log_in(shared: &Shared, name: &str, print: bool) -> Result<Exit, Failure> {
    let opened = Opened::new(shared, Arc::new(Quiet))?;
    let settings = settings(&opened, name)?;
    let servers = opened.servers();
    let told = |url: &str| {
        let shown = !print && browser::show(url);
        if shared.json {
            outln!("{}", json!({ "type": "mcp_login_link", "server": name, "url": url, "opened": shown }));
            return;
        }
        outln!("{}", printable_line(url));
        match shown {
            true => errln!("Opening it in your browser. Log in there within 10 minutes."),
            false => errln!("Open it in a browser and log in there within 10 minutes."),
        }
        errln!("If the browser is on another machine, paste the final address it is sent to here.");
    };
    let asked = block_on(servers.log_in(settings, told, pasted()))?;
    let issuer = printable_line(&possible(name, asked)?);
    match shared.json {
        true => outln!("{}", json!({ "type": "mcp_login", "server": name, "state": "logged_in", "issuer": issuer })),
        false => outln!("logged in to {name} at {issuer}"),
    }
    opened.store.close();
    Ok(Exit::Done)
}

pub(super) fn log_out(shared: &Shared, name: &str) -> Result<Exit, Failure> {
    let opened = Opened::new(shared, Arc::new(Quiet))?;
    let settings = settings(&opened, name)?;
    let servers = opened.servers();
    let out = block_on(servers.log_out(settings))?;
    let (was, untold) = possible(name, out)?;
    let untold = untold.map(|error| printable_line(&error.to_string()));
    if shared.json {
        let mut object = json!({ "type": "mcp_login", "server": name, "state": "logged_out", "was_logged_in": was });
        if let Some(why) = &untold {
            object["not_revoked"] = why.as_str().into();
        }
        outln!("{object}");
    } else if was {
        outln!("logged out of {name}");
    } else {
        outln!("there was no login at {name}");
    }
    if let Some(why) = untold.filter(|_| !shared.json) {
        errln!("the tokens are deleted here, but the authorization server could not be told: {why}");
    }
    opened.store.close();
    Ok(Exit::Done)
}

fn possible<T>(name: &str, done: Option<Result<T, McpError>>) -> Result<T, Failure> {
    let Some(done) = done else {
        let message = format!(
            "there is no login at {name}: only servers with url have one, and none whose headers_env has Authorization"
        );
        return Err(Failure::new(Exit::Usage, message));
    };
    done.map_err(|error| Failure::new(Exit::Failed, printable_line(&error.to_string())))
}

/// Returns the first line of standard input that is not empty; never completes if there is none.
async fn pasted() -> String {
    let (sender, pasted) = tokio::sync::oneshot::channel();
    // A separate thread, because a read from a terminal cannot be cancelled; it ends with the process.
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock().take(MAX_PASTED);
        let mut line = String::new();
        while input.read_line(&mut line).is_ok_and(|read| read > 0) {
            if !line.trim().is_empty() {
                let _ = sender.send(line);
                return;
            }
        }
    });
    match pasted.await {
        Ok(line) => line,
        Err(_) => std::future::pending().await,
    }
}
