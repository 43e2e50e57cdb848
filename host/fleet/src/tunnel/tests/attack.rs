//! Attackers with access to NATS but without the key: they can read and send any message.

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::error::TryRecvError;

use super::memory::seal;
use super::{OWNER, Pair, TunnelError, opening, pattern, peer};

/// Returns the subjects of the newest connection.
fn subjects(pair: &Pair) -> (String, String) {
    let published = pair.net.published();
    let last = |way: &str| {
        let found = published.iter().rev().find(|(subject, _)| subject.ends_with(way));
        found.map(|(subject, _)| subject.clone()).unwrap()
    };
    (last(".up"), last(".down"))
}

/// Sends data in both directions and checks its arrival.
async fn talk(
    client: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
    served: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
) {
    let said = pattern(3000);
    let mut heard = vec![0; said.len()];
    client.write_all(&said).await.unwrap();
    served.read_exact(&mut heard).await.unwrap();
    assert!(heard == said);
    served.write_all(&said).await.unwrap();
    client.read_exact(&mut heard).await.unwrap();
    assert!(heard == said);
}

#[tokio::test(start_paused = true)]
async fn what_others_send_does_nothing() {
    let mut pair = Pair::new().await;
    let (mut client, mut served, forwarding) = pair.connection().await;
    talk(&mut client, &mut served).await;
    let (up, down) = subjects(&pair);
    let door = format!("kiso.f.tunnel.{OWNER}");
    let (stranger, _) = seal();
    let numbered = |number: u64, sealed: &[u8]| Bytes::from([&number.to_be_bytes()[..], sealed].concat());
    for subject in [&up, &down, &door] {
        for number in [0, 1, 2, 3, 4, 5, 1000, u64::MAX] {
            let theirs = stranger.seal(&format!("{subject} {} {number}", "0".repeat(32)), &[1]);
            pair.net.inject(subject, numbered(number, &theirs));
            pair.net.inject(subject, numbered(number, b""));
        }
        for length in [0, 1, 7, 8, 9, 20, 35, 36, 37, 1 << 15, 1 << 20] {
            assert!(pair.net.inject(subject, Bytes::from(pattern(length))), "it is heard");
        }
        pair.net.inject(subject, Bytes::from(stranger.seal(subject, br#"{"connection":"x","peer":"127.0.0.1"}"#)));
    }
    talk(&mut client, &mut served).await;
    assert_eq!(pair.connections.try_recv().unwrap_err(), TryRecvError::Empty);
    drop(client);
    drop(served);
    forwarding.await.unwrap().unwrap();
}

/// Genuine frames in another place: with another number, in the other direction, or in another connection.
#[tokio::test(start_paused = true)]
async fn frames_are_worth_nothing_elsewhere() {
    let mut pair = Pair::new().await;
    let (mut client, mut served, _one) = pair.connection().await;
    talk(&mut client, &mut served).await;
    // More frames go up than down, so that some numbers are still unused in the other direction.
    for _ in 0..5 {
        client.write_all(b"more").await.unwrap();
        served.read_exact(&mut [0; 4]).await.unwrap();
    }
    let (up, down) = subjects(&pair);
    let published = pair.net.published();
    let (mut other_client, mut other_served, _two) = pair.connection().await;
    let (other_up, other_down) = subjects(&pair);
    assert_ne!((&up, &down), (&other_up, &other_down));
    for (subject, payload) in published.iter().filter(|(subject, _)| [&up, &down].contains(&subject)) {
        for to in [&up, &down, &other_up, &other_down] {
            if to != subject {
                pair.net.inject(to, payload.clone());
            }
            for number in 0_u64..8 {
                let moved = [&number.to_be_bytes()[..], payload.get(8..).unwrap()].concat();
                // An unchanged message would only be a repetition.
                if to != subject || moved != *payload {
                    pair.net.inject(to, Bytes::from(moved));
                }
            }
        }
    }
    talk(&mut client, &mut served).await;
    talk(&mut other_client, &mut other_served).await;
}

#[tokio::test(start_paused = true)]
async fn a_whole_connection_cannot_be_played_again() {
    let mut pair = Pair::new().await;
    let (mut client, mut served, forwarding) = pair.connection().await;
    talk(&mut client, &mut served).await;
    drop((client, served));
    forwarding.await.unwrap().unwrap();
    tokio::task::yield_now().await;
    let before = pair.net.published();
    for (subject, payload) in &before {
        pair.net.inject(subject, payload.clone());
        // Lets the owner respond, as before.
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let answers = pair.net.published().split_off(before.len());
    assert!(!answers.is_empty(), "the owner takes the request for a new one");
    tokio::time::sleep(pair.limits.opening * 2).await;
    assert_eq!(pair.connections.try_recv().unwrap_err(), TryRecvError::Empty, "and hears nothing that it believes");
    // No traces remain, and others are served.
    let (mut client, mut served, _forwarding) = pair.connection().await;
    talk(&mut client, &mut served).await;
}

/// A member whose home has another key reaches nobody.
#[tokio::test(start_paused = true)]
async fn another_key_opens_nothing() {
    let mut pair = Pair::new().await;
    let stranger = pair.net.bus(seal().0, pair.limits);
    let opened = opening::open(&stranger.wire, &pair.limits, OWNER, peer()).await;
    assert!(matches!(opened, Err(TunnelError::NoAnswer)));
    assert_eq!(pair.connections.try_recv().unwrap_err(), TryRecvError::Empty);
}
