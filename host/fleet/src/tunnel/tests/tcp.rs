//! Tests with sockets at the client's end.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::memory::Fate;
use super::{OWNER, Pair, TunnelError, TunnelLimits, echo, pattern, peer};
use crate::tunnel::forward;

/// Returns a client's socket, and the result of its connection.
async fn client(pair: &Pair) -> (TcpStream, JoinHandle<Result<(), TunnelError>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let desk = pair.desk.clone();
    (client, tokio::spawn(async move { forward(stream, peer(), &desk, OWNER).await }))
}

#[tokio::test]
async fn a_socket_is_forwarded_with_both_its_ends() {
    let mut pair = Pair::new().await;
    let (client, forwarding) = client(&pair).await;
    echo(pair.connections.recv().await.unwrap().stream);
    let sent = pattern(3 << 20);
    let (mut reader, mut writer) = client.into_split();
    let bytes = sent.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&bytes).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut came = Vec::new();
    reader.read_to_end(&mut came).await.unwrap();
    assert!(came == sent);
    writing.await.unwrap();
    forwarding.await.unwrap().unwrap();
}

/// A client that reads until the end must not mistake a part for the whole.
#[tokio::test]
async fn what_breaks_off_is_reset() {
    let (beat, silence) = (Duration::from_millis(20), Duration::from_millis(200));
    for dropped in [false, true] {
        let mut pair = Pair::with(TunnelLimits { beat, silence, ..TunnelLimits::default() }).await;
        let (mut client, forwarding) = client(&pair).await;
        let mut served = pair.connections.recv().await.unwrap().stream;
        served.write_all(b"half of").await.unwrap();
        let mut half = [0; 7];
        client.read_exact(&mut half).await.unwrap();
        if dropped {
            forwarding.abort();
        } else {
            pair.net.judge(|_, _| Fate::IsLost);
            assert!(matches!(forwarding.await.unwrap(), Err(TunnelError::Silent)));
        }
        let error = client.read(&mut half).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_forwarded_is_told_so() {
    let told = |mut client: TcpStream| async move {
        let mut answer = String::new();
        client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        client.read_to_string(&mut answer).await.unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    };
    let mut pair = Pair::with(TunnelLimits { forwarded: 1, ..TunnelLimits::default() }).await;
    let (first, forwarding) = client(&pair).await;
    let served = pair.connections.recv().await.unwrap();
    let (second, refused) = client(&pair).await;
    assert_eq!(told(second).await, "HTTP/1.1 503 Service Unavailable");
    assert!(matches!(refused.await.unwrap(), Err(TunnelError::Full)));
    drop((first, served));
    forwarding.await.unwrap().unwrap();

    pair.ending.send_replace(true);
    pair.accepting.await.unwrap().unwrap();
    let desk = pair.desk.clone();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    for (owner, wanted) in [(OWNER, "pi does not accept connections at the moment"), ("no.name", "not a member's name")]
    {
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (desk, owner) = (desk.clone(), owner.to_owned());
        let refused = tokio::spawn(async move { forward(stream, peer(), &desk, &owner).await });
        assert_eq!(told(client).await, "HTTP/1.1 503 Service Unavailable");
        let error = refused.await.unwrap().unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}
