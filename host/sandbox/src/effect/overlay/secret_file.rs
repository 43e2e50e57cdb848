//! Files of a folder that contain credentials. Only their names are shown.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Directories whose files are never shown.
const DIRECTORIES: [&str; 4] = [".ssh", ".gnupg", ".aws", ".kube"];

/// Files of these names.
const NAMES: [&str; 12] = [
    ".env",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    "credentials",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
];

/// Extensions of files that may be keys, or public certificates.
const MAYBE: [&str; 4] = ["pem", "key", "p12", "pfx"];

/// Examples of such files.
const EXAMPLES: [&str; 4] = ["example", "sample", "template", "dist"];

/// Occurs in the first bytes of a private key's file.
const KEY: &[u8] = b"PRIVATE KEY-----";
const FIRST: u64 = 4 << 10;

/// Whether all files of a directory hold credentials.
pub(super) fn is_secret_dir(path: &Path) -> bool {
    path.iter().any(|part| is_one_of(part, &DIRECTORIES))
}

/// Whether a file contains credentials, by its path and, if that is not enough, by its first bytes.
pub(super) fn is_secret(path: &Path, open: impl FnOnce() -> io::Result<File>) -> bool {
    let Some(name) = path.file_name().map(OsStr::as_bytes) else { return false };
    let name = name.to_ascii_lowercase();
    let name = String::from_utf8_lossy(&name);
    let in_directory = path.parent().is_some_and(|parent| parent.iter().any(|part| is_one_of(part, &DIRECTORIES)));
    if in_directory || NAMES.contains(&&*name) {
        return true;
    }
    if let Some(ending) = name.strip_prefix(".env.") {
        return !EXAMPLES.contains(&ending);
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "p12" | "pfx" => true,
        ending if MAYBE.contains(&ending) => {
            let mut first = Vec::new();
            let read = open().and_then(|file| file.take(FIRST).read_to_end(&mut first));
            read.is_err() || first.windows(KEY.len()).any(|part| part == KEY)
        }
        _ => false,
    }
}

fn is_one_of(part: &OsStr, names: &[&str]) -> bool {
    names.iter().any(|name| part.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_name_or_first_bytes() {
        let temp = tempfile::tempdir().unwrap();
        let key = temp.path().join("key");
        std::fs::write(&key, "-----BEGIN EC PRIVATE KEY-----\nx").unwrap();
        let certificate = temp.path().join("certificate");
        std::fs::write(&certificate, "-----BEGIN CERTIFICATE-----\nx").unwrap();
        for (path, content, is) in [
            (".env", &certificate, true),
            ("a/.env.local", &certificate, true),
            (".env.example", &certificate, false),
            ("environment", &certificate, false),
            ("x/.ssh/config", &certificate, true),
            ("ID_RSA", &certificate, true),
            ("id_rsa.pub", &certificate, false),
            ("server.pem", &key, true),
            ("server.pem", &certificate, false),
            ("server.key", &key, true),
            ("store.p12", &certificate, true),
            ("main.rs", &key, false),
        ] {
            assert_eq!(is_secret(Path::new(path), || File::open(content)), is, "{path}");
        }
    }
}
