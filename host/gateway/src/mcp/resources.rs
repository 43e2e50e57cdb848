//! Files of a session, and published files, as resources.

use std::fs::{File, Metadata};
use std::io::Read as _;

use serde_json::{Map, Value, json};

use super::server::{Asker, Server};
use kiso_agent::session::workspace::{self, FileError, FilePath};
use kiso_base::home::SessionName;
use kiso_base::rpc::{RpcError, text_of};
use kiso_sandbox::effect::sink::Enforcement;
use kiso_sandbox::skill::media_type;

/// Number of files per page of the listing.
const PAGE: usize = 200;

/// Maximum size in bytes of a file that is read as a resource: the whole file is in memory and in the response.
const MAX_READ: u64 = 4 << 20;

/// Prefix of the URI of a file; the session and the path follow.
const FILES: &str = "kiso://files/";

/// Prefix of the URI of a published file; its id follows.
const PUBLISHED: &str = "kiso://pub/";

/// Returns whether a character of a URI needs no encoding.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte)
}

/// Returns the URI of a file of a session.
pub(super) fn uri(session: &SessionName, path: &str) -> String {
    let encoded: String = path
        .bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    format!("{FILES}{session}/{encoded}")
}

fn decoded(path: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let [byte, more @ ..] = rest {
        rest = more;
        bytes.push(match byte {
            b'%' => {
                let [high, low, more @ ..] = rest else { return None };
                rest = more;
                u8::from_str_radix(std::str::from_utf8(&[*high, *low]).ok()?, 16).ok()?
            }
            byte => *byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns whether the caller may read the files of a session.
async fn may_read(server: &Server, asker: &Asker, session: &SessionName) -> Result<bool, RpcError> {
    let (Some(owner), session) = (asker.owner.clone(), session.clone()) else { return Ok(true) };
    let read = server.drive().store.read(move |view| view.owns_session(&owner, &session)).await;
    read.map_err(|error| RpcError::internal(&error))
}

pub(super) async fn list(server: &Server, asker: &Asker, params: &Map<String, Value>) -> Result<Value, RpcError> {
    if !may_read(server, asker, &asker.session).await? {
        // A session that does not exist has no files, either.
        return Ok(json!({ "resources": [] }));
    }
    let (home, session) = (server.drive().home.clone(), asker.session.clone());
    let listed = tokio::task::spawn_blocking(move || workspace::list(&home, &session)).await;
    let listed = listed.map_err(|panic| RpcError::internal(&panic))?;
    let (mut files, _) = listed.map_err(|error| RpcError::internal(&error))?;
    let session = asker.session.clone();
    let published = server.drive().store.read(move |view| view.published_of(&session)).await;
    let published = published.map_err(|error| RpcError::internal(&error))?;
    // The cursor is the last path of the previous page.
    match params.get("cursor") {
        None | Some(Value::Null) => {}
        Some(Value::String(cursor)) => drop(files.drain(..files.partition_point(|file| file.path <= *cursor))),
        Some(_) => return Err(RpcError::params("`cursor` must be the `nextCursor` of the page before")),
    }
    let more = files.len() > PAGE;
    files.truncate(PAGE);
    let next = files.last().filter(|_| more).map(|last| last.path.clone());
    let resources = files.into_iter().map(|file| {
        let mut resource = json!({
            "uri": uri(&asker.session, &file.path),
            "name": file.path,
            "mimeType": media_type(&file.path),
            "size": file.bytes,
        });
        if let Some(published) = published.iter().find(|published| published.path == file.path) {
            resource["description"] = json!(format!("published as /pub/{}", published.id));
            if let Some(title) = &published.title {
                resource["title"] = json!(title);
            }
        }
        resource
    });
    let mut result = json!({ "resources": resources.collect::<Vec<_>>() });
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    Ok(result)
}

pub(super) fn templates() -> Value {
    json!({ "resourceTemplates": [
        {
            "uriTemplate": "kiso://files/{session}/{+path}",
            "name": "file",
            "description": "A file in the workspace of a session",
        },
        {
            "uriTemplate": "kiso://pub/{id}",
            "name": "published",
            "description": "A file that was published, by the id in its link",
        },
    ] })
}

pub(super) async fn read(server: &Server, asker: &Asker, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let uri = text_of(params, "uri")?.to_owned();
    let missing = || {
        let data = json!({ "uri": uri.chars().take(2_048).collect::<String>() });
        let message = "there is no such resource; resources/list and resources/templates/list say what there is";
        RpcError { data: Some(Box::new(data)), ..RpcError::params(message) }
    };
    let home = server.drive().home.clone();
    let opened = if let Some(rest) = uri.strip_prefix(FILES) {
        let (session, path) = rest.split_once('/').ok_or_else(missing)?;
        let session = SessionName::parse(session).map_err(|_| missing())?;
        if !may_read(server, asker, &session).await? {
            return Err(missing());
        }
        let path = decoded(path).and_then(|path| FilePath::parse(&path).ok()).ok_or_else(missing)?;
        let media = media_type(path.as_str()).to_owned();
        let opening = tokio::task::spawn_blocking(move || match workspace::open(&home, &session, &path) {
            Ok((file, meta)) => whole(file, &meta).map(Some),
            Err(FileError::Io(error)) => Err(error),
            Err(_) => Ok(None),
        });
        (opening.await, media)
    } else if let Some(id) = uri.strip_prefix(PUBLISHED) {
        let id = id.to_owned();
        let found = server.drive().store.read(move |view| view.published(&id)).await;
        let found = found.map_err(|error| RpcError::internal(&error))?.ok_or_else(missing)?;
        let media = found.media_type.clone();
        let is_kept = Enforcement::named(&server.drive().config.policy.effects).refuses();
        let opening = tokio::task::spawn_blocking(move || {
            let opened = workspace::open_published(&home, &found.session, &found.path);
            if is_kept && !workspace::is_as_published(&home, &found) {
                return Err(std::io::Error::other(workspace::CHANGED_SINCE));
            }
            opened.map(|(file, meta)| whole(file, &meta)).transpose()
        });
        (opening.await, media)
    } else {
        return Err(missing());
    };
    let (read, media) = opened;
    let read = read.map_err(|panic| RpcError::internal(&panic))?.map_err(|error| RpcError::internal(&error))?;
    let bytes = read.ok_or_else(missing)?.map_err(|bytes| {
        let most = MAX_READ >> 20;
        RpcError::params(format!(
            "the file has {bytes} bytes, and a resource has at most {most} MiB; GET /sessions/SESSION/files/PATH sends it"
        ))
    })?;
    let is_text = media.starts_with("text/") || matches!(media.as_str(), "application/json" | "image/svg+xml");
    let contents = match String::from_utf8(bytes) {
        Ok(text) if is_text => json!({ "uri": uri, "mimeType": media, "text": text }),
        Ok(text) => json!({ "uri": uri, "mimeType": media, "blob": base64(text.as_bytes()) }),
        Err(error) => json!({ "uri": uri, "mimeType": media, "blob": base64(error.as_bytes()) }),
    };
    Ok(json!({ "contents": [contents] }))
}

fn base64(bytes: &[u8]) -> String {
    data_encoding::BASE64.encode(bytes)
}

/// Returns the whole file, or its length if it is too large.
fn whole(file: File, meta: &Metadata) -> std::io::Result<Result<Vec<u8>, u64>> {
    if meta.len() > MAX_READ {
        return Ok(Err(meta.len()));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    let read = file.take(MAX_READ + 1).read_to_end(&mut bytes)? as u64;
    Ok(if read > MAX_READ { Err(read) } else { Ok(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_path_whatever_is_in_it() {
        let session = SessionName::parse("one").unwrap();
        for path in ["a.csv", "dir/ä b%.txt", "100% ?#.md"] {
            let uri = uri(&session, path);
            assert!(uri.bytes().all(|byte| is_plain(byte) || b":%".contains(&byte)), "{uri}");
            assert_eq!(decoded(uri.strip_prefix("kiso://files/one/").unwrap()).unwrap(), path);
        }
        assert_eq!(decoded("%f"), None);
        assert_eq!(decoded("%zz"), None);
        assert_eq!(decoded("%ff"), None);
    }
}
