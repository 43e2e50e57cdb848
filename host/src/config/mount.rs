//! `[exec.mounts]`: directories of this machine that exec tasks see beside `/work`.
//!
//! ```toml
//! [exec.mounts]
//! "/books" = "/srv/books"                                         # read-only, administrators only
//! "/scans" = { path = "/srv/scans", write = true, role = "user" }  # for everybody
//! ```

use super::key::{Effect, Kind, NamedTable, ValueError, article, keys};
use serde::{Serialize, Serializer};
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::DeValue;

/// A directory of this machine that exec tasks see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Where they see it: one name below the root, such as "/books".
    pub at: String,
    /// Where it is.
    pub path: PathBuf,
    /// Whether they may change it.
    pub write: bool,
    /// Whether only an administrator's tasks see it.
    #[serde(rename = "role", serialize_with = "role")]
    pub admin_only: bool,
}

/// The word in `config.toml`.
fn role<S: Serializer>(admin_only: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *admin_only { "admin" } else { "user" })
}

/// How the commented file of a fresh home shows mounts.
const EXAMPLE: &str = "
# Directories of this machine that exec tasks see in addition to /work: by default read-only and for administrators.
# [exec.mounts]
# \"/books\" = \"/srv/books\"
# \"/scans\" = { path = \"/srv/scans\", write = true, role = \"user\" }
";

/// Its keys, and what the documentation says about these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "exec.mounts",
    heading: "[exec.mounts]",
    doc: "Directories of this machine that exec tasks see in addition to `/work`: `\"/NAME\" = \"/a/path\"`, or a table with the keys below. The name is a slash and up to 32 letters, digits, - or _.",
    example: EXAMPLE,
    after: "exec",
    effect: Effect::NextRun,
    id: "at",
    keys: &keys(Effect::NextRun, [
        ("path", Kind::Path, "Directory on this machine."),
        ("write", Kind::Bool(false), "Whether tasks can change it."),
        ("role", Kind::Word("admin", &["admin", "user"]), "Whose tasks see it: only administrators', or everyone's."),
    ]),
};

/// Names that are taken.
const TAKEN: [&str; 9] = ["/work", "/tmp", "/dev", "/bin", "/usr", "/etc", "/proc", "/sys", "/"];

/// Reads one line of the table.
pub(super) fn read(at: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Result<Mount, ValueError> {
    let name = at.get_ref().as_ref();
    let wrong = |span: Range<usize>, what: String| Err((span, format!("exec.mounts.{name:?}: {what}")));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_name = name.strip_prefix('/').is_some_and(|rest| (1..=32).contains(&rest.len()) && rest.chars().all(plain));
    if !is_name {
        return wrong(
            at.span(),
            "a mount is named like \"/books\": a slash, then up to 32 letters, digits, - or _".to_owned(),
        );
    }
    if TAKEN.contains(&name) {
        return wrong(at.span(), format!("{name} is taken; choose another name"));
    }
    let mut mount = Mount { at: name.to_owned(), path: PathBuf::new(), write: false, admin_only: true };
    match value.get_ref() {
        DeValue::String(path) => mount.path = PathBuf::from(path.as_ref()),
        DeValue::Table(table) => {
            for (key, value) in table {
                match (key.get_ref().as_ref(), value.get_ref()) {
                    ("path", DeValue::String(path)) => mount.path = PathBuf::from(path.as_ref()),
                    ("write", DeValue::Boolean(write)) => mount.write = *write,
                    ("role", DeValue::String(role)) if role == "admin" => mount.admin_only = true,
                    ("role", DeValue::String(role)) if role == "user" => mount.admin_only = false,
                    ("role", _) => {
                        return wrong(value.span(), "role is \"admin\" (the default) or \"user\"".to_owned());
                    }
                    ("path" | "write", other) => {
                        let wanted = if key.get_ref() == "path" { "a string" } else { "true or false" };
                        return wrong(
                            value.span(),
                            format!("{} must be {wanted}, and this is {}", key.get_ref(), article(other)),
                        );
                    }
                    (key_name, _) => {
                        return wrong(key.span(), format!("unknown key {key_name}: allowed here: path, role, write"));
                    }
                }
            }
        }
        other => {
            return wrong(
                value.span(),
                format!("a mount is a path or a table with path, and this is {}", article(other)),
            );
        }
    }
    if !mount.path.is_absolute() {
        return wrong(value.span(), "path must be an absolute path of this machine".to_owned());
    }
    Ok(mount)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn a_mount_is_read_only_and_for_administrators_unless_it_says_otherwise() {
        let config = Config::parse(
            b"[exec]\ntimeout_s = 5\n[exec.mounts]\n\"/books\" = \"/srv/books\"\n\
              \"/scans\" = { path = \"/srv/scans\", write = true, role = \"user\" }\n",
        )
        .unwrap();
        let shown: Vec<_> = config.mounts.iter().map(|m| (m.at.as_str(), m.write, m.admin_only)).collect();
        assert_eq!(shown, [("/books", false, true), ("/scans", true, false)]);
        assert_eq!(config.exec.timeout_s, 5);
    }

    #[test]
    fn what_is_wrong_with_a_mount_is_told() {
        for (line, said) in [
            ("\"books\" = \"/srv\"", "2:1: exec.mounts.\"books\": a mount is named like"),
            ("\"/a/b\" = \"/srv\"", "a mount is named like"),
            ("\"/work\" = \"/srv\"", "/work is taken"),
            ("\"/a\" = \"srv\"", "path must be an absolute path"),
            ("\"/a\" = 3", "a mount is a path or a table with path, and this is an integer"),
            ("\"/a\" = { write = true }", "path must be an absolute path"),
            ("\"/a\" = { path = \"/s\", write = 1 }", "write must be true or false"),
            ("\"/a\" = { path = \"/s\", role = \"root\" }", "role is \"admin\" (the default) or \"user\""),
            ("\"/a\" = { path = \"/s\", mode = 1 }", "unknown key mode: allowed here: path, role, write"),
        ] {
            let told = problems(&format!("[exec.mounts]\n{line}\n"));
            assert!(told.contains(said), "{line}: {told}");
        }
        assert!(problems("[exec]\nmounts = 3\n").contains("[exec.mounts] must be a table"));
    }
}
