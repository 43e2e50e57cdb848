//! One script from its start to its end: its module, what it left to be done later, and how it fails.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use boa_engine::builtins::promise::{OperationType, PromiseState};
use boa_engine::context::{ContextBuilder, HostHooks};
use boa_engine::object::JsObject;
use boa_engine::object::builtins::JsPromise;
use boa_engine::{Context, JsError, JsResult, JsString, Module, Script, Source};

use crate::Syntax;
use crate::library::Library;
use crate::loader::{Loader, located};
use crate::native::{self, scripts};
use crate::resolve::{self, Format, Target};

/// The script has failed, and its error is printed.
pub struct Failed;

/// Of an exception's text; an endless recursion has hundreds.
const MAX_LINES: usize = 10;

/// The exit code of node when its first module still waits and nothing is left to be done.
const UNSETTLED: i32 = 13;

type Promise = JsObject<boa_engine::builtins::promise::Promise>;

/// Rejected promises that nothing handles yet.
#[derive(Default)]
struct Rejections(RefCell<Vec<Promise>>);

impl HostHooks for Rejections {
    fn promise_rejection_tracker(&self, promise: &Promise, operation: OperationType, _: &mut Context) {
        let mut rejected = self.0.borrow_mut();
        match operation {
            OperationType::Reject => rejected.push(promise.clone()),
            OperationType::Handle => rejected.retain(|other| !JsObject::equals(other, promise)),
        }
    }
}

pub struct Runtime {
    context: Context,
    loader: Rc<Loader>,
    library: Library,
    rejections: Rc<Rejections>,
    /// The end of the first module, if that is one for `import`.
    main: Option<JsPromise>,
}

impl Runtime {
    pub fn new(path: &str, words: &[String]) -> JsResult<Self> {
        let (loader, rejections) = (Rc::new(Loader::default()), Rc::new(Rejections::default()));
        let builder = ContextBuilder::new().module_loader(loader.clone()).host_hooks(rejections.clone());
        let mut context = builder.build()?;
        let library = Library::install(path, words, &mut context)?;
        loader.set_library(library.clone());
        Ok(Self { context, loader, library, rejections, main: None })
    }

    /// Runs the module in a file.
    pub fn start(&mut self, path: &str) -> Result<(), Failed> {
        let done = self.start_file(path);
        done.or_else(|error| self.fail(error))
    }

    fn start_file(&mut self, path: &str) -> JsResult<()> {
        let context = &mut self.context;
        let path = std::env::current_dir().unwrap_or_default().join(path);
        let path = resolve::normal(&path);
        let shown = path.to_string_lossy();
        let path = match resolve::resolve(&shown, Path::new("/"), false) {
            Ok(Target::File(path)) => path,
            Ok(Target::Builtin(_)) => path,
            Err(failure) => return Err(native::error(failure.code, &failure.message, context)),
        };
        let format = resolve::format(&path).map_err(|e| native::error(e.code, &e.message, context))?;
        let is_module = match format {
            Format::Module => true,
            Format::CommonJs | Format::Json => false,
            Format::Either => {
                let source = scripts::source(&path, context)?;
                scripts::function(&path, &source, context)?.is_none()
            }
        };
        if is_module {
            let module = self.loader.file(&path, context)?;
            self.run_module(&module);
            return Ok(());
        }
        let path = JsString::from(path.to_string_lossy().as_ref());
        self.library.call("runMain", &[path.into()], context).map(drop)
    }

    /// Runs code that lies in no file, with the globals that it has in node.
    pub fn evaluate(&mut self, code: &str, name: &str, print: bool, syntax: Syntax) -> Result<(), Failed> {
        let done = self.evaluate_code(code, name, print, syntax);
        done.or_else(|error| self.fail(error))
    }

    fn evaluate_code(&mut self, code: &str, name: &str, print: bool, syntax: Syntax) -> JsResult<()> {
        let (context, path) = (&mut self.context, Path::new(name));
        let mut code = scripts::plain(code);
        if syntax.is_typed {
            code = scripts::erased(path, &code, syntax.is_module.then_some(true), context)?;
        }
        if !syntax.is_module {
            match Script::parse(Source::from_bytes(&code).with_path(path), None, context) {
                Ok(script) => {
                    self.library.call("prepareEval", &[JsString::from(name).into()], context)?;
                    let value = script.evaluate(context)?;
                    return match print {
                        true => self.library.call("print", &[value], context).map(drop),
                        false => Ok(()),
                    };
                }
                Err(error) => {
                    let error = located(error, path, 0, context);
                    scripts::otherwise(path, &code, error, context)?;
                }
            }
        }
        let module = Module::parse(Source::from_bytes(&code).with_path(path), None, context)
            .map_err(|error| located(error, path, 0, context))?;
        self.run_module(&module);
        Ok(())
    }

    fn run_module(&mut self, module: &Module) {
        self.main = Some(module.load_link_evaluate(&mut self.context));
    }

    /// Does what the script left for later, and returns the exit code.
    pub fn finish(&mut self) -> Result<i32, Failed> {
        loop {
            self.settle()?;
            let turned = self.library.call("turn", &[], &mut self.context);
            match turned {
                Ok(turned) if turned.to_boolean() => {}
                Ok(_) => break,
                Err(error) => self.fail(error)?,
            }
        }
        if self.main.as_ref().is_some_and(|main| matches!(main.state(), PromiseState::Pending)) {
            eprintln!("Warning: Detected unsettled top-level await");
            return Ok(UNSETTLED);
        }
        let ended = self.library.call("end", &[], &mut self.context).and_then(|code| code.to_i32(&mut self.context));
        match ended {
            Ok(code) => Ok(code),
            Err(error) => self.fail(error).map(|()| 0),
        }
    }

    /// Runs all jobs of promises. A rejection that nothing handles by then ends the script.
    fn settle(&mut self) -> Result<(), Failed> {
        loop {
            if let Err(error) = self.context.run_jobs() {
                self.fail(error)?;
                continue;
            }
            let rejected = std::mem::take(&mut *self.rejections.0.borrow_mut());
            if rejected.is_empty() {
                return Ok(());
            }
            for promise in rejected {
                let promise = promise.upcast();
                let Ok(PromiseState::Rejected(reason)) = JsPromise::from_object(promise.clone()).map(|p| p.state())
                else {
                    continue;
                };
                let handled = self.library.call("rejected", &[reason.clone(), promise.into()], &mut self.context);
                match handled {
                    Ok(handled) if handled.to_boolean() => {}
                    Ok(_) => self.fail(JsError::from_opaque(reason))?,
                    Err(error) => self.fail(error)?,
                }
            }
        }
    }

    /// Gives an exception to the script's own handler, or prints it.
    fn fail(&mut self, error: JsError) -> Result<(), Failed> {
        let context = &mut self.context;
        let text = match error.clone().into_opaque(context) {
            Ok(value) => match self.library.call("uncaught", &[value], context) {
                Ok(handled) if handled.is_boolean() => return Ok(()),
                Ok(text) => text.to_string(context).map(|text| text.to_std_string_lossy()),
                Err(error) => Err(error),
            },
            // Such as an endless recursion, which no script can catch.
            Err(error) => Err(error),
        };
        let text = text.unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = text.lines().collect();
        let frames = lines.iter().filter(|line| line.starts_with("    at ")).count();
        let mut left = MAX_LINES;
        let shown = lines.iter().filter(|line| {
            let is_frame = line.starts_with("    at ");
            left -= usize::from(is_frame && left > 0);
            !is_frame || frames <= MAX_LINES || left > 0
        });
        eprintln!("Uncaught {}", shown.copied().collect::<Vec<_>>().join("\n"));
        Err(Failed)
    }
}
