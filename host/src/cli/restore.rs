//! `kiso restore`: replaces the store with a backup.

use super::backup::{absolute, key_beside};
use super::{Exit, Failure, Shared, block_on};
use kiso_agent::drive::SEALED_RUN;
use kiso_base::clock::now_ms;
use kiso_base::home::Home;
use kiso_plan::report::size;
use kiso_store::secret::vault::{SEALED, Vault};
use kiso_store::store::{Store, restore};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArgs {
    /// File written by `kiso backup`
    file: PathBuf,
    /// Also replace the home's key with FILE.key
    #[arg(long)]
    with_key: bool,
}

impl RestoreArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let file = absolute(&self.file)?;
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let key = if self.with_key { Some(read_key(&key_beside(&file))?) } else { None };
        let _lock = home.lock_daemon()?;
        home.remove_unfinished();
        let now = now_ms();
        let copied = restore(&file, &home.store_path(), &home.temp_path(), now)?;
        let mut key_kept = None;
        if let Some(key) = key.filter(|key| key != home.key().as_bytes()) {
            key_kept = Some(home.replace_key(&key, now)?);
        }
        let home = Home::open(home.path())?;
        let opens = opens(&home)?;
        if shared.json {
            outln!(
                "{}",
                json!({
                    "type": "restored", "file": file, "bytes": copied.bytes, "version": copied.version,
                    "kept": copied.kept, "key_kept": key_kept, "opens": opens,
                })
            );
            return Ok(Exit::Done);
        }
        let store = home.store_path();
        outln!("{} is restored from {} ({})", store.display(), file.display(), size(copied.bytes));
        if let Some(kept) = copied.kept {
            errln!("the previous store is in {}; delete it when you no longer need it", kept.display());
        }
        if let Some(kept) = key_kept {
            errln!("the previous key is in {}", kept.display());
        }
        if !opens {
            errln!(
                "the key of this home does not open what is sealed in it: restore again with --with-key, or put the key of the \
                 home that the backup is from at {}",
                home.path().join("key").display()
            );
        }
        Ok(Exit::Done)
    }
}

fn read_key(path: &Path) -> Result<[u8; 32], Failure> {
    let failed = |why: String| Failure::new(Exit::Usage, format!("{} {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    bytes.as_slice().try_into().map_err(|_| failed(format!("is not a kiso key: it has {} bytes, not 32", bytes.len())))
}

/// Returns whether the home's key decrypts its store, tested with one value of each kind.
fn opens(home: &Home) -> Result<bool, Failure> {
    let (store, vault) = (Store::open(&home.store_path())?, Vault::open(home));
    let (session, text) = store.read_blocking(|view| view.sealed_samples(SEALED))?;
    let text_opens = text.is_none_or(|text| vault.open_text(SEALED_RUN, &text).is_ok());
    let secrets_open = match session {
        Some(session) => block_on(vault.load(&store, &session))?.is_ok(),
        None => true,
    };
    store.close();
    Ok(text_opens && secrets_open)
}
