//! The files of an installation, and whether they are unchanged.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::digest::{SHA256, digest};
use std::path::{Component, Path, PathBuf};

/// An installed file.
#[derive(Debug)]
pub(super) struct InstalledFile {
    pub path: PathBuf,
    sha256: Vec<u8>,
}

/// A file that differs from the installed one.
#[derive(Debug)]
pub(super) struct FileDifference {
    pub path: PathBuf,
    pub why: String,
}

impl InstalledFile {
    pub(super) fn wrong(&self) -> Option<FileDifference> {
        let why = match std::fs::read(&self.path) {
            Ok(bytes) if digest(&SHA256, &bytes).as_ref() == self.sha256 => return None,
            Ok(_) => "changed".to_owned(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => "missing".to_owned(),
            Err(e) => e.to_string(),
        };
        Some(FileDifference { path: self.path.clone(), why })
    }
}

/// Returns the files in a list of `sha256sum`. Somebody who changed the list must not make kiso remove files outside the
/// prefix.
pub(super) fn listed(prefix: &Path, sums: &Path) -> Result<Vec<InstalledFile>, String> {
    let text = std::fs::read_to_string(sums).map_err(|e| format!("{}: {e}", sums.display()))?;
    let of_line = |line: &str| {
        let (hex, path) = line.split_once("  ")?;
        let parts_are_names = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        let inside = !path.is_empty() && parts_are_names(Path::new(path));
        let sha256 = HEXLOWER.decode(hex.as_bytes()).ok().filter(|digest| digest.len() == 32 && inside)?;
        Some(InstalledFile { path: prefix.join(path), sha256 })
    };
    text.lines()
        .map(|line| of_line(line).ok_or_else(|| format!("{}: this is not a line of it: {line:?}", sums.display())))
        .collect()
}

/// Returns the files in the `RECORD` of a wheel that have a digest. Those that pip itself writes have none.
pub(super) fn recorded(record: &Path) -> Result<Vec<InstalledFile>, String> {
    let text = std::fs::read_to_string(record).map_err(|e| format!("{}: {e}", record.display()))?;
    let packages = record.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let of_line = |line: &str| {
        let mut parts = line.rsplitn(3, ',');
        let (_, hash, path) = (parts.next()?, parts.next()?, parts.next()?);
        let sha256 = BASE64URL_NOPAD.decode(hash.strip_prefix("sha256=")?.as_bytes()).ok()?;
        Some(InstalledFile { path: packages.join(path.trim_matches('"')), sha256 })
    };
    Ok(text.lines().filter_map(of_line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_list_leads_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let sums = dir.path().join("SHA256SUMS");
        for path in ["/etc/passwd", "../other", "share/../../other", "./here", ""] {
            std::fs::write(&sums, format!("{EMPTY}  {path}\n")).unwrap();
            let error = listed(dir.path(), &sums).unwrap_err();
            assert!(error.contains("is not a line"), "{path}: {error}");
        }
        std::fs::write(&sums, format!("{EMPTY}  share/kiso/empty\n")).unwrap();
        let files = listed(dir.path(), &sums).unwrap();
        assert_eq!(files[0].wrong().unwrap().why, "missing");
        std::fs::create_dir_all(dir.path().join("share/kiso")).unwrap();
        std::fs::write(&files[0].path, "").unwrap();
        assert!(files[0].wrong().is_none());
        std::fs::write(&files[0].path, "x").unwrap();
        assert_eq!(files[0].wrong().unwrap().why, "changed");
    }

    #[test]
    fn a_record_of_pip_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let info = dir.path().join("kiso-0.1.0.dist-info");
        std::fs::create_dir(&info).unwrap();
        let digest = BASE64URL_NOPAD.encode(&HEXLOWER.decode(EMPTY.as_bytes()).unwrap());
        let record = info.join("RECORD");
        std::fs::write(&record, format!("../../../bin/kiso,sha256={digest},0\nkiso-0.1.0.dist-info/RECORD,,\n"))
            .unwrap();
        let files = recorded(&record).unwrap();
        assert_eq!(files.len(), 1);
        assert!(files[0].path.ends_with("../../../bin/kiso"), "{files:?}");
    }
}
