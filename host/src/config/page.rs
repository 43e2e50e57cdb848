//! docs/configuration.md, made from the lists of keys. A test compares the page with it.

use std::fmt::Write;

use super::{Config, Effect, model};
use super::{KEYS, SECTIONS, command, mount, pill, provider, webhook};

/// Tables whose names a user chooses.
pub(super) const NAMED: [NamedTable; 5] = [provider::TABLE, model::TABLE, pill::TABLE, mount::TABLE, webhook::TABLE];

/// A table whose names a user chooses.
#[derive(Debug, Clone, Copy)]
pub struct NamedTable {
    /// As it stands in the file, such as "[providers.NAME]".
    pub heading: &'static str,
    /// One or more sentences.
    pub doc: &'static str,
    pub keys: &'static [NamedKey],
}

/// A key of one of these tables.
#[derive(Debug, Clone, Copy)]
pub struct NamedKey {
    pub name: &'static str,
    /// Such as "string".
    pub kind: &'static str,
    /// As it would stand in the file, or what holds instead; empty where the key must be there.
    pub default: &'static str,
    pub range: &'static str,
    /// One or more sentences.
    pub doc: &'static str,
}

const INTRO: &str = "# Configuration

This page is generated from the program; `kiso config docs` prints it.

`config.toml` is in the home (`~/.kiso`, or the directory in `--home` or `KISO_HOME`). A fresh home gets one with every key as
a comment. Unknown keys, wrong types and values out of range are errors with line and column, and kiso does not start with
them. Do not put secrets into the file: provider keys and secrets of skills stay in the environment, or in systemd credentials.

```sh
kiso config check
kiso config show
kiso serve
kiso config reload
```

`check` lists everything that is wrong, `show` the current values, including defaults. `reload` makes a daemon read the file
again, as SIGHUP does. The daemon checks the file first; if it is wrong, it logs the error and keeps the old configuration. The
last column says when a daemon applies a change: *at once* means with the next message, request or log line, *next run* leaves
current runs unchanged, and *restart* means when you restart the daemon.

Environment variables: `KISO_HOME` is the home, `KISO_LOG` the log filter (`debug`, or `warn,kiso=trace`; it overrides
`[log]`), `KISO_SKILL_NAME_KEY` a secret of the skill NAME, and each provider's `key_env` its key.
";

impl Config {
    /// The page.
    pub fn page() -> String {
        let mut page = INTRO.to_owned();
        for section in SECTIONS {
            match section.name {
                "" => page += "\n## At the top\n\n",
                name => drop(write!(page, "\n## `[{name}]`\n\n{}\n\n", section.doc)),
            }
            page += "| key | type | default | allowed | meaning | takes effect |\n|---|---|---|---|---|---|\n";
            for key in KEYS.iter().filter(|key| key.section == section.name) {
                let (kind, default, range) = (key.type_name(), key.default_value(), key.range().unwrap_or_default());
                row(&mut page, key.name, [kind, &default, &range, key.doc, &key.effect().to_string()]);
            }
        }
        for table in NAMED.into_iter().chain([command::TABLE]) {
            let _ = write!(page, "\n## `{}`\n\n{}\n\n", table.heading, table.doc);
            page += "| key | type | default | allowed | meaning | takes effect |\n|---|---|---|---|---|---|\n";
            let at_once = [webhook::TABLE.heading, command::TABLE.heading];
            let effect = if at_once.contains(&table.heading) { Effect::AtOnce } else { Effect::NextRun };
            for key in table.keys {
                row(&mut page, key.name, [key.kind, key.default, key.range, key.doc, &effect.to_string()]);
            }
        }
        page
    }
}

/// `cells` are type, default, range, meaning and effect.
fn row(page: &mut String, name: &str, cells: [&str; 5]) {
    let [kind, default, range, doc, effect] = cells;
    let default = match default {
        "" => "must be given".to_owned(),
        "\"\"" => "none".to_owned(),
        words if words.contains(' ') => words.to_owned(),
        value => format!("`{value}`"),
    };
    let doc = doc.replace('|', "\\|");
    let _ = writeln!(page, "| `{name}` | {kind} | {default} | {range} | {doc} | {effect} |");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_on_the_page() {
        let page = Config::page();
        for key in KEYS {
            assert!(page.contains(&format!("| `{}` | {} |", key.name, key.type_name())), "{}", key.path());
        }
        assert!(page.contains("| `port` | integer | `8333` | 0 to 65_535 | Port to listen on"), "{page}");
        assert!(page.contains("| `level` | string | `\"info\"` | error, warn, info, debug, trace |"), "{page}");
    }

    /// What a table is said to hold is what is read of it: the reader itself lists its keys when it meets another.
    #[test]
    fn named_tables_list_the_keys_that_are_read() {
        for (table, text) in NAMED.into_iter().zip([
            "[providers.a]\nkind = \"openai\"\nbase_url = \"http://localhost\"\nzzz = 1\n",
            "[model_settings.reflex]\nzzz = 1\n",
            "[pills.a]\ntemplate = \"x\"\nzzz = 1\n",
            "[exec.mounts]\n\"/a\" = { path = \"/s\", zzz = 1 }\n",
            "[webhooks.a]\nurl = \"https://x.example\"\nzzz = 1\n",
        ]) {
            let problems = Config::parse(text.as_bytes()).unwrap_err();
            let told = problems[0].message.to_lowercase();
            let (_, listed) = told.split_once("allowed here: ").unwrap_or_else(|| panic!("{told}"));
            let mut names: Vec<_> = table.keys.iter().map(|key| key.name).collect();
            names.sort_unstable();
            assert_eq!(names.join(", "), listed, "{}", table.heading);
        }
    }
}
