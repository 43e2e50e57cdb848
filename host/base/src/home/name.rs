use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Why a name is refused: the name and the broken rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be the name of a {thing}: {rule}")]
pub struct NameError {
    name: String,
    thing: &'static str,
    rule: String,
}

/// The name of a session, which is also the name of its directory.
///
/// 1 to 64 characters of `A-Z a-z 0-9 . _ -`. It cannot begin with `.` or `-`, contain `..`, or be one of [`RESERVED`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionName(String);

/// Words with a special meaning in place of a session's name on the command line.
const RESERVED: [&str; 6] = ["all", "last", "latest", "new", "none", "self"];

impl SessionName {
    pub fn parse(name: &str) -> Result<SessionName, NameError> {
        let rule = if name.is_empty() || name.len() > 64 {
            "it must have 1 to 64 characters".to_owned()
        } else if let Some(odd) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !"._-".contains(*c)) {
            format!("{odd:?} is not allowed, only letters a to z, digits, '.', '_' and '-'")
        } else if name.starts_with(['.', '-']) {
            "it must start with a letter, a digit or '_'".to_owned()
        } else if name.contains("..") {
            "it must not contain \"..\"".to_owned()
        } else if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
            format!("the words {} are reserved", RESERVED.join(", "))
        } else {
            return Ok(SessionName(name.to_owned()));
        };
        Err(NameError { name: shorten(name), thing: "session", rule })
    }
}

impl JsonSchema for SessionName {
    fn schema_name() -> Cow<'static, str> {
        "SessionName".into()
    }

    /// The rule of [`SessionName::parse`].
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let any_case =
            |word: &str| -> String { word.chars().map(|c| format!("[{c}{}]", c.to_ascii_uppercase())).collect() };
        let reserved = RESERVED.map(any_case).join("|");
        json_schema!({
            "type": "string",
            "description": format!("Name of a session. The words {} are reserved.", RESERVED.join(", ")),
            "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\.?$",
            "maxLength": 64,
            "not": { "pattern": format!("^({reserved})$") },
        })
    }
}

/// The session that is used if none is named.
impl Default for SessionName {
    fn default() -> SessionName {
        SessionName("default".to_owned())
    }
}

/// The name of a skill, which is also the name of its directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(!try_from, !into)]
pub struct SkillName(#[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]{0,63}$"))] String);

impl SkillName {
    pub fn parse(name: &str) -> Result<SkillName, NameError> {
        let rule = if name.is_empty() || name.len() > 64 {
            "it must have 1 to 64 characters".to_owned()
        } else if let Some(odd) = name.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
            format!("{odd:?} is not allowed, only lower-case letters a to z, digits and '-'")
        } else if name.starts_with('-') {
            "it must start with a letter or a digit".to_owned()
        } else {
            return Ok(SkillName(name.to_owned()));
        };
        Err(NameError { name: shorten(name), thing: "skill", rule })
    }
}

/// Shortens a name for a message, because it can have any length.
fn shorten(name: &str) -> String {
    if name.chars().count() <= 80 {
        return name.to_owned();
    }
    name.chars().take(79).chain(['…']).collect()
}

macro_rules! name_conversions {
    ($($name:ident)*) => {$(
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(name: &str) -> Result<$name, NameError> {
                $name::parse(name)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(name: String) -> Result<$name, NameError> {
                $name::parse(&name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    )*};
}

name_conversions!(SessionName SkillName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_as_directories() {
        for good in ["a", "demo", "2024.weather_x-1", "_", &"x".repeat(64)] {
            assert_eq!(SessionName::parse(good).unwrap().as_str(), good);
        }
        for (bad, rule) in [
            ("", "1 to 64"),
            (&*"x".repeat(65), "1 to 64"),
            ("../x", "'/' is not allowed"),
            ("a/b", "'/' is not allowed"),
            (".hidden", "must start"),
            ("-rf", "must start"),
            ("a..b", "must not contain"),
            ("a b", "' ' is not allowed"),
            ("a\0b", "is not allowed"),
            ("Öl", "is not allowed"),
            ("Last", "reserved"),
        ] {
            let error = SessionName::parse(bad).unwrap_err().to_string();
            assert!(error.contains(rule), "{bad:?}: {error}");
        }
    }

    #[test]
    fn skills_are_named_in_lower_case() {
        for good in ["a", "data", "web-search2", "2d"] {
            assert_eq!(SkillName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "Data", "-2d", "-a", "a_b", "a.b", "../a", &"x".repeat(65)] {
            assert!(SkillName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_long_bad_name_is_not_repeated_whole() {
        assert!(SessionName::parse(&"é".repeat(10_000)).unwrap_err().to_string().len() < 400);
    }
}
