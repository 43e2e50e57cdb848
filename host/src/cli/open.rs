//! `kiso open`: opens a browser that is logged in to the page.

use super::token::ScopeName;
use super::{Exit, Failure, Opened, Shared, browser};
use kiso_base::clock::now_ms;
use kiso_base::home::Home;
use kiso_sandbox::skill::Quiet;
use kiso_store::store::{CODE_MS, TokenScope};
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct OpenArgs {
    /// Print the link without opening a browser
    #[arg(long)]
    print: bool,
    /// Permissions of the browser
    #[arg(long, value_enum, default_value_t = ScopeName::Admin)]
    scope: ScopeName,
    /// Log out every browser and revoke every unused link
    #[arg(long, conflicts_with_all = ["print", "scope"])]
    log_out: bool,
}

const AFTER: &str = "The link works once, within five minutes. A browser stays logged in until you log out, for 30 days after its last use, or until --log-out. Without a display, and over ssh, the link is only printed. See docs/page.md.";

/// How long to wait for a daemon that does not answer at its socket.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum bytes of its answer.
const MAX_ANSWER: u64 = 64 << 10;

impl OpenArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        if self.log_out {
            let browsers = opened.store.write_blocking(|tx| tx.log_everybody_out())?;
            match shared.json {
                true => outln!("{}", json!({ "type": "logged_out", "browsers": browsers })),
                false if browsers == 1 => outln!("logged out 1 browser"),
                false => outln!("logged out {browsers} browsers"),
            }
            return Ok(Exit::Done);
        }
        let address = address(&opened.home)?;
        let (scope, now) = (TokenScope::from(self.scope), now_ms());
        let code = opened.store.write_blocking(move |tx| tx.add_login_code(scope, now))?;
        let url = format!("http://{}/#code={code}", reachable(address));
        let shown = !self.print && browser::show(&url);
        if shared.json {
            let expires_ms = now + CODE_MS;
            outln!(
                "{}",
                json!({ "type": "link", "url": url, "scope": scope.as_str(), "expires_ms": expires_ms, "opened": shown })
            );
            return Ok(Exit::Done);
        }
        outln!("{url}");
        let minutes = CODE_MS / 60_000;
        match shown {
            true => errln!("Opening it in your browser; the link works once, within {minutes} minutes."),
            false => errln!("Open it in a browser; the link works once, within {minutes} minutes."),
        }
        Ok(Exit::Done)
    }
}

/// The used part of the daemon's answer to a registration.
#[derive(Debug, Deserialize)]
struct Registered {
    url: Option<String>,
}

/// Asks the daemon of this home for the address of HTTP, because the system may have chosen the port.
fn address(home: &Home) -> Result<SocketAddr, Failure> {
    let path = home.socket_path();
    let stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        // A killed daemon leaves its socket behind.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            let home = home.path().display();
            let message = format!(
                "no daemon is running for {home}; start one with `kiso serve`, or install it with `kiso service install`"
            );
            return Err(Failure::new(Exit::Failed, message));
        }
        Err(error) => {
            let message = format!("the daemon's socket {} cannot be used: {error}", path.display());
            return Err(Failure::new(Exit::Config, message));
        }
    };
    let unclear = |why: String| {
        Failure::new(Exit::Failed, format!("the daemon did not report the page's address: {why}; run `kiso doctor`"))
    };
    let answer = ask(stream).map_err(|error| unclear(error.to_string()))?;
    let registered: Registered = serde_json::from_str(&answer).map_err(|error| unclear(error.to_string()))?;
    let url = registered.url.ok_or_else(|| unclear("it is a different version of kiso; restart it".to_owned()))?;
    url.strip_prefix("http://")
        .and_then(|at| at.parse().ok())
        .ok_or_else(|| unclear(format!("{url:?} is not an address")))
}

/// Registers at the socket. Returns the line that answers.
fn ask(mut stream: UnixStream) -> std::io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"{\"type\":\"register\",\"client\":\"open\",\"protocol\":1}\n")?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut line)?;
    Ok(line)
}

/// Returns the address to use on this machine: a browser cannot open an unspecified address such as 0.0.0.0.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_stands_for_all_is_reached_at_this_machine() {
        for (listens, opened) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("127.0.0.1:8333", "127.0.0.1:8333"),
            ("10.0.0.7:1", "10.0.0.7:1"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), opened);
        }
    }
}
