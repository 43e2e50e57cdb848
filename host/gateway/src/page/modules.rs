//! Dependencies between the page's scripts. A browser discovers a module's imports only after it has read the module; with the
//! whole list, it can request all of them at once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// The page's entry script.
const ENTRY: &str = "app.js";

/// Placeholder in the document for the scripts to preload.
const FIRST: &str = "{{modules}}";

/// Placeholder in the document for the dependencies of dynamically imported scripts.
const LATER: &str = "{{later}}";

/// The imports of every script, by name.
pub(super) struct Modules {
    fixed: BTreeMap<String, Vec<String>>,
    later: BTreeSet<String>,
}

impl Modules {
    pub(super) fn new(scripts: &BTreeMap<String, String>) -> Modules {
        let mut modules = Modules { fixed: BTreeMap::new(), later: BTreeSet::new() };
        for (name, script) in scripts {
            let there = |path: &str| resolve(name, path).filter(|name| scripts.contains_key(name));
            let fixed = paths(script, &["} from '", "\nimport '"]).filter_map(there);
            modules.fixed.insert(name.clone(), fixed.collect());
            modules.later.extend(paths(script, &["import('"]).filter_map(there));
        }
        modules
    }

    /// Returns the document with the lists of scripts. `base` is their base address.
    pub(super) fn written(&self, document: &str, base: &str) -> String {
        let first = self.with_all(ENTRY, &BTreeSet::new());
        let links: Vec<String> =
            first.iter().map(|name| format!("<link rel=\"modulepreload\" href=\"{base}/{name}\">")).collect();
        let first = first.into_iter().collect();
        // A data block, which the policy does not treat as a script.
        let later: Map<String, Value> =
            self.later.iter().map(|name| (name.clone(), self.with_all(name, &first).into())).collect();
        document.replace(FIRST, &links.join("\n")).replace(LATER, &Value::Object(later).to_string())
    }

    /// Returns a script with all its dependencies, nearest first, except those in `there`.
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

/// Returns the texts between one of these prefixes and the next quote.
fn paths<'a>(script: &'a str, beginnings: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    beginnings
        .iter()
        .flat_map(|beginning| script.split(beginning).skip(1))
        .filter_map(|rest| Some(rest.split_once('\'')?.0))
}

/// Resolves a path in a script to the name of a file; `None` if it is not a path.
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
        Modules::new(&files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect())
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
