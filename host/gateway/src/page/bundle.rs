//! Bundles the page's scripts: scripts that are always needed together are sent in one response instead of twenty sequential
//! ones. Each module keeps its own scope, so that its names do not affect others.
//!
//! It supports only the style of this project: one import or export per statement, at the beginning of a line, and no circular
//! imports. A test next to the list of the page's files checks every script.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Scripts that the document references, in the order of execution.
pub(super) const ENTRIES: [&str; 2] = ["early.js", "app.js"];

/// Maximum total size in bytes of modules that are sent with the page although only some screens need them, because another
/// request would cost more.
const SMALL: usize = 6_000;

/// A script before bundling.
#[derive(Debug, Default)]
struct Module {
    /// Its imports in order: the module, and pairs of a name there and the local name.
    imports: Vec<(String, Vec<(String, String)>)>,
    /// Its exports: pairs of a local name and the exported name.
    exports: Vec<(String, String)>,
    /// Scripts that it imports dynamically.
    later: Vec<String>,
    body: String,
}

/// Returns the bundled scripts by name. Scripts that no entry imports stay unchanged: these are workers, which are loaded
/// separately.
pub(super) fn bundled(scripts: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let modules: BTreeMap<&str, Module> =
        scripts.iter().map(|(name, text)| (name.as_str(), Module::read(name, text, scripts))).collect();
    let chunks = chunks(&modules);
    let mut sent = BTreeMap::new();
    for (name, text) in scripts {
        if !chunks.contains_key(name.as_str()) {
            sent.insert(name.clone(), text.clone());
        }
    }
    let mut members: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in order(&modules) {
        if let Some(chunk) = chunks.get(name) {
            members.entry(chunk).or_default().push(name);
        }
    }
    for (chunk, names) in members {
        sent.insert(chunk.to_owned(), written(chunk, &names, &modules, &chunks));
    }
    sent
}

/// Returns all modules in dependency order.
fn order<'a>(modules: &'a BTreeMap<&str, Module>) -> Vec<&'a str> {
    fn visit<'a>(
        name: &'a str,
        modules: &'a BTreeMap<&str, Module>,
        seen: &mut BTreeSet<&'a str>,
        found: &mut Vec<&'a str>,
    ) {
        if !seen.insert(name) {
            return;
        }
        for (need, _) in &modules[name].imports {
            visit(need, modules, seen, found);
        }
        found.push(name);
    }
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    modules.keys().for_each(|name| visit(name, modules, &mut seen, &mut found));
    found
}

/// Assigns each module to the script that contains it. Modules that an entry needs are sent with it. Other modules are grouped by
/// the dynamically imported scripts that lead to them, under the name of the module that needs all others of the group.
fn chunks<'a>(modules: &'a BTreeMap<&str, Module>) -> BTreeMap<&'a str, &'a str> {
    let mut chunks = BTreeMap::new();
    for entry in ENTRIES.iter().filter_map(|entry| modules.get_key_value(entry)).map(|(name, _)| *name) {
        for name in reached(entry, modules) {
            chunks.entry(name).or_insert(entry);
        }
    }
    let mut roots: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut waiting: Vec<&str> = chunks.keys().copied().collect();
    let mut known = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        for root in modules[name].later.iter().map(String::as_str).filter(|root| known.insert(*root)) {
            for name in reached(root, modules) {
                roots.entry(name).or_default().insert(root);
                waiting.push(name);
            }
        }
    }
    let mut groups: BTreeMap<&BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
    for name in order(modules).into_iter().filter(|name| !chunks.contains_key(name)) {
        if let Some(by) = roots.get(name) {
            groups.entry(by).or_default().push(name);
        }
    }
    for (by, names) in &groups {
        let size: usize = names.iter().map(|name| modules[name].body.len()).sum();
        let mut needs = names.iter().flat_map(|name| &modules[name].imports);
        let alone = needs.all(|(need, _)| chunks.contains_key(need.as_str()) || names.contains(&need.as_str()));
        let last = names.last().copied().unwrap_or_default();
        let chunk = if by.len() > 1 && alone && size < SMALL { ENTRIES[1] } else { last };
        chunks.extend(names.iter().map(|name| (*name, chunk)));
    }
    chunks
}

/// Returns a module with all its direct and indirect imports.
fn reached<'a>(name: &'a str, modules: &'a BTreeMap<&str, Module>) -> BTreeSet<&'a str> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![name]);
    while let Some(name) = waiting.pop() {
        if found.insert(name) {
            waiting.extend(modules[name].imports.iter().map(|(need, _)| need.as_str()));
        }
    }
    found
}

/// Returns the text of the script that contains these modules.
fn written(chunk: &str, names: &[&str], modules: &BTreeMap<&str, Module>, chunks: &BTreeMap<&str, &str>) -> String {
    let mut text = String::new();
    let mut elsewhere: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (need, _) in names.iter().flat_map(|name| &modules[name].imports) {
        if chunks[need.as_str()] != chunk {
            elsewhere.entry(chunks[need.as_str()]).or_default().insert(need);
        }
    }
    for (other, needs) in elsewhere {
        let needs: Vec<String> = needs.into_iter().map(scope).collect();
        let _ = writeln!(text, "import {{ {} }} from '{}';", needs.join(", "), path(chunk, other));
    }
    for name in names {
        let module = &modules[name];
        let _ = writeln!(text, "const {} = (() => {{", scope(name));
        for (need, taken) in module.imports.iter().filter(|(_, taken)| !taken.is_empty()) {
            let taken: Vec<String> = taken.iter().map(|(there, here)| renamed(there, ": ", here)).collect();
            let _ = writeln!(text, "const {{ {} }} = {};", taken.join(", "), scope(need));
        }
        text.push_str(&placed(&module.body, name, chunk, modules, chunks));
        let given: Vec<String> = module.exports.iter().map(|(there, here)| renamed(there, ": ", here)).collect();
        let _ = writeln!(text, "\nreturn {{ {} }};\n}})();", given.join(", "));
    }
    let given: Vec<String> = names.iter().map(|name| scope(name)).collect();
    let _ = writeln!(text, "export {{ {} }};", given.join(", "));
    text
}

/// Returns the body of a module, with its paths adjusted to the script that contains it.
fn placed(
    body: &str,
    name: &str,
    chunk: &str,
    modules: &BTreeMap<&str, Module>,
    chunks: &BTreeMap<&str, &str>,
) -> String {
    let own = format!("new URL('{}', import.meta.url).href", path(chunk, name));
    let mut text = if name == chunk { body.to_owned() } else { body.replace("import.meta.url", &own) };
    for root in &modules[name].later {
        let Some(there) = chunks.get(root.as_str()) else { continue };
        let fetched = format!("import('{}').then((all) => all.{})", path(chunk, there), scope(root));
        text = text.replace(&format!("import('{}')", path(name, root)), &fetched);
    }
    text
}

/// Returns a unique identifier for a module's scope.
fn scope(name: &str) -> String {
    let word = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '_' };
    format!("${}", name.trim_end_matches(".js").chars().map(word).collect::<String>())
}

fn renamed(from: &str, between: &str, to: &str) -> String {
    if from == to { from.to_owned() } else { format!("{from}{between}{to}") }
}

/// Returns the path of a script relative to another one.
pub(super) fn path(from: &str, to: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    let same = from.iter().zip(&to).take(from.len().min(to.len()) - 1).take_while(|(a, b)| a == b).count();
    let up = "../".repeat(from.len() - 1 - same);
    format!("{}{}", if up.is_empty() { "./" } else { &up }, to[same..].join("/"))
}

impl Module {
    fn read(name: &str, text: &str, scripts: &BTreeMap<String, String>) -> Module {
        let there = |path: &str| super::modules::resolve(name, path).filter(|name| scripts.contains_key(name));
        let mut module = Module::default();
        let mut rest = text;
        while !rest.is_empty() {
            let line = rest.find('\n').map_or(rest, |end| &rest[..=end]);
            // A statement may end several lines below.
            let statement = || rest.find(";\n").map_or(rest, |end| &rest[..end + 2]);
            let taken = if line.starts_with("import ") {
                Some(statement()).filter(|whole| module.import(whole, &there).is_some())
            } else if line.starts_with("export {") {
                Some(statement()).filter(|whole| module.pass_on(whole, &there).is_some())
            } else {
                None
            };
            match taken {
                Some(whole) => {
                    // Keeps line breaks, so that line numbers stay the same.
                    module.body.extend(whole.matches('\n'));
                    rest = &rest[whole.len()..];
                }
                None => {
                    module.line(line);
                    rest = &rest[line.len()..];
                }
            }
        }
        module.later = later(text).filter_map(there).collect();
        module
    }

    /// `import { a, b as c } from './x.js';`, `import d from './x.js';`, `import './x.js';`
    fn import(&mut self, statement: &str, there: &dyn Fn(&str) -> Option<String>) -> Option<()> {
        let names = statement.strip_prefix("import ")?;
        let (names, path) = match names.split_once(" from '") {
            Some((names, path)) => (names, path),
            None => ("{}", names.strip_prefix('\'')?),
        };
        let need = there(path.split_once('\'')?.0)?;
        let taken = match names.trim().strip_prefix('{') {
            Some(names) => listed(names.trim_end_matches('}')),
            None => vec![("default".to_owned(), names.trim().to_owned())],
        };
        self.imports.push((need, taken));
        Some(())
    }

    /// `export { a, b } from './x.js';`
    fn pass_on(&mut self, statement: &str, there: &dyn Fn(&str) -> Option<String>) -> Option<()> {
        let (names, path) = statement.strip_prefix("export {")?.split_once("} from '")?;
        let need = there(path.split_once('\'')?.0)?;
        for (from, to) in listed(names) {
            self.exports.push((to, format!("{}.{from}", scope(&need))));
        }
        self.imports.push((need, Vec::new()));
        Some(())
    }

    /// Any other line: removes `export` from declarations such as `export const a` and `export default function B`, and handles
    /// the `export{c as d};` at the end of a library.
    fn line(&mut self, line: &str) {
        if let Some(declared) = line.strip_prefix("export ").filter(|rest| !rest.starts_with('{')) {
            let (default, declared) = match declared.strip_prefix("default ") {
                Some(declared) => (true, declared),
                None => (false, declared),
            };
            let words = declared.split(|sign: char| !(sign.is_alphanumeric() || "_$".contains(sign)));
            let name = words
                .filter(|word| !word.is_empty())
                .find(|word| !["async", "function", "class", "const"].contains(word));
            let name = name.unwrap_or_default().to_owned();
            self.exports.push((if default { "default".to_owned() } else { name.clone() }, name));
            self.body.push_str(declared);
            return;
        }
        let last = ["export{", "export {"].iter().find_map(|begin| line.rfind(begin).map(|at| (at, at + begin.len())));
        if let Some((at, from)) = last
            && let Some((names, behind)) = line[from..].split_once('}')
        {
            self.exports.extend(listed(names).into_iter().map(|(from, to)| (to, from)));
            self.body.push_str(&line[..at]);
            self.body.push_str(behind.trim_start_matches(';'));
            return;
        }
        self.body.push_str(line);
    }
}

/// Parses `a, b as c` into (a, a), (b, c).
fn listed(names: &str) -> Vec<(String, String)> {
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| name.split_once(" as ").unwrap_or((name, name)))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .collect()
}

/// Returns the paths of a script's dynamic imports.
fn later(script: &str) -> impl Iterator<Item = &str> {
    script.split("import('").skip(1).filter_map(|rest| Some(rest.split_once('\'')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
    }

    #[test]
    fn what_is_needed_together_is_sent_together() {
        let long = format!("export const long = '{}';\n", "x".repeat(SMALL));
        let sent = bundled(&scripts(&[
            ("early.js", "import { a } from './lib/a.js';\na();\n"),
            (
                "app.js",
                "import {\n  a as b,\n} from './lib/a.js';\nimport './lib/c.js';\nconst x = () => import('./screens/x.js');\nconst y = () => import('./screens/y.js');\nimport('./screens/z.js');\n",
            ),
            ("lib/a.js", "// of all\nexport const a = () => 1;\nexport default class A {}\n"),
            ("lib/c.js", "export async function c() {}\nconst here = import.meta.url;\n"),
            ("lib/long.js", &long),
            ("lib/short.js", "export { a } from './a.js';\n"),
            (
                "screens/x.js",
                "import { long } from '../lib/long.js';\nimport { a } from '../lib/short.js';\nexport default function X() {}\n",
            ),
            (
                "screens/y.js",
                "import lib from '../vendor/lib.js';\nimport { long } from '../lib/long.js';\nimport { a } from '../lib/short.js';\n",
            ),
            ("screens/z.js", "import { a } from '../lib/short.js';\n"),
            ("vendor/lib.js", "var l=1;export{l as default,l as more};\n//# end\n"),
            ("worker.js", "import lib from './vendor/lib.js';\n"),
        ]));
        let names: Vec<&str> = sent.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["app.js", "early.js", "lib/long.js", "screens/x.js", "screens/y.js", "screens/z.js", "worker.js"]
        );
        assert_eq!(
            sent["early.js"].lines().collect::<Vec<_>>().join("|"),
            "const $lib_a = (() => {|// of all|const a = () => 1;|class A {}||return { a, default: A };|})();\
             |const $early = (() => {|const { a } = $lib_a;||a();||return {  };|})();|export { $lib_a, $early };"
        );
        let app = &sent["app.js"];
        assert!(app.starts_with("import { $lib_a } from './early.js';\n"), "{app}");
        for part in [
            "const { a: b } = $lib_a;\n",
            "import('./screens/x.js').then((all) => all.$screens_x)",
            "async function c() {}\nconst here = new URL('./lib/c.js', import.meta.url).href;\n\nreturn { c };",
            "return { a: $lib_a.a };\n",
        ] {
            assert!(app.contains(part), "{part}: {app}");
        }
        assert!(
            sent["screens/x.js"]
                .starts_with("import { $lib_short } from '../app.js';\nimport { $lib_long } from '../lib/long.js';\n"),
            "{sent:#?}"
        );
        assert!(sent["screens/x.js"].contains("return { default: X };"), "{sent:#?}");
        assert!(sent["screens/y.js"].contains("const { default: lib } = $vendor_lib;"), "{sent:#?}");
        assert!(sent["screens/y.js"].contains("var l=1;\n//# end\n\nreturn { default: l, more: l };"), "{sent:#?}");
        assert_eq!(sent["worker.js"], "import lib from './vendor/lib.js';\n");
    }
}
