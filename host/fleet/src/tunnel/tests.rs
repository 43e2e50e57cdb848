//! Two members and a client, with a simulated network that each test controls.

mod attack;
mod memory;
mod tcp;

use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::memory::{Fate, Net, seal};
use super::carry::{WINDOW, carry};
use super::frame::{Frame, MAX_DATA};
use super::opening::TO_GATEWAY;
use super::{TunnelBus, TunnelError, TunnelLimits, member_name, opening};
use kiso_gateway::TunnelledConnection;

const OWNER: &str = "pi";

/// Size in bytes of the buffer between the client and its member.
const TO_CLIENT: usize = 4 << 10;

fn peer() -> IpAddr {
    "10.0.0.9".parse().unwrap()
}

/// A member that owns the home, and one that forwards to it.
struct Pair {
    net: Net,
    desk: TunnelBus,
    limits: TunnelLimits,
    connections: mpsc::Receiver<TunnelledConnection>,
    ending: watch::Sender<bool>,
    accepting: JoinHandle<Result<(), TunnelError>>,
}

type Forwarding = JoinHandle<Result<(), TunnelError>>;

impl Pair {
    async fn with(limits: TunnelLimits) -> Pair {
        let net = Net::new();
        let (a, b) = seal();
        let (pi, desk) = (net.bus(a, limits), net.bus(b, limits));
        let (sender, connections) = mpsc::channel(8);
        let (ending, ended) = watch::channel(false);
        let accepting = tokio::spawn(async move { super::accept(&pi, OWNER, sender, ended).await });
        tokio::task::yield_now().await;
        Pair { net, desk, limits, connections, ending, accepting }
    }

    async fn new() -> Pair {
        Pair::with(TunnelLimits::default()).await
    }

    /// Returns a client's forwarded connection.
    fn client(&self) -> (DuplexStream, Forwarding) {
        let (client, stream) = tokio::io::duplex(TO_CLIENT);
        let (desk, limits) = (self.desk.clone(), self.limits);
        let forwarding = tokio::spawn(async move {
            let ends = opening::open(&desk.wire, &limits, OWNER, peer()).await?;
            carry(stream, ends, None, &limits).await
        });
        (client, forwarding)
    }

    /// Returns a client's connection, and the owner's end of it.
    async fn connection(&mut self) -> (DuplexStream, DuplexStream, Forwarding) {
        let (client, forwarding) = self.client();
        // The paused test clock advances when all tasks wait.
        let accepted = tokio::time::timeout(Duration::from_secs(3_600), self.connections.recv()).await;
        let accepted = accepted.expect("the owner hears of it").unwrap();
        assert_eq!(accepted.peer, peer());
        (client, accepted.stream, forwarding)
    }
}

/// Returns bytes in which no part repeats.
fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Sends back the received bytes.
fn echo(stream: DuplexStream) -> JoinHandle<()> {
    tokio::spawn(async move {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
        let _ = writer.shutdown().await;
    })
}

/// Writes all bytes in a task; returns the reader and the task.
fn write_all(stream: DuplexStream, bytes: Vec<u8>) -> (tokio::io::ReadHalf<DuplexStream>, JoinHandle<()>) {
    let (reader, mut writer) = tokio::io::split(stream);
    let writing = tokio::spawn(async move {
        let _ = writer.write_all(&bytes).await;
        let _ = writer.shutdown().await;
    });
    (reader, writing)
}

#[tokio::test(start_paused = true)]
async fn ten_mebibytes_go_both_ways_past_a_slow_reader() {
    let mut pair = Pair::new().await;
    pair.net.delay(Duration::from_millis(7));
    let (client, served, forwarding) = pair.connection().await;
    echo(served);
    let sent = pattern(10 << 20);
    let (mut reader, _writing) = write_all(client, sent.clone());
    let mut came: Vec<u8> = Vec::new();
    let mut piece = vec![0; 60_000];
    loop {
        match reader.read(&mut piece).await.unwrap() {
            0 => break,
            length => came.extend(&piece[..length]),
        }
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    assert!(came == sent, "{} of {} bytes", came.len(), sent.len());
    forwarding.await.unwrap().unwrap();
    // A window each way, plus the overhead of the frames.
    assert!(pair.net.most() <= 2 * WINDOW + WINDOW / 8, "{} bytes were on their way", pair.net.most());
    // No tasks or connections remain.
    pair.ending.send_replace(true);
    pair.accepting.await.unwrap().unwrap();
}

/// The number of bytes that a sender can write while nobody reads: a window, and the small buffers at both ends.
#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_stops_the_sender_and_after_a_while_ends_the_connection() {
    for downwards in [false, true] {
        let mut pair = Pair::new().await;
        let (client, served, forwarding) = pair.connection().await;
        let (mut writer, reader) = if downwards { (served, client) } else { (client, served) };
        let mut written = 0;
        let piece = vec![7; 10_000];
        let error = loop {
            match tokio::time::timeout(Duration::from_secs(1), writer.write(&piece)).await {
                Ok(Ok(length)) => written += length,
                Ok(Err(error)) => break Some(error),
                Err(_) => break None,
            }
        };
        assert!(error.is_none());
        assert!((WINDOW..WINDOW + (80 << 10)).contains(&written), "{written} bytes were taken");
        // Signs of life continue; only the stalled reader ends the connection.
        let began = Instant::now();
        let error = loop {
            if let Err(error) = writer.write(&piece).await {
                break error;
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        assert!(began.elapsed() >= Duration::from_secs(20) && began.elapsed() < Duration::from_secs(60));
        let error = forwarding.await.unwrap().unwrap_err();
        match downwards {
            true => assert!(matches!(error, TunnelError::Stalled), "{error:?}"),
            false => assert!(matches!(error, TunnelError::Reset), "{error:?}"),
        }
        drop(reader);
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_said_everything_still_gets_the_answer_however_long_it_takes() {
    let mut pair = Pair::new().await;
    let (mut client, mut served, forwarding) = pair.connection().await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut asked = String::new();
    served.read_to_string(&mut asked).await.unwrap();
    assert_eq!(asked, "question");
    tokio::time::sleep(pair.limits.silence * 10).await;
    served.write_all(b"answer").await.unwrap();
    drop(served);
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "answer");
    forwarding.await.unwrap().unwrap();
}

/// The other way round: the owner has responded and is gone, and the client keeps its end open, or continues to write.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_ends_it_for_a_client_that_stays() {
    for writes in [false, true] {
        let mut pair = Pair::new().await;
        let (mut client, mut served, forwarding) = pair.connection().await;
        let answer = pattern(100 << 10);
        let (bytes, answered) = (
            answer.clone(),
            tokio::spawn(async move {
                served.write_all(&answer).await.unwrap();
            }),
        );
        let mut came = Vec::new();
        if writes {
            // Until it learns that nobody reads.
            let (mut reader, mut writer) = tokio::io::split(client);
            let writing = tokio::spawn(async move { while writer.write_all(&[0; 1000]).await.is_ok() {} });
            reader.read_to_end(&mut came).await.unwrap();
            writing.await.unwrap();
        } else {
            client.read_to_end(&mut came).await.unwrap();
        }
        answered.await.unwrap();
        assert!(came == bytes, "{} of {} bytes", came.len(), bytes.len());
        forwarding.await.unwrap().unwrap();
    }
}

/// The owner has finished, and its data is still waiting on the client's side.
#[tokio::test(start_paused = true)]
async fn a_slow_client_gets_everything_when_the_owner_has_long_finished() {
    let mut pair = Pair::new().await;
    let (mut client, mut served, forwarding) = pair.connection().await;
    client.shutdown().await.unwrap();
    let answer = pattern(WINDOW / 2);
    served.write_all(&answer).await.unwrap();
    drop(served);
    pair.ending.send_replace(true);
    pair.accepting.await.unwrap().unwrap();
    let mut came: Vec<u8> = Vec::new();
    let mut piece = vec![0; 20_000];
    while let length @ 1.. = client.read(&mut piece).await.unwrap() {
        came.extend(&piece[..length]);
        tokio::time::sleep(pair.limits.silence * 3 / 2).await;
    }
    assert!(came == answer, "{} of {} bytes", came.len(), answer.len());
    forwarding.await.unwrap().unwrap();
}

/// A member that ignores the protocol cannot make the other one buffer more than a window.
#[tokio::test(start_paused = true)]
async fn more_than_a_window_ends_the_connection() {
    let mut pair = Pair::new().await;
    let mut ends = opening::open(&pair.desk.wire, &pair.limits, OWNER, peer()).await.unwrap();
    ends.sender.send(Frame::Beat).await.unwrap();
    let mut served = pair.connections.recv().await.unwrap().stream;
    let data = pattern(MAX_DATA);
    let mut sent = 0;
    let ended = async { while Frame::decoded(&ends.receiver.next().await.unwrap()) != Some(Frame::Reset) {} };
    let mut ended = std::pin::pin!(ended);
    loop {
        tokio::select! {
            biased;
            () = &mut ended => break,
            frame = ends.sender.send(Frame::Data(&data)) => frame.unwrap(),
        }
        sent += data.len();
        assert!(sent <= 4 * WINDOW, "it takes as much as there is");
    }
    let mut came = Vec::new();
    served.read_to_end(&mut came).await.unwrap();
    assert!(came.len() <= WINDOW + TO_GATEWAY);
}

/// Each of the first messages of a connection is lost, one per attempt.
#[tokio::test(start_paused = true)]
async fn what_is_lost_ends_the_connection_and_no_wrong_byte_comes() {
    let sent = pattern(700 << 10);
    let mut broken = 0;
    for way in [".up", ".down"] {
        for lost in 0..30 {
            let mut pair = Pair::new().await;
            pair.net.judge(move |subject, before| match subject.ends_with(way) && before == lost {
                true => Fate::IsLost,
                false => Fate::Arrives,
            });
            let (client, forwarding) = pair.client();
            let (mut reader, _writing) = write_all(client, sent.clone());
            let serving = tokio::spawn(async move {
                let stream = pair.connections.recv().await;
                if let Some(accepted) = stream {
                    echo(accepted.stream).await.unwrap();
                }
                pair
            });
            let mut came = Vec::new();
            let _ = reader.read_to_end(&mut came).await;
            assert!(sent.starts_with(&came), "{way} {lost}");
            match forwarding.await.unwrap() {
                Ok(()) => assert!(came == sent, "{way} {lost}: {} bytes", came.len()),
                Err(error) => {
                    let fits = matches!(
                        error,
                        TunnelError::Lost | TunnelError::Reset | TunnelError::NoAnswer | TunnelError::Silent
                    );
                    assert!(fits, "{way} {lost}: {error:?}");
                    broken += 1;
                }
            }
            serving.abort();
        }
    }
    assert!(broken >= 50, "{broken} of 60 connections broke");
}

#[tokio::test(start_paused = true)]
async fn what_comes_twice_counts_once() {
    let mut pair = Pair::new().await;
    pair.net.judge(|_, _| Fate::ArrivesTwice);
    let (client, served, forwarding) = pair.connection().await;
    echo(served);
    let sent = pattern(1 << 20);
    let (mut reader, _writing) = write_all(client, sent.clone());
    let mut came = Vec::new();
    reader.read_to_end(&mut came).await.unwrap();
    assert!(came == sent);
    forwarding.await.unwrap().unwrap();
    tokio::time::sleep(pair.limits.opening * 2).await;
    assert!(pair.connections.try_recv().is_err(), "one request is one connection");
}

#[tokio::test(start_paused = true)]
async fn each_side_notices_when_the_other_has_vanished() {
    let mut pair = Pair::new().await;
    let patience = pair.limits.silence + pair.limits.beat;
    let (client, mut served, forwarding) = pair.connection().await;
    // As if a cable was pulled: nobody is notified.
    pair.net.judge(|_, _| Fate::IsLost);
    let began = Instant::now();
    assert!(matches!(forwarding.await.unwrap(), Err(TunnelError::Silent)));
    let mut rest = Vec::new();
    served.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty() && began.elapsed() <= patience, "{:?}", began.elapsed());
    drop(client);

    // The same when the process is gone.
    let mut pair = Pair::new().await;
    let (_client, _served, forwarding) = pair.connection().await;
    pair.accepting.abort();
    let began = Instant::now();
    assert!(matches!(forwarding.await.unwrap(), Err(TunnelError::Silent)));
    assert!(began.elapsed() <= patience);

    let mut pair = Pair::new().await;
    let (_client, mut served, forwarding) = pair.connection().await;
    forwarding.abort();
    let began = Instant::now();
    served.read_to_end(&mut rest).await.unwrap();
    assert!(began.elapsed() <= patience);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_lives_on() {
    let mut pair = Pair::new().await;
    let (mut client, mut served, _forwarding) = pair.connection().await;
    tokio::time::sleep(pair.limits.silence * 20).await;
    client.write_all(b"hello").await.unwrap();
    let mut hello = [0; 5];
    served.read_exact(&mut hello).await.unwrap();
    assert_eq!(&hello, b"hello");
}

#[tokio::test(start_paused = true)]
async fn too_many_connections_are_refused_until_one_has_ended() {
    let mut pair = Pair::with(TunnelLimits { accepted: 2, ..TunnelLimits::default() }).await;
    let (first, served, forwarding) = pair.connection().await;
    let second = pair.connection().await;
    assert!(matches!(pair.client().1.await.unwrap(), Err(TunnelError::Full)));
    drop((first, served));
    forwarding.await.unwrap().unwrap();
    // The owner's side ends by itself, and not before the other side.
    tokio::time::sleep(pair.limits.silence).await;
    let third = pair.connection().await;
    drop((second, third));
}

/// The gateway accepts no connections at the moment.
#[tokio::test(start_paused = true)]
async fn connections_that_nobody_takes_are_given_up() {
    let mut pair = Pair::new().await;
    let waiting: Vec<_> = (0..8).map(|_| pair.client()).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(waiting.iter().all(|(_, forwarding)| !forwarding.is_finished()));
    assert!(matches!(pair.client().1.await.unwrap(), Err(TunnelError::Reset)));
    pair.connections.close();
    assert!(matches!(pair.client().1.await.unwrap(), Err(TunnelError::Reset)));
    while pair.connections.recv().await.is_some() {}
    for (client, forwarding) in waiting {
        drop(client);
        forwarding.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_ends_lets_connections_come_to_their_end() {
    let mut pair = Pair::new().await;
    let (mut client, mut served, forwarding) = pair.connection().await;
    pair.ending.send_replace(true);
    tokio::time::sleep(pair.limits.silence * 2).await;
    let began = Instant::now();
    assert!(matches!(pair.client().1.await.unwrap(), Err(TunnelError::NoOwner { .. })));
    assert_eq!(began.elapsed(), Duration::ZERO, "that nobody is there is known at once");
    assert!(!pair.accepting.is_finished());
    served.write_all(b"last words").await.unwrap();
    drop(served);
    let mut came = String::new();
    client.read_to_string(&mut came).await.unwrap();
    assert_eq!(came, "last words");
    drop(client);
    forwarding.await.unwrap().unwrap();
    pair.accepting.await.unwrap().unwrap();
}

#[test]
fn members_have_plain_names() {
    for good in ["pi", "a-1", "0", "-", &"x".repeat(32)] {
        assert_eq!(member_name(good).unwrap(), good);
    }
    for bad in ["", "*", ">", "a.b", "a b", "A", "ä", "a\r\n", "pi.>", &"x".repeat(33)] {
        assert!(matches!(member_name(bad), Err(TunnelError::BadName { .. })), "{bad:?}");
    }
}
