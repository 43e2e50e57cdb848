//! Generates docs/configuration.md from the lists of keys. A test compares the file with it.

use std::fmt::Write;

use super::{Config, KEYS, Key, NAMED, SECTIONS};

const INTRO: &str = "# Configuration

This page is generated from the program; `kiso config docs` prints it.

`config.toml` is in the home (`~/.kiso`, or the directory in `--home` or `KISO_HOME`). A fresh home has one of fifteen lines. Unknown keys, wrong types and values out of range are errors with line and column, and kiso does not start with
them. Do not put secrets into the file: provider keys and secrets of skills stay in the environment, or in systemd credentials.

```sh
kiso config set limits.max_tasks 20
kiso config check
kiso config show
kiso serve
kiso config reload
```

`set` changes one value, keeps every comment, and writes nothing that is not valid; `--default` removes the value instead. `check` lists everything that is wrong, `show` the current values, including defaults. `reload` makes a daemon read the file
again, as SIGHUP does. The daemon checks the file first; if it is wrong, it logs the error and keeps the old configuration. The
last column says when a daemon applies a change: *at once* means with the next message, request or log line, *next run* leaves
current runs unchanged, and *restart* means when you restart the daemon.

Environment variables: `KISO_HOME` is the home, `KISO_LOG` the log filter (`debug`, or `warn,kiso=trace`; it overrides
`[log]`), `KISO_SKILL_NAME_KEY` a secret of the skill NAME, and each provider's `key_env` its key.
";

const HEAD: &str = "| key | type | default | allowed | meaning | takes effect |\n|---|---|---|---|---|---|\n";

impl Config {
    pub fn page() -> String {
        let mut page = INTRO.to_owned();
        for section in SECTIONS {
            match section.name {
                "" => page += "\n## At the top\n\n",
                name => drop(write!(page, "\n## `[{name}]`\n\n{}\n\n", section.doc)),
            }
            page += HEAD;
            KEYS.iter().filter(|key| key.section == section.name).for_each(|key| row(&mut page, key));
        }
        for table in NAMED {
            let (heading, doc, example) = (table.heading, table.doc, table.example());
            let _ = write!(page, "\n## `{heading}`\n\n{doc}\n\n```toml\n{example}```\n\n{HEAD}");
            table.keys.iter().for_each(|key| row(&mut page, key));
        }
        page
    }
}

fn row(page: &mut String, key: &Key) {
    let default = match key.default_value().as_str() {
        "" => "must be given".to_owned(),
        "\"\"" => "none".to_owned(),
        words if words.contains(' ') => words.to_owned(),
        value => format!("`{value}`"),
    };
    let (name, kind, range) = (key.name, key.type_name(), key.range().unwrap_or_default());
    let doc = key.doc.replace('|', "\\|");
    let _ = writeln!(page, "| `{name}` | {kind} | {default} | {range} | {doc} | {} |", key.effect);
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

    /// The documented keys of a table are the keys that the reader knows. It lists them when it finds an unknown key.
    #[test]
    fn named_tables_list_the_keys_that_are_read() {
        for (table, text) in NAMED.iter().filter(|table| !table.is_of_lines()).zip([
            "[providers.a]\nkind = \"openai\"\nbase_url = \"http://localhost\"\nzzz = 1\n",
            "[model_settings.reflex]\nzzz = 1\n",
            "[pills.a]\ntemplate = \"x\"\nzzz = 1\n",
            "[exec.mounts]\n\"/a\" = { path = \"/s\", zzz = 1 }\n",
            "[[network.rules]]\nhost = \"a\"\naccess = \"ask\"\nzzz = 1\n",
            "[folders.a]\npath = \"/s\"\nzzz = 1\n",
            "[webhooks.a]\nurl = \"https://x.example\"\nzzz = 1\n",
            "[hooks.a]\nauth = \"token\"\ntemplate = \"x\"\nzzz = 1\n",
            "[mcp.a]\nurl = \"https://x.example\"\nzzz = 1\n",
            "[channels.a]\ncomponent = \"ntfy\"\nurl = \"https://x.example\"\nzzz = 1\n",
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
