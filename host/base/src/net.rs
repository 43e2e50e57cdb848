//! Connections to other machines: which addresses are allowed, and TLS.
//!
//! Connects to the very address that was checked, so a name that resolves to another address a moment later (DNS rebinding) gains
//! nothing.

pub mod pool;
pub mod retry_after;
pub mod roots;
pub mod sse;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{ClientConfig, pki_types::ServerName};

/// Why there is no connection. Contains nothing of the data to be sent.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    #[error("the name cannot be resolved: {0}")]
    Dns(io::Error),
    #[error("the name has no address")]
    NoAddress,
    /// None of the addresses, or of the remaining ones, is on the public internet.
    #[error("its address is private")]
    Private,
    #[error("it cannot be reached: {0}")]
    Connect(io::Error),
    #[error("the host is not a name that a certificate could be for")]
    BadName,
    #[error("no encrypted connection comes about: {0}")]
    Tls(io::Error),
}

/// Resolves once, drops addresses that are not allowed, and connects to one of the others. `host` may be an address; IPv6
/// addresses have brackets. Unless `private` is true, only the public internet is allowed ([`is_public`]). Has no timeout of its
/// own; the caller sets one.
pub async fn connect(host: &str, port: u16, private: bool) -> Result<TcpStream, NetError> {
    let resolve = |host: String, port| async move { Ok(lookup_host((host, port)).await?.collect()) };
    resolve_and_connect(resolve, host, port, private).await
}

/// The same with another resolver. Its type ensures that it is called at most once.
async fn resolve_and_connect<F: Future<Output = io::Result<Vec<SocketAddr>>>>(
    resolve: impl FnOnce(String, u16) -> F,
    host: &str,
    port: u16,
    private: bool,
) -> Result<TcpStream, NetError> {
    let addresses: Vec<SocketAddr> = match bare(host).parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => resolve(host.to_owned(), port).await.map_err(NetError::Dns)?,
    };
    let mut last = NetError::NoAddress;
    for address in addresses {
        if !private && !is_public(address.ip()) {
            last = NetError::Private;
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = NetError::Connect(error),
        }
    }
    Err(last)
}

/// Encrypts a connection and verifies that the peer is `host`.
pub async fn secure(stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, NetError> {
    let name = ServerName::try_from(bare(host).to_owned()).map_err(|_| NetError::BadName)?;
    TlsConnector::from(tls_config().await).connect(name, stream).await.map_err(NetError::Tls)
}

/// Returns an IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

/// Whether an address is on the public internet. This excludes all special ranges: loopback, private, link-local (where cloud
/// machines keep their credentials), carrier-grade NAT, multicast, documentation, benchmarks, and IPv6 forms that embed such an
/// IPv4 address.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !(a == 0
        || a >= 224
        || ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation()
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19)))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let s = ip.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        [0x2001, 0xdb8, ..] | [0x3fff, ..] | [0x2001, 0..=0x1ff, ..] => false,
        // Only 2000::/3 is assigned to networks.
        _ => s[0] & 0xe000 == 0x2000,
    }
}

/// Built on first use, because this reads the system's certificates: hundreds of files, which takes long on a slow disk.
async fn tls_config() -> Arc<ClientConfig> {
    match roots::ready_config() {
        Some(config) => config,
        None => tokio::task::spawn_blocking(roots::client_config).await.unwrap_or_else(|_| roots::client_config()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_on_the_open_internet_are_refused() {
        let refused = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
        ];
        for ip in refused {
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["1.1.1.1", "93.184.216.34", "2606:2800:220:1::1", "64:ff9b::101:101", "::ffff:1.1.1.1"] {
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
    }

    /// A name with one or several answers that lead to this machine (rebinding): no connection, whatever the other answers are.
    #[test]
    fn a_name_that_resolves_to_this_machine_is_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let here = |ip: &str| SocketAddr::new(ip.parse().unwrap(), port);
            let answers = [
                vec![here("127.0.0.1")],
                vec![here("::ffff:127.0.0.1")],
                vec![here("10.0.0.1"), here("127.0.0.1"), here("::1")],
                vec![here("169.254.169.254"), here("0.0.0.0")],
            ];
            for answer in answers {
                let resolve = |_, _| std::future::ready(Ok(answer.clone()));
                let refused = resolve_and_connect(resolve, "rebound.example", port, false).await;
                assert!(matches!(refused, Err(NetError::Private)), "{answer:?}: {refused:?}");
            }
            let none =
                resolve_and_connect(|_, _| std::future::ready(Ok(Vec::new())), "none.example", port, false).await;
            assert!(matches!(none, Err(NetError::NoAddress)), "{none:?}");
            // With `private`, it connects to the address that was checked; this is the first connection that the listener gets.
            let resolve = |_, _| std::future::ready(Ok(vec![here("127.0.0.1")]));
            let ours = resolve_and_connect(resolve, "home.example", port, true).await.unwrap();
            let (_, from) = listener.accept().await.unwrap();
            assert_eq!(from, ours.local_addr().unwrap());
        });
    }
}
