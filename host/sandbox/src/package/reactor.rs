//! Makes a program of a module that was built to be called again and again (a reactor): it is given a `_start` that calls what
//! runs one program and ends with its answer. What the module imports beside WASI, to call whoever embeds it, becomes a function
//! that always fails. Names of functions are left out; they serve debuggers.

use super::module_index::{ModuleIndex, WASI};
use super::spec::Reactor;
use std::convert::Infallible;
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{CodeSection, ExportKind, ExportSection, Function, FunctionSection, ImportSection, Module};
use wasmparser::{CodeSectionReader, CustomSectionReader, ExportSectionReader, FunctionSectionReader};
use wasmparser::{ImportSectionReader, Imports, Parser, TypeRef, ValType};

/// How a program for WASI preview 1 ends itself.
const PROC_EXIT: &str = "proc_exit";

/// What a program sees of an exit code.
const EXIT_CODES: i32 = 0xff;

/// The module as a program.
pub(super) fn program(module: &[u8], reactor: &Reactor) -> Result<Vec<u8>, String> {
    let unfit = |what: String| format!("no program can be made of it: {what}");
    let mut shaping = Shaping::new(module, reactor).map_err(unfit)?;
    let mut made = Module::new();
    let shaped = shaping.parse_core_module(&mut made, Parser::new(0), module);
    shaped.map_err(|error| unfit(error.to_string()))?;
    Ok(made.finish())
}

/// Where things are in the module. Functions that it imports have the first indices, so those behind the callback move down by one.
struct Shaping {
    /// The index of the callback.
    callback: u32,
    callback_type: u32,
    nobody: i32,
    imported: u32,
    defined: u32,
    run: u32,
    proc_exit: u32,
    /// The type of a function without parameters and results.
    plain_type: u32,
}

impl Shaping {
    fn new(module: &[u8], reactor: &Reactor) -> Result<Self, String> {
        let index = ModuleIndex::read(module)?;
        let (callback, proc_exit) =
            (index.import(&reactor.callback[0], &reactor.callback[1])?, index.import(WASI, PROC_EXIT)?);
        let run = index.export(&reactor.run)?;
        if !index.has_type(run, &[], &[ValType::I32]) {
            return Err(format!("{} is no function from nothing to an exit code", reactor.run));
        }
        if !index.has_type(proc_exit, &[ValType::I32], &[]) {
            return Err("its proc_exit is another function".to_owned());
        }
        if index.signature(callback).is_none_or(|ty| ty.results() != [ValType::I32]) {
            return Err("its callback does not answer with a number".to_owned());
        }
        Ok(Self {
            callback,
            callback_type: index.type_of(callback).ok_or("its callback has no type")?,
            nobody: reactor.nobody,
            imported: index.imported(),
            defined: index.functions() - index.imported(),
            run,
            proc_exit,
            plain_type: index.type_index(&[], &[])?,
        })
    }

    /// Where a function is now. The two that are added stand behind all others.
    fn moved(&self, function: u32) -> u32 {
        match function {
            at if at < self.callback => at,
            at if at == self.callback => self.imported - 1 + self.defined,
            at => at - 1,
        }
    }

    fn start(&self) -> u32 {
        self.imported + self.defined
    }
}

type Reencoded<T = ()> = Result<T, reencode::Error<Infallible>>;

impl Reencode for Shaping {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Reencoded<u32> {
        Ok(self.moved(function))
    }

    fn parse_import_section(&mut self, imports: &mut ImportSection, section: ImportSectionReader<'_>) -> Reencoded {
        let mut function = 0;
        for import in section.into_imports() {
            let import = import?;
            let is_function = matches!(import.ty, TypeRef::Func(_));
            if !is_function || function != self.callback {
                self.parse_imports(imports, Imports::Single(0, import))?;
            }
            function += u32::from(is_function);
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Reencoded {
        utils::parse_function_section(self, functions, section)?;
        functions.function(self.callback_type).function(self.plain_type);
        Ok(())
    }

    fn parse_export_section(&mut self, exports: &mut ExportSection, section: ExportSectionReader<'_>) -> Reencoded {
        utils::parse_export_section(self, exports, section)?;
        exports.export("_start", ExportKind::Func, self.start());
        Ok(())
    }

    fn parse_code_section(&mut self, code: &mut CodeSection, section: CodeSectionReader<'_>) -> Reencoded {
        utils::parse_code_section(self, code, section)?;
        let mut nobody = Function::new([]);
        nobody.instructions().i32_const(self.nobody).end();
        let mut start = Function::new([]);
        let (run, proc_exit) = (self.moved(self.run), self.moved(self.proc_exit));
        start.instructions().call(run).i32_const(EXIT_CODES).i32_and().call(proc_exit).end();
        code.function(&nobody).function(&start);
        Ok(())
    }

    fn parse_custom_section(&mut self, _module: &mut Module, _section: CustomSectionReader<'_>) -> Reencoded {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::{Caller, Engine, Linker, Store};

    fn shape() -> Reactor {
        Reactor { run: "run".to_owned(), callback: ["host", "call"].map(str::to_owned), nobody: -1 }
    }

    /// A reactor that calls its embedder through a table, and answers with `answer` less one if that failed as it should.
    fn reactor(answer: i32) -> Vec<u8> {
        let text = format!(
            r#"(module (type $call (func (param i32) (result i32)))
                 (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
                 (import "host" "call" (func $host (type $call)))
                 (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
                 (memory (export "memory") 1) (table funcref (elem $host $exit $unused))
                 (func $unused (drop (call $yield)))
                 (func $run (export "run") (result i32)
                   (call_indirect (type $call) (i32.const 7) (i32.const 0))
                   (i32.add (i32.const {answer}))))"#
        );
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn a_reactor_becomes_a_program_whose_callback_fails() {
        for (answer, expected) in [(43, 42), (1, 0), (0, 255), (257, 0)] {
            let made = program(&reactor(answer), &shape()).unwrap();
            let engine = Engine::default();
            let module = wasmtime::Module::new(&engine, &made).unwrap();
            assert!(module.imports().all(|import| import.module() == WASI));
            let mut linker = Linker::new(&engine);
            linker.func_wrap(WASI, "sched_yield", || 0).unwrap();
            let exit = |mut store: Caller<'_, Option<i32>>, code: i32| *store.data_mut() = Some(code);
            linker.func_wrap(WASI, PROC_EXIT, exit).unwrap();
            let mut store = Store::new(&engine, None);
            let instance = linker.instantiate(&mut store, &module).unwrap();
            instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap().call(&mut store, ()).unwrap();
            assert_eq!(*store.data(), Some(expected), "{answer}");
        }
    }

    #[test]
    fn what_is_no_such_reactor_is_refused() {
        let exit = r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))"#;
        let call = r#"(import "host" "call" (func (result i32)))"#;
        let run = r#"(func (export "run") (result i32) i32.const 0)"#;
        for (text, expected) in [
            (format!("(module {call} {run})"), "does not import wasi_snapshot_preview1 proc_exit"),
            (format!("(module {exit} {run})"), "does not import host call"),
            (format!("(module {exit} {call})"), "does not export run"),
            (format!(r#"(module {exit} {call} (func (export "run")))"#), "is no function from nothing"),
            (format!(r#"(module {exit} (import "host" "call" (func)) {run})"#), "does not answer with a number"),
            (format!("(module {exit} {call} {run})"), "no function from [] to []"),
        ] {
            let error = program(&wat::parse_str(&text).unwrap(), &shape()).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(program(b"\0asm and no more", &shape()).is_err());
    }
}
