//! Providers that were connected while kiso ran, with the models that were chosen from them. Keys are stored in the vault's
//! sealed form.

use rusqlite::{OptionalExtension, Row};

use super::{StoreError, Tx, View};
use kiso_base::config::{ConnectedModel, ConnectedModels, Provider, ProviderKind, connected_provider};

/// Maximum connected providers.
pub const MAX_CONNECTED_PROVIDERS: u64 = 32;

/// Maximum models of all connected providers: each is listed in menus and in the configuration.
pub const MAX_CONNECTED_MODELS: u64 = 200;

/// A stored provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedProviderRow {
    pub name: String,
    pub kind: ProviderKind,
    pub base_url: String,
    /// Its sealed key.
    pub sealed: Option<Vec<u8>>,
    /// Who connected it, such as "command line".
    pub made_by: String,
    /// Milliseconds since 1970 (UTC).
    pub created_ms: i64,
}

const COLUMNS: &str = "name, kind, base_url, sealed, made_by, created_ms FROM connected_providers";

impl View<'_> {
    /// Returns the connected providers, oldest first.
    pub fn connected_providers(&self) -> Result<Vec<ConnectedProviderRow>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} ORDER BY created_ms, name"))?;
        let rows = query.query_map((), provider)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the connected provider with this name.
    pub fn connected_provider(&self, name: &str) -> Result<Option<ConnectedProviderRow>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE name = ?1"))?;
        Ok(query.query_row([name], provider).optional()?)
    }

    /// Returns the connected providers and models for the configuration.
    pub fn connected(&self) -> Result<ConnectedModels, StoreError> {
        let providers = self.connected_providers()?.into_iter().map(|row| {
            let ConnectedProviderRow { name, kind, base_url, sealed, .. } = row;
            // Validated when it was connected. A provider that this version refuses is left out.
            connected_provider(&name, kind, &base_url, sealed.is_some()).ok()
        });
        let providers: Vec<Provider> = providers.flatten().collect();
        let mut query = self.conn.prepare_cached(
            "SELECT provider || ':' || model, context_budget, is_default FROM connected_models ORDER BY id",
        )?;
        let models = query.query_map((), |row| {
            let context: Option<i64> = row.get(1)?;
            let context_budget = context.map(i64::unsigned_abs);
            Ok(ConnectedModel { name: row.get(0)?, context_budget, is_default: row.get(2)? })
        })?;
        Ok(ConnectedModels { providers, models: models.collect::<Result<_, _>>()? })
    }
}

impl Tx<'_> {
    /// Stores a provider. Replaces one of the same name, whose models stay.
    pub fn put_connected_provider(&self, row: &ConnectedProviderRow) -> Result<(), StoreError> {
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO connected_providers (name, kind, base_url, sealed, made_by, created_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET kind = excluded.kind, base_url = excluded.base_url, sealed = excluded.sealed,
               made_by = excluded.made_by, created_ms = excluded.created_ms",
        )?;
        upsert.execute((&row.name, row.kind.name(), &row.base_url, &row.sealed, &row.made_by, row.created_ms))?;
        let max = MAX_CONNECTED_PROVIDERS;
        self.check_count("SELECT count(*) FROM connected_providers", "too many connected providers", max)
    }

    /// Deletes a provider, its key and its models. Returns whether there was one.
    pub fn delete_connected_provider(&self, name: &str) -> Result<bool, StoreError> {
        let mut delete = self.conn.prepare_cached("DELETE FROM connected_providers WHERE name = ?1")?;
        Ok(delete.execute([name])? > 0)
    }

    /// Adds or changes a model of a connected provider. Returns false if there is no such provider. If it is the default, it
    /// replaces the previous default.
    pub fn put_connected_model(
        &self,
        (provider, model): (&str, &str),
        context_budget: Option<u64>,
        is_default: bool,
    ) -> Result<bool, StoreError> {
        if self.connected_provider(provider)?.is_none() {
            return Ok(false);
        }
        if is_default {
            self.clear_default_model()?;
        }
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO connected_models (provider, model, context_budget, is_default) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (provider, model)
             DO UPDATE SET context_budget = excluded.context_budget, is_default = excluded.is_default",
        )?;
        let context_budget = context_budget.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX));
        upsert.execute((provider, model, context_budget, is_default))?;
        let max = MAX_CONNECTED_MODELS;
        self.check_count("SELECT count(*) FROM connected_models", "too many models of connected providers", max)?;
        Ok(true)
    }

    /// Removes the default, so that the model of `config.toml` is used; the model stays available.
    pub fn clear_default_model(&self) -> Result<(), StoreError> {
        self.conn.prepare_cached("UPDATE connected_models SET is_default = 0 WHERE is_default = 1")?.execute(())?;
        Ok(())
    }

    /// Deletes a model of a connected provider. Returns whether there was one.
    pub fn delete_connected_model(&self, provider: &str, model: &str) -> Result<bool, StoreError> {
        let mut delete = self.conn.prepare_cached("DELETE FROM connected_models WHERE provider = ?1 AND model = ?2")?;
        Ok(delete.execute((provider, model))? > 0)
    }

    fn check_count(&self, query: &str, what: &'static str, max: u64) -> Result<(), StoreError> {
        let count: i64 = self.conn.prepare_cached(query)?.query_row((), |row| row.get(0))?;
        if count.unsigned_abs() > max {
            return Err(StoreError::Quota { what, max });
        }
        Ok(())
    }
}

fn provider(row: &Row<'_>) -> rusqlite::Result<ConnectedProviderRow> {
    let kind = row.get_ref(1)?.as_str()?;
    let unknown = || rusqlite::Error::InvalidColumnType(1, "kind".to_owned(), rusqlite::types::Type::Text);
    Ok(ConnectedProviderRow {
        name: row.get(0)?,
        kind: ProviderKind::named(kind).ok_or_else(unknown)?,
        base_url: row.get(2)?,
        sealed: row.get(3)?,
        made_by: row.get(4)?,
        created_ms: row.get(5)?,
    })
}
