//! Skills: listing, installing, granting, calling and removing them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::upload::Upload;
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::{ApiError, GrantNeeded};
use crate::wire::{Body, Created, JsonResult, Page, Path, Query, WasmBody, page_size};
use kiso_base::clock::now_ms;
use kiso_base::compute::{self, Overdue};
use kiso_base::home::{HomeError, SessionName, SkillName};
use kiso_plan::code::{Blame, ErrorClass, ErrorCode};
use kiso_sandbox::effect::network::Network;
use kiso_sandbox::skill::grant::Grant;
use kiso_sandbox::skill::{
    AgentCandidate, Caller, EndedView, GrantChoice, GrantView, SkillError, SkillInfo, SkillLine, Skills,
};

routes! {
    /// The skills, bundled ones first
    GET "/skills" Chat => list;
    /// Install a skill: a .wasm file of at most 128 MiB, or an Agent Skill of at most 32 MiB (a zip archive, or only its SKILL.md)
    POST "/skills" Admin => add,
        201 "The skill is installed",
        400 "The file is neither a component nor an Agent Skill, or its manifest or a parameter is not valid",
        408 "The file did not arrive in time",
        409 "The skill asks for permissions and the request does not say which are granted, its name is taken, or another skill is being uploaded",
        413 "The file is too large",
        422 "The skill does not load, or its self-test failed";
    /// Arguments of a skill, and the permissions that it requests and has
    GET "/skills/{name}" Chat => show, 404 "The skill does not exist", 422 "The skill is damaged";
    /// Remove a skill and its grant
    DELETE "/skills/{name}" Admin => remove, 404 "The skill does not exist", 409 "The skill is bundled";
    /// Replace the permissions that a skill has beyond those of every skill
    PUT "/skills/{name}/grants" Admin => grant,
        200 "The current grant",
        400 "The body is not valid, or grants something that the skill does not ask for",
        404 "The skill does not exist";
    /// Call a skill, or SKILL.FUNCTION, manually
    /// The response comes when the call has ended; `ok` tells whether it succeeded.
    POST "/skills/{name}/call" Chat => call,
        200 "The result of the call",
        400 "The session or the arguments are not valid",
        404 "The skill does not exist",
        409 "A run is working in the session",
        507 "There are too many sessions, or the disk is full; nothing was called";
}

/// Maximum number of hosts or secrets in one request.
const MAX_GRANTED: usize = 100;

/// Page of the listing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SkillsPart {
    /// Name of the last skill of the previous page.
    before: Option<String>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

/// Returns components, bundled ones first, then Agent Skills; each group sorted by name. An unusable skill has an `error`
/// instead.
pub(super) async fn list(
    _: Who,
    State(app): State<App>,
    Query(part): Query<SkillsPart>,
) -> JsonResult<Page<SkillLine>> {
    let limit = page_size(part.limit)? as usize;
    let skills = app.0.drive.newest().tools.skills().clone();
    let listed = blocking(move || Ok(skills.lines()));
    let mut listed = listed.await?;
    if let Some(before) = part.before {
        let at = listed.iter().position(|line| line.skill == before);
        let at = at.ok_or_else(|| ApiError::bad_request("`before` is not a skill that is listed"))?;
        listed.drain(..=at);
    }
    let next = (listed.len() > limit).then(|| listed[limit - 1].skill.clone());
    listed.truncate(limit);
    Ok(Json(Page { items: listed, next }))
}

pub(super) async fn show(_: Who, State(app): State<App>, Path(name): Path<String>) -> JsonResult<SkillInfo> {
    let skills = app.0.drive.newest().tools.skills().clone();
    Ok(Json(blocking(move || skills.info(&name)).await?))
}

/// Options of an upload.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddQuery {
    /// Name for the installation; by default, the skill's own name.
    #[schemars(with = "Option<SkillName>")]
    name: Option<String>,
    /// The permissions to grant. Without this, a skill that requests permissions is not installed.
    grant: Option<Choice>,
}

/// The part of the requested permissions to grant.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "GrantChoice")]
pub(super) enum Choice {
    /// All requested permissions.
    All,
    /// The permissions of every skill, and `/work` as the manifest requests it, but not more than was allowed before.
    Basic,
    /// Nothing, not even `/work`.
    None,
    /// The grant of the version that is replaced.
    Keep,
}

/// Installs a skill that requests permissions only if the request says what to grant.
pub(super) async fn add(
    who: Who,
    State(app): State<App>,
    Query(adding): Query<AddQuery>,
    WasmBody(request): WasmBody,
) -> Result<Created<SkillLine>, ApiError> {
    let one = app.0.upload.clone().try_acquire_owned().map_err(|_| busy("another skill is being uploaded"))?;
    let upload = Upload::receive(&app, request, one).await?;
    let skills = app.0.drive.newest().tools.skills().clone();
    let file = upload.path();
    if blocking_result(move || Skills::is_uploaded_agent_skill(&file).map_err(|error| ApiError::internal(&error)))
        .await?
    {
        return add_agent_skill(who, skills, adding, upload).await;
    }
    let named = adding.name.is_some();
    let (examined, path, name) = (skills.clone(), upload.path().to_owned(), adding.name);
    let examining = compute::run("reading the file", move || match examined.examine_upload(&path, name.as_deref()) {
        Ok(candidate) => Ok((candidate, upload)),
        Err(error) => Err(upload.name(error)),
    });
    // Keeps the right to upload until the end, even if the client no longer waits for the response.
    let (mut candidate, _upload) = examining.await??;
    if candidate.derived && !named {
        return Err(
            ApiError::bad_request("the file brings no kiso.toml, so it has no name").hint("`?name=NAME` gives it one")
        );
    }
    skills.complete_change(&mut candidate).await?;
    let choice = match adding.grant {
        Some(Choice::All) => GrantChoice::All,
        Some(Choice::Basic) => GrantChoice::Basic,
        Some(Choice::None) => GrantChoice::None,
        Some(Choice::Keep) => GrantChoice::KeepShown,
        None if candidate.needs_no_answer() => GrantChoice::Keep,
        None => {
            let message = format!("{}nothing was installed", candidate.question());
            let mut error = ApiError::new(StatusCode::CONFLICT, "grant_needed", message)
                .hint("`?grant=all` allows this, `?grant=basic` installs it without, `?grant=none` also without /work, `?grant=keep` with what was granted before");
            let (skill, asks) = (candidate.name().to_string(), candidate.beyond.shown());
            let change = candidate.change.lines().to_vec();
            error.grant = Some(Box::new(GrantNeeded { skill, asks, doubt: candidate.doubt, change }));
            return Err(error);
        }
    };
    let installed = skills.install(candidate, choice).await?;
    tracing::info!(skill = %installed.name(), by = who.name(), "a skill was installed");
    Ok(Created(blocking(move || Ok(skills.line(&installed))).await?))
}

/// An Agent Skill requests and gets no permissions. It still needs a `grant` if it may come from somebody other than the author
/// of the skill that it replaces, or if it changes the text that models get.
async fn add_agent_skill(
    who: Who,
    skills: Skills,
    adding: AddQuery,
    upload: Upload,
) -> Result<Created<SkillLine>, ApiError> {
    let installing = blocking_result(move || {
        let examined = skills.examine_uploaded_agent_skill(&upload.path(), adding.name.as_deref());
        let candidate = examined.map_err(|error| upload.name(error))?;
        if adding.grant.is_some() || candidate.doubt.is_none() && candidate.change.is_empty() {
            return Ok(skills.install_agent_skill(candidate)?);
        }
        let AgentCandidate { skill, doubt, change, .. } = candidate;
        let why = doubt.as_ref().map_or_else(String::new, |doubt| format!("{doubt}; "));
        let message = format!("{why}it would change what models are told; nothing was installed");
        let mut error = ApiError::new(StatusCode::CONFLICT, "grant_needed", message)
            .hint("`?grant=keep` installs it all the same; an Agent Skill is granted nothing");
        let (name, asks, change) = (skill.name.to_string(), skill.shown().needs, change.lines().to_vec());
        error.grant = Some(Box::new(GrantNeeded { skill: name, asks, doubt, change }));
        Err(error)
    });
    let installed = installing.await?;
    tracing::info!(skill = %installed.name, by = who.name(), "an Agent Skill was installed");
    Ok(Created(installed.line()))
}

/// A removed skill.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RemovedSkill {
    removed: SkillName,
}

pub(super) async fn remove(who: Who, State(app): State<App>, Path(name): Path<String>) -> JsonResult<RemovedSkill> {
    let skills = app.0.drive.newest().tools.skills().clone();
    let removed = blocking(move || {
        // Returns the same error as other routes for a skill that does not exist.
        let name = match SkillName::parse(&name) {
            Ok(name) => name,
            Err(_) => skills.find(&name)?.name().clone(),
        };
        skills.remove(&name).map(|()| name)
    });
    let removed = removed.await?;
    tracing::info!(skill = %removed, by = who.name(), "a skill was removed");
    Ok(Json(RemovedSkill { removed }))
}

/// A grant for a skill: either `grant`, or any of `hosts`, `secrets`, `others` and `limits`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {
        "required": ["grant"],
        "properties": {
            "grant": { "type": "string" }, "hosts": { "type": "null" }, "secrets": { "type": "null" }, "others": { "type": "null" },
            "limits": { "type": "null" },
        },
    },
    {
        "properties": { "grant": { "type": "null" } },
        "anyOf": [
            { "required": ["hosts"], "properties": { "hosts": { "type": "array" } } },
            { "required": ["secrets"], "properties": { "secrets": { "type": "array" } } },
            { "required": ["others"], "properties": { "others": { "type": "array" } } },
            { "required": ["limits"], "properties": { "limits": { "type": "boolean" } } },
        ],
    },
]))]
pub(super) struct GrantRequest {
    grant: Option<Choice>,
    #[schemars(length(max = MAX_GRANTED))]
    hosts: Option<Vec<GrantedHost>>,
    #[schemars(length(max = MAX_GRANTED))]
    secrets: Option<Vec<String>>,
    /// Grants of other capabilities.
    #[schemars(length(max = MAX_GRANTED))]
    others: Option<Vec<NamedGrant>>,
    /// Grant the requested memory and time; if absent, the granted limits stay.
    limits: Option<bool>,
}

/// A host to grant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GrantedHost {
    host: String,
    /// Allow the host even if its address is private.
    #[serde(default)]
    private: bool,
}

/// A grant by name, in the terms of a capability.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedGrant {
    /// Name of the capability, as in a grant file.
    capability: String,
    name: String,
}

/// The current grant of a skill.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SkillGrant {
    skill: SkillName,
    grant: GrantView,
    /// Requested permissions that were not granted, one sentence each.
    asks: Vec<String>,
}

pub(super) async fn grant(
    who: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(given): Body<GrantRequest>,
) -> JsonResult<SkillGrant> {
    let GrantRequest { grant: choice, hosts, secrets, others, limits } = given;
    let single = hosts.is_some() || secrets.is_some() || others.is_some() || limits.is_some();
    let (hosts, secrets, others) = (hosts.unwrap_or_default(), secrets.unwrap_or_default(), others.unwrap_or_default());
    if choice.is_some() == single || hosts.len().max(secrets.len()).max(others.len()) > MAX_GRANTED {
        let message = format!(
            "give either `grant` (\"all\", \"basic\", \"none\" or \"keep\"), or `hosts`, `secrets` and `others` (at most {MAX_GRANTED} \
             each) and `limits`"
        );
        return Err(ApiError::bad_request(message));
    }
    let skills = app.0.drive.newest().tools.skills().clone();
    let engine = app.0.drive.newest_config().engine.clone();
    let granted = blocking(move || {
        let skill = skills.find(&name)?;
        let manifest = &skill.manifest;
        let mut grant = match choice {
            Some(Choice::All) => Grant::all(manifest, &engine),
            Some(Choice::Basic) => Grant { workspace: skills.grant(&skill)?.workspace, ..Grant::default() },
            Some(Choice::None) => Grant::nothing(),
            Some(Choice::Keep) => skills.grant(&skill)?,
            None => {
                let Grant { workspace, memory_mib, timeout_s, ask, .. } = skills.grant(&skill)?;
                Grant { workspace, memory_mib, timeout_s, ask, ..Grant::default() }
            }
        };
        if let Some(limits) = limits {
            grant.set_limits(manifest, &engine, limits);
        }
        let wrong = |why: String| SkillError::new(skill.name().as_str(), Blame::Caller, ErrorCode::BadArgs, why);
        for host in &hosts {
            grant.add_host(manifest, &host.host, host.private).map_err(wrong)?;
        }
        for secret in &secrets {
            grant.add(&manifest.needs, manifest.name.as_str(), "secrets", secret).map_err(wrong)?;
        }
        for NamedGrant { capability, name } in &others {
            grant.add(&manifest.needs, manifest.name.as_str(), capability, name).map_err(wrong)?;
        }
        grant.ask.give_way(&grant.http, &grant.secrets);
        skills.write_grant(skill.name(), &grant)?;
        let asks = skills.missing(&skill, &grant).sentences();
        Ok(SkillGrant { skill: skill.name().clone(), grant: grant.shown(), asks })
    });
    let granted = granted.await?;
    tracing::info!(skill = %granted.skill, by = who.name(), "a grant was changed");
    Ok(Json(granted))
}

/// A manual call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallRequest {
    /// The session whose workspace the skill sees.
    #[serde(default)]
    session: SessionName,
    /// Arguments that match the schema of the tool.
    #[serde(default)]
    #[schemars(with = "Option<Map<String, Value>>")]
    args: Option<Value>,
}

pub(super) async fn call(
    who: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(CallRequest { session, args }): Body<CallRequest>,
) -> JsonResult<EndedView> {
    let drive = &app.0.drive.newest();
    let skills = drive.tools.skills().clone();
    let wanted = name.clone();
    blocking(move || skills.find_tool(&wanted)).await?;
    who.claim_session(&app, &session).await?;
    // Creates the session, so that files that the skill leaves in its workspace can be found and deleted.
    let of = session.clone();
    drive.store.write(move |tx| tx.open_session(&of, now_ms())).await?;
    let lock = drive.home.lock_session(&session);
    let _lock = lock.map_err(|error| match error {
        HomeError::Busy { .. } => busy("the session is being worked in"),
        error => ApiError::internal(&error),
    })?;
    let secrets = drive.secrets_with(&session, app.0.secrets.clone()).await?;
    let args = args.unwrap_or_else(|| Map::new().into());
    let network = Network::by_hand(&drive.store, &drive.config, &session, who.caller()).await?;
    let caller = Caller { network: Some(&network), ..Caller::by_hand(&session, &secrets) };
    let ended = drive.tools.skills().call(&name, &args, caller).await;
    if let Err(error) = &ended.result
        && error.blame == Blame::Caller
    {
        return Err(error.clone().into());
    }
    Ok(Json(ended.shown(&name, &session, None)))
}

fn busy(why: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "busy", why).hint("try again when it has finished")
}

/// Runs file operations on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SkillError> + Send + 'static,
) -> Result<T, ApiError> {
    blocking_result(|| Ok(work()?)).await
}

/// The same for work that returns errors of the API.
async fn blocking_result<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|panic| Err(ApiError::internal(&panic)))
}

/// A file that cannot be read within the time limit counts as damaged.
impl From<Overdue> for ApiError {
    fn from(overdue: Overdue) -> ApiError {
        match overdue {
            Overdue::Deadline { .. } => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_skill", overdue.to_string())
            }
            Overdue::Ending { .. } => ApiError::internal(&overdue),
        }
    }
}

impl From<SkillError> for ApiError {
    fn from(error: SkillError) -> ApiError {
        let message = error.to_string();
        match error.class() {
            ErrorClass::Unknown => ApiError::not_found(message),
            ErrorClass::Busy => busy(&message),
            ErrorClass::Taken => ApiError::new(StatusCode::CONFLICT, "taken", message),
            ErrorClass::Blamed(Blame::Caller) => ApiError::bad_request(message),
            ErrorClass::Limit | ErrorClass::Blamed(Blame::Skill) => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_skill", message)
            }
            ErrorClass::Blamed(Blame::Policy) => ApiError::new(StatusCode::FORBIDDEN, "forbidden", message),
            ErrorClass::Config | ErrorClass::Blamed(Blame::Host) => ApiError::internal(&message),
        }
    }
}
