//! What differs between two configurations, and when a daemon that runs takes it.

use std::fmt;

use super::{Config, KEYS, Key};

/// When a daemon that reads its configuration anew goes by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// With the next message, request or line of the log.
    AtOnce,
    /// With the next run. One that is under way goes on as it began.
    NextRun,
    /// When the daemon is started again.
    Restart,
}

/// A key, or a table whose names a user chose, that has another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Such as "limits.max_tasks" or `[providers]`.
    pub name: String,
    pub effect: Effect,
}

/// What is fixed when the daemon starts: the port that is listened on, and how many places there are on it.
const FIXED: [(&str, &str); 3] = [("gateway", "bind"), ("gateway", "port"), ("gateway", "max_connections")];

/// Keys of other tables that are heeded for each session or write.
const LIVE_KEYS: [(&str, &str); 2] = [("limits", "max_sessions"), ("limits", "home_mib")];

/// Tables that are read for each message, request or line.
const LIVE: [&str; 5] = ["daemon", "gateway", "log", "retention", "schedule"];

/// Tables that belong to a run; the one without a name has the default model.
const OF_A_RUN: [&str; 12] =
    ["", "models", "fallbacks", "llm", "limits", "context", "routing", "engine", "exec", "http", "memory", "subagents"];

impl Key {
    /// When a change of this key is heeded.
    pub fn effect(&self) -> Effect {
        match self.section {
            section if FIXED.contains(&(section, self.name)) => Effect::Restart,
            section if LIVE.contains(&section) || LIVE_KEYS.contains(&(section, self.name)) => Effect::AtOnce,
            section if OF_A_RUN.contains(&section) => Effect::NextRun,
            _ => Effect::Restart,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Effect::AtOnce => "at once",
            Effect::NextRun => "next run",
            Effect::Restart => "restart",
        })
    }
}

impl Config {
    /// What `other` has differently, in the order of the file.
    pub fn changes(&self, other: &Config) -> Vec<Change> {
        let keys = KEYS.iter().filter(|key| self.value(key) != other.value(key));
        let mut changes: Vec<_> = keys.map(|key| Change { name: key.path(), effect: key.effect() }).collect();
        let tables = [
            ("[exec.mounts]", self.mounts == other.mounts),
            ("[providers]", self.providers == other.providers),
            ("[model_settings]", self.model_settings == other.model_settings),
            ("[pills]", self.pills == other.pills),
        ];
        let changed = tables.into_iter().filter(|(_, same)| !same);
        changes.extend(changed.map(|(name, _)| Change { name: name.to_owned(), effect: Effect::NextRun }));
        if self.commands != other.commands {
            changes.push(Change { name: "[commands]".to_owned(), effect: Effect::AtOnce });
        }
        if self.webhooks != other.webhooks {
            changes.push(Change { name: "[webhooks]".to_owned(), effect: Effect::AtOnce });
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn every_difference_is_named_with_its_effect() {
        let old = config("[limits]\nmax_tasks = 7\n");
        let new = config(
            "[limits]\nmax_tasks = 8\n[gateway]\nport = 1\n[log]\nlevel = \"debug\"\n[exec.mounts]\n\"/b\" = \"/srv\"\n",
        );
        let named: Vec<_> = old.changes(&new).iter().map(|c| format!("{} {}", c.name, c.effect)).collect();
        assert_eq!(
            named,
            ["limits.max_tasks next run", "log.level at once", "gateway.port restart", "[exec.mounts] next run"]
        );
        assert_eq!(old.changes(&old), []);
    }

    /// A table of its own for something new is fixed until somebody says otherwise here.
    #[test]
    fn what_is_listed_here_is_there() {
        for section in LIVE.iter().chain(&OF_A_RUN) {
            assert!(KEYS.iter().any(|key| key.section == *section), "{section}");
        }
        for (section, name) in FIXED {
            assert!(KEYS.iter().any(|key| (key.section, key.name) == (section, name)), "{section}.{name}");
        }
    }
}
