//! Files inside of a message, and how they are written to the session's workspace.

use std::io::{self, Read};
use std::sync::Arc;

use data_encoding::{BASE64, HEXLOWER};
use ring::digest::{Context, Digest, SHA256, digest};

use crate::error::ApiError;
use kiso_agent::drive::RunExecutor;
use kiso_agent::session::workspace::{self, FileError, FilePath, Incoming};
use kiso_base::clock::now_ms;
use kiso_base::home::{Home, SessionName};
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::engine::limits::{Budget, HitCell};
use kiso_sandbox::skill::Quota;

/// Maximum number of files per message.
pub const MAX_ATTACHMENTS: usize = 16;

/// Maximum length of a name in bytes. An added suffix still fits into the usual limit of 255.
const MAX_NAME: usize = 200;

/// A received file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    name: String,
    bytes: Vec<u8>,
}

impl Attachment {
    /// Decodes an image from a data URL; other URLs are not fetched.
    pub fn image(url: &str) -> Result<Attachment, ApiError> {
        let (media_type, bytes) = data_url(url)?;
        let ending = image_ending(&media_type).ok_or_else(|| {
            ApiError::bad_request(format!("{media_type:?} is not a known type of image"))
                .hint("send it as a file with a name")
        })?;
        Ok(Attachment { name: format!("image-{}.{ending}", mark(&bytes)), bytes })
    }

    /// Decodes a data URL of any type. `stem` is the beginning of the name of a file that is not an image.
    pub(crate) fn of_data_url(url: &str, stem: &str) -> Result<Attachment, ApiError> {
        let (media_type, bytes) = data_url(url)?;
        let (stem, ending) = match image_ending(&media_type) {
            Some(ending) => ("image", ending),
            None => (stem, file_ending(&media_type)),
        };
        let name = format!("{stem}-{}.{ending}", mark(&bytes));
        Ok(Attachment::of_bytes(&name, bytes))
    }

    /// The name for the workspace.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn file(data: &str, name: Option<&str>) -> Result<Attachment, ApiError> {
        let bytes = match data.starts_with("data:") {
            true => data_url(data)?.1,
            false => decoded(data)?,
        };
        let name = name.map(plain).filter(|name| FilePath::parse(name).is_ok());
        Ok(Attachment { name: name.unwrap_or_else(|| format!("file-{}", mark(&bytes))), bytes })
    }

    /// Creates an attachment from its bytes.
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Attachment {
        let name = Some(plain(name)).filter(|name| FilePath::parse(name).is_ok());
        Attachment { name: name.unwrap_or_else(|| format!("file-{}", mark(&bytes))), bytes }
    }

    pub fn audio(data: &str, format: &str) -> Result<Attachment, ApiError> {
        if !matches!(format, "wav" | "mp3") {
            return Err(ApiError::bad_request(format!("{format:?} is no format of sound: wav and mp3 are")));
        }
        let bytes = decoded(data)?;
        Ok(Attachment { name: format!("sound-{}.{format}", mark(&bytes)), bytes })
    }

    /// Returns the identity of the file: its name and the SHA-256 of its bytes.
    pub fn identity(&self) -> String {
        format!("{}:{}", self.name, HEXLOWER.encode(digest(&SHA256, &self.bytes).as_ref()))
    }
}

/// Returns the file's name in the workspace, and whether the same file is already there. If another file has this name, the name
/// gets a suffix derived from the content.
pub(crate) fn place(
    home: &Home,
    session: &SessionName,
    name: &str,
    bytes: u64,
    digest: Digest,
) -> Result<(FilePath, bool), FileError> {
    let path = FilePath::parse(name)?;
    let marked = || FilePath::parse(&with_mark(name, &digest));
    match workspace::open(home, session, &path) {
        // Files of different lengths differ, so the content is not read.
        Ok((file, meta)) if meta.len() == bytes && is_same(&file, bytes, &digest)? => Ok((path, true)),
        Ok(_) => Ok((marked()?, false)),
        Err(FileError::Missing { .. }) if !home.work_dir(session).join(path.as_str()).exists() => Ok((path, false)),
        Err(FileError::Missing { .. }) => Ok((marked()?, false)),
        Err(error) => Err(error),
    }
}

fn is_same(file: &std::fs::File, bytes: u64, digest: &Digest) -> io::Result<bool> {
    let (mut file, mut there, mut buffer) = (file.take(bytes), Context::new(&SHA256), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(there.finish().as_ref() == digest.as_ref()),
            read => there.update(&buffer[..read]),
        }
    }
}

/// Adds a suffix derived from the content to the name.
fn with_mark(name: &str, digest: &Digest) -> String {
    let mark = HEXLOWER.encode(&digest.as_ref()[..4]);
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{mark}.{ending}"),
        _ => format!("{name}-{mark}"),
    }
}

/// Returns the name of a file without directories and without characters that a workspace does not accept.
pub(crate) fn plain_name(name: &str) -> Result<String, FileError> {
    Ok(FilePath::parse(&plain(name))?.into())
}

/// Writes files to the workspace of a session, which is created if needed; returns their names there. A file that is already
/// there is not stored twice. `label` is the label of the sender. `begin` opens a file for writing, because this differs between
/// processes.
pub async fn put(
    drive: &RunExecutor,
    session: &SessionName,
    files: Vec<Attachment>,
    label: LabelId,
    begin: fn(&Home, &SessionName, Arc<Quota>) -> Result<Incoming, FileError>,
) -> Result<Vec<String>, ApiError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let of = session.clone();
    let most = drive.config.limits.max_sessions;
    drive.store.read(move |view| view.may_open(&of, most)).await?;
    let quota =
        drive.tools.skills().exec_quota(session, &Budget::upload(&drive.config.engine), HitCell::default(), None);
    let (home, of, charged) = (drive.home.clone(), session.clone(), quota.clone());
    let put = tokio::task::spawn_blocking(move || {
        let mut names = Vec::new();
        for file in files {
            let (length, digest) = (file.bytes.len() as u64, digest(&SHA256, &file.bytes));
            let (path, is_there) = place(&home, &of, &file.name, length, digest)?;
            if !is_there {
                let mut incoming = begin(&home, &of, charged.clone())?;
                incoming.write(&file.bytes)?;
                // The name of a replaced file contains a suffix derived from its content.
                incoming.finish(&path, path.as_str() != file.name, label)?;
            }
            names.push(String::from(path));
        }
        Ok::<_, FileError>(names)
    });
    let names = put.await.map_err(|panic| ApiError::internal(&panic))??;
    let of = session.clone();
    drive.store.write(move |tx| tx.open_session(&of, now_ms())).await?;
    // The quota of the workspace is stored in the session, which exists only now.
    drop(quota);
    Ok(names)
}

fn image_ending(media_type: &str) -> Option<&'static str> {
    Some(match media_type {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "image/avif" => "avif",
        _ => return None,
    })
}

/// Returns the extension of a file that is not an image.
fn file_ending(media_type: &str) -> &'static str {
    match media_type {
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/plain" => "txt",
        "text/csv" => "csv",
        "text/html" => "html",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/ogg" => "ogg",
        "image/bmp" => "bmp",
        "image/tiff" => "tiff",
        _ => "bin",
    }
}

/// Splits a data URL into media type and content.
fn data_url(url: &str) -> Result<(String, Vec<u8>), ApiError> {
    let head_and_data = url.strip_prefix("data:").and_then(|rest| rest.split_once(','));
    let Some((head, data)) = head_and_data else {
        return Err(ApiError::bad_request("only data URLs are supported: kiso fetches nothing for a request")
            .hint("send the file itself, as `data:image/png;base64,…`"));
    };
    let Some(media_type) = head.strip_suffix(";base64") else {
        return Err(ApiError::bad_request("a data URL must be in base64: `data:image/png;base64,…`"));
    };
    let media_type = media_type.split(';').next().unwrap_or_default().to_ascii_lowercase();
    Ok((media_type.chars().take(80).collect(), decoded(data)?))
}

fn decoded(data: &str) -> Result<Vec<u8>, ApiError> {
    BASE64.decode(data.as_bytes()).map_err(|error| ApiError::bad_request(format!("the data is not base64: {error}")))
}

/// Returns the last part of a name, without characters that a workspace does not accept.
fn plain(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let name: String = name.trim_start_matches('.').chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    // Keeps the end of the name, because it has the extension.
    let from = name.ceil_char_boundary(name.len().saturating_sub(MAX_NAME));
    name[from..].trim_start_matches('.').to_owned()
}

/// Returns a short suffix derived from the content.
fn mark(bytes: &[u8]) -> String {
    HEXLOWER.encode(&digest(&SHA256, bytes).as_ref()[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_as_a_data_url_or_as_base64_alone() {
        let image = Attachment::image("data:image/png;base64,iVBORw==").unwrap();
        assert!(image.name.starts_with("image-") && image.name.ends_with(".png"), "{image:?}");
        assert_eq!(image.bytes, b"\x89PNG");
        let file = Attachment::file("data:text/csv;charset=utf-8;base64,YSxi", Some("dir/../a.csv")).unwrap();
        assert_eq!((file.name.as_str(), file.bytes.as_slice()), ("a.csv", &b"a,b"[..]));
        let marked = with_mark(&file.name, &digest(&SHA256, &file.bytes));
        assert!(marked.starts_with("a-") && marked.ends_with(".csv"), "{marked}");
        assert_eq!(Attachment::file("YSxi", Some("..")).unwrap().name, format!("file-{}", mark(b"a,b")));
        assert_eq!(Attachment::file("YSxi", Some(".env")).unwrap().name, "env");
        assert!(Attachment::file("", Some(&format!("{}.csv", "é".repeat(300)))).unwrap().name.ends_with("é.csv"));
        assert!(Attachment::audio("AAAA", "wav").unwrap().name.ends_with(".wav"));
    }

    #[test]
    fn what_is_no_file_is_refused() {
        for (url, why) in [
            ("https://example.com/a.png", "only data URLs"),
            ("file:///etc/passwd", "only data URLs"),
            ("data:image/png,abc", "base64"),
            ("data:image/png;base64,a", "not base64"),
            ("data:text/html;base64,AAAA", "not a known type of image"),
        ] {
            let error = Attachment::image(url).unwrap_err();
            assert!(error.message.contains(why), "{url}: {error:?}");
        }
        assert!(Attachment::audio("AAAA", "../x").is_err());
    }
}
