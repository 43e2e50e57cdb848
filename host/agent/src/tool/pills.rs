//! Pills: those of `config.toml`, and those that people created.
//!
//! Everybody who may chat can create, change and remove pills. Pills that were created without administrator rights do not work
//! in an administrator's messages: text that is executed with these rights must come from somebody who has them.

use kiso_base::config::{self, Config, NAME_RULE, is_name};
use kiso_plan::effort::Effort;
use kiso_plan::pill::Pill;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::skill::near_names;
use kiso_store::store::{MAX_PILLS, PillRow, Store, StoreError};

/// Maximum length of template and description in characters, and maximum number of categories of a pill, as in `config.toml`.
const MAX_TEMPLATE: usize = 8_000;
const MAX_DESCRIPTION: usize = 200;
const MAX_CATEGORIES: usize = 16;

/// The origin of a pill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PillOrigin {
    /// `config.toml`, where it must be changed.
    Config,
    /// A person with these rights.
    Made(CallerScope),
}

impl PillOrigin {
    /// Returns "config", "user" or "admin".
    pub fn name(self) -> &'static str {
        match self {
            PillOrigin::Config => "config",
            PillOrigin::Made(caller) => caller.name(),
        }
    }
}

/// Why a pill was not changed.
#[derive(Debug, thiserror::Error)]
pub enum PillError {
    #[error("{0}")]
    Invalid(String),
    #[error("a pill named {0} already exists")]
    Taken(String),
    #[error("the pill {0} stands in config.toml, and is changed there")]
    Configured(String),
    #[error("the pill {0} is an administrator's")]
    Forbidden(String),
    #[error("there is no pill {name}{}", suggested(.near))]
    Unknown { name: String, near: Vec<String> },
    #[error("there are {MAX_PILLS} pills, the most there may be: remove one")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn suggested(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; near: {}", names.join(", ")) }
}

/// The pills of a home.
#[derive(Debug, Clone)]
pub struct Pills {
    store: Store,
    configured: Vec<Pill>,
}

impl Pills {
    pub fn new(config: &Config, store: &Store) -> Pills {
        Pills { store: store.clone(), configured: config.pills.iter().map(of_config).collect() }
    }

    /// Returns every pill: those of `config.toml` in their order, then the others by name. A pill of `config.toml` hides a
    /// created one of the same name.
    pub async fn list(&self) -> Result<Vec<(Pill, PillOrigin)>, StoreError> {
        let made = self.store.peek(|view| view.pills()).await?;
        let configured = self.configured.iter().map(|pill| (pill.clone(), PillOrigin::Config));
        let made = made.into_iter().filter(|row| !self.is_configured(&row.pill.name));
        Ok(configured.chain(made.map(|row| (row.pill, PillOrigin::Made(row.caller)))).collect())
    }

    /// Returns the pills that work in messages of this caller.
    pub async fn for_caller(&self, caller: CallerScope) -> Result<Vec<Pill>, StoreError> {
        let all = self.list().await?.into_iter();
        let counts = |origin: PillOrigin| caller == CallerScope::User || origin != PillOrigin::Made(CallerScope::User);
        Ok(all.filter(|(_, origin)| counts(*origin)).map(|(pill, _)| pill).collect())
    }

    /// Returns the pill of that name.
    pub async fn one(&self, name: &str) -> Result<(Pill, PillOrigin), PillError> {
        let mut all = self.list().await?;
        match all.iter().position(|(pill, _)| pill.name == name) {
            Some(at) => Ok(all.swap_remove(at)),
            None => Err(unknown(name, all.iter().map(|(pill, _)| pill.name.as_str()))),
        }
    }

    /// Stores pills, all of them or none; with `replace`, overwrites existing ones. Returns true for each new one.
    pub async fn put(
        &self,
        pills: Vec<Pill>,
        replace: bool,
        by: CallerScope,
        now_ms: i64,
    ) -> Result<Vec<bool>, PillError> {
        for pill in &pills {
            check(pill).map_err(PillError::Invalid)?;
            if self.is_configured(&pill.name) {
                return Err(PillError::Configured(pill.name.clone()));
            }
        }
        let put = self.store.write(move |tx| {
            let mut known = tx.pills()?;
            let mut new = Vec::with_capacity(pills.len());
            for pill in pills {
                let name = pill.name.clone();
                let before = known.iter().position(|row| row.pill.name == name);
                match before.map(|at| &known[at]) {
                    Some(_) if !replace => return Ok(Err(PillError::Taken(name))),
                    Some(row) if !may_change(row, by) => return Ok(Err(PillError::Forbidden(name))),
                    None if known.len() >= MAX_PILLS => return Ok(Err(PillError::TooMany)),
                    _ => {}
                }
                let row = PillRow { pill, caller: by };
                new.push(before.is_none());
                match before {
                    Some(at) => known[at] = row,
                    None => known.push(row),
                }
            }
            // Nothing is written unless all are permitted.
            known.iter().try_for_each(|row| tx.put_pill(row, now_ms))?;
            Ok(Ok(new))
        });
        put.await?
    }

    /// Removes a created pill.
    pub async fn remove(&self, name: &str, by: CallerScope) -> Result<(), PillError> {
        if self.is_configured(name) {
            return Err(PillError::Configured(name.to_owned()));
        }
        let name = name.to_owned();
        let removed = self.store.write(move |tx| {
            let known = tx.pills()?;
            match known.iter().find(|row| row.pill.name == name) {
                None => Ok(Err(unknown(&name, known.iter().map(|row| row.pill.name.as_str())))),
                Some(row) if !may_change(row, by) => Ok(Err(PillError::Forbidden(name))),
                Some(_) => tx.delete_pill(&name).map(|_| Ok(())),
            }
        });
        removed.await?
    }

    fn is_configured(&self, name: &str) -> bool {
        self.configured.iter().any(|pill| pill.name == name)
    }
}

fn may_change(row: &PillRow, by: CallerScope) -> bool {
    by == CallerScope::Admin || row.caller == CallerScope::User
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> PillError {
    let near = near_names(name, known).into_iter().map(str::to_owned).collect();
    PillError::Unknown { name: name.chars().take(64).collect(), near }
}

/// The same checks as for `config.toml`.
fn check(pill: &Pill) -> Result<(), String> {
    let Pill { name, template, categories, description, .. } = pill;
    if !is_name(name) {
        return Err(format!(
            "{:?} is not a name of a pill, which has {NAME_RULE}",
            name.chars().take(64).collect::<String>()
        ));
    }
    if template.trim().is_empty() || template.chars().nth(MAX_TEMPLATE).is_some() {
        return Err(format!("the template of {name} needs a text, of at most {MAX_TEMPLATE} characters"));
    }
    if description.chars().nth(MAX_DESCRIPTION).is_some() || description.chars().any(char::is_control) {
        return Err(format!("the description of {name} is one line of at most {MAX_DESCRIPTION} characters"));
    }
    if categories.len() > MAX_CATEGORIES || !categories.iter().all(|category| is_name(category)) {
        return Err(format!("{name} may have {MAX_CATEGORIES} categories; each has {NAME_RULE}"));
    }
    Ok(())
}

fn of_config(pill: &config::PillSettings) -> Pill {
    let config::PillSettings { name, template, categories, effort, description } = pill.clone();
    let effort = match effort {
        config::PillEffort::Low => Effort::Low,
        config::PillEffort::Medium => Effort::Medium,
        config::PillEffort::High => Effort::High,
    };
    Pill { name, template, categories, effort, description }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pill(name: &str, template: &str) -> Pill {
        Pill {
            name: name.to_owned(),
            template: template.to_owned(),
            categories: Vec::new(),
            effort: Effort::High,
            description: String::new(),
        }
    }

    fn pills() -> (tempfile::TempDir, Pills) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let config = Config::parse(b"[pills.fixed]\ntemplate = \"as it is\"\n").unwrap();
        (dir, Pills::new(&config, &store))
    }

    fn names(pills: &[Pill]) -> Vec<&str> {
        pills.iter().map(|pill| pill.name.as_str()).collect()
    }

    #[tokio::test]
    async fn those_of_the_configuration_and_those_that_were_made_stand_side_by_side() {
        let (_dir, pills) = pills();
        let put = |name: &str, template: &str, replace, by| pills.put(vec![pill(name, template)], replace, by, 1);
        assert_eq!(put("zip", "Pack {input}", false, CallerScope::Admin).await.unwrap(), [true]);
        assert_eq!(put("ask", "{input}?", false, CallerScope::User).await.unwrap(), [true]);
        assert!(matches!(put("zip", "x", false, CallerScope::Admin).await, Err(PillError::Taken(_))));
        assert!(matches!(put("zip", "x", true, CallerScope::User).await, Err(PillError::Forbidden(_))));
        assert!(matches!(put("fixed", "x", true, CallerScope::Admin).await, Err(PillError::Configured(_))));
        assert_eq!(put("zip", "Zip {input}", true, CallerScope::Admin).await.unwrap(), [false]);
        assert_eq!(pills.one("zip").await.unwrap().0.template, "Zip {input}");
        // Text of a user without rights is not executed with an administrator's.
        assert_eq!(names(&pills.for_caller(CallerScope::User).await.unwrap()), ["fixed", "ask", "zip"]);
        assert_eq!(names(&pills.for_caller(CallerScope::Admin).await.unwrap()), ["fixed", "zip"]);
        let error = pills.remove("zpi", CallerScope::Admin).await.unwrap_err().to_string();
        assert_eq!(error, "there is no pill zpi; near: zip");
        assert!(matches!(pills.remove("zip", CallerScope::User).await, Err(PillError::Forbidden(_))));
        assert!(matches!(pills.remove("fixed", CallerScope::Admin).await, Err(PillError::Configured(_))));
        pills.remove("zip", CallerScope::Admin).await.unwrap();
        pills.remove("ask", CallerScope::User).await.unwrap();
        assert_eq!(names(&pills.for_caller(CallerScope::User).await.unwrap()), ["fixed"]);
    }

    #[tokio::test]
    async fn several_are_kept_together_or_not_at_all_and_there_is_an_end() {
        let (_dir, pills) = pills();
        let two = vec![pill("one", "1"), pill("a b", "2")];
        assert!(matches!(pills.put(two, false, CallerScope::Admin, 1).await, Err(PillError::Invalid(_))));
        let many = (0..=MAX_PILLS).map(|n| pill(&format!("p{n}"), "x")).collect();
        assert!(matches!(pills.put(many, false, CallerScope::Admin, 1).await, Err(PillError::TooMany)));
        assert_eq!(pills.list().await.unwrap().len(), 1);
        for (wrong, said) in [
            (pill("a", " "), "needs a text"),
            (pill("a", &"x".repeat(8_001)), "at most 8000"),
            (Pill { description: "two\nlines".to_owned(), ..pill("a", "x") }, "one line"),
            (Pill { categories: vec!["w b".to_owned()], ..pill("a", "x") }, "categories"),
        ] {
            let error = pills.put(vec![wrong], true, CallerScope::Admin, 1).await.unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
