//! Inspects a fleet on a NATS server, without creating anything: for diagnosis.

use std::time::Duration;

use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{DiscardPolicy, StorageType};
use async_nats::jetstream::{ErrorCode, context::GetStreamErrorKind, stream};
use async_nats::{Client, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Bus, BusSettings, REQUEST, chunk_config, connected, log_config, stream_of};
use crate::FleetError;
use kiso_base::clock::now_ms;

/// Subject under which all servers report their JetStream settings, if the account may ask: accounts other than the system
/// account may not, unless the server's configuration allows it.
const HOW_IT_KEEPS: &str = "$SYS.REQ.SERVER.PING.JSZ";

/// Time limit for the response of a further server.
const ANOTHER: Duration = Duration::from_millis(300);

/// Maximum number of servers.
const MAX_SERVERS: usize = 32;

/// NATS, and the state of a fleet in it.
#[derive(Debug)]
pub struct BusSurvey {
    /// Version of the responding server.
    pub version: String,
    /// The streams and the bucket, or JetStream's error.
    pub streams: Result<Vec<SurveyedStream>, FleetError>,
    /// Disk settings of the servers that report them.
    pub syncs: Vec<SurveyedSync>,
}

/// A stream that a fleet needs; a bucket is a stream, too.
#[derive(Debug)]
pub struct SurveyedStream {
    pub name: String,
    pub found: Option<StreamKind>,
}

/// Storage settings of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKind {
    pub in_files: bool,
    pub replicas: usize,
    /// Whether the server deletes messages by itself: by age, or if there are too many.
    pub forgets: bool,
}

/// When a server writes confirmed messages to disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyedSync {
    pub server: String,
    /// Whether it writes them before the confirmation.
    pub at_once: bool,
}

/// State of the log.
#[derive(Debug, Clone, Copy)]
pub struct LogState {
    /// Number of the last message; 0 if there never was one.
    pub end: u64,
    pub bytes: u64,
    /// Time of the last message, by the server's clock, or by this machine's if the server does not report it.
    pub at_ms: i64,
}

#[derive(Debug, Deserialize)]
struct LogInfo {
    state: LogExtent,
    ts: Option<jiff::Timestamp>,
}

#[derive(Debug, Deserialize)]
struct LogExtent {
    last_seq: u64,
    bytes: u64,
}

impl Bus {
    /// Inspects a server with these settings.
    pub async fn survey(settings: &BusSettings) -> Result<BusSurvey, FleetError> {
        let client = connected(settings).await?;
        let streams = streams(&client, settings).await;
        let syncs = syncs(&client).await;
        Ok(BusSurvey { version: client.server_info().version, streams, syncs })
    }

    /// Returns the current state of the log.
    pub async fn log_state(&self) -> Result<LogState, FleetError> {
        let subject = format!("STREAM.INFO.{}", stream_of(&self.0.settings, "LOG", log_config).name);
        let answer = self.0.context.request(subject, &json!({})).await.map_err(FleetError::jetstream)?;
        match answer {
            Response::<LogInfo>::Ok(LogInfo { state, ts }) => Ok(LogState {
                end: state.last_seq,
                bytes: state.bytes,
                at_ms: ts.map_or_else(now_ms, jiff::Timestamp::as_millisecond),
            }),
            Response::Err { error } => Err(FleetError::jetstream(error)),
        }
    }
}

async fn streams(client: &Client, settings: &BusSettings) -> Result<Vec<SurveyedStream>, FleetError> {
    let mut context = async_nats::jetstream::new(client.clone());
    context.set_timeout(REQUEST);
    // Without JetStream, this error is clearer than a missing stream.
    context.query_account().await.map_err(FleetError::jetstream)?;
    let bucket = format!("KV_KISO_{}", settings.fleet);
    let names = [stream_of(settings, "LOG", log_config).name, stream_of(settings, "CHUNKS", chunk_config).name, bucket];
    let mut surveyed = Vec::new();
    for name in names {
        let found = match context.get_stream(&name).await {
            Ok(stream) => Some(kind(&stream.cached_info().config)),
            Err(error) if is_missing(&error.kind()) => None,
            Err(error) => return Err(FleetError::jetstream(error)),
        };
        surveyed.push(SurveyedStream { name, found });
    }
    Ok(surveyed)
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn kind(config: &stream::Config) -> StreamKind {
    let is_limited = config.max_messages > 0 || config.max_bytes > 0;
    StreamKind {
        in_files: config.storage == StorageType::File,
        replicas: config.num_replicas,
        forgets: !config.max_age.is_zero() || is_limited && config.discard == DiscardPolicy::Old,
    }
}

/// Asks servers when they write to disk; returns nothing if this account may not ask.
async fn syncs(client: &Client) -> Vec<SurveyedSync> {
    let inbox = client.new_inbox();
    let mut said = Vec::new();
    let Ok(mut answers) = client.subscribe(inbox.clone()).await else { return said };
    if client.publish_with_reply(HOW_IT_KEEPS, inbox, Bytes::new()).await.is_err() {
        return said;
    }
    let mut wait = REQUEST;
    while said.len() < MAX_SERVERS
        && let Ok(Some(answer)) = tokio::time::timeout(wait, answers.next()).await
        && answer.status != Some(StatusCode::NO_RESPONDERS)
    {
        said.extend(serde_json::from_slice(&answer.payload).ok().as_ref().and_then(sync));
        wait = ANOTHER;
    }
    said
}

/// Parses a server's JetStream settings. A server that does not know the setting reports neither value.
fn sync(answer: &Value) -> Option<SurveyedSync> {
    let config = &answer["data"]["config"];
    let at_once = config["sync_always"].as_bool().or(config["sync_interval"].is_u64().then_some(false))?;
    Some(SurveyedSync { server: answer["server"]["name"].as_str()?.to_owned(), at_once })
}
