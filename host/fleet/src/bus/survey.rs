//! What is there of a fleet on a NATS server, read without making anything: for those who look for what is wrong.

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

/// Where all servers say how they keep what they confirm, if the account may ask them: others than the system account may not, unless
/// the server's configuration lets them.
const HOW_IT_KEEPS: &str = "$SYS.REQ.SERVER.PING.JSZ";

/// How long another server's answer is waited for.
const ANOTHER: Duration = Duration::from_millis(300);

/// Servers that are heard at most.
const MAX_SERVERS: usize = 32;

/// NATS, and what it has of a fleet.
#[derive(Debug)]
pub struct BusSurvey {
    /// Of the server that answers.
    pub version: String,
    /// The streams and the bucket; or what JetStream says instead.
    pub streams: Result<Vec<SurveyedStream>, FleetError>,
    /// Of the servers that say it.
    pub syncs: Vec<SurveyedSync>,
}

/// A stream that a fleet needs; a bucket is one, too.
#[derive(Debug)]
pub struct SurveyedStream {
    pub name: String,
    pub found: Option<StreamKind>,
}

/// How a stream keeps messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKind {
    pub in_files: bool,
    pub replicas: usize,
    /// Whether messages go that nobody deleted: by age, or where there are too many.
    pub forgets: bool,
}

/// When a server writes what it confirms to the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyedSync {
    pub server: String,
    /// Before it confirms it.
    pub at_once: bool,
}

/// How far the log goes.
#[derive(Debug, Clone, Copy)]
pub struct LogState {
    /// The number of the last message; 0 where none ever was.
    pub end: u64,
    pub bytes: u64,
    /// When that was, by the server's clock; by this machine's, where the server does not say it.
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
    /// Looks at a server with these settings.
    pub async fn survey(settings: &BusSettings) -> Result<BusSurvey, FleetError> {
        let client = connected(settings).await?;
        let streams = streams(&client, settings).await;
        let syncs = syncs(&client).await;
        Ok(BusSurvey { version: client.server_info().version, streams, syncs })
    }

    /// How far the log goes at the moment.
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
    // What it says where there is no JetStream is clearer than that there is no stream.
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

/// What servers say of when they write to the disk; nothing where this account is not told.
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

/// Of what a server says of its JetStream. One that does not know the setting says neither.
fn sync(answer: &Value) -> Option<SurveyedSync> {
    let config = &answer["data"]["config"];
    let at_once = config["sync_always"].as_bool().or(config["sync_interval"].is_u64().then_some(false))?;
    Some(SurveyedSync { server: answer["server"]["name"].as_str()?.to_owned(), at_once })
}
