//! Makes a program for WASI preview 1 of a module that is almost one. A module that was built to be called again and again (a reactor)
//! is given a `_start` that makes the calls of its package's manifest. A function that it imports and that WASI does not have becomes a
//! function with one answer, where the manifest lists it; an answer can be to end the program with an error that names the function.
//! Names of functions are left out; they serve debuggers.

use super::module_index::{ModuleIndex, WASI};
use super::spec::{ComponentSource, ImportStub, Reactor, ReactorArguments, StubAnswer};
use std::convert::Infallible;
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{
    BlockType, CodeSection, EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection,
    InstructionSink, MemArg, Module, TypeSection,
};
use wasmparser::{CodeSectionReader, CustomSectionReader, ExportSectionReader, FunctionSectionReader};
use wasmparser::{FuncType, ImportSectionReader, Imports, Parser, TypeRef, TypeSectionReader, ValType};

/// The function by which a program for WASI preview 1 ends itself.
const PROC_EXIT: &str = "proc_exit";
const FD_WRITE: &str = "fd_write";
const ARGS_SIZES_GET: &str = "args_sizes_get";
const ARGS_GET: &str = "args_get";

/// The bits of an exit code that another program sees.
const EXIT_CODES: i32 = 0xff;

/// The exit code of a program that calls a function which is refused.
const REFUSED: i32 = 70;

/// The function that initializes a reactor. A program that exports it would be initialized twice.
const INITIALIZE: &str = "_initialize";

const START: &str = "_start";

/// The module as a program; the same module if the manifest asks for no change.
pub(super) fn program(module: Vec<u8>, source: &ComponentSource) -> Result<Vec<u8>, String> {
    if source.reactor.is_none() && source.imports.is_empty() {
        return Ok(module);
    }
    let unfit = |what: String| format!("no program can be made of it: {what}");
    let mut shaping = Shaping::new(&module, source).map_err(unfit)?;
    let mut made = Module::new();
    let shaped = shaping.parse_core_module(&mut made, Parser::new(0), &module);
    shaped.map_err(|error| unfit(error.to_string()))?;
    Ok(made.finish())
}

/// The places of functions in the module. Imported functions have the first indices, so the others move when imports are added or
/// removed.
struct Shaping {
    /// For each imported function, its new index, and whether it is replaced.
    imported: Vec<(u32, bool)>,
    /// The functions of WASI that are imported beside the module's own: name and type.
    added: Vec<(&'static str, u32)>,
    /// The number of functions that are imported now.
    imports: u32,
    /// The types of functions that the module lacks.
    types: Vec<(&'static [wasm_encoder::ValType], &'static [wasm_encoder::ValType])>,
    /// Whether it gets a `_start` and loses its other exports.
    is_reactor: bool,
    /// The functions after all others: type and code.
    functions: Vec<(u32, Function)>,
    /// The index of `_start`.
    start: u32,
}

const NUMBER: wasm_encoder::ValType = wasm_encoder::ValType::I32;

impl Shaping {
    fn new(module: &[u8], source: &ComponentSource) -> Result<Self, String> {
        let index = ModuleIndex::read(module)?;
        let stubs = stubs(&index, &source.imports)?;
        let is_stub = |function: u32| stubs.iter().any(|stub| stub.function == function);
        let mut shaping = Self {
            imported: Vec::new(),
            added: Vec::new(),
            imports: 0,
            types: Vec::new(),
            is_reactor: source.reactor.is_some(),
            functions: Vec::new(),
            start: 0,
        };
        let mut next = 0;
        for function in 0..index.imported() {
            shaping.imported.push((next, is_stub(function)));
            next += u32::from(!is_stub(function));
        }
        let has_arguments =
            source.reactor.iter().flat_map(|reactor| &reactor.calls).any(|call| call.arguments.is_some());
        let refuses = stubs.iter().any(|stub| matches!(stub.answer, StubAnswer::Word(_)));
        let mut wasi =
            |name, is_needed: bool, params, results| shaping.import(&index, next, name, is_needed, params, results);
        let proc_exit = wasi(PROC_EXIT, true, &[NUMBER], &[])?;
        let fd_write = wasi(FD_WRITE, refuses, &[NUMBER; 4], &[NUMBER])?;
        let args_sizes_get = wasi(ARGS_SIZES_GET, has_arguments, &[NUMBER; 2], &[NUMBER])?;
        let args_get = wasi(ARGS_GET, has_arguments, &[NUMBER; 2], &[NUMBER])?;
        shaping.imports = next + shaping.added.len() as u32;
        // Replaced functions come after those that the module defines, and `_start` after them.
        let behind = shaping.imports + index.functions() - index.imported();
        for (stub, at) in stubs.iter().zip(behind..) {
            shaping.imported[stub.function as usize].0 = at;
            let code = match stub.answer {
                StubAnswer::Number(number) => answering(stub.ty, number)?,
                StubAnswer::Word(_) => refusing(&stub.name, fd_write, proc_exit),
            };
            shaping.functions.push((stub.type_index, code));
        }
        shaping.start = behind + stubs.len() as u32;
        if let Some(reactor) = &source.reactor {
            let calls = Calls { args_sizes_get, args_get, proc_exit };
            let start = calls.start(&index, reactor, |function| shaping.moved(function))?;
            let plain = shaping.type_index(&index, &[], &[]);
            shaping.functions.push((plain, start));
        }
        Ok(shaping)
    }

    /// The index that a function of WASI will have. It is added to the imports if it is needed and missing.
    fn import(
        &mut self,
        index: &ModuleIndex<'_>,
        kept: u32,
        name: &'static str,
        is_needed: bool,
        params: &'static [wasm_encoder::ValType],
        results: &'static [wasm_encoder::ValType],
    ) -> Result<u32, String> {
        if let Ok(function) = index.import(WASI, name) {
            return match index.signature(function) {
                Some(ty) if same(ty.params(), params) && same(ty.results(), results) => Ok(self.moved(function)),
                _ => Err(format!("its {name} is another function")),
            };
        }
        if !is_needed {
            return Ok(0);
        }
        let ty = self.type_index(index, params, results);
        self.added.push((name, ty));
        Ok(kept + self.added.len() as u32 - 1)
    }

    /// The index of a type of functions. The type is added if it is missing.
    fn type_index(
        &mut self,
        index: &ModuleIndex<'_>,
        params: &'static [wasm_encoder::ValType],
        results: &'static [wasm_encoder::ValType],
    ) -> u32 {
        let there = |ty: &FuncType| same(ty.params(), params) && same(ty.results(), results);
        if let Some(at) = index.position(there) {
            return at;
        }
        let found = self.types.iter().position(|ty| *ty == (params, results));
        let at = found.unwrap_or_else(|| {
            self.types.push((params, results));
            self.types.len() - 1
        });
        index.types() + at as u32
    }

    /// The new index of a function.
    fn moved(&self, function: u32) -> u32 {
        match self.imported.get(function as usize) {
            Some((at, _)) => *at,
            None => function - self.imported.len() as u32 + self.imports,
        }
    }
}

fn same(types: &[ValType], wanted: &[wasm_encoder::ValType]) -> bool {
    types.len() == wanted.len() && types.iter().all(|ty| *ty == ValType::I32)
}

type Reencoded<T = ()> = Result<T, reencode::Error<Infallible>>;

impl Reencode for Shaping {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Reencoded<u32> {
        Ok(self.moved(function))
    }

    fn parse_type_section(&mut self, types: &mut TypeSection, section: TypeSectionReader<'_>) -> Reencoded {
        utils::parse_type_section(self, types, section)?;
        for (params, results) in &self.types {
            types.ty().function(params.iter().copied(), results.iter().copied());
        }
        Ok(())
    }

    fn parse_import_section(&mut self, imports: &mut ImportSection, section: ImportSectionReader<'_>) -> Reencoded {
        let mut function = 0;
        for import in section.into_imports() {
            let import = import?;
            let is_function = matches!(import.ty, TypeRef::Func(_));
            if !is_function || !self.imported[function].1 {
                self.parse_imports(imports, Imports::Single(0, import))?;
            }
            function += usize::from(is_function);
        }
        for (name, ty) in &self.added {
            imports.import(WASI, name, EntityType::Function(*ty));
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Reencoded {
        utils::parse_function_section(self, functions, section)?;
        for (ty, _) in &self.functions {
            functions.function(*ty);
        }
        Ok(())
    }

    fn parse_export_section(&mut self, exports: &mut ExportSection, section: ExportSectionReader<'_>) -> Reencoded {
        for export in section {
            let export = export?;
            if !self.is_reactor || export.name != INITIALIZE {
                utils::parse_export(self, exports, export)?;
            }
        }
        if self.is_reactor {
            exports.export(START, ExportKind::Func, self.start);
        }
        Ok(())
    }

    fn parse_code_section(&mut self, code: &mut CodeSection, section: CodeSectionReader<'_>) -> Reencoded {
        utils::parse_code_section(self, code, section)?;
        for (_, function) in &self.functions {
            code.function(function);
        }
        Ok(())
    }

    fn parse_custom_section(&mut self, _module: &mut Module, _section: CustomSectionReader<'_>) -> Reencoded {
        Ok(())
    }
}

/// An imported function that is replaced.
struct Stub<'a> {
    function: u32,
    type_index: u32,
    ty: &'a FuncType,
    /// Its module and its own name.
    name: String,
    answer: StubAnswer,
}

/// The functions that the manifest lists. Each entry must name functions that the module imports, so that the list has no entries
/// without effect.
fn stubs<'a>(index: &'a ModuleIndex<'_>, listed: &[ImportStub]) -> Result<Vec<Stub<'a>>, String> {
    let mut stubs: Vec<Stub<'_>> = Vec::new();
    for ImportStub { module, names, answer } in listed {
        if module == WASI {
            return Err(format!("the functions of {WASI} are not replaced"));
        }
        let functions = match names.is_empty() {
            true => index.imports_from(module),
            false => names.iter().map(|name| index.import(module, name)).collect::<Result<_, _>>()?,
        };
        if functions.is_empty() {
            return Err(format!("it imports nothing from {module}"));
        }
        for function in functions {
            // The first entry that names a function applies.
            if stubs.iter().any(|stub| stub.function == function) {
                continue;
            }
            let (Some(type_index), Some(ty)) = (index.type_of(function), index.signature(function)) else {
                return Err(format!("a function of {module} has no type"));
            };
            let name = format!("{} of {module}", index.import_name(function));
            stubs.push(Stub { function, type_index, ty, name, answer: *answer });
        }
    }
    Ok(stubs)
}

/// A function that always returns a number, or nothing if its type has no result.
fn answering(ty: &FuncType, number: i32) -> Result<Function, String> {
    let mut answering = Function::new([]);
    let mut code = answering.instructions();
    for result in ty.results() {
        match result {
            ValType::I32 => code.i32_const(number),
            ValType::I64 => code.i64_const(number.into()),
            ValType::F32 => code.f32_const((number as f32).into()),
            ValType::F64 => code.f64_const(f64::from(number).into()),
            _ => return Err("a function that is replaced returns something else than numbers".to_owned()),
        };
    }
    code.end();
    Ok(answering)
}

/// A function that writes its name to standard error and ends the program. It overwrites the program's memory, which nothing
/// reads any more.
fn refusing(name: &str, fd_write: u32, proc_exit: u32) -> Function {
    let (vector, written, text) = (16, 24, 32);
    let message = format!("kiso: the program calls {name:.300}, which is not available here\n");
    let mut refusing = Function::new([]);
    let mut code = refusing.instructions();
    for (at, bytes) in (text..).step_by(8).zip(message.as_bytes().chunks(8)) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        code.i32_const(at).i64_const(i64::from_le_bytes(word)).i64_store(aligned(0, 3));
    }
    code.i32_const(vector).i32_const(text).i32_store(aligned(0, 2));
    code.i32_const(vector).i32_const(message.len() as i32).i32_store(aligned(4, 2));
    code.i32_const(2).i32_const(vector).i32_const(1).i32_const(written).call(fd_write).drop();
    code.i32_const(REFUSED).call(proc_exit).unreachable().end();
    refusing
}

/// The functions that `_start` needs besides those of the module.
struct Calls {
    args_sizes_get: u32,
    args_get: u32,
    proc_exit: u32,
}

impl Calls {
    fn start(
        &self,
        index: &ModuleIndex<'_>,
        reactor: &Reactor,
        moved: impl Fn(u32) -> u32,
    ) -> Result<Function, String> {
        if index.export(START).is_ok() {
            return Err(format!("it exports {START} already"));
        }
        let mut allocate = None;
        if let Some(name) = &reactor.allocate {
            let function = index.export(name)?;
            let takes_four = index.has_type(function, &[ValType::I32; 4], &[ValType::I32]);
            if !takes_four && !index.has_type(function, &[ValType::I32], &[ValType::I32]) {
                return Err(format!("{name} does not allocate memory"));
            }
            allocate = Some((moved(function), takes_four));
        }
        let mut start = Function::new([(6, NUMBER)]);
        let mut code = start.instructions();
        let exit_code = 5;
        for call in &reactor.calls {
            let name = &call.function;
            let function = index.export(name)?;
            let params: &[ValType] = if call.arguments.is_some() { &[ValType::I32; 2] } else { &[] };
            let results = index.signature(function).filter(|ty| ty.params() == params).map(FuncType::results);
            let results = results.ok_or_else(|| format!("{name} has other parameters"))?;
            if call.exit && results != [ValType::I32] {
                return Err(format!("{name} does not return an exit code"));
            }
            if let Some(form) = call.arguments {
                let allocate = allocate.ok_or("`allocate` must name the function that makes room for arguments")?;
                self.arguments(&mut code, allocate, form);
            }
            code.call(moved(function));
            match call.exit {
                true => {
                    code.local_set(exit_code);
                }
                false => results.iter().for_each(|_| {
                    code.drop();
                }),
            }
        }
        // A program that simply returns has succeeded.
        if reactor.calls.iter().any(|call| call.exit) {
            code.local_get(exit_code).i32_const(EXIT_CODES).i32_and().call(self.proc_exit);
        }
        code.end();
        Ok(start)
    }

    /// Leaves the two parameters on the stack. The words come after an array of their addresses; WASI writes one after the other.
    fn arguments(&self, code: &mut InstructionSink<'_>, (allocate, takes_four): (u32, bool), form: ReactorArguments) {
        let (count, size, words, pairs, at) = (0, 1, 2, 3, 4);
        let room = |code: &mut InstructionSink<'_>, push_size: &dyn Fn(&mut InstructionSink<'_>)| {
            if takes_four {
                code.i32_const(0).i32_const(0).i32_const(8);
            }
            push_size(code);
            code.call(allocate);
        };
        room(code, &|code| {
            code.i32_const(8);
        });
        code.local_tee(words).local_get(words).i32_const(4).i32_add().call(self.args_sizes_get).drop();
        code.local_get(words).i32_load(aligned(0, 2)).local_set(count);
        code.local_get(words).i32_load(aligned(4, 2)).local_set(size);
        // The address after the array of addresses. The array has room for one more.
        let behind = |code: &mut InstructionSink<'_>| {
            code.local_get(count).i32_const(2).i32_shl().i32_const(4).i32_add();
        };
        room(code, &|code| {
            behind(code);
            code.local_get(size).i32_add();
        });
        code.local_tee(words).local_get(words);
        behind(code);
        code.i32_add().call(self.args_get).drop();
        match form {
            ReactorArguments::Argv => {
                code.local_get(words).local_get(count).i32_const(2).i32_shl().i32_add();
                code.i32_const(0).i32_store(aligned(0, 2));
                code.local_get(count).local_get(words);
            }
            ReactorArguments::Strings => {
                // The end of the last word, as if another one began there.
                code.local_get(words).local_get(count).i32_const(2).i32_shl().i32_add();
                code.local_get(words);
                behind(code);
                code.i32_add().local_get(size).i32_add().i32_store(aligned(0, 2));
                room(code, &|code| {
                    code.local_get(count).i32_const(3).i32_shl().i32_const(8).i32_add();
                });
                code.local_set(pairs);
                let word = |code: &mut InstructionSink<'_>, offset| {
                    code.local_get(words).local_get(at).i32_const(2).i32_shl().i32_add();
                    code.i32_load(aligned(offset, 2));
                };
                let pair = |code: &mut InstructionSink<'_>| {
                    code.local_get(pairs).local_get(at).i32_const(3).i32_shl().i32_add();
                };
                code.i32_const(0).local_set(at);
                code.loop_(BlockType::Empty).local_get(at).local_get(count).i32_lt_u().if_(BlockType::Empty);
                pair(code);
                word(code, 0);
                code.i32_store(aligned(0, 2));
                pair(code);
                word(code, 4);
                word(code, 0);
                // Each word ends with a zero, which is not part of it.
                code.i32_sub().i32_const(1).i32_sub().i32_store(aligned(4, 2));
                code.local_get(at).i32_const(1).i32_add().local_set(at).br(1).end().end();
                code.local_get(pairs).local_get(count);
            }
        }
    }
}

fn aligned(offset: u64, align: u32) -> MemArg {
    MemArg { offset, align, memory_index: 0 }
}

#[cfg(test)]
mod tests {
    use super::super::spec::{ReactorCall, StubWord};
    use super::*;
    use wasmtime::{Caller, Engine, Extern, Linker, Store};

    fn call(function: &str, arguments: Option<ReactorArguments>, exit: bool) -> ReactorCall {
        ReactorCall { function: function.to_owned(), arguments, exit }
    }

    fn stub(module: &str, names: &[&str], answer: StubAnswer) -> ImportStub {
        ImportStub { module: module.to_owned(), names: names.iter().map(|name| (*name).to_owned()).collect(), answer }
    }

    fn source(reactor: Option<Reactor>, imports: Vec<ImportStub>) -> ComponentSource {
        let (url, also, sha256) = (String::new(), String::new(), String::new());
        ComponentSource { url, also, sha256, size: 1, download_mib: 1, reactor, imports }
    }

    fn shape() -> ComponentSource {
        let reactor = Reactor { calls: vec![call("run", None, true)], allocate: None };
        source(Some(reactor), vec![stub("host", &["call"], StubAnswer::Number(-1))])
    }

    #[derive(Default)]
    struct Host {
        words: Vec<u8>,
        count: usize,
        printed: Vec<u8>,
        code: Option<i32>,
    }

    /// Runs a program with words. Returns its output and its exit code.
    fn run(module: &[u8], words: &[&str]) -> (String, Option<i32>) {
        let engine = Engine::default();
        let module = wasmtime::Module::new(&engine, module).unwrap();
        assert!(module.imports().all(|import| import.module() == WASI));
        let mut linker: Linker<Host> = Linker::new(&engine);
        type C<'a> = Caller<'a, Host>;
        fn put(caller: &mut C<'_>, at: i32, bytes: &[u8]) {
            let memory = caller.get_export("memory").and_then(Extern::into_memory).unwrap();
            memory.write(caller, at as usize, bytes).unwrap();
        }
        fn number(caller: &mut C<'_>, at: i32) -> i32 {
            let memory = caller.get_export("memory").and_then(Extern::into_memory).unwrap();
            let mut bytes = [0; 4];
            memory.read(caller, at as usize, &mut bytes).unwrap();
            i32::from_le_bytes(bytes)
        }
        linker.func_wrap(WASI, "sched_yield", || 0).unwrap();
        let sizes = |mut c: C<'_>, count: i32, size: i32| {
            let (words, bytes) = (c.data().count as u32, c.data().words.len() as u32);
            put(&mut c, count, &words.to_le_bytes());
            put(&mut c, size, &bytes.to_le_bytes());
            0
        };
        linker.func_wrap(WASI, ARGS_SIZES_GET, sizes).unwrap();
        let get = |mut c: C<'_>, mut addresses: i32, at: i32| {
            let words = c.data().words.clone();
            let mut from = at;
            for word in words.split_inclusive(|byte| *byte == 0) {
                put(&mut c, addresses, &from.to_le_bytes());
                (addresses, from) = (addresses + 4, from + word.len() as i32);
            }
            put(&mut c, at, &words);
            0
        };
        linker.func_wrap(WASI, ARGS_GET, get).unwrap();
        let write = |mut c: C<'_>, _: i32, vector: i32, _: i32, _: i32| {
            let (at, size) = (number(&mut c, vector) as usize, number(&mut c, vector + 4) as usize);
            let memory = c.get_export("memory").and_then(Extern::into_memory).unwrap();
            let bytes = memory.data(&c)[at..at + size].to_vec();
            c.data_mut().printed.extend(bytes);
            0
        };
        linker.func_wrap(WASI, FD_WRITE, write).unwrap();
        let exit = |mut c: C<'_>, code: i32| -> wasmtime::Result<()> {
            c.data_mut().code = Some(code);
            Err(wasmtime::format_err!("it ended"))
        };
        linker.func_wrap(WASI, PROC_EXIT, exit).unwrap();
        let ended: Vec<u8> = words.iter().flat_map(|word| format!("{word}\0").into_bytes()).collect();
        let mut store = Store::new(&engine, Host { words: ended, count: words.len(), ..Host::default() });
        let instance = linker.instantiate(&mut store, &module).unwrap();
        assert!(instance.get_func(&mut store, INITIALIZE).is_none());
        let _ = instance.get_typed_func::<(), ()>(&mut store, START).unwrap().call(&mut store, ());
        (String::from_utf8(std::mem::take(&mut store.data_mut().printed)).unwrap(), store.data().code)
    }

    /// A reactor that calls its embedder through a table. It returns `answer`, less one if that call failed as expected.
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
            let made = program(reactor(answer), &shape()).unwrap();
            assert_eq!(run(&made, &[]), (String::new(), Some(expected)), "{answer}");
        }
    }

    /// A program that prints each of its words in brackets, and returns their number. It must be initialized first, and once.
    fn words(strings: bool) -> Vec<u8> {
        // An element of the array is an address, or an address and a length.
        let (params, step, length) = match strings {
            true => ("(param $array i32) (param $count i32)", 8, "(i32.load offset=4 (local.get $array))"),
            false => ("(param $count i32) (param $array i32)", 4, "(call $length (i32.load (local.get $array)))"),
        };
        let text = format!(
            r#"(module
                 (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
                 (import "host" "unused" (func $unused (param i64) (result f64)))
                 (memory (export "memory") 1) (data (i32.const 100) "[]") (global $free (mut i32) (i32.const 1024)) (global $ready (mut i32) (i32.const 0))
                 (func (export "_initialize") (global.set $ready (i32.add (global.get $ready) (i32.const 1))))
                 (func (export "malloc") (param i32) (result i32)
                   (global.get $free) (global.set $free (i32.add (global.get $free) (i32.and (i32.add (local.get 0) (i32.const 15)) (i32.const -8)))))
                 (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                   (global.get $free) (global.set $free (i32.add (global.get $free) (i32.and (i32.add (local.get 3) (i32.const 15)) (i32.const -8)))))
                 (func $length (param i32) (result i32) (local i32)
                   (loop (if (i32.load8_u (i32.add (local.get 0) (local.get 1)))
                     (then (local.set 1 (i32.add (local.get 1) (i32.const 1))) (br 1))))
                   (local.get 1))
                 (func $say (param i32 i32)
                   (i32.store (i32.const 200) (local.get 0)) (i32.store (i32.const 204) (local.get 1))
                   (drop (call $write (i32.const 1) (i32.const 200) (i32.const 1) (i32.const 208))))
                 (func (export "main") {params} (result i32) (local $left i32)
                   (local.set $left (local.get $count))
                   (loop (if (local.get $left) (then
                     (call $say (i32.const 100) (i32.const 1))
                     (call $say (i32.load (local.get $array)) {length})
                     (call $say (i32.const 101) (i32.const 1))
                     (local.set $array (i32.add (local.get $array) (i32.const {step})))
                     (local.set $left (i32.sub (local.get $left) (i32.const 1))) (br 1))))
                   (i32.add (i32.mul (global.get $ready) (i32.const 100)) (local.get $count)))
                 (func (export "after") (result i32 i32) (call $say (i32.const 100) (i32.const 2)) (i32.const 8) (i32.const 9)))"#
        );
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn a_program_is_given_its_words_in_the_form_that_it_takes() {
        for (form, allocate) in [(ReactorArguments::Argv, "malloc"), (ReactorArguments::Strings, "cabi_realloc")] {
            let calls = vec![call(INITIALIZE, None, false), call("main", Some(form), true), call("after", None, false)];
            let reactor = Reactor { calls, allocate: Some(allocate.to_owned()) };
            let module = words(form == ReactorArguments::Strings);
            let source = source(Some(reactor), vec![stub("host", &[], StubAnswer::Number(3))]);
            let made = program(module, &source).unwrap();
            for (given, printed) in
                [(&["p", "", "a word", "é"][..], "[p][][a word][é][]"), (&["p"], "[p][]"), (&[], "[]")]
            {
                let code = 100 + given.len() as i32;
                assert_eq!(run(&made, given), (printed.to_owned(), Some(code)), "{form:?}");
            }
        }
    }

    #[test]
    fn what_is_refused_ends_with_its_name_and_nothing_is_replaced_that_is_not_listed() {
        let module = || {
            let text = r#"(module
                (import "host" "a: func()" (func $a)) (import "host" "b" (func $b (param i32) (result i64)))
                (import "other" "c" (func $c (result f32)))
                (memory (export "memory") 1)
                (func (export "_start")
                    (if (i32.or (i64.ne (call $b (i32.const 1)) (i64.const -2)) (f32.ne (call $c) (f32.const 5))) (then unreachable))
                    (call $a)))"#;
            wat::parse_str(text).unwrap()
        };
        let (b, c) = (stub("host", &["b"], StubAnswer::Number(-2)), stub("other", &[], StubAnswer::Number(5)));
        // The first entry that names a function applies.
        let rest = stub("host", &[], StubAnswer::Word(StubWord::Refuse));
        let made = program(module(), &source(None, vec![b.clone(), rest, c.clone()])).unwrap();
        let expected = "kiso: the program calls a: func() of host, which is not available here\n";
        assert_eq!(run(&made, &[]), (expected.to_owned(), Some(REFUSED)));
        let made = program(module(), &source(None, vec![b.clone(), c])).unwrap();
        let made = wasmtime::Module::new(&Engine::default(), made).unwrap();
        assert!(made.imports().any(|import| (import.module(), import.name()) == ("host", "a: func()")));
        assert_eq!(program(module(), &source(None, Vec::new())).unwrap(), module());
        for (stub, why) in [
            (stub("host", &["d"], StubAnswer::Number(0)), "does not import host d"),
            (stub("nowhere", &[], StubAnswer::Number(0)), "imports nothing from nowhere"),
            (stub(WASI, &[], StubAnswer::Number(0)), "are not replaced"),
        ] {
            let error = program(module(), &source(None, vec![b.clone(), stub])).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn other_modules_are_refused() {
        let exit = r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))"#;
        let host = r#"(import "host" "call" (func (result i32)))"#;
        let run = r#"(func (export "run") (result i32) i32.const 0)"#;
        for (text, expected) in [
            (format!("(module {exit} {run})"), "does not import host call"),
            (format!("(module {exit} {host})"), "does not export run"),
            (format!(r#"(module {exit} {host} (func (export "run")))"#), "does not return an exit code"),
            (format!(r#"(module {exit} {host} (func (export "run") (param i32)))"#), "has other parameters"),
            (
                format!(r#"(module {exit} (import "host" "call" (func (result v128))) {run})"#),
                "something else than numbers",
            ),
            (format!(r#"(module {exit} {host} {run} (func (export "_start")))"#), "exports _start already"),
            (
                format!(r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (result i32))) {host} {run})"#),
                "its proc_exit is another function",
            ),
        ] {
            let error = program(wat::parse_str(&text).unwrap(), &shape()).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let calls = vec![call("main", Some(ReactorArguments::Argv), true)];
        let refused = |allocate: Option<&str>| {
            let reactor = Reactor { calls: calls.clone(), allocate: allocate.map(str::to_owned) };
            program(words(false), &source(Some(reactor), Vec::new())).unwrap_err()
        };
        assert!(refused(None).contains("`allocate` must name"));
        assert!(refused(Some("after")).contains("does not allocate"));
        assert!(program(b"\0asm and no more".to_vec(), &shape()).is_err());
    }
}
