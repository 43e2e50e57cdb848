//! Skills: what there is, and what administrators change about it.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::messages::session;
use super::upload::Upload;
use crate::clock::now_ms;
use crate::compute::{self, Overdue};
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Body, Made, Page, Path, Query, default_session, page_size};
use crate::home::{HomeError, SkillName};
use crate::skill::grant::{Grant, RequestedGrant};
use crate::skill::{Blame, Caller, GrantChoice, Installed, SkillError, Skills};

/// Hosts, or secrets, that one request grants.
const MAX_GRANTED: usize = 100;

/// Which part of the listing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Name of the last skill of the page before.
    before: Option<String>,
    limit: Option<u32>,
}

/// `GET /skills`: bundled ones first, each group by name. One that cannot be used has an `error` instead.
pub async fn list(_: Who, State(app): State<App>, Query(part): Query<Part>) -> Made<Page<Value>> {
    let limit = page_size(part.limit)? as usize;
    let skills = app.0.drive.now().tools.skills().clone();
    let listed = blocking(move || {
        let shown = skills.list().into_iter().map(|found| match found {
            Ok(skill) => (skill.name().to_string(), line(&skills, &skill)),
            Err(error) => (error.skill.clone(), json!({ "skill": error.skill, "error": error.message })),
        });
        Ok(shown.collect::<Vec<_>>())
    });
    let mut listed = listed.await?;
    if let Some(before) = part.before {
        let at = listed.iter().position(|(name, _)| *name == before);
        let at = at.ok_or_else(|| ApiError::bad_request("`before` is not a skill that is listed"))?;
        listed.drain(..=at);
    }
    let next = (listed.len() > limit).then(|| listed[limit - 1].0.clone());
    listed.truncate(limit);
    Ok(Json(Page { items: listed.into_iter().map(|(_, skill)| skill).collect(), next }))
}

/// `GET /skills/{name}`
pub async fn show(_: Who, State(app): State<App>, Path(name): Path<String>) -> Made<Value> {
    let skills = app.0.drive.now().tools.skills().clone();
    let shown = blocking(move || {
        let skill = skills.find(&name)?;
        let grant = skills.grant(&skill)?;
        let mut shown = skills.shown(&skill)?;
        shown["asks"] = lines(&skills.missing(&skill, &grant));
        shown["grant"] = grant.shown();
        Ok(shown)
    });
    Ok(Json(shown.await?))
}

/// What comes with a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adding {
    /// Name to install it under instead of its own.
    name: Option<String>,
    grant: Option<Choice>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    All,
    /// What every skill gets, and `/work` as its manifest asks, as far as that is not more than was allowed before.
    Basic,
    None,
}

/// `POST /skills`: installs the component that is the body. One that asks for something is installed only where the request
/// says what it is granted.
pub async fn add(
    who: Who,
    State(app): State<App>,
    Query(adding): Query<Adding>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let one = app.0.upload.clone().try_acquire_owned().map_err(|_| busy("another skill is being uploaded"))?;
    let upload = Upload::receive(&app, request, one).await?;
    let skills = app.0.drive.now().tools.skills().clone();
    let named = adding.name.is_some();
    let (examined, path, name) = (skills.clone(), upload.path().to_owned(), adding.name);
    let examining = compute::run("reading the file", move || match examined.examine_upload(&path, name.as_deref()) {
        Ok(candidate) => Ok((candidate, upload)),
        Err(error) => Err(upload.name(error)),
    });
    // Kept to the end, and with it the right to upload: also where nobody waits for the answer any more.
    let (candidate, _upload) = examining.await??;
    if candidate.derived && !named {
        return Err(
            ApiError::bad_request("the file brings no kiso.toml, so it has no name").hint("`?name=NAME` gives it one")
        );
    }
    let choice = match adding.grant {
        Some(Choice::All) => GrantChoice::All,
        Some(Choice::Basic) => GrantChoice::Basic,
        Some(Choice::None) => GrantChoice::None,
        None if candidate.beyond.is_empty() && candidate.doubt.is_none() => GrantChoice::Keep,
        None => {
            let message = format!("{}nothing was installed", candidate.question());
            return Err(ApiError::new(StatusCode::CONFLICT, "grant_needed", message)
                .hint("`?grant=all` allows this, `?grant=basic` installs it without, `?grant=none` also without /work")
                .with("skill", candidate.name().as_str().into())
                .with("asks", candidate.beyond.shown())
                .with("doubt", json!(candidate.doubt)));
        }
    };
    let installed = skills.install(candidate, choice).await?;
    tracing::info!(skill = %installed.name(), by = who.name(), "a skill was installed");
    Ok((StatusCode::CREATED, Json(blocking(move || Ok(line(&skills, &installed))).await?)))
}

/// `DELETE /skills/{name}`: the skill and its grant.
pub async fn remove(who: Who, State(app): State<App>, Path(name): Path<String>) -> Made<Value> {
    let skills = app.0.drive.now().tools.skills().clone();
    let removed = blocking(move || {
        // Whether there is one is said in the same words as everywhere.
        let name = match SkillName::parse(&name) {
            Ok(name) => name,
            Err(_) => skills.find(&name)?.name().clone(),
        };
        skills.remove(&name).map(|()| name)
    });
    let removed = removed.await?;
    tracing::info!(skill = %removed, by = who.name(), "a skill was removed");
    Ok(Json(json!({ "removed": removed.as_str() })))
}

/// What a skill is granted: everything, nothing, or just this.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Granting {
    grant: Option<Choice>,
    hosts: Option<Vec<Host>>,
    secrets: Option<Vec<String>>,
    /// Whether it has the memory and time that it asks for. What was granted of them stays where this is left out.
    limits: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    host: String,
    /// Also where its address is private.
    #[serde(default)]
    private: bool,
}

/// `PUT /skills/{name}/grants`: replaces what the skill may do beyond what every skill may.
pub async fn grant(
    who: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(given): Body<Granting>,
) -> Made<Value> {
    let Granting { grant: choice, hosts, secrets, limits } = given;
    let single = hosts.is_some() || secrets.is_some() || limits.is_some();
    let (hosts, secrets) = (hosts.unwrap_or_default(), secrets.unwrap_or_default());
    if choice.is_some() == single || hosts.len().max(secrets.len()) > MAX_GRANTED {
        let message = format!(
            "give either `grant` (\"all\", \"basic\" or \"none\"), or `hosts` and `secrets` (at most {MAX_GRANTED} each) and \
             `limits`"
        );
        return Err(ApiError::bad_request(message));
    }
    let skills = app.0.drive.now().tools.skills().clone();
    let engine = app.0.drive.config_now().engine.clone();
    let granted = blocking(move || {
        let skill = skills.find(&name)?;
        let manifest = &skill.manifest;
        let mut grant = match choice {
            Some(Choice::All) => Grant::all(manifest, &engine),
            Some(Choice::Basic) => Grant { workspace: skills.grant(&skill)?.workspace, ..Grant::default() },
            Some(Choice::None) => Grant::nothing(),
            None => Grant { http: Vec::new(), secrets: Default::default(), ..skills.grant(&skill)? },
        };
        if let Some(limits) = limits {
            grant.set_limits(manifest, &engine, limits);
        }
        let wrong = |why: String| SkillError::new(skill.name().as_str(), Blame::Caller, "bad-args", why);
        for host in &hosts {
            grant.add_host(manifest, &host.host, host.private).map_err(wrong)?;
        }
        for secret in &secrets {
            grant.add_secret(manifest, secret).map_err(wrong)?;
        }
        skills.write_grant(skill.name(), &grant)?;
        Ok(
            json!({ "skill": skill.name().as_str(), "grant": grant.shown(), "asks": lines(&skills.missing(&skill, &grant)) }),
        )
    });
    let granted = granted.await?;
    tracing::info!(skill = %granted["skill"], by = who.name(), "a grant was changed");
    Ok(Json(granted))
}

/// A call by hand.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calling {
    /// Whose workspace the skill sees.
    #[serde(default = "default_session")]
    session: String,
    #[serde(default)]
    args: Option<Value>,
}

/// `POST /skills/{name}/call`: calls a skill, or SKILL.FUNCTION, and answers when it has ended, however it did.
pub async fn call(_: Who, State(app): State<App>, Path(name): Path<String>, Body(given): Body<Calling>) -> Made<Value> {
    let session = session(&given.session)?;
    let drive = &app.0.drive.now();
    let skills = drive.tools.skills().clone();
    let wanted = name.clone();
    blocking(move || skills.find_tool(&wanted)).await?;
    // So that what it leaves in a workspace is found, and can be deleted.
    let of = session.clone();
    drive.store.write(move |tx| tx.open_session(&of, now_ms())).await?;
    let lock = drive.home.lock_session(&session);
    let _lock = lock.map_err(|error| match error {
        HomeError::Busy { .. } => busy("the session is being worked in"),
        error => ApiError::internal(&error),
    })?;
    let secrets = drive.secrets_with(&session, app.0.secrets.clone()).await?;
    let args = given.args.unwrap_or_else(|| json!({}));
    let caller = Caller { session: &session, locale: "en", secrets: &secrets };
    let ended = drive.tools.skills().call(&name, &args, caller).await;
    if let Err(error) = &ended.result
        && error.blame == Blame::Caller
    {
        return Err(error.clone().into());
    }
    Ok(Json(ended.shown(&name, &session, None)))
}

/// A skill, as in a listing.
fn line(skills: &Skills, skill: &Installed) -> Value {
    let manifest = &skill.manifest;
    let tools: Vec<_> = skill.tools.iter().map(|t| json!({ "name": t.name, "args": t.args.schema() })).collect();
    let asks = skills.grant(skill).map(|grant| lines(&skills.missing(skill, &grant)));
    let mut line = json!({
        "skill": manifest.name.as_str(), "version": manifest.version, "origin": skill.origin(), "shape": skill.shape,
        "category": manifest.category, "summary": manifest.summary, "tools": tools,
    });
    match asks {
        Ok(asks) => line["asks"] = asks,
        Err(error) => line["error"] = error.message.into(),
    }
    line
}

/// What is asked for and was not granted, a sentence each.
fn lines(asked: &RequestedGrant) -> Value {
    asked.to_string().lines().map(str::trim).collect()
}

fn busy(why: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "busy", why).hint("try again when it has finished")
}

/// Reads and writes files on a thread where that may take its time.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SkillError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(panic) => Err(ApiError::internal(&panic)),
    }
}

/// A file that nobody can read in that time is as good as damaged.
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
        match (error.code.as_str(), error.blame) {
            ("unknown-skill", _) => ApiError::not_found(message),
            ("busy", _) => busy(&message),
            ("name-taken" | "bundled", _) => ApiError::new(StatusCode::CONFLICT, "taken", message),
            (_, Blame::Caller) => ApiError::bad_request(message),
            (_, Blame::Skill) => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_skill", message),
            (_, Blame::Policy) => ApiError::new(StatusCode::FORBIDDEN, "forbidden", message),
            (_, Blame::Host) => ApiError::internal(&message),
        }
    }
}
