//! Sends a message to a server over HTTP, with the token of a login if there is one.

use ::http::header::AUTHORIZATION;
use ::http::{HeaderMap, Uri};
use serde_json::Value;
use tokio::time::timeout_at;

use super::McpFault;
use super::http::{self, Bounds, RpcAnswer};
use super::oauth::{Account, OauthError};
use kiso_base::rpc::RequestId;

/// Sends a message. If the server refuses the token, the token is renewed once and the message is sent again, because a refused
/// message was not processed. The token is removed from the server's answer.
pub(super) async fn exchange(
    account: Option<(&Account, &str)>,
    uri: &Uri,
    headers: HeaderMap,
    message: &Value,
    id: Option<&RequestId>,
    bounds: Bounds,
) -> Result<RpcAnswer, McpFault> {
    let Some((account, server)) = account else {
        let sent = http::exchange(uri, headers, message, id, bounds).await;
        return sent.map_err(plain);
    };
    let late = |_| McpFault::Timeout(bounds.timeout_s);
    let mut bearer = timeout_at(bounds.end, account.bearer()).await.map_err(late)?.map_err(McpFault::Login)?;
    let mut is_renewed = false;
    loop {
        let mut headers = headers.clone();
        let header = bearer.as_ref().and_then(|bearer| bearer.header());
        headers.extend(header.map(|header| (AUTHORIZATION, header)));
        let sent = http::exchange(uri, headers, message, id, bounds).await;
        let Some(used) = bearer else {
            return sent.map_err(|fault| match fault {
                McpFault::Challenged(401, _) => McpFault::Login(OauthError::None(server.to_owned())),
                fault => plain(fault),
            });
        };
        match sent {
            Ok(mut answer) => {
                used.secrets().redact_value(&mut answer.result);
                return Ok(answer);
            }
            Err(McpFault::Challenged(403, challenge)) if challenge.error.as_deref() == Some("insufficient_scope") => {
                let scope = challenge.scope.unwrap_or_default();
                if !scope.is_empty() {
                    account.wants(&scope).await.map_err(McpFault::Login)?;
                }
                return Err(McpFault::Scope { server: server.to_owned(), scope: super::shown(&scope) });
            }
            Err(McpFault::Challenged(401, _) | McpFault::Refused(401)) if is_renewed => {
                let why = "the server refuses its token".to_owned();
                return Err(McpFault::Login(OauthError::Over(server.to_owned(), why)));
            }
            Err(McpFault::Challenged(401, _) | McpFault::Refused(401)) => {
                let renewed = timeout_at(bounds.end, account.renewed(&used)).await.map_err(late)?;
                bearer = Some(renewed.map_err(McpFault::Login)?);
                is_renewed = true;
            }
            Err(McpFault::Rpc { code, message }) => {
                return Err(McpFault::Rpc { code, message: used.secrets().redact(&message) });
            }
            Err(McpFault::BadAnswer(why)) => return Err(McpFault::BadAnswer(used.secrets().redact(&why))),
            Err(fault) => return Err(plain(fault)),
        }
    }
}

fn plain(fault: McpFault) -> McpFault {
    match fault {
        McpFault::Challenged(status, _) => McpFault::Refused(status),
        fault => fault,
    }
}
