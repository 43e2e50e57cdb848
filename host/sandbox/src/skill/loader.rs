//! Examines a file before anything of it is compiled or run: its shape, its manifest, its imports.

use super::capability::{Needs, is_offered, offers};
use super::preview1::{self, PREVIEW1};
use super::surface::brief;
use super::wit::{self, V0_1, Version, version_of};
use std::path::Path;
use wasmparser::{
    ComponentExternalKind, ComponentTypeRef, Encoding, ExternalKind, Parser, Payload, TypeRef, Validator, WasmFeatures,
};

/// Bytes of a file, at most. Components that contain a language's interpreter have some 20 MiB.
pub const MAX_WASM_BYTES: u64 = 128 << 20;

/// Bytes of a file of this machine, at most: an interpreter that is kept with its libraries is larger than an upload.
const MAX_LOCAL_BYTES: u64 = 512 << 20;

/// The four kinds of file that can be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Exports `kiso:skill/skill`.
    Skill,
    /// `wasi:cli/command`: JSON on standard input, text on standard output.
    Command,
    /// Exported functions of plain values; each is a tool.
    Functions,
}

impl Shape {
    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Skill => "kiso skill",
            Self::Command => "WASI command",
            Self::Functions => "plain functions",
        }
    }
}

/// A file that can be compiled.
#[derive(Debug)]
pub(super) struct ParsedComponent {
    pub shape: Shape,
    /// The component; a core module for WASI preview 1 is wrapped already.
    pub wasm: Vec<u8>,
    /// Whether the file was such a core module.
    pub wrapped: bool,
    /// Text of the custom section `kiso.toml`, of the component or of a module in it.
    pub manifest: Option<String>,
    /// The content of the custom section `kiso-sdk`, such as "rust 0.1.0".
    pub sdk: Option<String>,
    /// The needs that can be granted without a manifest, from its imports.
    pub implied: Needs,
    /// Name of the exported interface `kiso:skill/self-test`, if there is one.
    pub self_test: Option<String>,
}

/// The reason why a file cannot be a skill.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error("this is not WebAssembly: {0}")]
    NotWasm(String),
    #[error("the file is larger than {} MiB", MAX_LOCAL_BYTES >> 20)]
    TooLarge,
    #[error("the file is damaged or cut off (byte {offset}): {message}")]
    Invalid { offset: usize, message: String },
    #[error("it imports what kiso does not offer: {}; kiso offers {}", few(.0), offers())]
    MissingImports(Vec<String>),
    #[error("it is built for version {found} of kiso:skill, and this kiso knows {}; update kiso", V0_1)]
    NewerWorld { found: String },
    #[error(
        "it is built for the draft {found} of kiso:skill, which may change at any time, so released builds of kiso do not load \
         it; build it for {}, or run a debug build of kiso",
        V0_1
    )]
    Draft { found: Version },
    #[error("it exports nothing that can be called: a skill exports `skill.run`, `wasi:cli/run`, or functions of plain values{}", found(.0))]
    NoEntry(Vec<String>),
    #[error("this core module cannot be wrapped: {0}")]
    Core(String),
    #[error("its section kiso.toml is not UTF-8 text")]
    ManifestNotText,
}

fn found(exports: &[String]) -> String {
    if exports.is_empty() { String::new() } else { format!(" (found: {})", few(exports)) }
}

/// Names from a file, shortened to a readable number and length.
fn few(names: &[String]) -> String {
    const FEW: usize = 10;
    let mut shown: Vec<String> = names.iter().take(FEW).map(|name| brief(name, 100)).collect();
    if names.len() > FEW {
        shown.push(format!("and {} more", names.len() - FEW));
    }
    shown.join(", ")
}

/// Longest text of the section `kiso-sdk` that is kept.
const MAX_SDK: usize = 100;

/// Reads a file's outer structure. Its work is bounded: one pass over the bytes, and the wrapping of a core module.
pub(super) fn parse(bytes: &[u8]) -> Result<ParsedComponent, LoadError> {
    parse_for(bytes, wit::loads_drafts())
}

/// Reads a file, if it is small enough.
pub(super) fn read_file(file: &Path) -> Result<Vec<u8>, String> {
    let found = std::fs::metadata(file).map_err(|e| format!("cannot read it: {e}"))?;
    if !found.is_file() {
        return Err("this is not a file; `kiso skill add` takes a .wasm file, or a folder with a SKILL.md".to_owned());
    }
    if found.len() > MAX_LOCAL_BYTES {
        return Err(LoadError::TooLarge.to_string());
    }
    std::fs::read(file).map_err(|e| format!("cannot read it: {e}"))
}

/// The imports and exports of a file, and whether it is a component.
pub(super) fn names(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>, bool), LoadError> {
    let outside = Outside::read(bytes)?;
    let exports = outside.export_names();
    Ok((outside.imports, exports, outside.encoding == Encoding::Component))
}

/// The same; `drafts` says whether this build loads components for a draft.
fn parse_for(bytes: &[u8], drafts: bool) -> Result<ParsedComponent, LoadError> {
    if bytes.len() as u64 > MAX_LOCAL_BYTES {
        return Err(LoadError::TooLarge);
    }
    if !bytes.starts_with(b"\0asm") {
        return Err(LoadError::NotWasm(looks_like(bytes)));
    }
    let outside = Outside::read(bytes)?;
    let (wasm, wrapped) = match outside.encoding {
        Encoding::Component => (bytes.to_vec(), false),
        Encoding::Module => (wrap(bytes, &outside)?, true),
    };
    let component = if wrapped { Outside::read(&wasm)? } else { outside.clone() };
    if let Some(found) = component.draft().filter(|_| !drafts) {
        return Err(LoadError::Draft { found });
    }
    let missing: Vec<String> = component.imports.iter().filter(|i| !is_offered(i, drafts)).cloned().collect();
    if let Some(found) = missing.iter().find_map(|i| newer_world(i)) {
        return Err(LoadError::NewerWorld { found });
    }
    if !missing.is_empty() {
        return Err(LoadError::MissingImports(missing));
    }
    let shape = shape(&component).ok_or_else(|| LoadError::NoEntry(component.export_names()))?;
    // The wrapped component contains the module's custom sections, too, but its author checked the original.
    let manifest =
        outside.manifest.map(|m| String::from_utf8(m).map_err(|_| LoadError::ManifestNotText)).transpose()?;
    let sdk = outside.sdk.map(|s| brief(&String::from_utf8_lossy(&s), MAX_SDK));
    let mut exports = component.exports.iter().map(|(name, _)| name);
    let self_test = exports.find(|name| version_of(name, "self-test").is_some()).cloned();
    let implied = Needs::implied(&component.imports);
    Ok(ParsedComponent { shape, wasm, wrapped, manifest, sdk, implied, self_test })
}

/// The properties of a file that are visible without compiling it.
#[derive(Debug, Clone)]
struct Outside {
    encoding: Encoding,
    imports: Vec<String>,
    exports: Vec<(String, bool)>,
    manifest: Option<Vec<u8>>,
    sdk: Option<Vec<u8>>,
}

impl Outside {
    fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        let invalid = |e: wasmparser::BinaryReaderError| LoadError::Invalid {
            offset: e.offset(),
            message: brief(e.message(), 1_000),
        };
        Validator::new_with_features(WasmFeatures::default()).validate_all(bytes).map_err(invalid)?;
        let mut out =
            Self { encoding: Encoding::Module, imports: Vec::new(), exports: Vec::new(), manifest: None, sdk: None };
        let mut depth = 0usize;
        let mut manifest_depth = usize::MAX;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(invalid)? {
                Payload::Version { encoding, .. } => {
                    if depth == 0 {
                        out.encoding = encoding;
                    }
                    depth += 1;
                }
                Payload::End(_) => depth -= 1,
                Payload::CustomSection(section) => match section.name() {
                    // The outermost section wins: `kiso skill pack` may override the one that a macro wrote.
                    "kiso.toml" if depth < manifest_depth => {
                        manifest_depth = depth;
                        out.manifest = Some(section.data().to_vec());
                    }
                    "kiso-sdk" if out.sdk.is_none() => {
                        let data = section.data();
                        out.sdk = Some(data[..data.len().min(4 * MAX_SDK)].to_vec());
                    }
                    _ => {}
                },
                Payload::ComponentImportSection(imports) if depth == 1 => {
                    for import in imports {
                        let import = import.map_err(invalid)?;
                        // A type alone requests nothing from the host.
                        if !matches!(import.ty, ComponentTypeRef::Type(_)) {
                            out.imports.push(import.name.name.to_owned());
                        }
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 1 => {
                    for export in exports {
                        let export = export.map_err(invalid)?;
                        let callable =
                            matches!(export.kind, ComponentExternalKind::Func | ComponentExternalKind::Instance);
                        out.exports.push((export.name.name.to_owned(), callable));
                    }
                }
                Payload::ImportSection(imports) if depth == 1 => {
                    for import in imports.into_imports() {
                        let import = import.map_err(invalid)?;
                        if matches!(import.ty, TypeRef::Func(_) | TypeRef::FuncExact(_)) || import.module != "env" {
                            out.imports.push(import.module.to_owned());
                        }
                    }
                    out.imports.dedup();
                }
                Payload::ExportSection(exports) if depth == 1 => {
                    for export in exports {
                        let export = export.map_err(invalid)?;
                        out.exports.push((export.name.to_owned(), export.kind == ExternalKind::Func));
                    }
                }
                _ => {}
            }
        }
        Ok(out)
    }

    fn has(&self, name: impl Fn(&str) -> bool) -> bool {
        self.exports.iter().any(|(n, callable)| *callable && name(n))
    }

    /// The draft of `kiso:skill` that it was built for, if any.
    fn draft(&self) -> Option<Version> {
        let names = self.imports.iter().chain(self.exports.iter().map(|(name, _)| name));
        let mut versions = names.filter_map(|name| {
            let (interface, _) = name.strip_prefix(wit::SKILL)?.strip_prefix('/')?.split_once('@')?;
            version_of(name, interface)
        });
        versions.find(Version::is_draft)
    }

    fn export_names(&self) -> Vec<String> {
        self.exports.iter().map(|(n, _)| n.clone()).collect()
    }
}

fn shape(component: &Outside) -> Option<Shape> {
    if component.has(|n| version_of(n, "skill").is_some()) {
        Some(Shape::Skill)
    } else if component.has(|n| wit::run_version(n).is_some()) {
        Some(Shape::Command)
    } else if component.has(|n| !n.starts_with("wasi:")) {
        Some(Shape::Functions)
    } else {
        None
    }
}

/// The version of `kiso:skill` in an import, if this host does not know it.
fn newer_world(import: &str) -> Option<String> {
    let (name, version) = import.split_once('@')?;
    let interface = name.strip_prefix(wit::SKILL)?.strip_prefix('/')?;
    version_of(import, interface).is_none().then(|| brief(version, 100))
}

/// Makes a `wasi:cli/command` component from a core module for WASI preview 1.
fn wrap(module: &[u8], outside: &Outside) -> Result<Vec<u8>, LoadError> {
    if let Some(other) = outside.imports.iter().find(|i| *i != PREVIEW1) {
        return Err(LoadError::Core(format!(
            "it imports from `{}`; only WASI preview 1 (`{PREVIEW1}`) can be wrapped, so build it for wasm32-wasip2 or wasm32-wasip1",
            brief(other, 100)
        )));
    }
    if !outside.has(|n| n == "_start") {
        return Err(LoadError::Core("it has no `_start`: build it as a program, not as a library".to_owned()));
    }
    preview1::wrap(module).map_err(|error| LoadError::Core(brief(&error, 2_000)))
}

/// A guess at the kind of a file that is not wasm, and what to do.
fn looks_like(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).trim_start().to_lowercase();
    let what = if bytes.is_empty() {
        "the file is empty"
    } else if bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"\xcf\xfa\xed\xfe") || bytes.starts_with(b"MZ") {
        "it is a native program; build it for wasm32-wasip2"
    } else if bytes.starts_with(b"\x1f\x8b") || bytes.starts_with(b"PK") {
        "it is an archive; unpack it first"
    } else if text.starts_with("<!doctype") || text.starts_with("<html") {
        "it is a web page; the download link was not the file's own"
    } else if text.starts_with("(module") || text.starts_with("(component") {
        "it is WebAssembly text; assemble it first with `wasm-tools parse`"
    } else if text.starts_with("#!") {
        "it is a script"
    } else {
        "it does not start with the bytes \\0asm"
    };
    what.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_DRAFT: &str = r#"(component
        (import "kiso:skill/log@0.2.0-draft" (instance))
        (component $c (core module $m (func (export "f"))) (core instance $i (instantiate $m))
            (func (export "run") (canon lift (core func $i "f"))))
        (instance $skill (instantiate $c))
        (export "kiso:skill/skill@0.2.0-draft" (instance $skill)))"#;

    #[test]
    fn a_draft_is_refused_where_drafts_are_not_loaded() {
        let importing = wat::parse_str(OF_DRAFT).unwrap();
        let exporting = OF_DRAFT.replace("(import \"kiso:skill/log@0.2.0-draft\" (instance))", "");
        for bytes in [importing, wat::parse_str(exporting).unwrap()] {
            assert_eq!(parse_for(&bytes, true).unwrap().shape, Shape::Skill);
            let error = parse_for(&bytes, false).unwrap_err().to_string();
            for words in ["the draft 0.2.0-draft of kiso:skill", "released builds", "build it for 0.1,"] {
                assert!(error.contains(words), "{error}");
            }
        }
        assert_eq!(wit::loads_drafts(), cfg!(debug_assertions));
    }
}
