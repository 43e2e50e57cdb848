//! Whether the daemon can be reached, or could be after a start.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use super::Finding;
use kiso_base::config::Config;
use kiso_base::home::Home;

/// Maximum bytes of a socket's path on every system; macOS has the lowest limit.
const MAX_SOCKET_PATH: usize = 103;

/// How long to wait for a daemon on this machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checks the length of the socket's path.
pub(super) fn socket(home: &Home) -> Finding {
    let path = home.socket_path();
    let length = path.as_os_str().as_bytes().len();
    if length > MAX_SOCKET_PATH {
        return Finding::Fail(format!(
            "{} has {length} bytes, but a socket path may have at most {MAX_SOCKET_PATH}; choose a shorter --home",
            path.display()
        ));
    }
    Finding::Ok(path.display().to_string())
}

/// Checks whether this home's daemon answers; if there is none, whether its port is free.
pub(super) fn port(home: &Home, config: &Config) -> Finding {
    let gateway = &config.gateway;
    let Ok(ip) = gateway.bind.parse::<IpAddr>() else {
        return Finding::Fail(format!(
            "gateway.bind = {:?} is not an address of this machine, such as \"127.0.0.1\"",
            gateway.bind
        ));
    };
    let port = u16::try_from(gateway.port).unwrap_or(0);
    let address = SocketAddr::new(ip, port);
    let pid = match home.daemon() {
        Ok(pid) => pid,
        Err(error) => return Finding::Fail(error.to_string()),
    };
    let Some(pid) = pid else {
        return match TcpListener::bind(address) {
            Ok(_) => Finding::Ok(format!("no daemon is running, and {address} is free")),
            Err(error) => Finding::Warn(format!(
                "no daemon is running, and {address} is not available ({error}); set gateway.port, or use --port"
            )),
        };
    };
    // An unspecified address is reached through loopback.
    let near = if ip.is_unspecified() { SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port) } else { address };
    match health(&near) {
        Ok(()) => Finding::Ok(format!("the daemon (process {pid}) answers on {near}")),
        Err(why) => Finding::Warn(format!(
            "a daemon runs (process {pid}) and does not answer on {near}: {why}; it may have been started with --port, or \
             before gateway.port was changed"
        )),
    }
}

fn health(address: &SocketAddr) -> Result<(), String> {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        // The server may not be kiso, and its answer may never end.
        stream.take(4_096).read_to_string(&mut answer)?;
        Ok(answer)
    };
    match asked() {
        Ok(answer) if answer.starts_with("HTTP/1.1 200") && answer.contains("\"version\"") => Ok(()),
        Ok(answer) => Err(format!("it says {:?}", answer.lines().next().unwrap_or_default())),
        Err(error) => Err(error.to_string()),
    }
}
