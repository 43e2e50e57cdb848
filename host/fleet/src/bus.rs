//! The members' shared state: a connection to NATS, and in its JetStream a log, pieces of files, and a few values.
//!
//! | name | content |
//! |---|---|
//! | stream `KISO_<fleet>_LOG`, subject `kiso.<fleet>.log` | commits of the store, in order |
//! | stream `KISO_<fleet>_CHUNKS`, subjects `kiso.<fleet>.chunk.<digest>` | pieces of files, one message each |
//! | bucket `KISO_<fleet>` | the owner of the home, the start of a copy, the status of each member |
//!
//! The tasks run on a separate thread: the store's thread waits for them, and must not delay an acknowledgement.

pub mod survey;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::kv::{self, UpdateErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, DiscardPolicy, LastRawMessageErrorKind, RawMessageErrorKind, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, ConnectOptions};
use futures_util::{StreamExt, TryStreamExt};
use tokio::runtime::{Builder, Handle};
use tokio::time::Instant;

use super::FleetError;
use super::seal::Seal;

/// Time limit of a request before it is repeated.
const REQUEST: Duration = Duration::from_secs(2);

/// Time limit for the next message of the log, which exists already.
const NEXT: Duration = Duration::from_secs(10);

/// Delay between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the server remembers message ids to detect duplicates; correctness does not depend on it.
const DUPLICATES: Duration = Duration::from_secs(120);

/// Address and credentials of NATS, and the name of the fleet.
#[derive(Debug, Clone)]
pub struct BusSettings {
    /// One or several addresses, such as "nats://10.0.0.2:4222", separated by commas.
    pub url: String,
    /// Path of a file with a token, or with "USER:PASSWORD".
    pub credentials: Option<PathBuf>,
    /// Additional root certificates for the server; if set, the connection must be encrypted.
    pub ca: Option<PathBuf>,
    pub fleet: String,
    pub member: String,
    /// Capabilities of this machine that others may lack.
    pub labels: Vec<String>,
    /// Number of servers in a NATS cluster that store each message.
    pub replicas: usize,
}

/// The connection. Clones are cheap.
#[derive(Clone)]
pub struct Bus(Arc<Inner>);

struct Inner {
    settings: BusSettings,
    client: Client,
    context: Context,
    log: stream::Stream,
    chunks: stream::Stream,
    values: kv::Store,
    seal: Seal,
    runtime: Handle,
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

/// The sender of a message in the log.
enum Appended {
    Nothing,
    /// A member of the fleet; contains the id of the append.
    Ours(Option<String>),
    /// Somebody without the fleet's key.
    Foreign,
}

/// A value of the bucket, with the revision that a change must name.
#[derive(Debug, Clone)]
pub struct SharedValue {
    pub revision: u64,
    pub value: Vec<u8>,
    /// Time of the change, by the server's clock.
    pub at_ms: i64,
}

/// Why an append failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The log ends at another message than the caller expects.
    #[error("another member has taken over")]
    Elsewhere,
    /// It is unknown whether the append succeeded.
    #[error("NATS did not confirm it in time: {0}")]
    Unconfirmed(String),
}

impl Bus {
    /// Connects, and creates missing streams of the fleet. Must not be called within a runtime.
    pub fn connect(settings: BusSettings, seal: Seal) -> Result<Bus, FleetError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("fleet").enable_all().build();
        let runtime = runtime.map_err(FleetError::Threads)?;
        match runtime.block_on(Bus::open(settings, seal, runtime.handle().clone())) {
            Ok(bus) => {
                // The runtime lives as long as the process, because it must not be dropped in an async context.
                std::mem::forget(runtime);
                Ok(bus)
            }
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    async fn open(settings: BusSettings, seal: Seal, runtime: Handle) -> Result<Bus, FleetError> {
        let client = connected(&settings).await?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST);
        let log = made(&context, stream_of(&settings, "LOG", log_config)).await?;
        let chunks = made(&context, stream_of(&settings, "CHUNKS", chunk_config)).await?;
        let bucket = kv::Config {
            bucket: format!("KISO_{}", settings.fleet),
            history: 1,
            storage: StorageType::File,
            num_replicas: settings.replicas,
            ..kv::Config::default()
        };
        let values = match context.get_key_value(&bucket.bucket).await {
            Ok(values) => values,
            Err(_) => context.create_key_value(bucket).await.map_err(FleetError::jetstream)?,
        };
        Ok(Bus(Arc::new(Inner { settings, client, context, log, chunks, values, seal, runtime })))
    }

    pub fn client(&self) -> &Client {
        &self.0.client
    }

    pub fn seal(&self) -> &Seal {
        &self.0.seal
    }

    pub fn settings(&self) -> &BusSettings {
        &self.0.settings
    }

    /// Returns the runtime of the tasks.
    pub fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Returns the subject `kiso.<fleet>.WHAT`.
    pub fn subject(&self, what: &str) -> String {
        format!("kiso.{}.{what}", self.0.settings.fleet)
    }

    /// Returns the number of the log's last message; 0 if there never was one.
    pub async fn log_end(&self) -> Result<u64, FleetError> {
        let info = self.0.log.get_info().await.map_err(FleetError::jetstream)?;
        Ok(info.state.last_sequence)
    }

    /// Returns the decrypted messages of the log from `first` to `last`. Messages that were not encrypted with the fleet's key
    /// are skipped: no member wrote them, and each message of a member names its predecessor. Fails with [`FleetError::Gap`] if
    /// one of the messages no longer exists, because a newer base has replaced it.
    pub async fn read_log(
        &self,
        first: u64,
        last: u64,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), FleetError>,
    ) -> Result<(), FleetError> {
        use async_nats::jetstream::consumer::{DeliverPolicy, pull};
        if first > last {
            return Ok(());
        }
        let config = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: first },
            ..pull::OrderedConfig::default()
        };
        let consumer = self.0.log.create_consumer(config).await.map_err(FleetError::jetstream)?;
        let mut messages = consumer.messages().await.map_err(FleetError::jetstream)?;
        let subject = self.subject("log");
        for wanted in first..=last {
            // A deleted message never arrives.
            let next = tokio::time::timeout(NEXT, messages.next()).await.map_err(|_| FleetError::Gap)?;
            let message = next.ok_or(FleetError::Gap)?.map_err(FleetError::jetstream)?;
            let number = message.info().map_err(|error| FleetError::Jetstream(error.to_string()))?.stream_sequence;
            if number != wanted {
                return Err(FleetError::Gap);
            }
            match self.0.seal.open(&subject, &message.payload) {
                Some(plain) => each(number, &plain)?,
                None => tracing::warn!("message {number} of the log was sealed with another key, and is passed over"),
            }
        }
        Ok(())
    }

    /// Appends to the log, if it ends with the message `after`; returns the new message's number. Retries until `deadline`. If an
    /// earlier attempt succeeded without confirmation, its message is recognized by its `id`: the server checks the end of the
    /// log first, and refuses the repetition. A message that was not encrypted with the fleet's key does not count as the end of
    /// the log.
    pub async fn append(&self, plain: &[u8], mut after: u64, id: &str, deadline: Instant) -> Result<u64, AppendError> {
        let subject = self.subject("log");
        let sealed = bytes::Bytes::from(self.0.seal.seal(&subject, plain));
        loop {
            let message = PublishMessage::build().payload(sealed.clone()).message_id(id).expected_last_sequence(after);
            let sent = async { self.0.context.send_publish(subject.clone(), message).await?.await };
            let error = match tokio::time::timeout_at(deadline, sent).await {
                Ok(Ok(confirmed)) => return Ok(confirmed.sequence),
                Ok(Err(error)) if error.kind() == PublishErrorKind::WrongLastSequence => {
                    match self.appended(&subject, after + 1).await {
                        Ok(Appended::Ours(found)) if found.as_deref() == Some(id) => return Ok(after + 1),
                        Ok(Appended::Ours(_) | Appended::Nothing) => return Err(AppendError::Elsewhere),
                        Ok(Appended::Foreign) => {
                            after += 1;
                            tracing::warn!(
                                "message {after} of the log was sealed with another key, and is passed over"
                            );
                            "a foreign message is in the log".to_owned()
                        }
                        Err(error) => error.to_string(),
                    }
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            if Instant::now() + PAUSE >= deadline {
                return Err(AppendError::Unconfirmed(error));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns the sender of a message in the log.
    async fn appended(&self, subject: &str, number: u64) -> Result<Appended, FleetError> {
        match self.0.log.get_raw_message(number).await {
            Ok(message) if self.0.seal.open(subject, &message.payload).is_none() => Ok(Appended::Foreign),
            Ok(message) => {
                Ok(Appended::Ours(message.headers.get(async_nats::header::NATS_MESSAGE_ID).map(ToString::to_string)))
            }
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(Appended::Nothing),
            Err(error) => Err(FleetError::jetstream(error)),
        }
    }

    /// Deletes the log's messages before `first`.
    pub async fn forget_log(&self, first: u64) -> Result<(), FleetError> {
        self.0.log.purge().sequence(first).await.map_err(FleetError::jetstream)?;
        Ok(())
    }

    /// Returns a decrypted value.
    pub async fn value(&self, key: &str) -> Result<Option<SharedValue>, FleetError> {
        let found = self.0.values.entry(key).await.map_err(FleetError::jetstream)?;
        let Some(found) = found.filter(|found| found.operation == kv::Operation::Put) else { return Ok(None) };
        let value = self.0.seal.open(&self.aad(key), &found.value).ok_or(FleetError::OtherKey)?;
        let at_ms = found.created.unix_timestamp_nanos() / 1_000_000;
        Ok(Some(SharedValue { revision: found.revision, value, at_ms: i64::try_from(at_ms).unwrap_or_default() }))
    }

    /// Sets a value if its last change was `revision`, or 0 if it never existed; returns the new revision, or `None` if somebody
    /// else was faster.
    pub async fn swap(&self, key: &str, value: &[u8], revision: u64) -> Result<Option<u64>, FleetError> {
        let sealed = self.0.seal.seal(&self.aad(key), value).into();
        match self.0.values.update(key, sealed, revision).await {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(FleetError::jetstream(error)),
        }
    }

    /// Sets a value unconditionally.
    pub async fn set(&self, key: &str, value: &[u8]) -> Result<(), FleetError> {
        let sealed = self.0.seal.seal(&self.aad(key), value).into();
        self.0.values.put(key, sealed).await.map_err(FleetError::jetstream)?;
        Ok(())
    }

    /// Returns the keys of the bucket with this prefix.
    pub async fn keys(&self, beginning: &str) -> Result<Vec<String>, FleetError> {
        let keys = self.0.values.keys().await.map_err(FleetError::jetstream)?;
        let keys: Vec<String> = keys.try_collect().await.map_err(FleetError::jetstream)?;
        Ok(keys.into_iter().filter(|key| key.starts_with(beginning)).collect())
    }

    /// Stores a piece of a file under its digest.
    pub async fn put_chunk(&self, digest: &str, plain: &[u8]) -> Result<(), FleetError> {
        let subject = self.subject(&format!("chunk.{digest}"));
        // Without a message id: a piece that was deleted a minute ago must be stored again.
        let message = PublishMessage::build().payload(self.0.seal.seal(&subject, plain).into());
        let sent = self.0.context.send_publish(subject, message).await.map_err(FleetError::jetstream)?;
        sent.await.map_err(FleetError::jetstream)?;
        Ok(())
    }

    /// Returns the piece with this digest; `None` if it does not exist.
    pub async fn chunk(&self, digest: &str) -> Result<Option<Vec<u8>>, FleetError> {
        let subject = self.subject(&format!("chunk.{digest}"));
        match self.0.chunks.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => self.0.seal.open(&subject, &message.payload).map(Some).ok_or(FleetError::OtherKey),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(FleetError::jetstream(error)),
        }
    }

    /// Returns the digests of all pieces.
    pub async fn chunk_digests(&self) -> Result<Vec<String>, FleetError> {
        let beginning = self.subject("chunk.");
        let mut info =
            self.0.chunks.info_with_subjects(format!("{beginning}*")).await.map_err(FleetError::jetstream)?;
        let mut digests = Vec::new();
        while let Some((subject, _)) = info.try_next().await.map_err(FleetError::jetstream)? {
            digests.extend(subject.strip_prefix(&beginning).map(str::to_owned));
        }
        Ok(digests)
    }

    /// Returns the number of the message with a piece; `None` if it does not exist.
    pub async fn chunk_number(&self, digest: &str) -> Result<Option<u64>, FleetError> {
        let subject = self.subject(&format!("chunk.{digest}"));
        match self.0.chunks.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(Some(message.sequence)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(FleetError::jetstream(error)),
        }
    }

    /// Deletes a piece by the number of its message. If the piece was stored again since, it has another number and stays.
    pub async fn forget_chunk(&self, number: u64) {
        // If the message no longer exists, there is nothing to do.
        if let Err(error) = self.0.chunks.delete_message(number).await {
            tracing::debug!("a piece was not forgotten: {error}");
        }
    }

    /// Returns the associated data of a value's encryption, which prevents that one value is used in place of another.
    fn aad(&self, key: &str) -> String {
        self.subject(&format!("value.{key}"))
    }
}

async fn connected(settings: &BusSettings) -> Result<Client, FleetError> {
    let url = || settings.url.clone();
    let addresses: Vec<&str> = settings.url.split(',').map(str::trim).collect();
    options(settings)?.connect(addresses).await.map_err(|error| match error.kind() {
        ConnectErrorKind::AuthorizationViolation => FleetError::Refused { url: url() },
        _ => FleetError::Connect { url: url(), detail: error.to_string() },
    })
}

fn options(settings: &BusSettings) -> Result<ConnectOptions, FleetError> {
    let mut options = ConnectOptions::new()
        .name(format!("kiso {}", settings.member))
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| Duration::from_millis(100 * u64::try_from(attempts.min(20)).unwrap_or(20)))
        .ping_interval(Duration::from_secs(2));
    if let Some(ca) = &settings.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some(path) = &settings.credentials {
        let read = std::fs::read_to_string(path);
        let text = read.map_err(|error| FleetError::Credentials { path: path.clone(), detail: error.to_string() })?;
        options = match text.trim().split_once(':') {
            Some((user, password)) => options.user_and_password(user.to_owned(), password.to_owned()),
            None => options.token(text.trim().to_owned()),
        };
    }
    Ok(options)
}

fn stream_of(settings: &BusSettings, name: &str, config: fn(&BusSettings) -> stream::Config) -> stream::Config {
    stream::Config {
        name: format!("KISO_{}_{name}", settings.fleet),
        storage: StorageType::File,
        num_replicas: settings.replicas,
        duplicate_window: DUPLICATES,
        ..config(settings)
    }
}

fn log_config(settings: &BusSettings) -> stream::Config {
    // A full log must refuse a commit instead of dropping old ones.
    let discard = DiscardPolicy::New;
    stream::Config { subjects: vec![format!("kiso.{}.log", settings.fleet)], discard, ..stream::Config::default() }
}

fn chunk_config(settings: &BusSettings) -> stream::Config {
    let subjects = vec![format!("kiso.{}.chunk.*", settings.fleet)];
    stream::Config { subjects, max_messages_per_subject: 1, ..stream::Config::default() }
}

async fn made(context: &Context, config: stream::Config) -> Result<stream::Stream, FleetError> {
    context.get_or_create_stream(config).await.map_err(FleetError::jetstream)
}
