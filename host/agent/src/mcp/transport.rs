//! The transport of messages to a server: over HTTP, or to one that is started here.

use std::path::PathBuf;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::McpFault;
use super::native::NativeServer;
use super::stdio::StdioServer;
use super::{component, native};
use kiso_base::config::{McpPlace, McpSettings, RemotePlace, name_and_value, name_and_variable};
use kiso_sandbox::skill::Skills;
use kiso_sandbox::skill::server::{FileStamp, ServerComponent, ServerGrant};
use kiso_store::secret::SecretValue;

/// The transport to a server.
#[derive(Debug)]
pub(super) enum Transport {
    /// With the headers of the administrator, or the name of a missing variable.
    Http { uri: Uri, headers: Result<HeaderMap, String> },
    /// A component, or the name of a missing variable.
    Component(Result<Arc<ServerComponent>, String>),
    /// A program of this machine, or the name of a missing variable.
    Native(Result<NativeServer, String>),
}

/// Values that are redacted everywhere, with the names of their variables.
type Keys = Vec<(String, SecretValue)>;

impl Transport {
    /// Creates a transport without connecting or starting anything. Also returns the values from `environment`.
    pub(super) fn new(
        settings: &McpSettings,
        skills: &Skills,
        gateway_port: u64,
        environment: impl Fn(&str) -> Option<String>,
    ) -> (Transport, Keys) {
        match &settings.place {
            McpPlace::Remote(RemotePlace { url, .. }) => {
                let (headers, keys) = headers(settings, environment);
                (Transport::Http { uri: url.parse().unwrap_or_default(), headers }, keys)
            }
            McpPlace::Component(place) => {
                let (env, keys) = variables(settings, environment);
                let server = |env| {
                    Arc::new(skills.server(ServerGrant {
                        path: PathBuf::from(&place.component),
                        hosts: place.hosts.clone(),
                        allow_private: place.allow_private,
                        env,
                        memory_mib: place.memory_mib,
                        timeout_s: settings.timeout_s,
                    }))
                };
                (Transport::Component(env.map(server)), keys)
            }
            McpPlace::Command(place) => {
                let (env, keys) = variables(settings, environment);
                let server = |env| NativeServer::new(&settings.name, place, skills.home(), gateway_port, env);
                (Transport::Native(env.map(server)), keys)
            }
        }
    }

    /// Does slow preparations of the first use, which do not count towards the time of a call.
    pub(super) async fn load(&self) -> Result<(), McpFault> {
        match self {
            Self::Component(Ok(server)) => server.load().await.map_err(component::fault),
            _ => Ok(()),
        }
    }

    /// Starts a server, unless it is reached over HTTP.
    pub(super) async fn start(&self) -> Result<Option<Arc<StdioServer>>, McpFault> {
        let unset = |variable: &String| McpFault::Variable(variable.clone());
        let started = match self {
            Self::Http { .. } => return Ok(None),
            Self::Component(server) => component::start(server.as_ref().map_err(unset)?),
            Self::Native(server) => native::start(server.as_ref().map_err(unset)?).await?,
        };
        Ok(Some(Arc::new(started)))
    }

    /// Returns whether each call starts its own server, and none runs in between.
    pub(super) fn is_for_each_call(&self) -> bool {
        matches!(self, Self::Component(_))
    }

    /// Returns the identity of the file that would be started now. Another file has other tools.
    pub(super) fn file(&self) -> Option<FileStamp> {
        match self {
            Self::Component(Ok(server)) => server.stamp(),
            _ => None,
        }
    }
}

/// Returns the headers with their values.
fn headers(settings: &McpSettings, environment: impl Fn(&str) -> Option<String>) -> (Result<HeaderMap, String>, Keys) {
    let (mut headers, mut keys, mut missing) = (HeaderMap::new(), Vec::new(), None);
    for (name, variable) in settings.headers() {
        let value = environment(variable).map(|value| SecretValue::new(value.trim().to_owned()));
        let header = value.as_ref().filter(|value| !value.expose().is_empty());
        let header = header.and_then(|value| HeaderValue::from_str(value.expose()).ok());
        let name = HeaderName::from_bytes(name.as_bytes());
        match (name, header, value) {
            (Ok(name), Some(mut header), Some(value)) => {
                header.set_sensitive(true);
                headers.insert(name, header);
                // The scheme of the key, such as "Bearer", is not secret; the part after it must also be redacted on its own.
                if let Some((_, key)) = value.expose().rsplit_once(' ') {
                    keys.push((variable.to_owned(), SecretValue::new(key.to_owned())));
                } else {
                    keys.push((variable.to_owned(), value));
                }
            }
            _ => missing = Some(variable.to_owned()),
        }
    }
    (missing.map_or(Ok(headers), Err), keys)
}

/// All environment variables of a program.
type Variables = Vec<(String, SecretValue)>;

fn variables(
    settings: &McpSettings,
    environment: impl Fn(&str) -> Option<String>,
) -> (Result<Variables, String>, Keys) {
    let (written, of_environment) = settings.place.environment();
    let written = written.iter().filter_map(|entry| name_and_value(entry));
    let mut variables: Variables =
        written.map(|(name, value)| (name.to_owned(), SecretValue::new(value.to_owned()))).collect();
    let (mut keys, mut missing) = (Vec::new(), None);
    for (name, variable) in of_environment.iter().map(|entry| name_and_variable(entry)) {
        match environment(variable).filter(|value| !value.is_empty() && !value.contains('\0')) {
            Some(value) => {
                keys.push((variable.to_owned(), SecretValue::new(value.trim().to_owned())));
                variables.push((name.to_owned(), SecretValue::new(value)));
            }
            None => missing = Some(variable.to_owned()),
        }
    }
    (missing.map_or(Ok(variables), Err), keys)
}
