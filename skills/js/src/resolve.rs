//! From the words of `require` and `import` to a file, by the rules of Node.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

/// The meaning of the words of `require` and `import`.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// A module of the library, without `node:`.
    Builtin(String),
    File(PathBuf),
}

/// A sentence, and Node's code for it.
#[derive(Debug)]
pub struct Failure {
    pub code: &'static str,
    pub message: String,
}

/// How a file is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    CommonJs,
    Module,
    Json,
    /// Its syntax decides.
    Either,
}

/// Modules of Node that need what a command does not have.
const MISSING: [&str; 14] = [
    "async_hooks",
    "cluster",
    "dgram",
    "diagnostics_channel",
    "dns",
    "http2",
    "inspector",
    "net",
    "sqlite",
    "tls",
    "v8",
    "vm",
    "worker_threads",
    "zlib",
];

/// A `package.json` of this size is read; a larger one is not looked at.
const MAX_PACKAGE: u64 = 1 << 20;

/// Resolves the words of a module in `dir`.
pub fn resolve(words: &str, dir: &Path, imports: bool) -> Result<Target, Failure> {
    if let Some(name) = words.strip_prefix("node:") {
        return builtin(name).unwrap_or_else(|| {
            let message = format!("No such built-in module: node:{name}");
            Err(Failure { code: "ERR_UNKNOWN_BUILTIN_MODULE", message })
        });
    }
    if let Some(found) = builtin(words) {
        return found;
    }
    if let Some(path) = words.strip_prefix("file://") {
        let found = file(&PathBuf::from(decoded(path)), imports).map(Target::File);
        return found.ok_or_else(|| missing(words, dir, imports));
    }
    if words.starts_with("data:") || words.contains("://") {
        let message = format!("Only file: and node: addresses can be imported, not '{words}'");
        return Err(Failure { code: "ERR_UNSUPPORTED_ESM_URL_SCHEME", message });
    }
    let is_path = words.starts_with('/') || matches!(words.split('/').next(), Some("." | ".."));
    let found = if is_path {
        let path = normal(&dir.join(words));
        file(&path, imports).filter(|found| !words.ends_with('/') || *found != path)
    } else if words.starts_with('#') {
        let package = dir.ancestors().find(|dir| dir.join("package.json").is_file());
        package.and_then(|root| file(&root.join(exported(package_of(root)?.get("imports")?, words, imports)?), true))
    } else {
        package(words, dir, imports)?
    };
    // A link leads to one module, whatever its name is.
    let found = found.map(|path| std::fs::canonicalize(&path).unwrap_or(path));
    found.map(Target::File).ok_or_else(|| missing(words, dir, imports))
}

/// The format of a file, by its name and the nearest `package.json`.
pub fn format(path: &Path) -> Result<Format, Failure> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("mjs") => Ok(Format::Module),
        Some("cjs") => Ok(Format::CommonJs),
        Some("json") => Ok(Format::Json),
        Some("ts" | "mts" | "cts") if path.components().any(|part| part.as_os_str() == "node_modules") => {
            Err(Failure {
                code: "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING",
                message: format!(
                    "Stripping types is currently unsupported for files under node_modules, for \"{}\"",
                    path.display()
                ),
            })
        }
        Some("mts") => Ok(Format::Module),
        Some("cts") => Ok(Format::CommonJs),
        Some(ending @ ("tsx" | "jsx")) => Err(Failure {
            code: "ERR_UNKNOWN_FILE_EXTENSION",
            message: format!("Unknown file extension \".{ending}\" for {}", path.display()),
        }),
        Some("node" | "wasm") => Err(Failure {
            code: "ERR_UNKNOWN_FILE_EXTENSION",
            message: format!("{}: compiled modules cannot be loaded", path.display()),
        }),
        _ => {
            let package = path.ancestors().skip(1).find_map(package_of);
            Ok(match package.as_ref().and_then(|package| package.get("type")).and_then(Value::as_str) {
                Some("module") => Format::Module,
                Some("commonjs") => Format::CommonJs,
                _ => Format::Either,
            })
        }
    }
}

/// Whether a file has types, by its name.
pub fn is_typescript(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "ts" || ending == "mts" || ending == "cts")
}

fn builtin(name: &str) -> Option<Result<Target, Failure>> {
    if crate::library::source(name).is_some() {
        return Some(Ok(Target::Builtin(name.to_owned())));
    }
    MISSING.contains(&name).then(|| {
        let why = match name {
            "dgram" | "dns" | "http2" | "net" | "tls" => "scripts reach hosts with `fetch`, node:http and node:https",
            "zlib" => "start `gzip` or `unzip` with node:child_process",
            _ => "it is not included",
        };
        let message = format!("The module node:{name} is not available: {why}");
        Err(Failure { code: "ERR_UNKNOWN_BUILTIN_MODULE", message })
    })
}

/// The file itself; for `require`, also one with an ending, or what a directory has.
fn file(path: &Path, imports: bool) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    if imports {
        return None;
    }
    with_ending(path).or_else(|| directory(path))
}

fn with_ending(path: &Path) -> Option<PathBuf> {
    let mut candidates = ["js", "json", "cjs", "mjs"].iter().map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{ending}"));
        PathBuf::from(name)
    });
    candidates.find(|candidate| candidate.is_file())
}

fn directory(path: &Path) -> Option<PathBuf> {
    if !path.is_dir() {
        return None;
    }
    let main = package_of(path).and_then(|package| Some(package.get("main")?.as_str()?.to_owned()));
    let main = main.map(|main| normal(&path.join(main)));
    let main = main.and_then(|main| {
        main.is_file().then(|| main.clone()).or_else(|| with_ending(&main)).or_else(|| with_ending(&main.join("index")))
    });
    main.or_else(|| with_ending(&path.join("index")))
}

/// A package of a `node_modules` in this directory or one above.
fn package(words: &str, dir: &Path, imports: bool) -> Result<Option<PathBuf>, Failure> {
    let names = if words.starts_with('@') { 2 } else { 1 };
    let split = words.match_indices('/').nth(names - 1).map_or(words.len(), |(at, _)| at);
    let (name, below) = words.split_at(split);
    for dir in dir.ancestors() {
        let root = dir.join("node_modules").join(name);
        if !root.is_dir() {
            continue;
        }
        let exports = package_of(&root).and_then(|mut package| package.get_mut("exports").map(Value::take));
        if let Some(exports) = exports.filter(|exports| !exports.is_null()) {
            let found = exported(&exports, &format!(".{below}"), imports).map(|target| normal(&root.join(target)));
            return match found.filter(|path| path.starts_with(&root)) {
                Some(path) => Ok(Some(path).filter(|path| path.is_file())),
                None => Err(Failure {
                    code: "ERR_PACKAGE_PATH_NOT_EXPORTED",
                    message: format!(
                        "Package subpath '.{below}' is not defined by \"exports\" in {}/package.json",
                        root.display()
                    ),
                }),
            };
        }
        // The entry of a package is found as `require` finds it, also by `import`.
        if let Some(found) = file(&root.join(below.trim_start_matches('/')), imports && !below.is_empty()) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The target of a subpath in `exports` or `imports`.
fn exported(exports: &Value, wanted: &str, imports: bool) -> Option<String> {
    let entries = exports.as_object().filter(|map| map.keys().next().is_some_and(|key| key.starts_with(['.', '#'])));
    let Some(entries) = entries else {
        return (wanted == ".").then(|| condition(exports, imports)).flatten();
    };
    if let Some(target) = entries.get(wanted) {
        return condition(target, imports);
    }
    entries.iter().find_map(|(pattern, target)| {
        let (before, after) = pattern.split_once('*')?;
        let middle = wanted.strip_prefix(before)?.strip_suffix(after)?;
        Some(condition(target, imports)?.replace('*', middle))
    })
}

fn condition(target: &Value, imports: bool) -> Option<String> {
    match target {
        Value::String(target) => Some(target.clone()),
        Value::Array(targets) => targets.iter().find_map(|target| condition(target, imports)),
        Value::Object(conditions) => conditions.iter().find_map(|(name, target)| {
            let holds = match name.as_str() {
                "node" | "default" => true,
                "import" => imports,
                "require" => !imports,
                _ => false,
            };
            holds.then(|| condition(target, imports)).flatten()
        }),
        _ => None,
    }
}

fn package_of(dir: &Path) -> Option<Value> {
    let path = dir.join("package.json");
    let is_small = std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_PACKAGE);
    is_small.then(|| serde_json::from_slice(&std::fs::read(&path).ok()?).ok()).flatten()
}

/// Without `.` and `..`.
pub fn normal(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    resolved
}

fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.split(['?', '#']).next().unwrap_or_default().as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let pair = others.get(..2).and_then(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        match pair.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn missing(words: &str, dir: &Path, imports: bool) -> Failure {
    let is_path = words.starts_with(['.', '/', '#']) || words.starts_with("file:");
    let code = if imports { "ERR_MODULE_NOT_FOUND" } else { "MODULE_NOT_FOUND" };
    let (kind, more) = if is_path {
        let path = normal(&dir.join(words));
        // Compilers of TypeScript take `./x.js`, or `./x`, for x.ts.
        let typed = || Some(path.with_extension("ts")).filter(|path| path.is_file());
        let near = file(&path, false).filter(|_| imports).or_else(typed);
        let near = near.and_then(|near| Some(near.file_name()?.to_string_lossy().into_owned()));
        ("module", near.map(|near| format!("; the whole name is needed, such as '{near}'")).unwrap_or_default())
    } else {
        (
            "package",
            "; no package of that name lies in a node_modules: `npm install` installs those of pure JavaScript"
                .to_owned(),
        )
    };
    // Scripts look for this sentence.
    let kind = if imports { kind } else { "module" };
    Failure { code, message: format!("Cannot find {kind} '{words}'{more}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn exports_are_read_by_subpath_pattern_and_condition() {
        let exports = json!({
            ".": { "types": "./a.d.ts", "import": "./a.mjs", "require": "./a.cjs" },
            "./features/*.js": "./src/*.js",
            "./closed": null,
        });
        let found = |wanted: &str, imports| exported(&exports, wanted, imports);
        assert_eq!(found(".", true).as_deref(), Some("./a.mjs"));
        assert_eq!(found(".", false).as_deref(), Some("./a.cjs"));
        assert_eq!(found("./features/x/y.js", true).as_deref(), Some("./src/x/y.js"));
        assert_eq!((found("./closed", true), found("./other", true)), (None, None));
        assert_eq!(exported(&json!("./main.js"), ".", false).as_deref(), Some("./main.js"));
        assert_eq!(exported(&json!(["./main.js"]), "./x", false), None);
    }

    #[test]
    fn words_without_a_file_have_the_codes_of_node() {
        let code = |words: &str, imports| resolve(words, Path::new("/nowhere"), imports).map_err(|e| e.code);
        assert_eq!(code("node:fs", true), Ok(Target::Builtin("fs".into())));
        assert_eq!(code("fs/promises", false), Ok(Target::Builtin("fs/promises".into())));
        assert_eq!(code("node:none", false), Err("ERR_UNKNOWN_BUILTIN_MODULE"));
        assert_eq!(code("./x", false), Err("MODULE_NOT_FOUND"));
        assert_eq!(code("left-pad", true), Err("ERR_MODULE_NOT_FOUND"));
        assert_eq!(code("https://example.org/x.js", true), Err("ERR_UNSUPPORTED_ESM_URL_SCHEME"));
        assert_eq!(decoded("/a%20b/%C3%A9.js?x#y"), "/a b/é.js");
        assert_eq!(normal(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
