//! Modules for `require`: where they are, and their compiled functions.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use boa_engine::{Context, JsError, JsNativeError, JsResult, JsValue, Module, Script, Source};

use super::{Function, string, text};
use crate::loader::located;
use crate::resolve::{self, Format, Target};
use crate::types;

pub const FUNCTIONS: &[(&str, Function)] = &[
    ("resolve", resolve),
    ("format", format),
    ("compile", compile),
    ("builtin", builtin),
    ("source", |_, a, c| {
        let path = text(a, 0, c)?;
        Ok(string(&source(Path::new(&path), c)?))
    }),
];

/// One module.
const MAX_MODULE: u64 = 8 << 20;

/// All of a script.
const MAX_MODULES: usize = 2000;
const MAX_TOTAL: u64 = 64 << 20;

/// The text before a module for `require`. It has no line break, so that lines keep their numbers.
pub const WRAPPER: &str = "(function (exports, require, module, __filename, __dirname) {";

/// `resolve(words, directory)`.
fn resolve(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (words, dir) = (text(arguments, 0, context)?, text(arguments, 1, context)?);
    match resolve::resolve(&words, Path::new(&dir), false) {
        Ok(Target::Builtin(name)) => Ok(string(&format!("node:{name}"))),
        Ok(Target::File(path)) => Ok(string(&path.to_string_lossy())),
        Err(failure) => Err(super::error(failure.code, &failure.message, context)),
    }
}

fn format(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = PathBuf::from(text(arguments, 0, context)?);
    match resolve::format(&path) {
        Ok(Format::Json) => Ok(string("json")),
        Ok(Format::Module) => Ok(string("module")),
        Ok(Format::CommonJs | Format::Either) => Ok(string("commonjs")),
        Err(failure) => Err(super::error(failure.code, &failure.message, context)),
    }
}

/// The function of a module, or undefined if its syntax is that of a module for `import`.
fn compile(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let path = PathBuf::from(text(arguments, 0, context)?);
    let source = source(&path, context)?;
    Ok(function(&path, &source, context)?.unwrap_or_default())
}

/// The function of a module's source, or nothing if its syntax is that of a module for `import`.
pub fn function(path: &Path, source: &str, context: &mut Context) -> JsResult<Option<JsValue>> {
    let wrapped = format!("{WRAPPER}{source}\n}})");
    match Script::parse(Source::from_bytes(&wrapped).with_path(path), None, context) {
        Ok(script) => script.evaluate(context).map(Some),
        Err(error) => {
            let error = located(error, path, WRAPPER.len(), context);
            otherwise(path, source, error, context).map(|()| None)
        }
    }
}

/// Fails with the error unless the source is a module for `import`.
pub fn otherwise(path: &Path, source: &str, error: JsError, context: &mut Context) -> JsResult<()> {
    let may_be = !matches!(resolve::format(path), Ok(Format::CommonJs)) && is_module_like(source);
    if !may_be {
        return Err(error);
    }
    let parsed = Module::parse(Source::from_bytes(source).with_path(path), None, context);
    match parsed {
        Ok(_) => Ok(()),
        // A module by its words has the error of one.
        Err(other) if starts_as_module(source) => Err(located(other, path, 0, context)),
        Err(_) => Err(error),
    }
}

/// Whether a word of a module is there at all; parsing decides.
fn is_module_like(source: &str) -> bool {
    ["import", "export", "await"].iter().any(|word| source.contains(word))
}

fn starts_as_module(source: &str) -> bool {
    source.lines().any(|line| line.starts_with("import ") || line.starts_with("export "))
}

/// The JavaScript of TypeScript.
pub fn erased(path: &Path, source: &str, is_module: Option<bool>, context: &mut Context) -> JsResult<String> {
    types::erase(source, is_module).map_err(|failure| {
        let (line, column) = types::place(source, failure.at);
        let message = format!("{} ({}:{line}:{column})", failure.message, path.display());
        super::with_code(JsNativeError::syntax().with_message(message), failure.code, context)
    })
}

/// The text of a module, within the limits, with a first line `#!` as a comment, and without the types of TypeScript.
pub fn source(path: &Path, context: &mut Context) -> JsResult<String> {
    thread_local! {
        static SEEN: RefCell<HashSet<PathBuf>> = RefCell::default();
        static TOTAL: Cell<u64> = const { Cell::new(0) };
    }
    let shown = path.display();
    let length = match std::fs::metadata(path) {
        Ok(found) => found.len(),
        Err(e) => return Err(super::files::failed("open", &shown.to_string(), None, &e, context)),
    };
    let count = SEEN.with_borrow_mut(|seen| {
        if seen.insert(path.to_owned()) {
            TOTAL.set(TOTAL.get().saturating_add(length));
        }
        seen.len()
    });
    if length > MAX_MODULE {
        return Err(super::error("ERR_MODULE_TOO_LARGE", &format!("{shown}: a module has at most 8 MiB"), context));
    }
    if count > MAX_MODULES || TOTAL.get() > MAX_TOTAL {
        let message = format!("{shown}: a script has at most {MAX_MODULES} modules and 64 MiB of them");
        return Err(super::error("ERR_TOO_MANY_MODULES", &message, context));
    }
    let bytes = std::fs::read(path).map_err(|e| super::files::failed("open", &shown.to_string(), None, &e, context))?;
    let source = plain(&String::from_utf8_lossy(&bytes));
    if !resolve::is_typescript(path) {
        return Ok(source);
    }
    let is_module = match resolve::format(path).map_err(|e| super::error(e.code, &e.message, context))? {
        Format::Module => Some(true),
        Format::CommonJs => Some(false),
        Format::Json | Format::Either => None,
    };
    erased(path, &source, is_module, context)
}

/// Without a byte order mark, and with the line that names an interpreter as a comment.
pub fn plain(source: &str) -> String {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    if source.starts_with("#!") { format!("//{source}") } else { source.to_owned() }
}

/// The function that makes a module of the library.
fn builtin(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let name = text(arguments, 0, context)?;
    crate::library::evaluate(&name, context)
}
