//! Hosts that command lines may reach: the rules of `config.toml`, and the remembered rules.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, JsonResult, Query};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_plan::network::{NetworkAccess, NetworkRule};
use kiso_store::store::{NetworkRuleLine, NewNetworkRule, StoreError, Tx};

routes! {
    /// The rules for hosts that command lines can reach
    GET "/network" Admin => list;
    /// Add a rule for a host
    /// The rule replaces the same methods of earlier rules for the same host and session. Rules of `config.toml` come first.
    POST "/network" Admin => add, 400 "The host or a method is not valid", 404 "The session does not exist", 507 "Too many rules";
    /// Remove the rules for a host
    DELETE "/network" Admin => forget, 404 "There is no rule about the host";
}

/// Maximum number of methods in a rule.
const MAX_METHODS: usize = 7;

/// Filter of the rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NetworkPart {
    /// Only rules for this session.
    session: Option<SessionName>,
}

/// The rules for hosts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Network")]
pub(super) struct NetworkShown {
    /// Rules of `config.toml`, in their order; the first that matches applies.
    configured: Vec<NetworkRule>,
    /// Rules from `kiso network` and from answers to approvals.
    remembered: Vec<NetworkRuleLine>,
    /// Access to all other hosts.
    default: NetworkAccess,
}

/// A rule to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewNetworkRule")]
pub(super) struct RuleToAdd {
    /// A pattern such as "example.org", "*.example.org" or "*", each with an optional ":PORT".
    host: String,
    access: NetworkAccess,
    /// By default, the methods that read (GET, HEAD, OPTIONS), or all methods if the rule denies.
    #[serde(default)]
    #[schemars(length(max = MAX_METHODS))]
    methods: Vec<String>,
    /// Whether the host's address can be in this machine's own network.
    #[serde(default)]
    private: bool,
    /// The session that the rule applies to; all sessions by default.
    session: Option<SessionName>,
}

/// Selects the rules to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForgetRules {
    host: String,
    /// The session of the rules; by default, the rules for all sessions.
    session: Option<SessionName>,
}

/// Number of removed rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ForgottenNetworkRules {
    forgotten: usize,
}

pub(super) async fn list(_: Who, State(app): State<App>, Query(part): Query<NetworkPart>) -> JsonResult<NetworkShown> {
    let config = app.0.drive.newest_config();
    let (configured, default) = (config.network_rules.clone(), config.network_default());
    let remembered = app.0.drive.store.read(move |view| view.network_rule_lines(part.session.as_ref())).await?;
    Ok(Json(NetworkShown { configured, remembered, default }))
}

pub(super) async fn add(who: Who, State(app): State<App>, Body(new): Body<RuleToAdd>) -> JsonResult<NetworkRuleLine> {
    if new.methods.len() > MAX_METHODS {
        return Err(ApiError::bad_request(format!("`methods` has more than {MAX_METHODS} entries")));
    }
    let (methods, private) = (new.methods, new.private);
    let rule = NetworkRule { methods, private, ..NetworkRule::new(&new.host, new.access) };
    rule.check().map_err(ApiError::bad_request)?;
    let rule = NewNetworkRule { session: new.session, rule, by: who.name().to_owned() };
    let unknown = rule.session.clone();
    let write = move |tx: &Tx<'_>| -> Result<Option<NetworkRuleLine>, StoreError> {
        let Some(id) = tx.remember_network_rule(&rule, now_ms())? else { return Ok(None) };
        tx.network_rule_line(id)
    };
    let made = app.0.drive.store.write(write).await?;
    let missing =
        || ApiError::not_found(unknown.map_or_else(String::new, |name| format!("there is no session {name}")));
    Ok(Json(made.ok_or_else(missing)?))
}

pub(super) async fn forget(
    _: Who,
    State(app): State<App>,
    Query(part): Query<ForgetRules>,
) -> JsonResult<ForgottenNetworkRules> {
    let host = part.host.clone();
    let write = move |tx: &Tx<'_>| tx.forget_network_rules(part.session.as_ref(), &host);
    match app.0.drive.store.write(write).await? {
        0 => Err(ApiError::not_found(format!("there is no rule about {:?}", part.host))),
        forgotten => Ok(Json(ForgottenNetworkRules { forgotten })),
    }
}
