//! Rules for the hosts that command lines may reach, from `kiso network` and from answers to cards.
//!
//! For a host, a session (or all sessions) has one rule per method: a new rule takes its methods from existing ones.

use rusqlite::{OptionalExtension, Row};
use schemars::JsonSchema;
use serde::Serialize;

use super::sessions::session_name;
use super::{StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::network::{METHODS, NetworkAccess, NetworkRule, READING};

/// Maximum rules of a session, and of all sessions together; each request is compared with all of them.
pub const MAX_NETWORK_RULES: u64 = 1_000;

/// A remembered rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NetworkRuleLine {
    pub id: i64,
    /// `None` if it applies to all sessions.
    pub session: Option<SessionName>,
    #[serde(flatten)]
    pub rule: NetworkRule,
    /// Who made it, such as "command line".
    pub by: String,
    /// Milliseconds since 1970 (UTC).
    pub created_ms: i64,
}

/// A new rule.
#[derive(Debug, Clone)]
pub struct NewNetworkRule {
    pub session: Option<SessionName>,
    pub rule: NetworkRule,
    pub by: String,
}

const COLUMNS: &str =
    "n.id, s.name, n.rule, n.made_by, n.created_ms FROM network_rules n LEFT JOIN sessions s ON s.id = n.session";

impl View<'_> {
    /// Returns the rules for a session's command lines: its own, then those for all sessions.
    pub fn network_rules(&self, session: &SessionName) -> Result<Vec<NetworkRule>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} WHERE n.session IS NULL OR s.name = ?1 ORDER BY n.session IS NULL, n.id"
        ))?;
        let rows = query.query_map([session.as_str()], |row| json(row, 2))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the rule with this number.
    pub fn network_rule_line(&self, id: i64) -> Result<Option<NetworkRuleLine>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE n.id = ?1"))?;
        Ok(query.query_row([id], line).optional()?)
    }

    /// Returns the rules for one session, or all rules, for listings: first those for all sessions, ordered by host.
    pub fn network_rule_lines(&self, session: Option<&SessionName>) -> Result<Vec<NetworkRuleLine>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} WHERE ?1 IS NULL OR n.session IS NULL OR s.name = ?1
             ORDER BY n.session IS NOT NULL, s.name, n.host, n.id"
        ))?;
        let rows = query.query_map([session.map(SessionName::as_str)], line)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Stores a rule and returns its number; `None` if the session does not exist. Earlier rules of the same host, session, role
    /// and label lose the methods of this one.
    pub fn remember_network_rule(&self, new: &NewNetworkRule, now_ms: i64) -> Result<Option<i64>, StoreError> {
        let session = match &new.session {
            Some(name) => match self.session_id(name)? {
                Some(id) => Some(id),
                // Without its session, it would apply to all.
                None => return Ok(None),
            },
            None => None,
        };
        let rule = NetworkRule { host: new.rule.host.to_ascii_lowercase(), ..new.rule.clone() };
        let mut query =
            self.conn.prepare_cached("SELECT id, rule FROM network_rules WHERE session IS ?1 AND host = ?2")?;
        let rows = query.query_map((session, &rule.host), |row| Ok((row.get(0)?, json(row, 1)?)))?;
        let earlier: Vec<(i64, NetworkRule)> = rows.collect::<Result<_, _>>()?;
        for (id, old) in earlier.into_iter().filter(|(_, old)| (old.role, old.label) == (rule.role, rule.label)) {
            let (of_old, of_new) = (methods(&old), methods(&rule));
            let left: Vec<String> =
                of_old.iter().filter(|method| !of_new.contains(method)).map(|method| (*method).to_owned()).collect();
            if left.is_empty() {
                self.conn.prepare_cached("DELETE FROM network_rules WHERE id = ?1")?.execute([id])?;
            } else if left.len() < of_old.len() {
                let body = kiso_base::json::text(&NetworkRule { methods: left, ..old });
                let mut update = self.conn.prepare_cached("UPDATE network_rules SET rule = ?2 WHERE id = ?1")?;
                update.execute((id, body))?;
            }
        }
        let mut count = self.conn.prepare_cached("SELECT count(*) FROM network_rules WHERE session IS ?1")?;
        let count: i64 = count.query_row([session], |row| row.get(0))?;
        if count.unsigned_abs() >= MAX_NETWORK_RULES {
            return Err(StoreError::Quota { what: "too many rules of the network", max: MAX_NETWORK_RULES });
        }
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO network_rules (session, host, rule, made_by, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        Ok(Some(insert.insert((session, &rule.host, kiso_base::json::text(&rule), &new.by, now_ms))?))
    }

    /// Deletes the rules for a host that a session has, or those for all sessions. Returns how many there were.
    pub fn forget_network_rules(&self, session: Option<&SessionName>, host: &str) -> Result<usize, StoreError> {
        let id = match session.map(|name| self.session_id(name)).transpose()? {
            Some(None) => return Ok(0),
            found => found.flatten(),
        };
        let mut delete = self.conn.prepare_cached("DELETE FROM network_rules WHERE session IS ?1 AND host = ?2")?;
        Ok(delete.execute((id, host.to_ascii_lowercase()))?)
    }
}

/// Returns the methods of a rule. Methods that read count as one group.
fn methods(rule: &NetworkRule) -> Vec<&'static str> {
    let named = |method: &str| rule.methods.iter().any(|named| named == method);
    let reads = rule.methods.is_empty() || READING.iter().any(|method| named(method));
    let is_about = |method: &str| match READING.contains(&method) {
        true => reads,
        false => named(method) || rule.methods.is_empty() && rule.access == NetworkAccess::Deny,
    };
    METHODS.into_iter().filter(|method| is_about(method)).collect()
}

fn line(row: &Row<'_>) -> rusqlite::Result<NetworkRuleLine> {
    let session: Option<String> = row.get(1)?;
    Ok(NetworkRuleLine {
        id: row.get(0)?,
        session: session.map(|_| session_name(row, 1)).transpose()?,
        rule: json(row, 2)?,
        by: row.get(3)?,
        created_ms: row.get(4)?,
    })
}

fn json(row: &Row<'_>, index: usize) -> rusqlite::Result<NetworkRule> {
    let text = row.get_ref(index)?.as_str()?;
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, error.into()))
}
