//! Approvals: questions that runs ask before they go on, and remembered answers.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, JsonResult, Page, Path, Query, page_size};
use kiso_agent::drive::{AlwaysScope, CardReply, CardReplyError};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_plan::plan::CallerScope;
use kiso_store::store::{ApprovalLine, ApprovalRule, StoreError, Tx, View};

routes! {
    /// Pending approvals, or all of them, latest first
    GET "/approvals" Chat => list;
    /// An approval
    GET "/approvals/{id}" Chat => one, 404 "The approval does not exist";
    /// Accept or refuse the effects of an approval; its run goes on
    POST "/approvals/{id}" Chat => answer,
        400 "The approval has no effect of that number, or an answer that accepts nothing cannot be remembered",
        403 "Only an administrator accepts for every session",
        404 "The approval does not exist",
        409 "The approval was answered, has expired or was withdrawn",
        507 "Too many decisions are remembered";
    /// Remembered decisions
    GET "/remembered_approvals" Chat => remembered;
    /// Forget a remembered decision; the question is asked again next time
    DELETE "/remembered_approvals/{id}" Chat => forget, 404 "The decision does not exist";
}

/// Filter and page of the listing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApprovalsPart {
    /// Only approvals of this session and its subagents.
    session: Option<SessionName>,
    /// Also list approvals that are no longer pending.
    #[serde(default)]
    all: bool,
    /// Number of the last approval of the previous page.
    before: Option<i64>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

/// An answer to an approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApprovalReply {
    /// Numbers of the accepted effects, counted from 1; all others are refused. An empty list refuses all.
    #[schemars(length(max = 20))]
    accept: Vec<usize>,
    /// Also accept the same effects in the future without asking.
    #[serde(default)]
    always: Option<AlwaysScope>,
}

/// Filter of the listing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RememberedPart {
    /// Only decisions that apply to this session.
    session: Option<SessionName>,
}

/// Remembered decisions, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RememberedApprovals {
    items: Vec<ApprovalRule>,
}

/// A forgotten decision.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ForgottenApproval {
    forgotten: i64,
}

pub(super) async fn list(
    who: Who,
    State(app): State<App>,
    Query(part): Query<ApprovalsPart>,
) -> JsonResult<Page<ApprovalLine>> {
    let limit = page_size(part.limit)?;
    if let Some(session) = &part.session {
        who.check_session(&app, session).await?;
    }
    let read = move |view: &View<'_>| {
        let found = view.approvals(part.session.as_ref(), part.all, part.before, limit)?;
        let next = found.last().filter(|_| found.len() == limit as usize).map(|line| line.id.to_string());
        let mut items = Vec::new();
        for line in found {
            if who.may_read(view, &line.session)? {
                items.push(line);
            }
        }
        Ok(Page { items, next })
    };
    Ok(Json(app.0.drive.store.read(read).await?))
}

pub(super) async fn one(_: Who, State(app): State<App>, Path(id): Path<i64>) -> JsonResult<ApprovalLine> {
    let found = app.0.drive.store.read(move |view| view.approval(id)).await?;
    Ok(Json(found.ok_or(CardReplyError::Unknown(id))?))
}

pub(super) async fn answer(
    who: Who,
    State(app): State<App>,
    Path(id): Path<i64>,
    Body(reply): Body<ApprovalReply>,
) -> JsonResult<ApprovalLine> {
    if reply.always == Some(AlwaysScope::ThirtyDays) && who.caller() != CallerScope::Admin {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "only an administrator accepts for every session",
        ));
    }
    let by = who.name().to_owned();
    let said = CardReply { accepted: Some(reply.accept), always: reply.always, by };
    app.0.drive.answer_card(id, None, said).await?;
    one(who, State(app), Path(id)).await
}

pub(super) async fn remembered(
    who: Who,
    State(app): State<App>,
    Query(part): Query<RememberedPart>,
) -> JsonResult<RememberedApprovals> {
    if let Some(session) = &part.session {
        who.check_session(&app, session).await?;
    }
    let read = move |view: &View<'_>| {
        let mut items = Vec::new();
        for rule in view.approval_rules(part.session.as_ref(), now_ms())? {
            if may_change(&who, view, &rule)? {
                items.push(rule);
            }
        }
        Ok(items)
    };
    Ok(Json(RememberedApprovals { items: app.0.drive.store.read(read).await? }))
}

/// Returns whether the caller may change a decision. Decisions for every session require the right to read all sessions.
fn may_change(who: &Who, view: &View<'_>, rule: &ApprovalRule) -> Result<bool, StoreError> {
    match &rule.session {
        Some(session) => who.may_read(view, session),
        None => Ok(who.owner.is_none()),
    }
}

pub(super) async fn forget(who: Who, State(app): State<App>, Path(id): Path<i64>) -> JsonResult<ForgottenApproval> {
    let write = move |tx: &Tx<'_>| {
        if who.owner.is_some() {
            let rules = tx.approval_rules(None, now_ms())?;
            let Some(rule) = rules.iter().find(|rule| rule.id == id) else { return Ok(false) };
            if !may_change(&who, tx, rule)? {
                return Ok(false);
            }
        }
        tx.forget_approval(id)
    };
    match app.0.drive.store.write(write).await? {
        true => Ok(Json(ForgottenApproval { forgotten: id })),
        false => Err(ApiError::not_found(format!("there is no remembered decision {id}"))),
    }
}

impl From<CardReplyError> for ApiError {
    fn from(error: CardReplyError) -> ApiError {
        match error {
            CardReplyError::Unknown(_) => ApiError::not_found(error.to_string()),
            CardReplyError::Over { .. } => ApiError::new(StatusCode::CONFLICT, "over", error.to_string()),
            CardReplyError::Number { .. } | CardReplyError::Nothing => ApiError::bad_request(error.to_string()),
            CardReplyError::Store(error) => error.into(),
        }
    }
}
