//! Folders of a session: listing, accepting, discarding and undoing the changes of its runs.

mod entry;

use self::entry::{
    ChangePart, ChangesRequest, FileSideKind, FileSides, FolderList, FolderListQuery, FolderUndoRequest, HunkText,
    SettledChanges, SideName, SidePart, open_folder,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path as FilePath, PathBuf};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, JsonResult, Path, Query, SentFile};

use super::files::{self, Download};
use kiso_agent::drive::{FolderFailure, FolderView, RestingFolders};
use kiso_base::home::SessionName;
use kiso_sandbox::effect::overlay::{
    AcceptError, EntryKind, EntryLook, FolderChange, FolderSelection, HunkError, ListedChange, Overlay,
};
use kiso_sandbox::effect::undo::UndoKind;

routes! {
    /// The folders of a session that the caller may see, with their pending changes
    GET "/sessions/{session}/folders" Chat => list;
    /// Both sides of a changed file if they are short texts, with the hunks that differ
    GET "/sessions/{session}/folders/change" Chat => change,
        404 "The path has no change",
        409 "A run works in the session";
    /// The bytes of one side of a changed file, up to 16 MiB. Pictures are shown; all other files are downloads
    GET "/sessions/{session}/folders/side" Chat => side,
        200 "The file",
        404 "The path has no change, or the file does not exist on this side",
        409 "A run works in the session";
    /// Apply changes to a folder. Files that are replaced or deleted there are kept for undo
    POST "/sessions/{session}/folders/accept" Chat => accept,
        404 "The paths have no changes",
        409 "A run works in the session, or the folder has changed since; nothing was changed";
    /// Discard changes
    POST "/sessions/{session}/folders/discard" Chat => discard,
        404 "The paths have no changes",
        409 "A run works in the session";
    /// Restore the folder to its state before the last acceptance
    POST "/sessions/{session}/folders/undo" Chat => undo,
        404 "There is nothing to undo",
        409 "A run works in the session, or files have changed since; nothing was changed";
}

/// Maximum size in bytes of a text that is shown.
const MAX_TEXT: u64 = 256 << 10;

/// Maximum size in bytes of a file that is sent.
const MAX_SENT: u64 = 16 << 20;

pub(super) async fn list(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Query(query): Query<FolderListQuery>,
) -> JsonResult<FolderList> {
    let folders = match app.0.drive.newest().folders_if_at_rest(&session, who.caller()).await {
        Err(FolderFailure::NoFolder { .. }) => return Ok(Json(FolderList { items: Vec::new(), at_work: false })),
        folders => folders?,
    };
    let items = folders.iter().flat_map(RestingFolders::iter).map(|view| open_folder(view, !query.all)).collect();
    Ok(Json(FolderList { items, at_work: folders.is_none() }))
}

pub(super) async fn change(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Query(part): Query<ChangePart>,
) -> JsonResult<FileSides> {
    let folders = app.0.drive.newest().folders_for(&session, Some(&part.at), who.caller()).await?;
    let sides = tokio::task::spawn_blocking(move || {
        let view = first(&folders)?;
        Ok::<_, ApiError>(sides(&view.overlay, find(view, &part.path)?))
    });
    Ok(Json(sides.await.map_err(|error| ApiError::internal(&error))??))
}

pub(super) async fn side(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Query(part): Query<SidePart>,
    asked: axum::http::HeaderMap,
) -> Result<SentFile, ApiError> {
    let folders = app.0.drive.newest().folders_for(&session, Some(&part.at), who.caller()).await?;
    let view = first(&folders)?;
    let change = find(view, &part.path)?;
    let missing = || ApiError::not_found(format!("{:?} is not a file of up to 16 MiB on this side", part.path));
    let file = open_side(&view.overlay, change, part.side).ok_or_else(missing)?;
    let meta = file.metadata().map_err(|error| ApiError::internal(&error))?;
    if meta.len() > MAX_SENT {
        return Err(missing());
    }
    let media_type = picture_type(&file).unwrap_or("application/octet-stream").to_owned();
    Ok(files::answer(Download { file, meta, path: part.path, media_type }, &asked))
}

fn find<'a>(view: &'a FolderView, path: &str) -> Result<&'a FolderChange, ApiError> {
    let change = view.difference.changes.iter().find(|change| change.path == FilePath::new(path));
    change.ok_or_else(|| ApiError::not_found(format!("{path:?} has no change that waits")))
}

/// Opens a side of a change, if it is a file without credentials.
fn open_side(overlay: &Overlay, change: &FolderChange, side: SideName) -> Option<std::fs::File> {
    let look = match side {
        SideName::Before => change.before,
        SideName::After => change.after,
    };
    if change.is_secret || look.is_none_or(|look| look.kind != EntryKind::File) {
        return None;
    }
    let opened = match side {
        SideName::Before => overlay.open_before(change),
        SideName::After => overlay.open_after(change),
    };
    opened.ok()
}

fn sides(overlay: &Overlay, change: &FolderChange) -> FileSides {
    let is_short = |look: Option<EntryLook>| look.is_none_or(|look| look.bytes <= MAX_TEXT);
    let side = |side: SideName| {
        let Some(file) = open_side(overlay, change, side) else { return (None, None) };
        if picture_type(&file).is_some() {
            return (None, Some(FileSideKind::Picture));
        }
        let mut text = String::new();
        let is_text = file.take(MAX_TEXT + 1).read_to_string(&mut text).is_ok() && !text.contains('\0');
        match is_text && text.len() as u64 <= MAX_TEXT {
            true => (Some(text), Some(FileSideKind::Text)),
            false => (None, Some(FileSideKind::Binary)),
        }
    };
    let (before, before_kind) = side(SideName::Before);
    let (after, after_kind) = side(SideName::After);
    let is_text = is_short(change.before) && is_short(change.after);
    let compared = overlay.text_change(change).filter(|_| is_text);
    FileSides {
        before,
        after,
        before_kind,
        after_kind,
        revision: compared.as_ref().map(|text| text.revision.clone()),
        hunks: compared.iter().flat_map(|text| &text.hunks).map(HunkText::from).collect(),
    }
}

/// Detects the media type of a picture that every browser shows, by its first bytes.
fn picture_type(file: &std::fs::File) -> Option<&'static str> {
    let mut first = [0; 12];
    std::os::unix::fs::FileExt::read_exact_at(file, &mut first, 0).ok()?;
    match &first {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some("image/webp"),
        _ => None,
    }
}

pub(super) async fn accept(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<ChangesRequest>,
) -> JsonResult<SettledChanges> {
    let drive = app.0.drive.newest();
    let folders = drive.folders_for(&session, Some(&request.at), who.caller()).await?;
    tracing::info!(%session, by = who.name(), at = request.at, "changes to a folder are to be accepted");
    let view = first(&folders)?;
    let accepted = match (&request.hunks, &request.revision, request.paths.as_deref()) {
        (None, None, _) => drive.accept(&session, view, &selection(view, &request)?)?,
        (Some(hunks), Some(revision), Some([path])) if request.groups.is_none() => {
            drive.accept_hunks(&session, view, FilePath::new(path), (hunks, revision))?
        }
        _ => return Err(ApiError::bad_request("`hunks` need the `revision` of their list and one path")),
    };
    Ok(Json(SettledChanges { at: request.at, changes: accepted.changes }))
}

pub(super) async fn discard(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<ChangesRequest>,
) -> JsonResult<SettledChanges> {
    let drive = app.0.drive.newest();
    let folders = drive.folders_for(&session, Some(&request.at), who.caller()).await?;
    tracing::info!(%session, by = who.name(), at = request.at, "changes to a folder are to be discarded");
    if request.hunks.is_some() || request.revision.is_some() {
        return Err(ApiError::bad_request("hunks are accepted only; discard the whole file"));
    }
    let view = first(&folders)?;
    let changes = drive.discard(&session, view, &selection(view, &request)?)?;
    Ok(Json(SettledChanges { at: request.at, changes }))
}

pub(super) async fn undo(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<FolderUndoRequest>,
) -> JsonResult<SettledChanges> {
    tracing::info!(%session, by = who.name(), "an acceptance is to be undone");
    let drive = app.0.drive.newest();
    let reverted = drive.revert_acceptance(&session, who.caller(), UndoKind::Undo, request.force).await?;
    let reverted = reverted.ok_or_else(|| ApiError::not_found("no acceptance is newer than the session's runs"))?;
    Ok(Json(SettledChanges { at: reverted.folder.at, changes: reverted.acceptance.changes }))
}

fn first(folders: &RestingFolders) -> Result<&FolderView, ApiError> {
    folders.iter().next().ok_or_else(|| ApiError::not_found("the session has no folder at this path"))
}

/// Returns the changes that a request selects.
fn selection(view: &FolderView, request: &ChangesRequest) -> Result<FolderSelection, ApiError> {
    match (&request.paths, &request.groups) {
        (None, None) => Ok(FolderSelection::All),
        (Some(paths), None) => Ok(FolderSelection::Paths(paths.iter().map(PathBuf::from).collect())),
        (Some(_), Some(_)) => Err(ApiError::bad_request("give either `paths` or `groups`")),
        (None, Some(ids)) => {
            let mut chosen = BTreeSet::new();
            for line in view.difference.listed(&FolderSelection::All, true) {
                if let ListedChange::Group(group) = line
                    && ids.contains(&group.id())
                {
                    chosen.extend(group.changes.iter().map(|change| change.path.clone()));
                }
            }
            Ok(FolderSelection::Exact(chosen))
        }
    }
}

impl From<FolderFailure> for ApiError {
    fn from(failure: FolderFailure) -> ApiError {
        let message = failure.to_string();
        match failure {
            FolderFailure::NoFolder { .. }
            | FolderFailure::OtherFolder { .. }
            | FolderFailure::Accept(AcceptError::Nothing | AcceptError::Missing(_)) => ApiError::not_found(message),
            FolderFailure::ReadOnly { .. } => ApiError::new(StatusCode::FORBIDDEN, "forbidden", message),
            FolderFailure::Refused(refusal) => refusal.into(),
            FolderFailure::Delivery(error) => error.into(),
            FolderFailure::HasChanges { .. } => ApiError::new(StatusCode::CONFLICT, "taken", message),
            FolderFailure::Accept(AcceptError::Dependent(_)) => ApiError::bad_request(message),
            FolderFailure::Hunks(HunkError::Refused(_)) => ApiError::bad_request(message),
            FolderFailure::Hunks(_) => ApiError::new(StatusCode::CONFLICT, "changed_since", message),
            FolderFailure::Accept(AcceptError::Collision(_)) => {
                ApiError::new(StatusCode::CONFLICT, "changed_since", message)
                    .hint("accept other paths, or discard these")
            }
            FolderFailure::Accept(AcceptError::Io(error)) if error.kind() == std::io::ErrorKind::StorageFull => {
                ApiError::disk_full()
            }
            FolderFailure::Accept(AcceptError::Io(_) | AcceptError::Partial { .. })
            | FolderFailure::Unusable { .. } => ApiError::new(StatusCode::CONFLICT, "failed", message),
            FolderFailure::Rest(failure) => failure.into(),
        }
    }
}
