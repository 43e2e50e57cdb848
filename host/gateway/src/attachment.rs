//! Files that come inside of a message, and how they get into the session's workspace.

use std::io::Read;
use std::sync::Arc;

use data_encoding::{BASE64, HEXLOWER};
use ring::digest::{SHA256, digest};

use crate::error::ApiError;
use kiso_agent::drive::RunExecutor;
use kiso_agent::session::workspace::{self, FileError, FilePath, Incoming};
use kiso_base::clock::now_ms;
use kiso_base::home::{Home, SessionName};
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::engine::limits::{Budget, HitCell};
use kiso_sandbox::skill::Quota;

/// Files of one message.
pub const MAX_ATTACHMENTS: usize = 16;

/// Bytes of a name; what is added to it still fits where names have 255.
const MAX_NAME: usize = 200;

/// A file as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    name: String,
    bytes: Vec<u8>,
}

impl Attachment {
    /// Of a data URL; other addresses are not asked for what is there.
    pub fn image(url: &str) -> Result<Attachment, ApiError> {
        let (media_type, bytes) = data_url(url)?;
        let ending = match media_type.as_str() {
            "image/png" => "png",
            "image/jpeg" | "image/jpg" => "jpg",
            "image/gif" => "gif",
            "image/webp" => "webp",
            "image/svg+xml" => "svg",
            "image/avif" => "avif",
            _ => {
                return Err(ApiError::bad_request(format!("{media_type:?} is no type of image that is known here"))
                    .hint("send it as a file with a name"));
            }
        };
        Ok(Attachment { name: format!("image-{}.{ending}", mark(&bytes)), bytes })
    }

    pub fn file(data: &str, name: Option<&str>) -> Result<Attachment, ApiError> {
        let bytes = match data.starts_with("data:") {
            true => data_url(data)?.1,
            false => decoded(data)?,
        };
        let name = name.map(plain).filter(|name| FilePath::parse(name).is_ok());
        Ok(Attachment { name: name.unwrap_or_else(|| format!("file-{}", mark(&bytes))), bytes })
    }

    /// One whose bytes are there already.
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

    /// What tells it from every other file: its name and the SHA-256 of its bytes.
    pub fn identity(&self) -> String {
        format!("{}:{}", self.name, HEXLOWER.encode(digest(&SHA256, &self.bytes).as_ref()))
    }

    /// The same name with a mark of what is in the file, for one whose name another file has.
    fn marked(&self) -> String {
        let mark = mark(&self.bytes);
        match self.name.rsplit_once('.') {
            Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{mark}.{ending}"),
            _ => format!("{}-{mark}", self.name),
        }
    }

    /// The name that it has in the workspace, and whether it stands there already.
    fn place(&self, home: &Home, session: &SessionName) -> Result<(FilePath, bool), FileError> {
        let path = FilePath::parse(&self.name)?;
        match workspace::open(home, session, &path) {
            Ok((file, meta)) => {
                // What is longer than what came is another file; no more of it is read.
                let mut there = Vec::new();
                let is_same = meta.len() == self.bytes.len() as u64
                    && file.take(meta.len()).read_to_end(&mut there).is_ok()
                    && there == self.bytes;
                if is_same { Ok((path, true)) } else { Ok((FilePath::parse(&self.marked())?, false)) }
            }
            Err(FileError::Missing { .. }) if !home.work_dir(session).join(path.as_str()).exists() => Ok((path, false)),
            Err(FileError::Missing { .. }) => Ok((FilePath::parse(&self.marked())?, false)),
            Err(error) => Err(error),
        }
    }
}

/// Puts files into the workspace of a session, which is made where there is none; the names that they have there. The same
/// file that comes again stands there once. `label` is that of whoever sends them. `begin` is how a file is begun: not every process may do it in the same way.
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
            let (path, is_there) = file.place(&home, &of)?;
            if !is_there {
                let mut incoming = begin(&home, &of, charged.clone())?;
                incoming.write(&file.bytes)?;
                // The mark of what is in it is in the name of one that is replaced.
                incoming.finish(&path, path.as_str() != file.name, label)?;
            }
            names.push(String::from(path));
        }
        Ok::<_, FileError>(names)
    });
    let names = put.await.map_err(|panic| ApiError::internal(&panic))??;
    let of = session.clone();
    drive.store.write(move |tx| tx.open_session(&of, now_ms())).await?;
    // What the workspace holds is kept with the session, which is there only now.
    drop(quota);
    Ok(names)
}

/// Media type and content of a data URL.
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

/// The last part of a name, without what a workspace does not take.
fn plain(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let name: String = name.trim_start_matches('.').chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    // The end says what it is.
    let from = name.ceil_char_boundary(name.len().saturating_sub(MAX_NAME));
    name[from..].trim_start_matches('.').to_owned()
}

/// A few digits that tell contents apart.
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
        assert!(file.marked().starts_with("a-") && file.marked().ends_with(".csv"));
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
            ("data:text/html;base64,AAAA", "no type of image"),
        ] {
            let error = Attachment::image(url).unwrap_err();
            assert!(error.message.contains(why), "{url}: {error:?}");
        }
        assert!(Attachment::audio("AAAA", "../x").is_err());
    }
}
