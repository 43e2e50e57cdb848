//! The methods of the protocol, independent of the transport.

use serde_json::{Map, Value, json};

use super::era::{self, Caching, Era};
use super::progress::ProgressTeller;
use super::server::{Asker, Runner, Server};
use super::{prompts, resources, tools};
use kiso_base::rpc::{METHOD_NOT_FOUND, RpcError};

/// Answers a request.
pub(super) async fn answer(
    server: &Server,
    (era, method): (Era, &str),
    params: &Map<String, Value>,
    asker: &Asker,
    runner: &dyn Runner,
    progress: &ProgressTeller,
) -> Result<Value, RpcError> {
    let (caching, result) = match (method, era) {
        ("initialize", Era::Legacy) => (Caching::None, initialized(params)),
        ("ping", Era::Legacy) => (Caching::None, json!({})),
        ("server/discover", Era::Modern) => (Caching::Public, discovered()),
        ("tools/list", _) => (Caching::Public, tools::list(server, params)?),
        ("tools/call", _) => (Caching::None, tools::call(server, params, asker, runner, progress).await?),
        ("resources/list", _) => (Caching::Private, resources::list(server, asker, params).await?),
        ("resources/templates/list", _) => (Caching::Public, resources::templates()),
        ("resources/read", _) => (Caching::Private, resources::read(server, asker, params).await?),
        ("prompts/list", _) => (Caching::Private, prompts::list(server, asker).await?),
        ("prompts/get", _) => (Caching::None, prompts::get(server, asker, params).await?),
        _ => return Err(RpcError::new(METHOD_NOT_FOUND, format!("there is no method {method:?} here"))),
    };
    Ok(era::dress(era, caching, result))
}

/// Returns the result of `initialize`: the version that the client requests if it is supported, otherwise the newest of its era.
fn initialized(params: &Map<String, Value>) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let version = wanted.filter(|wanted| era::LEGACY.contains(wanted)).unwrap_or(era::LEGACY[0]);
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": era::server_info(),
        "instructions": INSTRUCTIONS,
    })
}

fn discovered() -> Value {
    json!({ "supportedVersions": era::supported(), "capabilities": capabilities(), "instructions": INSTRUCTIONS })
}

fn capabilities() -> Value {
    json!({ "tools": { "listChanged": true }, "resources": {}, "prompts": {} })
}

const INSTRUCTIONS: &str = "Tools run in a sandbox, in the workspace /work of one session: exec runs a command line with the usual \
    commands, the others are installed skills, and run hands a task in plain words to kiso, which plans and does it. Files in /work are \
    resources. If this client shares folders (roots), command lines begin in the first of them, at /project: its files change only when \
    the user accepts the difference.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_era_gets_the_version_that_it_wants() {
        let version = |wanted: &str| {
            let params = json!({ "protocolVersion": wanted });
            initialized(params.as_object().unwrap())["protocolVersion"].as_str().unwrap().to_owned()
        };
        assert_eq!(version("2025-03-26"), "2025-03-26");
        assert_eq!(version("2099-01-01"), "2025-11-25");
        assert_eq!(version(era::MODERN), "2025-11-25", "that version knows no handshake");
    }
}
