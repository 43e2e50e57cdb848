//! The modules of Node that scripts find here, written in JavaScript. Each is a function that is evaluated when it is first used.

use std::path::Path;

use boa_engine::object::JsObject;
use boa_engine::object::builtins::JsArray;
use boa_engine::{Context, JsNativeError, JsResult, JsString, JsValue, Source};

use crate::native;

/// The version of Node whose behaviour scripts find.
pub const NODE_VERSION: &str = "22.12.0";

/// By name, with the source: an expression for the function that makes it.
const MODULES: &[(&str, &str)] = &[
    ("assert", include_str!("lib/assert.js")),
    ("assert/strict", "(_, need) => need('assert').strict"),
    ("buffer", include_str!("lib/buffer.js")),
    ("child_process", include_str!("lib/child_process.js")),
    ("console", "() => console"),
    ("constants", "(_, need) => need('os').constants"),
    ("crypto", include_str!("lib/crypto.js")),
    ("events", include_str!("lib/events.js")),
    ("fs", include_str!("lib/fs.js")),
    ("fs/promises", "(_, need) => need('fs').promises"),
    ("http", include_str!("lib/http.js")),
    ("https", "(_, need) => need('http').https"),
    ("module", "(_, need) => need('internal/modules').Module"),
    ("os", include_str!("lib/os.js")),
    ("path", include_str!("lib/path.js")),
    ("path/posix", "(_, need) => need('path')"),
    ("perf_hooks", "() => ({ performance })"),
    ("process", "() => process"),
    ("querystring", include_str!("lib/querystring.js")),
    ("readline", include_str!("lib/readline.js")),
    ("readline/promises", "(_, need) => need('readline').promises"),
    ("stream", include_str!("lib/stream.js")),
    ("stream/promises", "(_, need) => need('stream').promises"),
    ("stream/web", "(_, need) => ({ ReadableStream: need('internal/body').ReadableStream })"),
    ("string_decoder", include_str!("lib/string_decoder.js")),
    ("timers", include_str!("lib/timers.js")),
    ("timers/promises", "(_, need) => need('timers').promises"),
    ("tty", "() => ({ isatty: () => false })"),
    ("url", include_str!("lib/url.js")),
    ("util", include_str!("lib/util.js")),
    ("util/types", "(_, need) => need('util').types"),
];

/// Modules that only the library uses.
const INTERNAL: &[(&str, &str)] = &[
    ("internal/body", include_str!("lib/internal/body.js")),
    ("internal/console", include_str!("lib/internal/console.js")),
    ("internal/errors", include_str!("lib/internal/errors.js")),
    ("internal/fetch", include_str!("lib/internal/fetch.js")),
    ("internal/globals", include_str!("lib/internal/globals.js")),
    ("internal/inspect", include_str!("lib/internal/inspect.js")),
    ("internal/modules", include_str!("lib/internal/modules.js")),
    ("internal/net", include_str!("lib/internal/net.js")),
    ("internal/process", include_str!("lib/internal/process.js")),
    ("internal/web", include_str!("lib/internal/web.js")),
];

fn find(modules: &'static [(&str, &str)], name: &str) -> Option<&'static str> {
    modules.iter().find(|(module, _)| *module == name).map(|(_, source)| *source)
}

/// The source of a module that scripts may use.
pub fn source(name: &str) -> Option<&'static str> {
    find(MODULES, name)
}

/// The names of these.
pub fn names() -> Vec<&'static str> {
    MODULES.iter().map(|(name, _)| *name).collect()
}

/// The functions of the library that the program calls.
#[derive(Clone)]
pub struct Library(JsObject);

impl Library {
    /// Gives scripts their globals. `words` are those behind the program's name.
    pub fn install(path: &str, words: &[String], context: &mut Context) -> JsResult<Self> {
        let native = native::object(context)?;
        let array = |list: Vec<JsValue>, context: &mut Context| JsValue::from(JsArray::from_iter(list, context));
        let string = |text: &str| JsValue::from(JsString::from(text));
        let words = array(words.iter().map(|word| string(word)).collect(), context);
        let env = std::env::vars().flat_map(|(name, value)| [string(&name), string(&value)]).collect();
        let env = array(env, context);
        let names = array(names().into_iter().map(string).collect(), context);
        let versions = array(vec![string(NODE_VERSION), string(env!("CARGO_PKG_VERSION"))], context);
        let arguments = [native.into(), string(path), words, env, names, versions];
        let install = evaluate("internal/globals", context)?;
        let wrong = || JsNativeError::typ().with_message("the library is damaged");
        let install = install.as_object().ok_or_else(wrong)?;
        let library = install.call(&JsValue::undefined(), &arguments, context)?;
        Ok(Self(library.as_object().ok_or_else(wrong)?.clone()))
    }

    /// Calls one of its functions.
    pub fn call(&self, name: &str, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
        let function = self.0.get(JsString::from(name), context)?;
        let function = function.as_object().ok_or_else(|| JsNativeError::typ().with_message(name.to_owned()))?;
        function.call(&JsValue::undefined(), arguments, context)
    }
}

/// The function that makes a module.
pub fn evaluate(name: &str, context: &mut Context) -> JsResult<JsValue> {
    let found = source(name).or_else(|| find(INTERNAL, name));
    let source = found.ok_or_else(|| JsNativeError::reference().with_message(format!("there is no module {name}")))?;
    context.eval(Source::from_bytes(source).with_path(Path::new(&format!("node:{name}"))))
}
