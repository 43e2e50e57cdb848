//! Changes of single values in the text of a `config.toml`. Comments and order are kept.

use super::{Config, Problem};
use toml_edit::{DocumentMut, Item, Key, Table, Value};

/// Why a value was not changed. The text is as before.
#[derive(Debug, thiserror::Error)]
pub enum NotSet {
    /// The text is not valid before or after the change.
    #[error("the configuration is not valid")]
    Invalid(Vec<Problem>),
    #[error("{0:?} is not the name of a key, such as limits.max_tasks")]
    Name(String),
    #[error("{0} is a table; name one of its keys")]
    IsTable(String),
    #[error("{0} is not set")]
    Absent(String),
}

impl Config {
    /// Returns the text with this value for the key, such as `limits.max_tasks`. `None` removes the key, so that its default applies.
    /// A value that is not TOML is taken as a string.
    pub fn with_value(text: &str, key: &str, value: Option<&str>) -> Result<String, NotSet> {
        Config::parse(text.as_bytes()).map_err(NotSet::Invalid)?;
        let name = || NotSet::Name(key.chars().take(100).collect());
        let path = Key::parse(key).map_err(|_| name())?;
        let Some((last, tables)) = path.split_last() else { return Err(name()) };
        // A text that was parsed is a document.
        let mut document: DocumentMut = text.parse().map_err(|_| name())?;
        let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
        for part in tables {
            let mut inner = Table::new();
            inner.set_implicit(true);
            let item = table.entry(part.get()).or_insert(Item::Table(inner));
            table = item.as_table_like_mut().ok_or_else(name)?;
        }
        match value {
            Some(value) => {
                let value = value.parse::<Value>().unwrap_or_else(|_| Value::from(value));
                match table.get_mut(last.get()) {
                    Some(Item::Value(old)) => {
                        let decor = old.decor().clone();
                        *old = value;
                        *old.decor_mut() = decor;
                    }
                    Some(_) => return Err(NotSet::IsTable(key.to_owned())),
                    None => drop(table.insert(last.get(), Item::Value(value))),
                }
            }
            None => drop(table.remove(last.get()).ok_or_else(|| NotSet::Absent(key.to_owned()))?),
        }
        let changed = document.to_string();
        Config::parse(changed.as_bytes()).map_err(NotSet::Invalid)?;
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\nmodel = \"reflex\" # built in\n\n[limits]\n# few\nmax_tasks = 7 # seven\n";

    fn set(key: &str, value: &str) -> String {
        Config::with_value(TEXT, key, Some(value)).unwrap()
    }

    #[test]
    fn a_value_is_replaced_and_comments_stay() {
        assert_eq!(set("limits.max_tasks", "9"), TEXT.replace("= 7", "= 9"));
        assert_eq!(set("model", "scripted:a"), TEXT.replace("\"reflex\"", "\"scripted:a\""));
        assert_eq!(set("limits.file_mib", "20"), format!("{TEXT}file_mib = 20\n"));
        let both = set("gateway.port", "8400");
        assert!(both.starts_with(TEXT) && both.ends_with("[gateway]\nport = 8400\n"), "{both}");
        let nested = set("folders.photos.path", "/srv/photos");
        assert_eq!(Config::parse(nested.as_bytes()).unwrap().folders.len(), 1);
        let removed = Config::with_value(TEXT, "limits.max_tasks", None).unwrap();
        assert!(
            removed.starts_with("# mine\nmodel = \"reflex\" # built in\n") && !removed.contains("max_tasks"),
            "{removed}"
        );
        let again = Config::with_value(Config::default_file(), "limits.max_tasks", Some("9")).unwrap();
        assert!(again.starts_with("# The configuration of kiso."), "{again}");
    }

    #[test]
    fn a_mistake_changes_nothing() {
        let problem = |key: &str, value: &str| match Config::with_value(TEXT, key, Some(value)).unwrap_err() {
            NotSet::Invalid(problems) => problems[0].message.clone(),
            other => other.to_string(),
        };
        assert!(problem("limits.max_task", "1").contains("did you mean max_tasks"));
        assert!(problem("limits.max_tasks", "many").contains("must be an integer"));
        assert!(problem("limits.max_tasks", "0").contains("out of range"));
        assert_eq!(problem("limits", "1"), "limits is a table; name one of its keys");
        assert_eq!(problem("a b", "1"), "\"a b\" is not the name of a key, such as limits.max_tasks");
        assert_eq!(problem("model.name", "1"), "\"model.name\" is not the name of a key, such as limits.max_tasks");
        let absent = Config::with_value(TEXT, "limits.file_mib", None).unwrap_err();
        assert_eq!(absent.to_string(), "limits.file_mib is not set");
        assert!(matches!(Config::with_value("modle = 1", "model", Some("reflex")), Err(NotSet::Invalid(_))));
    }
}
