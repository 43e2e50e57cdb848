//! What the members share: a connection to NATS, and in its JetStream a log, pieces of files, and a few values.
//!
//! | name | what is in it |
//! |---|---|
//! | stream `KISO_<fleet>_LOG`, subject `kiso.<fleet>.log` | commits of the store, in order |
//! | stream `KISO_<fleet>_CHUNKS`, subjects `kiso.<fleet>.chunk.<digest>` | pieces of files, one message each |
//! | bucket `KISO_<fleet>` | who owns the home, where a copy begins, what each member says of itself |
//!
//! Its tasks run on a thread of their own: the store's thread waits for it, and whatever else waits for the store must not keep an
//! acknowledgement from arriving.

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

/// How long one request waits for its answer before it is made again.
const REQUEST: Duration = Duration::from_secs(2);

/// How long the next message of the log is waited for, which is there already.
const NEXT: Duration = Duration::from_secs(10);

/// Between two tries of what did not succeed.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the server keeps ids to know messages by; nothing depends on it.
const DUPLICATES: Duration = Duration::from_secs(120);

/// Where NATS is, and which fleet is meant.
#[derive(Debug, Clone)]
pub struct BusSettings {
    /// One or several addresses, such as "nats://10.0.0.2:4222", with commas between them.
    pub url: String,
    /// A file with a token, or with "USER:PASSWORD".
    pub credentials: Option<PathBuf>,
    /// Certificates that the server's may be signed with, besides the usual ones; with it, the connection has to be encrypted.
    pub ca: Option<PathBuf>,
    pub fleet: String,
    pub member: String,
    /// What this machine has that others may not.
    pub labels: Vec<String>,
    /// How many servers of a NATS cluster keep each message.
    pub replicas: usize,
}

/// The connection. Cheap to clone.
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

/// Whose a message of the log is, where one is there.
enum Appended {
    Nothing,
    /// A member's, with the id that it was appended with.
    Ours(Option<String>),
    /// It was not sealed with the fleet's key.
    Foreign,
}

/// A value of the bucket, and the number that a change of it must name.
#[derive(Debug, Clone)]
pub struct SharedValue {
    pub revision: u64,
    pub value: Vec<u8>,
    /// When it was set, by the server's clock.
    pub at_ms: i64,
}

/// Why an append was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The log does not end where the caller thinks.
    #[error("another member has taken over")]
    Elsewhere,
    /// Whether it was made is not known.
    #[error("NATS did not confirm it in time: {0}")]
    Unconfirmed(String),
}

impl Bus {
    /// Connects, and makes what is missing of the fleet. Not within a runtime.
    pub fn connect(settings: BusSettings, seal: Seal) -> Result<Bus, FleetError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("fleet").enable_all().build();
        let runtime = runtime.map_err(FleetError::Threads)?;
        match runtime.block_on(Bus::open(settings, seal, runtime.handle().clone())) {
            Ok(bus) => {
                // It lives as long as the process: a runtime must not be dropped where others wait for it.
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

    /// Where its tasks run.
    pub fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// `kiso.<fleet>.WHAT`.
    pub fn subject(&self, what: &str) -> String {
        format!("kiso.{}.{what}", self.0.settings.fleet)
    }

    /// The number of the log's last message; 0 where none ever was.
    pub async fn log_end(&self) -> Result<u64, FleetError> {
        let info = self.0.log.get_info().await.map_err(FleetError::jetstream)?;
        Ok(info.state.last_sequence)
    }

    /// The log's messages from `first` to `last`, opened, one after the other. Those that were not sealed with the fleet's key are passed
    /// over: they are nobody's of the fleet, and each message of its own says which one it follows. Fails with [`FleetError::Gap`] where
    /// one of them is not there any more: a newer base has taken their place.
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
            // One that was purged never comes.
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

    /// Appends to the log, if it ends with the message `after`; the new message's number. Tries until `deadline`. What was appended
    /// already, and was not confirmed, is known by its `id`: the server looks at the end of the log first, and refuses it. A message that
    /// was not sealed with the fleet's key does not count as the log's end.
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

    /// Whose a message of the log is.
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

    /// Forgets the log's messages before `first`.
    pub async fn forget_log(&self, first: u64) -> Result<(), FleetError> {
        self.0.log.purge().sequence(first).await.map_err(FleetError::jetstream)?;
        Ok(())
    }

    /// A value, opened.
    pub async fn value(&self, key: &str) -> Result<Option<SharedValue>, FleetError> {
        let found = self.0.values.entry(key).await.map_err(FleetError::jetstream)?;
        let Some(found) = found.filter(|found| found.operation == kv::Operation::Put) else { return Ok(None) };
        let value = self.0.seal.open(&self.aad(key), &found.value).ok_or(FleetError::OtherKey)?;
        let at_ms = found.created.unix_timestamp_nanos() / 1_000_000;
        Ok(Some(SharedValue { revision: found.revision, value, at_ms: i64::try_from(at_ms).unwrap_or_default() }))
    }

    /// Sets a value whose last change was `revision`, 0 for one that never was there; the new revision, or `None` where somebody else
    /// was first.
    pub async fn swap(&self, key: &str, value: &[u8], revision: u64) -> Result<Option<u64>, FleetError> {
        let sealed = self.0.seal.seal(&self.aad(key), value).into();
        match self.0.values.update(key, sealed, revision).await {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(FleetError::jetstream(error)),
        }
    }

    /// Sets a value whatever it was.
    pub async fn set(&self, key: &str, value: &[u8]) -> Result<(), FleetError> {
        let sealed = self.0.seal.seal(&self.aad(key), value).into();
        self.0.values.put(key, sealed).await.map_err(FleetError::jetstream)?;
        Ok(())
    }

    /// The keys of the bucket that begin so.
    pub async fn keys(&self, beginning: &str) -> Result<Vec<String>, FleetError> {
        let keys = self.0.values.keys().await.map_err(FleetError::jetstream)?;
        let keys: Vec<String> = keys.try_collect().await.map_err(FleetError::jetstream)?;
        Ok(keys.into_iter().filter(|key| key.starts_with(beginning)).collect())
    }

    /// Keeps a piece of a file under its digest.
    pub async fn put_chunk(&self, digest: &str, plain: &[u8]) -> Result<(), FleetError> {
        let subject = self.subject(&format!("chunk.{digest}"));
        // Without an id: what was forgotten a minute ago must be kept again.
        let message = PublishMessage::build().payload(self.0.seal.seal(&subject, plain).into());
        let sent = self.0.context.send_publish(subject, message).await.map_err(FleetError::jetstream)?;
        sent.await.map_err(FleetError::jetstream)?;
        Ok(())
    }

    /// The piece of that digest; `None` where there is none.
    pub async fn chunk(&self, digest: &str) -> Result<Option<Vec<u8>>, FleetError> {
        let subject = self.subject(&format!("chunk.{digest}"));
        match self.0.chunks.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => self.0.seal.open(&subject, &message.payload).map(Some).ok_or(FleetError::OtherKey),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(FleetError::jetstream(error)),
        }
    }

    /// The digests of all pieces.
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

    /// The number of the message that has a piece; `None` where there is none.
    pub async fn chunk_number(&self, digest: &str) -> Result<Option<u64>, FleetError> {
        let subject = self.subject(&format!("chunk.{digest}"));
        match self.0.chunks.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(Some(message.sequence)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(FleetError::jetstream(error)),
        }
    }

    /// Forgets a piece by its message's number: one that was kept again since has another one.
    pub async fn forget_chunk(&self, number: u64) {
        // Where that message is gone already, there is nothing to do.
        if let Err(error) = self.0.chunks.delete_message(number).await {
            tracing::debug!("a piece was not forgotten: {error}");
        }
    }

    /// What a value is sealed with besides the key: no member can be given one value for another.
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
    // A full log refuses a commit; it never drops one.
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
