//! `kiso skill build` for JavaScript and TypeScript: runs the project's own build script, bundles its modules and packages
//! with the web interfaces that the engine lacks, and makes a component of the bundle.

use super::made::Inputs;
use super::{WORLD, cannot_write, prepared_out, run};
use crate::cli::{Exit, Failure};
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The packages that a build needs, with the versions for projects that do not name them.
const TOOLS: [(&str, &str); 3] = [("componentize-qjs", "0.4.5"), ("esbuild", "0.28.2"), ("core-js-pure", "3.51.0")];

const GET_NPM: &str = "npm comes with Node.js: install the packages nodejs and npm, or see https://nodejs.org";

/// Where the bundle is written, in the project.
const JS_DIR: &str = "target/js";

/// The files added to the project's modules in a bundle.
const AROUND: [(&str, &str); 7] = [
    ("globals.js", include_str!("js/globals.js")),
    ("guard.js", include_str!("js/guard.js")),
    ("package.json", include_str!("js/package.json")),
    ("places.js", include_str!("js/places.js")),
    ("shown.js", include_str!("js/shown.js")),
    ("text.js", include_str!("js/text.js")),
    ("web.js", include_str!("js/web.js")),
];

/// `build/steady.rs` for this machine; empty if it could not be built.
const STEADY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steady.so"));

pub(super) fn javascript(dir: &Path) -> Result<PathBuf, Failure> {
    let package = Package::read(dir)?;
    install(dir, &package)?;
    // If the script is `kiso skill build` itself, it must not run itself again.
    if package.has_build_script() && std::env::var_os("npm_lifecycle_event").is_none_or(|event| event != "build") {
        run(Command::new("npm").args(["run", "--silent", "build"]).current_dir(dir), GET_NPM)?;
    }
    let entry = package.entry(dir)?;
    if entry.ends_with(".wasm") {
        return Ok(dir.join(entry));
    }
    let bundle = bundle(dir, &entry)?;
    componentize(dir, &bundle)
}

/// The project's `package.json`.
struct Package(Value);

impl Package {
    fn read(dir: &Path) -> Result<Self, Failure> {
        let path = dir.join("package.json");
        let wrong = |what: String| Failure::new(Exit::Usage, what);
        if !path.exists() {
            return Err(wrong(format!("{}: there is no package.json beside the skill", dir.display())));
        }
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|e| wrong(format!("cannot read {}: {e}", path.display())))?;
        let value = serde_json::from_str(&text).map_err(|e| wrong(format!("{} is not JSON: {e}", path.display())))?;
        Ok(Self(value))
    }

    fn has_build_script(&self) -> bool {
        self.0["scripts"]["build"].is_string()
    }

    fn dependencies(&self) -> impl Iterator<Item = &str> {
        let of = |key: &str| self.0[key].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        of("dependencies").chain(of("devDependencies"))
    }

    /// Returns the module that exports `skill`, relative to the project: `main`, or skill.ts, or skill.js.
    fn entry(&self, dir: &Path) -> Result<String, Failure> {
        let main = self.0["main"].as_str();
        if let Some(main) = main {
            if dir.join(main).is_file() {
                return Ok(main.to_owned());
            }
            let made = if self.has_build_script() { ", and its script `build` did not make it" } else { "" };
            let message =
                format!("{}: package.json has \"main\": {main:?}, but there is no such file{made}", dir.display());
            return Err(Failure::new(Exit::Usage, message));
        }
        let found = ["skill.ts", "skill.js"].into_iter().find(|file| dir.join(file).is_file());
        found.map(str::to_owned).ok_or_else(|| {
            let message = "there is no skill.ts or skill.js; another file is named by \"main\" in package.json";
            Failure::new(Exit::Usage, format!("{}: {message}", dir.display()))
        })
    }
}

/// Makes npm install the project's missing packages, and then the tools that the project does not name.
fn install(dir: &Path, package: &Package) -> Result<(), Failure> {
    const QUIET: [&str; 3] = ["install", "--no-audit", "--no-fund"];
    let missing = |name: &str| !dir.join("node_modules").join(name).exists();
    if package.dependencies().any(missing) {
        run(Command::new("npm").args(QUIET).current_dir(dir), GET_NPM)?;
    }
    let tools: Vec<_> =
        TOOLS.iter().filter(|(name, _)| missing(name)).map(|(name, at)| format!("{name}@{at}")).collect();
    if tools.is_empty() {
        return Ok(());
    }
    run(Command::new("npm").args(QUIET).arg("--no-save").args(tools).current_dir(dir), GET_NPM)
}

/// Bundles all that `entry` imports, packages included, into one module.
fn bundle(dir: &Path, entry: &str) -> Result<PathBuf, Failure> {
    let js = dir.join(JS_DIR);
    std::fs::create_dir_all(&js).map_err(|e| cannot_write(&js, &e))?;
    let own = format!(
        "import \"./globals.js\";\nimport {{ guarded }} from \"./guard.js\";\nimport * as project from {};\n\n\
         export const skill = guarded(project, {});\n",
        json!(format!("../../{entry}")),
        json!(entry)
    );
    for (name, text) in AROUND.into_iter().chain([("entry.js", own.as_str())]) {
        let path = js.join(name);
        std::fs::write(&path, text).map_err(|e| cannot_write(&path, &e))?;
    }
    let mut esbuild = Command::new("node_modules/.bin/esbuild");
    esbuild.arg(format!("{JS_DIR}/entry.js")).arg(format!("--outfile={JS_DIR}/bundle.js")).args([
        "--bundle",
        "--format=esm",
        "--platform=neutral",
        "--main-fields=module,main",
        "--conditions=module,import",
        "--target=es2023",
        // The component's imports.
        "--external:kiso:*",
        "--external:wasi:*",
        "--inject:target/js/web.js",
        // Packages for Node.js use these when they are loaded.
        "--define:global=globalThis",
        "--define:process.env.NODE_ENV=\"production\"",
        // Names of functions are kept, because exceptions show them.
        "--minify-whitespace",
        "--minify-syntax",
        "--legal-comments=none",
        "--sourcemap=external",
        "--sources-content=false",
        "--log-level=warning",
    ]);
    run(esbuild.current_dir(dir), GET_NPM).map_err(|mut failure| {
        failure.message.push_str("; packages that need Node.js's own modules, such as fs or http, cannot be used");
        failure
    })?;
    let bundle = js.join("bundle.js");
    let with_map = std::fs::read_to_string(&bundle).and_then(|text| {
        let map = std::fs::read_to_string(js.join("bundle.js.map"))?;
        std::fs::write(&bundle, text + &source_map(&map))
    });
    with_map.map_err(|e| cannot_write(&bundle, &e))?;
    Ok(bundle)
}

/// Returns a statement that passes the source map to `places.js`: only the members that it needs, with paths relative to the
/// project.
fn source_map(map: &str) -> String {
    let map: Value = serde_json::from_str(map).unwrap_or_default();
    let sources = map["sources"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let sources: Vec<String> = sources.map(|source| from_project(&Path::new(JS_DIR).join(source))).collect();
    let kept = json!({ "sources": sources, "mappings": map["mappings"] });
    format!("globalThis[Symbol.for(\"kiso.sourceMap\")]={kept};\n")
}

/// Returns a path without `..` in its middle.
fn from_project(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir if parts.last().is_some_and(|last| *last != "..") => parts.truncate(parts.len() - 1),
            Component::CurDir => {}
            other => parts.extend(other.as_os_str().to_str()),
        }
    }
    parts.join("/")
}

fn componentize(dir: &Path, bundle: &Path) -> Result<PathBuf, Failure> {
    let out = prepared_out(dir, "skill-js.wasm")?;
    let mut inputs = Inputs::default();
    let read = std::fs::read(bundle).and_then(|bundle| {
        inputs.add("bundle", &bundle).add("steady", STEADY);
        inputs.add("tool", &std::fs::read(dir.join("node_modules/componentize-qjs/package.json"))?);
        inputs.tree(&dir.join("wit"), |_| false)
    });
    read.map_err(|e| Failure::new(Exit::Failed, format!("{}: {e}", dir.display())))?;
    if inputs.made(&out) {
        return Ok(out);
    }
    let mut componentize = Command::new("node_modules/.bin/componentize-qjs");
    let args = ["--sync", "--js", "target/js/bundle.js", "--wit", "wit", "--world", WORLD];
    componentize.args(args).args(["--output", "target/skill-js.wasm"]).current_dir(dir);
    if !STEADY.is_empty() {
        // Relative, because LD_PRELOAD is split at spaces and colons.
        let steady = format!("{JS_DIR}/steady.so");
        std::fs::write(dir.join(&steady), STEADY).map_err(|e| cannot_write(&dir.join(&steady), &e))?;
        componentize.env("LD_PRELOAD", steady);
        // The keys of its hash tables are counted per thread: the machine's load must not decide which thread does what.
        componentize.env("TOKIO_WORKER_THREADS", "1");
    }
    run(&mut componentize, GET_NPM)?;
    inputs.note(&out);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_named_from_the_project_on() {
        let named = |source: &str| from_project(&Path::new(JS_DIR).join(source));
        assert_eq!(named("../../lib/deep.ts"), "lib/deep.ts");
        assert_eq!(named("./guard.js"), "target/js/guard.js");
        assert_eq!(named("../../../sdk/index.js"), "../sdk/index.js");
    }

    #[test]
    fn the_entry_is_main_or_a_file_named_skill() {
        let dir = tempfile::tempdir().unwrap();
        let entry = |package: Value| Package(package).entry(dir.path()).map_err(|failure| failure.message);
        assert!(entry(json!({})).unwrap_err().contains("no skill.ts or skill.js"));
        std::fs::write(dir.path().join("skill.js"), "").unwrap();
        assert_eq!(entry(json!({})).unwrap(), "skill.js");
        std::fs::write(dir.path().join("skill.ts"), "").unwrap();
        assert_eq!(entry(json!({})).unwrap(), "skill.ts");
        assert_eq!(entry(json!({ "main": "skill.js" })).unwrap(), "skill.js");
        let made = json!({ "main": "dist/a.js", "scripts": { "build": "tsc" } });
        assert!(entry(made).unwrap_err().contains("\"dist/a.js\", but there is no such file, and its script"));
    }
}
