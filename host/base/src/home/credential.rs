//! The key of a home as a credential of systemd, so that it does not lie beside the store that it opens:
//!
//! ```text
//! LoadCredential=kiso.key:/etc/kiso/key
//! ```
//!
//! In the place of `key` the home then has a mark. Without it, a command that is run outside the unit would find no key,
//! make another one, and understand nothing of what is there.

use std::path::{Path, PathBuf};

use super::{HomeError, HomeKey, place_new};

/// Names the directory with what a unit's `LoadCredential=` loaded.
const DIRECTORY: &str = "CREDENTIALS_DIRECTORY";

/// The credential.
const NAME: &str = "kiso.key";

/// Stands in the home instead of the key.
pub(super) const MARK: &str = "key.credential";

/// The key from the credential if there is one, else what `in_home` gives, which is asked for the file of the home.
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
    // Who may read it is what systemd sees to.
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
