//! The key of a home as a credential of systemd, so that it is not kept beside the store that it decrypts:
//!
//! ```text
//! LoadCredential=kiso.key:/etc/kiso/key
//! ```
//!
//! Instead of `key`, the home then has a marker file. Without it, a command outside of the unit would find no key, create a new
//! one, and could not decrypt the store.

use std::path::{Path, PathBuf};

use super::{HomeError, HomeKey, place_new};

/// The environment variable with the directory of the credentials that a unit's `LoadCredential=` loaded.
const DIRECTORY: &str = "CREDENTIALS_DIRECTORY";

/// The name of the credential.
const NAME: &str = "kiso.key";

/// The marker file in place of the key.
pub(super) const MARK: &str = "key.credential";

/// Returns the key from the credential if there is one, otherwise the result of `in_home`, which reads the home's file.
pub(super) fn key_or(
    root: &Path,
    in_home: impl FnOnce(&Path) -> Result<HomeKey, HomeError>,
) -> Result<HomeKey, HomeError> {
    let (own, mark) = (root.join("key"), root.join(MARK));
    let dir = std::env::var_os(DIRECTORY).filter(|dir| !dir.is_empty());
    let credential = dir.map(|dir| PathBuf::from(dir).join(NAME)).filter(|path| path.exists());
    let Some(credential) = credential else {
        if mark.exists() && !own.exists() {
            return Err(HomeError::KeyElsewhere { path: root.to_path_buf() });
        }
        return in_home(&own);
    };
    // systemd sets its permissions.
    let bytes = std::fs::read(&credential).map_err(|error| HomeError::from_io(&credential, "read", error))?;
    let key = <[u8; 32]>::try_from(bytes.as_slice())
        .map(HomeKey)
        .map_err(|_| HomeError::KeyDamaged { path: credential.clone(), bytes: bytes.len() as u64 })?;
    if own.exists() {
        if in_home(&own)? != key {
            return Err(HomeError::TwoKeys { path: own, credential });
        }
    } else if !mark.exists() {
        let text = "The key of this home is the systemd credential kiso.key.\n";
        place_new(&mark, text.as_bytes()).map_err(|error| HomeError::from_io(&mark, "write", error))?;
    }
    Ok(key)
}
