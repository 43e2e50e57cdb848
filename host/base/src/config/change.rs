//! Differences between two configurations, and when a running daemon applies them.

use super::{Config, Effect, KEYS, NAMED};

/// A key, or a table with names that a user chose, whose value differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChange {
    /// Such as "limits.max_tasks" or `[providers]`.
    pub name: String,
    pub effect: Effect,
}

impl Config {
    /// Returns the differences of `other`, in the order of the file.
    pub fn changes(&self, other: &Config) -> Vec<ConfigChange> {
        let (own, others) = (self.values(), other.values());
        let keys = KEYS.iter().filter(|key| key.value_in(&own) != key.value_in(&others));
        let keys = keys.map(|key| ConfigChange { name: key.path(), effect: key.effect });
        let tables = NAMED.iter().filter(|table| own[table.field()] != others[table.field()]);
        let tables = tables.map(|table| ConfigChange {
            name: if table.is_list() { format!("[[{}]]", table.name) } else { format!("[{}]", table.name) },
            effect: table.effect,
        });
        keys.chain(tables).collect()
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
}
