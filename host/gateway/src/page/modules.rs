//! Which scripts of the page need which others. A browser learns of a module's imports only when it has read it: told of all
//! at once, it asks for them at once, where it would wait for one after the other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// The script that the page begins with.
const ENTRY: &str = "app.js";

/// What stands in the document for what the browser is to ask for at once.
const FIRST: &str = "{{modules}}";

/// What stands in it for what scripts that are fetched later need.
const LATER: &str = "{{later}}";

/// The imports of every script, by its name.
pub(super) struct Modules {
    fixed: BTreeMap<String, Vec<String>>,
    later: BTreeSet<String>,
}

impl Modules {
    pub(super) fn of(scripts: &BTreeMap<String, String>) -> Modules {
        let mut modules = Modules { fixed: BTreeMap::new(), later: BTreeSet::new() };
        for (name, script) in scripts {
            let there = |path: &str| resolve(name, path).filter(|name| scripts.contains_key(name));
            let fixed = paths(script, &["} from '", "\nimport '"]).filter_map(there);
            modules.fixed.insert(name.clone(), fixed.collect());
            modules.later.extend(paths(script, &["import('"]).filter_map(there));
        }
        modules
    }

    /// The document with what it says of scripts. `base` is the address below which they are.
    pub(super) fn written(&self, document: &str, base: &str) -> String {
        let first = self.with_all(ENTRY, &BTreeSet::new());
        let links: Vec<String> =
            first.iter().map(|name| format!("<link rel=\"modulepreload\" href=\"{base}/{name}\">")).collect();
        let first = first.into_iter().collect();
        // A data block, which no policy takes for a script.
        let later: Map<String, Value> =
            self.later.iter().map(|name| (name.clone(), self.with_all(name, &first).into())).collect();
        document.replace(FIRST, &links.join("\n")).replace(LATER, &Value::Object(later).to_string())
    }

    /// A script with all that it needs, nearest first, but what is there already.
    fn with_all(&self, name: &str, there: &BTreeSet<String>) -> Vec<String> {
        let mut all = vec![name.to_owned()];
        let mut at = 0;
        while let Some(needs) = all.get(at).map(|name| self.fixed.get(name).cloned().unwrap_or_default()) {
            for need in needs {
                if !there.contains(&need) && !all.contains(&need) {
                    all.push(need);
                }
            }
            at += 1;
        }
        all
    }
}

/// What stands between one of these beginnings and the next quote.
fn paths<'a>(script: &'a str, beginnings: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    beginnings
        .iter()
        .flat_map(|beginning| script.split(beginning).skip(1))
        .filter_map(|rest| Some(rest.split_once('\'')?.0))
}

/// The file that a path means in a script of that name; none for what is no path.
pub(super) fn resolve(script: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = script.split('/').collect();
    parts.pop();
    for (at, part) in path.split('/').enumerate() {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            _ if at == 0 => return None,
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &'static str)]) -> Modules {
        Modules::of(&files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect())
    }

    #[test]
    fn what_is_needed_is_told_once_nearest_first() {
        let modules = modules(&[
            (
                "app.js",
                "import { a,\n  b } from './lib/a.js';\nimport { c } from './lib/c.js';\nconst x = () => import('./screens/x.js');\n",
            ),
            ("lib/a.js", "import { c } from './c.js';\nexport { a } from '../vendor/v.js';\n"),
            ("lib/c.js", "// first\nimport '../vendor/v.js';\nimport { a } from './a.js';\n"),
            ("lib/d.js", ""),
            ("vendor/v.js", "export { none } from 'elsewhere';"),
            (
                "screens/x.js",
                "import { d } from '../lib/d.js';\nimport { a } from '../lib/a.js';\nimport { gone } from './gone.js';",
            ),
        ]);
        let written = modules.written("{{modules}}|{{later}}", "/p");
        let (first, later) = written.split_once('|').unwrap();
        let link = |name: &str| format!("<link rel=\"modulepreload\" href=\"/p/{name}\">");
        assert_eq!(first, ["app.js", "lib/a.js", "lib/c.js", "vendor/v.js"].map(link).join("\n"));
        assert_eq!(later, r#"{"screens/x.js":["screens/x.js","lib/d.js"]}"#);
    }
}
