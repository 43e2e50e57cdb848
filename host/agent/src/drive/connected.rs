//! Providers that an administrator connects while kiso runs: their keys in the vault, and their entries in the configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::{ModelError, RunExecutor};
use kiso_base::clock::now_ms;
use kiso_base::config::{Config, Provider, ProviderKind, connected_provider};
use kiso_store::secret::vault::{Vault, VaultError};
use kiso_store::secret::{SecretValue, log_redaction};
use kiso_store::store::{ConnectedProviderRow, Store, StoreError};

/// Maximum length of a key in characters. Keys of providers have about a hundred.
pub const MAX_KEY: usize = 4_096;

/// The keys of connected providers, by their names in the configuration. Clones are cheap and share the keys.
#[derive(Debug, Clone, Default)]
pub struct ConnectedKeys(Arc<RwLock<BTreeMap<String, SecretValue>>>);

/// Why the provider could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Describes the problem with the input, without repeating a key.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// A provider to connect.
#[derive(Debug)]
pub struct ProviderEntry {
    pub name: String,
    pub kind: ProviderKind,
    pub base_url: String,
    /// `None` keeps the existing key, if the address is unchanged.
    pub key: Option<SecretValue>,
    /// Who connects it.
    pub by: String,
}

impl ConnectedKeys {
    /// Loads the keys of a home.
    pub fn load(store: &Store, vault: &Vault) -> Result<ConnectedKeys, StoreError> {
        let keys = ConnectedKeys::default();
        keys.replace(&store.read_blocking(|view| view.connected_providers())?, vault);
        Ok(keys)
    }

    /// Looks up connected keys by name, and then variables of the environment.
    pub fn environment(
        &self,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
        let keys = self.clone();
        move |name| match name.contains('-') {
            true => keys.0.read().unwrap_or_else(PoisonError::into_inner).get(name).map(|key| key.expose().to_owned()),
            false => environment(name),
        }
    }

    fn replace(&self, rows: &[ConnectedProviderRow], vault: &Vault) {
        let open = |row: &ConnectedProviderRow| {
            let sealed = row.sealed.as_deref()?;
            let provider = connected_provider(&row.name, row.kind, &row.base_url, true).ok()?;
            let plain = vault.unseal(&purpose(&row.name, &row.base_url), sealed).ok();
            let Some(plain) = plain.and_then(|plain| String::from_utf8(plain).ok()) else {
                tracing::error!("the key of the connected provider {} cannot be opened; enter it again", row.name);
                return None;
            };
            let (name, key) = (provider.key_env?, SecretValue::new(plain));
            log_redaction::keep(&name, &key);
            Some((name, key))
        };
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rows.iter().filter_map(open).collect();
    }
}

impl RunExecutor {
    /// Stores a provider with its key, for everything that starts from now on. A new address requires the key again, because a
    /// key is sent only to the address for which it was entered.
    pub async fn connect_provider(&self, entry: ProviderEntry) -> Result<Provider, ConnectError> {
        let ProviderEntry { name, kind, base_url, key, by } = entry;
        let key = key.map(|key| SecretValue::new(key.expose().trim().to_owned()));
        let key = key.filter(|key| !key.expose().is_empty());
        if let Some(key) = &key {
            // Redacted from now on, even if something fails.
            log_redaction::keep("key", key);
            check_key(key.expose()).map_err(ConnectError::Invalid)?;
        }
        let provider = connected_provider(&name, kind, &base_url, key.is_some()).map_err(ConnectError::Invalid)?;
        if self.newest_config().providers.iter().any(|known| known.name == name && !known.connected) {
            let message =
                format!("config.toml has a provider named {name}, which takes precedence; choose another name");
            return Err(ConnectError::Invalid(message));
        }
        let of = name.clone();
        let known = self.store.read(move |view| view.connected_provider(&of)).await?;
        let sealed = match (&key, known) {
            (Some(key), _) => Some(self.vault.seal(&purpose(&name, &provider.base_url), key.expose().as_bytes())?),
            (None, Some(known)) if known.base_url == provider.base_url => known.sealed,
            (None, Some(known)) if known.sealed.is_some() => {
                return Err(ConnectError::Invalid("the address is another one now; enter the key again".to_owned()));
            }
            (None, _) => None,
        };
        let base_url = provider.base_url.clone();
        let row = ConnectedProviderRow { name, kind, base_url, sealed, made_by: by, created_ms: now_ms() };
        self.store.write(move |tx| tx.put_connected_provider(&row)).await?;
        self.adopt_connected().await?;
        Ok(provider)
    }

    /// Removes a connected provider with its key and its models; returns false if there was none.
    pub async fn disconnect_provider(&self, name: &str) -> Result<bool, ConnectError> {
        let name = name.to_owned();
        let gone = self.store.write(move |tx| tx.delete_connected_provider(&name)).await?;
        self.adopt_connected().await?;
        Ok(gone)
    }

    /// Reloads the connected providers, for everything that starts from now on.
    pub async fn adopt_connected(&self) -> Result<(), ConnectError> {
        let _alone = self.lock_configuration().await;
        let config = self.with_connected((*self.newest_config()).clone()).await?;
        Ok(self.adopt(config)?)
    }

    /// Returns a configuration with the connected providers, whose keys are known from now on.
    pub async fn with_connected(&self, config: Config) -> Result<Config, StoreError> {
        let (rows, connected) = self.store.read(|view| Ok((view.connected_providers()?, view.connected()?))).await?;
        self.connected_keys.replace(&rows, &self.vault);
        Ok(config.with_connected(&connected))
    }
}

/// Returns the purpose that a key is sealed for: its provider at this address.
fn purpose(name: &str, base_url: &str) -> String {
    format!("key of the provider {name} at {base_url}")
}

/// Checks that this can be a key. The error does not repeat it.
fn check_key(key: &str) -> Result<(), String> {
    if key.len() > MAX_KEY {
        return Err(format!("the key has more than {MAX_KEY} characters"));
    }
    match key.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err("the key has spaces or characters that no key has; copy it again".to_owned()),
    }
}
