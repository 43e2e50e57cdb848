//! Modules for `import`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use boa_engine::module::{ModuleLoader, ModuleRequest, Referrer, SyntheticModuleInitializer};
use boa_engine::object::JsObject;
use boa_engine::property::PropertyKey;
use boa_engine::{Context, JsError, JsNativeError, JsResult, JsString, JsValue, Module, Source, js_string};

use crate::library::Library;
use crate::native::{self, scripts};
use crate::resolve::{self, Format, Target};

#[derive(Default)]
pub struct Loader {
    modules: RefCell<HashMap<String, Module>>,
    library: RefCell<Option<Library>>,
}

/// Where code that lies in no file finds its modules.
fn directory(path: Option<&Path>) -> PathBuf {
    let cwd = || std::env::current_dir().unwrap_or_default();
    path.filter(|path| path.is_absolute()).and_then(Path::parent).map_or_else(cwd, Path::to_owned)
}

impl Loader {
    pub fn set_library(&self, library: Library) {
        self.library.replace(Some(library));
    }

    fn load(&self, referrer: &Referrer, request: &ModuleRequest, context: &mut Context) -> JsResult<Module> {
        let words = request.specifier().to_std_string_lossy();
        let target = resolve::resolve(&words, &directory(referrer.path()), true).map_err(|failure| {
            let from = referrer.path().map(|path| format!(" (imported from {})", path.display())).unwrap_or_default();
            native::error(failure.code, &format!("{}{from}", failure.message), context)
        })?;
        match target {
            Target::Builtin(name) => self.shared(&format!("node:{name}"), context),
            Target::File(path) => self.file(&path, context),
        }
    }

    /// The module of a file.
    pub fn file(&self, path: &Path, context: &mut Context) -> JsResult<Module> {
        let key = path.to_string_lossy().into_owned();
        if let Some(module) = self.modules.borrow().get(&key) {
            return Ok(module.clone());
        }
        let format = resolve::format(path).map_err(|failure| native::error(failure.code, &failure.message, context))?;
        let is_module = match format {
            Format::Module => true,
            Format::CommonJs | Format::Json => false,
            Format::Either => {
                let source = scripts::source(path, context)?;
                scripts::function(path, &source, context)?.is_none()
            }
        };
        if !is_module {
            return self.shared(&key, context);
        }
        let source = scripts::source(path, context)?;
        let module = Module::parse(Source::from_bytes(&source).with_path(path), None, context)
            .map_err(|error| located(error, path, 0, context))?;
        self.modules.borrow_mut().insert(key, module.clone());
        Ok(module)
    }

    /// A module whose exports are those that `require` returns: all as `default`, and each by its name.
    fn shared(&self, key: &str, context: &mut Context) -> JsResult<Module> {
        if let Some(module) = self.modules.borrow().get(key) {
            return Ok(module.clone());
        }
        let library = self.library.borrow().clone();
        let library = library.ok_or_else(|| JsNativeError::error().with_message("modules are not ready yet"))?;
        let exports = library.call("load", &[JsString::from(key).into()], context)?;
        let mut names = vec![js_string!("default")];
        let mut values = vec![exports.clone()];
        if let Some(object) = exports.as_object() {
            for key in object.own_property_keys(context)? {
                let PropertyKey::String(name) = key else { continue };
                if name != js_string!("default") {
                    values.push(object.get(name.clone(), context)?);
                    names.push(name);
                }
            }
        }
        let exported = names.clone();
        let steps = SyntheticModuleInitializer::from_copy_closure_with_captures(
            |module, (names, values): &(Vec<JsString>, Vec<JsValue>), _| {
                names.iter().zip(values).try_for_each(|(name, value)| module.set_export(name, value.clone()))
            },
            (names, values),
        );
        let module = Module::synthetic(&exported, steps, Some(PathBuf::from(key)), None, context);
        self.modules.borrow_mut().insert(key.to_owned(), module.clone());
        Ok(module)
    }
}

/// A syntax error that says in which file, in the form of a stack. `before` is what stands before the source on its first line.
pub fn located(error: JsError, path: &Path, before: usize, context: &mut Context) -> JsError {
    let Ok(native) = error.try_native(context) else { return error };
    if !native.is_syntax() {
        return error;
    }
    let message = native.message();
    let place = message.rsplit_once(" at line ").and_then(|(words, place)| {
        let (line, column) = place.split_once(", col ")?;
        let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
        let column = if line == 1 { column.saturating_sub(before).max(1) } else { column };
        Some(format!("{words} ({}:{line}:{column})", path.display()))
    });
    let message = place.unwrap_or_else(|| format!("{message} ({})", path.display()));
    JsNativeError::syntax().with_message(message).into()
}

impl ModuleLoader for Loader {
    fn load_imported_module(
        self: Rc<Self>,
        referrer: Referrer,
        request: ModuleRequest,
        context: &RefCell<&mut Context>,
    ) -> impl Future<Output = JsResult<Module>> {
        let result = self.load(&referrer, &request, &mut context.borrow_mut());
        async { result }
    }

    fn init_import_meta(self: Rc<Self>, meta: &JsObject, module: &Module, context: &mut Context) {
        let path = module.path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(library) = self.library.borrow().clone() else { return };
        // `import.meta` of a module that the library cannot describe stays empty.
        let _ = library.call("describeModule", &[meta.clone().into(), JsString::from(path.as_str()).into()], context);
    }
}
