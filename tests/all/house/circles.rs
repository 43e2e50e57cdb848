//! Sibling modules must not use each other in a circle, directly or through other modules. A module may use its parent and its
//! children.

use super::{HOST, host_crate, sources};

use std::collections::{BTreeMap, BTreeSet};

/// A module by its path: `["graph", "run", "ask"]`.
type Path = Vec<String>;

#[test]
fn no_circle_stands_inside_a_room() {
    let mut files = BTreeMap::new();
    for room in HOST {
        let dir = host_crate(room).join("src");
        for path in sources(&dir, ".rs") {
            let text = code(&std::fs::read_to_string(&path).unwrap());
            let inner = path.strip_prefix(&dir).unwrap().with_extension("");
            let mut module: Path = inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.iter().any(|part| part == "tests") {
                continue;
            }
            // The root module of a crate is the room itself.
            module.retain(|part| part != "lib");
            module.insert(0, (*room).to_owned());
            files.insert(module, text.replace("crate::", &format!("crate::{room}::")));
        }
    }
    let found = circles(&files);
    assert!(found.is_empty(), "a circle; move what both need to a module of its own: {found:#?}");
}

/// A text without comments, and without the tests at its end.
pub(super) fn code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let tests = ["#[cfg(test)]\nmod tests", "#[cfg(test)]\npub(crate) mod tests", "#[cfg(test)]\npub(super) mod tests"];
    let end = tests.iter().filter_map(|tests| text.find(tests)).min().unwrap_or(text.len());
    text[..end].to_owned()
}

/// The circles of each room. A room is a module or crate with child modules.
fn circles(files: &BTreeMap<Path, String>) -> Vec<(String, Vec<String>)> {
    let mut tree = Tree { modules: BTreeSet::new(), passed_on: BTreeMap::new() };
    for module in files.keys() {
        tree.modules.extend((1..=module.len()).map(|length| module[..length].to_vec()));
    }
    let mut used: Vec<(&Path, Path)> = Vec::new();
    for (module, text) in files {
        for (public, path) in use_lines(text) {
            let Some(path) = tree.absolute(&path, module) else { continue };
            if let (true, Some(name)) = (public, path.last()) {
                tree.passed_on.insert([module.as_slice(), std::slice::from_ref(name)].concat(), path.clone());
            }
            used.push((module, path));
        }
        used.extend(paths(text).iter().filter_map(|path| Some((module, tree.absolute(path, module)?))));
    }
    // The uses between the modules of each room.
    let mut rooms: BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, path) in used {
        let Some(to) = tree.module_of(path) else { continue };
        let shared = module.iter().zip(&to).take_while(|(a, b)| a == b).count();
        if shared > 0 && shared < module.len() && shared < to.len() {
            let room = rooms.entry(module[..shared].to_vec()).or_default();
            room.entry(module[shared].clone()).or_default().insert(to[shared].clone());
        }
    }
    let mut found = Vec::new();
    for (room, uses) in rooms {
        let mut left: BTreeSet<&String> = uses.keys().collect();
        while let Some(one) = left.pop_first() {
            let back: Vec<_> =
                reached(&uses, one).into_iter().filter(|other| reached(&uses, other).contains(one)).collect();
            if back.len() > 1 {
                left.retain(|name| !back.contains(name));
                found.push((room.join("/"), back));
            }
        }
    }
    found.sort();
    found
}

/// The modules reachable from a module. It contains the module itself only if there is a circle.
fn reached(uses: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(name) = next.pop() {
        next.extend(uses.get(&name).into_iter().flatten().filter(|to| reached.insert((*to).clone())).cloned());
    }
    reached
}

/// The modules, and the names that a module re-exports from another one.
struct Tree {
    modules: BTreeSet<Path>,
    passed_on: BTreeMap<Path, Path>,
}

impl Tree {
    /// A path from the root of its crate, or `None` for a path of another crate.
    fn absolute(&self, path: &[String], module: &[String]) -> Option<Path> {
        let mut at = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => (at, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                let part = [module, &[child.to_owned()]].concat();
                if !self.modules.contains(&part) {
                    return None;
                }
            }
        }
        at.extend_from_slice(rest);
        Some(at)
    }

    /// The module to which a path leads, following re-exports.
    fn module_of(&self, mut path: Path) -> Option<Path> {
        // The maximum length of a chain of re-exports.
        for _ in 0..8 {
            let known = |length: &usize| {
                self.modules.contains(&path[..*length]) || self.passed_on.contains_key(&path[..*length])
            };
            let length = (1..=path.len()).rev().find(known)?;
            match self.passed_on.get(&path[..length]) {
                Some(to) if to[..] != path[..length] => path = [to, &path[length..]].concat(),
                _ => return Some(path[..length].to_vec()),
            }
        }
        None
    }
}

/// The paths of `use` lines, and whether each is a re-export.
fn use_lines(text: &str) -> Vec<(bool, Path)> {
    let mut found = Vec::new();
    let starts = text.match_indices("use ").filter(|(at, _)| {
        let line = text[..*at].rsplit('\n').next().unwrap_or_default().trim();
        line.is_empty() || line == "pub" || line.starts_with("pub(") && line.ends_with(')')
    });
    for (at, _) in starts {
        let public = text[..at].rsplit('\n').next().is_some_and(|line| line.contains("pub"));
        let tree = text[at + 4..].split(';').next().unwrap_or_default();
        found.extend(branches(tree, &[]).into_iter().map(|path| (public, path)));
    }
    found
}

/// `a::{b, c::{d, e as f}}` as `a::b`, `a::c::d`, `a::c::e`.
fn branches(tree: &str, before: &[String]) -> Vec<Path> {
    let names = |path: &str| -> Path {
        path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let tree = tree.trim();
    let Some((head, list)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return if path.is_empty() { Vec::new() } else { vec![[before, &names(path)].concat()] };
    };
    let before = [before, &names(head)].concat();
    let list = list.rsplit_once('}').map_or(list, |(list, _)| list);
    let (mut depth, mut from, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.extend(branches(&list[from..at], &before));
                from = (at + 1).min(list.len());
            }
            _ => {}
        }
    }
    found
}

/// Every path in the code that begins with `crate`, `super` or `self`.
fn paths(text: &str) -> Vec<Path> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in text.match_indices(start) {
            if text[..at].ends_with(|c: char| is_name(c) || c == ':') {
                continue;
            }
            let path = text[at..].split(|c: char| !is_name(c) && c != ':').next().unwrap_or_default();
            found.push(path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect());
        }
    }
    found
}

#[test]
fn a_circle_is_found_whichever_way_it_goes() {
    let found = |files: &[(&str, &str)]| -> Vec<String> {
        let path = |name: &str| name.split('/').map(str::to_owned).collect();
        let files = files.iter().map(|(name, text)| (path(name), code(text))).collect();
        circles(&files).into_iter().map(|(room, of)| format!("{room}: {}", of.join(" "))).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(found(&[("r/a", "use super::b::B;"), ("r/b", "use crate::other::C;"), ("r", "mod a; mod b;")]), none);
    assert_eq!(found(&[("r/a", "use super::b::B;"), ("r/b", "fn f() { super::a::g() }")]), ["r: a b"]);
    let three = [("r/a", "use crate::r::{b::B, x};"), ("r/b", "use super::c::{self, D};"), ("r/c", "use super::a;")];
    assert_eq!(found(&three), ["r: a b c"]);
    // By a re-exported name of the room, and from a child of a module.
    let passed =
        [("r", "pub use b::{B, C as D};"), ("r/a", "pub fn g(b: super::B) {}"), ("r/b/x", "use super::super::a::g;")];
    assert_eq!(found(&[passed[0], passed[1], ("r/b", ""), passed[2]]), ["r: a b"]);
    // Comments, tests, and uses between a module and its children do not count.
    let fine =
        "// use super::a;\nuse super::Room;\nmod x;\nuse x::Y;\n#[cfg(test)]\nmod tests {\n    use super::super::a;\n}";
    assert_eq!(
        found(&[("r", "mod a; mod b;"), ("r/a", "use super::b::B;"), ("r/b", fine), ("r/b/x", "use super::B;")]),
        none
    );
}
