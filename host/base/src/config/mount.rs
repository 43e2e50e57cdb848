//! `[exec.mounts]`: directories of this machine that exec tasks see beside `/work`.
//!
//! ```toml
//! [exec.mounts]
//! "/books" = "/srv/books"                                         # read-only, administrators only
//! "/scans" = { path = "/srv/scans", write = true, role = "user" }  # for everybody
//! ```

use super::fields::{NAME_RULE, TableFields, is_name};
use super::key::{Effect, Kind, NamedTable, ValueError, article, keys};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::DeValue;

/// A directory of this machine that exec tasks see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Its path for tasks: one name below the root, such as "/books".
    pub at: String,
    /// Its path on this machine.
    pub path: PathBuf,
    /// Whether tasks may change it.
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

/// The keys and the documentation of these tables.
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

/// The rule for the path of a mount, for messages.
const PATH_RULE: &str = "must be an absolute path of this machine";

/// Reserved names.
const TAKEN: [&str; 10] = ["/work", "/tmp", "/shared", "/dev", "/bin", "/usr", "/etc", "/proc", "/sys", "/"];

/// Reads one line of the table: a path, or a table.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
) -> Result<Mount, Vec<ValueError>> {
    let at = name.get_ref().as_ref();
    let wrong = |span: Range<usize>, what: &str| Err(vec![(span, format!("exec.mounts.{at:?}: {what}"))]);
    if !at.strip_prefix('/').is_some_and(is_name) {
        return wrong(name.span(), &format!("a mount is named like \"/books\": a slash, then {NAME_RULE}"));
    }
    if TAKEN.contains(&at) {
        return wrong(name.span(), &format!("{at} is taken; choose another name"));
    }
    let absolute = |path: &str| match Path::new(path) {
        path if path.is_absolute() => Ok(path.to_path_buf()),
        _ => Err(PATH_RULE),
    };
    match value.get_ref() {
        DeValue::String(path) => match absolute(path) {
            Ok(path) => Ok(Mount { at: at.to_owned(), path, write: false, admin_only: true }),
            Err(why) => wrong(value.span(), &format!("the path {why}")),
        },
        DeValue::Table(_) => {
            let mut fields = TableFields::new(&TABLE, format!("exec.mounts.{at:?}"), value.span(), value)?;
            let path = fields.checked("path", absolute);
            if !fields.has("path") {
                fields.missing("path", PATH_RULE);
            }
            let write = fields.bool("write");
            let admin_only = fields.one_of("role", &[("admin", true), ("user", false)]).unwrap_or(true);
            fields.finish(|_| None)?;
            let Some(path) = path else { return Err(Vec::new()) };
            Ok(Mount { at: at.to_owned(), path, write, admin_only })
        }
        other => {
            wrong(value.span(), &format!("a mount is a path or a table with path, and this is {}", article(other)))
        }
    }
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
            ("\"/a\" = \"srv\"", "the path must be an absolute path"),
            ("\"/a\" = 3", "a mount is a path or a table with path, and this is an integer"),
            ("\"/a\" = { write = true }", "[exec.mounts.\"/a\"] needs path: must be an absolute path"),
            ("\"/a\" = { path = \"/s\", write = 1 }", "write must be true or false"),
            ("\"/a\" = { path = \"/s\", role = \"root\" }", "role must be \"admin\" or \"user\""),
            ("\"/a\" = { path = \"/s\", mode = 1 }", "Allowed here: path, role, write"),
        ] {
            let told = problems(&format!("[exec.mounts]\n{line}\n"));
            assert!(told.contains(said), "{line}: {told}");
        }
        assert!(problems("[exec]\nmounts = 3\n").contains("[exec.mounts] must be a table"));
    }
}
