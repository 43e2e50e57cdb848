//! How messages get to a server: over HTTP, or to one that is started here.

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

/// How a server is reached.
#[derive(Debug)]
pub(super) enum Transport {
    /// With the headers of the administrator, or the variable that is not there.
    Http { uri: Uri, headers: Result<HeaderMap, String> },
    /// A component, or the variable that is not there.
    Component(Result<Arc<ServerComponent>, String>),
    /// A program of this machine, or the variable that is not there.
    Native(Result<NativeServer, String>),
}

/// Values that are kept out of everything written, by their variables.
type Keys = Vec<(String, SecretValue)>;

impl Transport {
    /// Does not connect, and starts nothing. Also gives the values that `environment` has.
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

    /// Makes ready what takes long at the first time, and does not count as time of a call.
    pub(super) async fn load(&self) -> Result<(), McpFault> {
        match self {
            Self::Component(Ok(server)) => server.load().await.map_err(component::fault),
            _ => Ok(()),
        }
    }

    /// Starts a server that is not reached over HTTP.
    pub(super) async fn start(&self) -> Result<Option<Arc<StdioServer>>, McpFault> {
        let unset = |variable: &String| McpFault::Variable(variable.clone());
        let started = match self {
            Self::Http { .. } => return Ok(None),
            Self::Component(server) => component::start(server.as_ref().map_err(unset)?),
            Self::Native(server) => native::start(server.as_ref().map_err(unset)?).await?,
        };
        Ok(Some(Arc::new(started)))
    }

    /// Whether each call is answered by a server of its own, and no server runs in between.
    pub(super) fn is_for_each_call(&self) -> bool {
        matches!(self, Self::Component(_))
    }

    /// Which file is started now. Another one has other tools.
    pub(super) fn file(&self) -> Option<FileStamp> {
        match self {
            Self::Component(Ok(server)) => server.stamp(),
            _ => None,
        }
    }
}

/// Headers with their values.
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
                // What says the kind of the key, such as "Bearer", is not secret; what follows it is one alone as well.
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

/// The variables that a program is started with. It has no others.
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
