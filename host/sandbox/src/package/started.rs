//! An interpreter that has started already. Starting one takes longer than most programs run. So it is started once, when its
//! package is added, and its state is kept in its module. That takes two steps:
//!
//! 1. [`recorder`] makes a module that starts as usual. Where the program then asks for the resolution of a clock, which nothing else
//!    does, it writes its stack pointer and its whole memory to standard output instead, and ends.
//! 2. [`started`] makes a module whose memory begins with what was written. Its `_start` puts words and environment where the program
//!    has made room for them, and calls a function of the program.
//!
//! Some things cannot be handed over to an interpreter that has started, such as options that it reads at its start. So the
//! module also contains the memory that it was published with, and restores it if the first word does not begin with [`MARK`].

use super::module_index::{ModuleIndex, WASI};
use super::spec::StartedInterpreter;
use std::convert::Infallible;
use wasm_encoder::reencode::{self, Reencode, RoundtripReencoder, utils};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataCountSection, DataSection, ExportKind, ExportSection, Function,
    FunctionSection, GlobalSection, GlobalType, InstructionSink, MemArg, MemorySection, MemoryType, Module, RawSection,
};
use wasmparser::{
    CodeSectionReader, CustomSectionReader, DataKind, ExternalKind, FuncType, FunctionSectionReader, Operator, Parser,
    Payload, ValType,
};

/// The first character of the first word of a program that goes on where the interpreter was recorded.
pub const MARK: char = '+';

const PAGE: usize = 64 << 10;

/// The number of zero bytes that separates two pieces of data: a page of most machines. With fewer, the memory of an interpreter
/// with many libraries has more pieces than a module may have.
const GAP: usize = 4 << 10;

/// Bytes of memory that a recorder may have: some thirty times what the first interpreter has.
const MAX_MEMORY: usize = 512 << 20;

/// The stack is aligned to this many bytes, as the calling convention of C requires.
const ALIGN: usize = 16;

/// The output of a recorder.
#[derive(Debug, PartialEq, Eq)]
struct Recorded<'a> {
    function: u32,
    array: u32,
    stack_pointer: u32,
    memory: &'a [u8],
}

/// The module that prints its own state. Debugging information is left out.
pub(super) fn recorder(module: &[u8]) -> Result<Vec<u8>, String> {
    let unfit = |what: String| format!("its interpreter cannot be recorded: {what}");
    let mut recorder = Recorder::new(module).map_err(unfit)?;
    let mut made = Module::new();
    let done = recorder.parse_core_module(&mut made, Parser::new(0), module);
    done.map_err(|error| unfit(error.to_string()))?;
    Ok(made.finish())
}

/// Makes the module that continues where the recorder ended. `module` is the one that the recorder was made from, `recorded` the
/// recorder's output.
pub(super) fn started(module: &[u8], recorded: &[u8], interpreter: &StartedInterpreter) -> Result<Vec<u8>, String> {
    let unfit = |what: String| format!("its interpreter cannot be started from what was recorded: {what}");
    Recorded::read(recorded).and_then(|recorded| restart(module, &recorded, interpreter)).map_err(unfit)
}

struct Recorder {
    clock: u32,
    clock_type: u32,
    fd_write: u32,
    proc_exit: u32,
    functions: u32,
}

impl Recorder {
    fn new(module: &[u8]) -> Result<Self, String> {
        let index = ModuleIndex::read(module)?;
        let (clock, fd_write) = (index.import(WASI, "clock_res_get")?, index.import(WASI, "fd_write")?);
        let (proc_exit, number) = (index.import(WASI, "proc_exit")?, ValType::I32);
        if !index.has_type(clock, &[number; 2], &[number]) {
            return Err("its clock_res_get is another function".to_owned());
        }
        let clock_type = index.type_of(clock).ok_or("its clock_res_get has no type")?;
        Ok(Self { clock, clock_type, fd_write, proc_exit, functions: index.functions() })
    }

    /// Writes a number of bytes from an address on to standard output, or ends the program. The parameters and results of
    /// `fd_write` are below the stack.
    fn write(&self) -> Function {
        let (from, left, room) = (0, 1, 2);
        let mut write = Function::new([(1, wasm_encoder::ValType::I32)]);
        let mut code = write.instructions();
        code.global_get(0).i32_const(64).i32_sub().i32_const(-16).i32_and().local_set(room);
        code.loop_(BlockType::Empty).local_get(left).if_(BlockType::Empty);
        code.local_get(room).local_get(from).i32_store(mem_arg(0));
        code.local_get(room).local_get(left).i32_const(PAGE as i32);
        code.local_get(left).i32_const(PAGE as i32).i32_lt_u().select().i32_store(mem_arg(4));
        code.i32_const(1).local_get(room).i32_const(1).local_get(room).i32_const(8).i32_add().call(self.fd_write);
        code.if_(BlockType::Empty).i32_const(74).call(self.proc_exit).end();
        code.local_get(from).local_get(room).i32_load(mem_arg(8)).i32_add().local_set(from);
        code.local_get(left).local_get(room).i32_load(mem_arg(8)).i32_sub().local_set(left);
        code.br(1).end().end().i32_const(0).end();
        write
    }

    /// Writes the stack pointer and the pages of memory, then all of it, and ends the program.
    fn record(&self) -> Function {
        let write = self.functions;
        let (room, mut record) = (2, Function::new([(1, wasm_encoder::ValType::I32)]));
        let mut code = record.instructions();
        code.global_get(0).i32_const(32).i32_sub().i32_const(-16).i32_and().local_set(room);
        code.local_get(room).global_get(0).i32_store(mem_arg(0)).local_get(room).memory_size(0).i32_store(mem_arg(4));
        code.local_get(room).i32_const(8).call(write).drop();
        code.i32_const(0).memory_size(0).i32_const(16).i32_shl().call(write).drop();
        code.i32_const(0).call(self.proc_exit).unreachable().end();
        record
    }
}

fn mem_arg(offset: u64) -> MemArg {
    MemArg { offset, align: 2, memory_index: 0 }
}

type Reencoded<T = ()> = Result<T, reencode::Error<Infallible>>;

impl Reencode for Recorder {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Reencoded<u32> {
        Ok(if function == self.clock { self.functions + 1 } else { function })
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Reencoded {
        utils::parse_function_section(self, functions, section)?;
        functions.function(self.clock_type).function(self.clock_type);
        Ok(())
    }

    fn parse_code_section(&mut self, code: &mut CodeSection, section: CodeSectionReader<'_>) -> Reencoded {
        utils::parse_code_section(self, code, section)?;
        code.function(&self.write()).function(&self.record());
        Ok(())
    }

    fn parse_custom_section(&mut self, _module: &mut Module, _section: CustomSectionReader<'_>) -> Reencoded {
        Ok(())
    }
}

impl<'a> Recorded<'a> {
    fn read(printed: &'a [u8]) -> Result<Recorded<'a>, String> {
        let line_end = printed.iter().take(100).position(|byte| *byte == b'\n').ok_or("there are no addresses")?;
        let (line, rest) = (&printed[..line_end], &printed[line_end + 1..]);
        let line = std::str::from_utf8(line).ok().and_then(|line| line.split_once(' '));
        let addresses = line.and_then(|(function, array)| Some((function.parse().ok()?, array.parse().ok()?)));
        let (function, array) = addresses.ok_or("its addresses are no numbers")?;
        let number = |at: usize| word(rest, at).ok_or("it was cut off");
        let (stack_pointer, pages) = (number(0)?, number(4)? as usize);
        let memory = &rest[8..];
        if memory.len() > MAX_MEMORY || memory.len() != pages * PAGE {
            return Err(format!("there are {} bytes of {pages} pages", memory.len()));
        }
        Ok(Recorded { function, array, stack_pointer, memory })
    }

    fn word(&self, address: u32, offset: u32) -> Result<u32, String> {
        let at = address as usize + offset as usize;
        word(self.memory, at).ok_or_else(|| format!("{at:#x} is no address"))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// The pieces of bytes that are not zero, with their offsets.
fn pieces(memory: &[u8]) -> Vec<(usize, &[u8])> {
    let (mut pieces, mut from) = (Vec::new(), 0);
    while let Some(begin) = memory[from..].iter().position(|byte| *byte != 0).map(|at| from + at) {
        let mut end = begin + 1;
        while let Some(next) = memory[end..].iter().take(GAP).position(|byte| *byte != 0) {
            end += next + 1;
        }
        pieces.push((begin, &memory[begin..end]));
        from = end;
    }
    pieces
}

/// The parts of the published module that are rebuilt.
struct Published {
    memory: Vec<u8>,
    maximum: Option<u64>,
    stack_pointer: i32,
    /// The initial values of the other globals, none of which changes.
    others: Vec<(GlobalType, ConstExpr)>,
    start: u32,
}

impl Published {
    fn read(module: &[u8], index: &ModuleIndex<'_>) -> Result<Published, String> {
        let wrong = |error: wasmparser::Error| error.to_string();
        let start = index.export("_start")?;
        let mut published =
            Published { memory: Vec::new(), maximum: None, stack_pointer: 0, others: Vec::new(), start };
        let mut uses_passive = false;
        for payload in Parser::new(0).parse_all(module) {
            match payload.map_err(wrong)? {
                Payload::MemorySection(memories) => {
                    let all: Vec<_> = memories.into_iter().collect::<Result<_, _>>().map_err(wrong)?;
                    let [memory] = all[..] else { return Err("it has not one memory".to_owned()) };
                    let usual = !memory.memory64 && !memory.shared && memory.page_size_log2.is_none();
                    if !usual || memory.initial as usize > MAX_MEMORY / PAGE {
                        return Err("its memory is of another kind".to_owned());
                    }
                    published.memory = vec![0; memory.initial as usize * PAGE];
                    published.maximum = memory.maximum;
                }
                Payload::GlobalSection(globals) => {
                    let all: Vec<_> = globals.into_iter().collect::<Result<_, _>>().map_err(wrong)?;
                    let [pointer, others @ ..] = &all[..] else { return Err("it has no global".to_owned()) };
                    let first = pointer.init_expr.get_operators_reader().read().map_err(wrong)?;
                    let is_pointer = pointer.ty.mutable && pointer.ty.content_type == ValType::I32;
                    let (true, Operator::I32Const { value }) = (is_pointer, first) else {
                        return Err("its first global is no stack pointer".to_owned());
                    };
                    published.stack_pointer = value;
                    for other in others.iter() {
                        if other.ty.mutable {
                            return Err("it has a second global that changes".to_owned());
                        }
                        let unfit = |error: reencode::Error<Infallible>| error.to_string();
                        let ty = RoundtripReencoder.global_type(other.ty).map_err(unfit)?;
                        let value = RoundtripReencoder.const_expr(other.init_expr.clone()).map_err(unfit)?;
                        published.others.push((ty, value));
                    }
                }
                Payload::DataCountSection { .. } => uses_passive = true,
                Payload::StartSection { .. } => return Err("it has another start".to_owned()),
                Payload::DataSection(segments) => {
                    for segment in segments {
                        let segment = segment.map_err(wrong)?;
                        // Without a count of the pieces, no code can ask for one that is not in the memory from the start.
                        if matches!(segment.kind, DataKind::Passive) && !uses_passive {
                            continue;
                        }
                        let DataKind::Active { memory_index: 0, offset_expr } = segment.kind else {
                            return Err("it has data that is not there at once".to_owned());
                        };
                        let Operator::I32Const { value } = offset_expr.get_operators_reader().read().map_err(wrong)?
                        else {
                            return Err("it has data at no fixed place".to_owned());
                        };
                        let begin = value as u32 as usize;
                        let place = published.memory.get_mut(begin..begin + segment.data.len());
                        place.ok_or("it has data outside of its memory")?.copy_from_slice(segment.data);
                    }
                }
                _ => {}
            }
        }
        match published.stack_pointer {
            0 => Err("it has no stack pointer".to_owned()),
            _ => Ok(published),
        }
    }
}

fn restart(module: &[u8], recorded: &Recorded<'_>, interpreter: &StartedInterpreter) -> Result<Vec<u8>, String> {
    let index = ModuleIndex::read(module)?;
    let published = Published::read(module, &index)?;
    let pages = recorded.memory.len() / PAGE + (interpreter.stack_mib as usize * (1 << 20)).div_ceil(PAGE);
    let stack_pointer = match interpreter.stack_mib {
        0 => recorded.stack_pointer,
        _ => (pages * PAGE - ALIGN) as u32,
    };
    if pages * PAGE > i32::MAX as usize || published.maximum.is_some_and(|most| pages as u64 > most) {
        return Err("there is no room for its stack".to_owned());
    }
    if published.memory.len() > recorded.memory.len() || recorded.stack_pointer as usize > recorded.memory.len() {
        return Err("its memory is another one".to_owned());
    }
    let is_call = |ty: &FuncType| ty.params() == [ValType::I32; 4] && ty.results() == [ValType::I32];
    let begin = Begin {
        call: index.position(is_call).ok_or("it has no function that calls one of Python")?,
        args_sizes_get: index.import(WASI, "args_sizes_get")?,
        args_get: index.import(WASI, "args_get")?,
        environ_sizes_get: index.import(WASI, "environ_sizes_get")?,
        environ_get: index.import(WASI, "environ_get")?,
        proc_exit: index.import(WASI, "proc_exit")?,
        function: recorded.function,
        code: recorded.word(recorded.function, interpreter.call)?,
        room: recorded.word(recorded.array, interpreter.bytes)?,
        size: recorded.word(recorded.array, interpreter.size)?,
        exit: interpreter.exit,
        start: published.start,
        stack_pointer: (interpreter.stack_mib == 0).then_some(published.stack_pointer),
        memory: recorded.memory.len(),
    };
    if !index.has_type(begin.exit, &[], &[]) || !index.has_type(begin.start, &[], &[]) {
        return Err("its functions are others".to_owned());
    }
    if (begin.room as usize).checked_add(begin.size as usize).is_none_or(|end| end > recorded.memory.len()) {
        return Err("there is no room for words".to_owned());
    }
    let (now, before) = (pieces(recorded.memory), pieces(&published.memory));
    let count = u32::try_from(now.len() + before.len()).map_err(|error| error.to_string())?;
    let begin_function = begin.function(now.len() as u32, &before);
    let wrong = |error: wasmparser::Error| error.to_string();
    let mut made = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(wrong)? {
            Payload::FunctionSection(section) => {
                let mut functions = FunctionSection::new();
                for ty in section {
                    functions.function(ty.map_err(wrong)?);
                }
                functions.function(index.type_of(begin.start).ok_or("its _start has no type")?);
                made.section(&functions);
            }
            Payload::MemorySection(_) => {
                let mut memories = MemorySection::new();
                let (minimum, maximum, memory64, shared) = (pages as u64, published.maximum, false, false);
                memories.memory(MemoryType { minimum, maximum, memory64, shared, page_size_log2: None });
                made.section(&memories);
            }
            Payload::GlobalSection(_) => {
                let mut globals = GlobalSection::new();
                let ty = GlobalType { val_type: wasm_encoder::ValType::I32, mutable: true, shared: false };
                // A new stack begins at its end; the old one continues where it was.
                globals.global(ty, &ConstExpr::i32_const(stack_pointer as i32));
                for (ty, value) in &published.others {
                    globals.global(*ty, value);
                }
                made.section(&globals);
            }
            Payload::ExportSection(section) => {
                let mut exports = ExportSection::new();
                for export in section {
                    let export = export.map_err(wrong)?;
                    match export.kind {
                        ExternalKind::Func if export.index == begin.start => {
                            exports.export(export.name, ExportKind::Func, index.functions())
                        }
                        kind => {
                            let kind = RoundtripReencoder.export_kind(kind).map_err(|error| error.to_string())?;
                            exports.export(export.name, kind, export.index)
                        }
                    };
                }
                made.section(&exports);
            }
            Payload::DataCountSection { .. } | Payload::CustomSection(_) => {}
            Payload::CodeSectionStart { range, .. } => {
                made.section(&DataCountSection { count });
                let mut code = CodeSection::new();
                let reader = wasmparser::BinaryReader::new(&module[range.clone()], range.start);
                for body in CodeSectionReader::new(reader).map_err(wrong)? {
                    code.raw(body.map_err(wrong)?.as_bytes());
                }
                code.function(&begin_function);
                made.section(&code);
            }
            Payload::DataSection(_) => {
                let mut data = DataSection::new();
                for (at, bytes) in &now {
                    data.active(0, &ConstExpr::i32_const(*at as i32), bytes.iter().copied());
                }
                for (_, bytes) in &before {
                    data.passive(bytes.iter().copied());
                }
                made.section(&data);
            }
            other => {
                if let Some((id, range)) = other.as_section() {
                    made.section(&RawSection { id, data: &module[range] });
                }
            }
        }
    }
    Ok(made.finish())
}

/// The parts of the function that begins a program.
struct Begin {
    call: u32,
    args_sizes_get: u32,
    args_get: u32,
    environ_sizes_get: u32,
    environ_get: u32,
    proc_exit: u32,
    function: u32,
    /// The table's index of its code.
    code: u32,
    room: u32,
    size: u32,
    exit: u32,
    start: u32,
    /// Where the published program's stack begins, if the stack is still the module's own.
    stack_pointer: Option<i32>,
    memory: usize,
}

impl Begin {
    /// The array takes: how many words, and their bytes; how many variables, and theirs; where each word is, the words, where each
    /// variable is, the variables.
    fn function(&self, first: u32, before: &[(usize, &[u8])]) -> Function {
        let (words, variables, is_marked) = (0, 1, 2);
        let room = self.room as i32;
        let mut begin = Function::new([(3, wasm_encoder::ValType::I32)]);
        let mut code = begin.instructions();
        let number = |code: &mut InstructionSink<'_>, offset: i32| {
            code.i32_const(room + offset).i32_load(mem_arg(0));
        };
        code.i32_const(room).i32_const(room + 4).call(self.args_sizes_get).drop();
        code.i32_const(room + 8).i32_const(room + 12).call(self.environ_sizes_get).drop();
        // The addresses of the words, and after them those of the variables.
        code.i32_const(room + 16);
        number(&mut code, 0);
        code.i32_const(2).i32_shl().i32_add().local_tee(words);
        number(&mut code, 4);
        code.i32_add().i32_const(3).i32_add().i32_const(-4).i32_and().local_set(variables);
        // No sum of these is too large for 32 bits where each is at most as large as the array.
        for offset in [0, 4, 8, 12] {
            number(&mut code, offset);
            code.i32_const((self.size / 16) as i32).i32_gt_u();
        }
        code.i32_or().i32_or().i32_or().i32_eqz().if_(BlockType::Empty);
        code.i32_const(room + 16).local_get(words).call(self.args_get).drop();
        code.local_get(words).i32_load8_u(MemArg { offset: 0, align: 0, memory_index: 0 });
        code.i32_const(MARK as i32).i32_eq().local_set(is_marked).end();
        code.local_get(is_marked).if_(BlockType::Empty);
        code.local_get(variables).local_get(variables);
        number(&mut code, 8);
        code.i32_const(2).i32_shl().i32_add().call(self.environ_get).drop();
        code.i32_const(self.function as i32).i32_const(0).i32_const(0).i32_const(0);
        code.i32_const(self.code as i32).call_indirect(0, self.call).drop();
        code.call(self.exit).i32_const(70).call(self.proc_exit).unreachable().end();
        // Otherwise the published program runs, with the larger stack if there is one.
        if let Some(stack_pointer) = self.stack_pointer {
            code.i32_const(stack_pointer).global_set(0);
        }
        code.i32_const(0).i32_const(0).i32_const(self.memory as i32).memory_fill(0);
        for (segment, (at, bytes)) in (first..).zip(before) {
            code.i32_const(*at as i32).i32_const(0).i32_const(bytes.len() as i32).memory_init(0, segment);
        }
        code.call(self.start).end();
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::{Caller, Engine, Extern, Linker, Memory, Store};

    /// A program that counts its starts, prints two addresses, asks for the clock and prints a line when it continues. Its
    /// function prints the number of starts, the content of its stack, and its arguments.
    const INTERPRETER: &str = r#"(module
        (type $call (func (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "clock_res_get" (func $clock_res_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
        (memory (export "memory") 2) (global $sp (export "sp") (mut i32) (i32.const 4096)) (global i32 (i32.const 7)) (table 2 funcref) (elem (i32.const 1) $run)
        (data (i32.const 8192) "0 starts; ") (data (i32.const 8704) "8300 8400\n") (data (i32.const 8768) "went on")
        (data "nobody's")
        (func $say (param i32 i32)
            (i32.store (i32.const 9000) (local.get 0)) (i32.store (i32.const 9004) (local.get 1))
            (drop (call $fd_write (i32.const 1) (i32.const 9000) (i32.const 1) (i32.const 9008))))
        (func $start (export "_start")
            (i32.store8 (i32.const 8192) (i32.add (i32.load8_u (i32.const 8192)) (i32.const 1)))
            (call $say (i32.const 8704) (i32.const 10))
            (i32.store (i32.const 8304) (i32.const 1))
            (i32.store (i32.const 8408) (i32.const 1024)) (i32.store (i32.const 8412) (i32.const 10000))
            (global.set $sp (i32.sub (global.get $sp) (i32.const 96))) (i32.store (i32.const 4000) (i32.const 0x3a6b6f)) ;; "ok:"
            (drop (memory.grow (i32.const 1))) (i32.store8 (i32.const 150000) (i32.const 33))
            (drop (call $clock_res_get (i32.const 0) (i32.const 0)))
            (call $say (i32.const 8192) (i32.const 10)) (call $say (i32.const 8768) (i32.const 7)))
        (func $run (type $call)
            (call $say (i32.const 8192) (i32.const 10)) (call $say (i32.const 4000) (i32.const 3))
            (call $say (i32.load (i32.const 10016)) (i32.load (i32.const 10004)))
            (call $say (i32.load (i32.and (i32.add (i32.add (i32.load (i32.const 10016)) (i32.load (i32.const 10004))) (i32.const 3)) (i32.const -4)))
                (i32.load (i32.const 10012)))
            (call $say (i32.const 150000) (i32.const 1)) (i32.const 0))
        (func $exit (call $proc_exit (i32.const 7))) (export "exit" (func $exit)))"#;

    const PLACES: StartedInterpreter =
        StartedInterpreter { record: Vec::new(), call: 4, size: 8, bytes: 12, exit: 10, stack_mib: 1 };

    #[derive(Default)]
    struct Host {
        words: Vec<Vec<u8>>,
        variables: Vec<Vec<u8>>,
        printed: Vec<u8>,
    }

    fn memory(caller: &mut Caller<'_, Host>) -> Memory {
        caller.get_export("memory").and_then(Extern::into_memory).unwrap()
    }

    fn put(caller: &mut Caller<'_, Host>, at: i32, number: usize) {
        memory(caller).write(caller, at as usize, &u32::try_from(number).unwrap().to_le_bytes()).unwrap();
    }

    fn put_all(caller: &mut Caller<'_, Host>, strings: &[Vec<u8>], mut pointers: i32, mut at: i32) -> i32 {
        for string in strings {
            put(caller, pointers, at as usize);
            memory(caller).write(&mut *caller, at as usize, string).unwrap();
            (pointers, at) = (pointers + 4, at + i32::try_from(string.len()).unwrap());
        }
        0
    }

    fn sizes(caller: &mut Caller<'_, Host>, strings: &[Vec<u8>], count: i32, size: i32) -> i32 {
        put(caller, count, strings.len());
        put(caller, size, strings.iter().map(Vec::len).sum());
        0
    }

    /// Returns a program's output, its stack pointer before and after the run, and its error. It ends with an exit code in the
    /// error, or by returning.
    fn run(module: &[u8], words: &[&str], variables: &[&str]) -> (Vec<u8>, [i32; 2], String) {
        let engine = Engine::default();
        let module = wasmtime::Module::new(&engine, module).unwrap();
        let mut linker: Linker<Host> = Linker::new(&engine);
        type C<'a> = Caller<'a, Host>;
        let define = |linker: &mut Linker<Host>, name: &str, function: fn(&mut C<'_>, i32, i32) -> i32| {
            linker.func_wrap(WASI, name, move |mut c: C<'_>, a: i32, b: i32| function(&mut c, a, b)).unwrap();
        };
        define(&mut linker, "args_sizes_get", |c, count, size| {
            let words = c.data().words.clone();
            sizes(c, &words, count, size)
        });
        define(&mut linker, "environ_sizes_get", |c, count, size| {
            let variables = c.data().variables.clone();
            sizes(c, &variables, count, size)
        });
        define(&mut linker, "args_get", |c, pointers, at| {
            let words = c.data().words.clone();
            put_all(c, &words, pointers, at)
        });
        define(&mut linker, "environ_get", |c, pointers, at| {
            let variables = c.data().variables.clone();
            put_all(c, &variables, pointers, at)
        });
        define(&mut linker, "clock_res_get", |_, _, _| 0);
        let write = |mut c: C<'_>, _: i32, vector: i32, _: i32, written: i32| {
            let mut pair = [0; 8];
            memory(&mut c).read(&c, vector as usize, &mut pair).unwrap();
            let [at, size] = [0, 4].map(|part| word(&pair, part).unwrap() as usize);
            // No more at once, as a pipe may do it.
            let size = size.min(50_000);
            let bytes = memory(&mut c).data(&c)[at..at + size].to_vec();
            c.data_mut().printed.extend(bytes);
            put(&mut c, written, size);
            0
        };
        linker.func_wrap(WASI, "fd_write", write).unwrap();
        let exit = |code: i32| -> wasmtime::Result<()> { Err(wasmtime::format_err!("exit code {code}")) };
        linker.func_wrap(WASI, "proc_exit", exit).unwrap();
        let ended = |strings: &[&str]| strings.iter().map(|string| format!("{string}\0").into_bytes()).collect();
        let host = Host { words: ended(words), variables: ended(variables), printed: Vec::new() };
        let mut store = Store::new(&engine, host);
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let stack = instance.get_global(&mut store, "sp").unwrap();
        let before = stack.get(&mut store).unwrap_i32();
        let started = instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap().call(&mut store, ());
        let end = started.map_or_else(|error| error.root_cause().to_string(), |()| "by itself".to_owned());
        let stack = [before, stack.get(&mut store).unwrap_i32()];
        (std::mem::take(&mut store.data_mut().printed), stack, end)
    }

    #[test]
    fn a_program_goes_on_where_it_was_recorded_or_begins_anew() {
        let module = wat::parse_str(INTERPRETER).unwrap();
        let (printed, _, end) = run(&recorder(&module).unwrap(), &["p"], &[]);
        assert_eq!((printed.len(), end.as_str()), (10 + 8 + 3 * PAGE, "exit code 0"));
        let made = started(&module, &printed, &PLACES).unwrap();
        for (words, variables, said) in [
            (&["+p", "a word"][..], &["A=1", "B="][..], "1 starts; ok:+p\0a word\0A=1\0B=\0!"),
            (&["+p"], &[], "1 starts; ok:+p\0!"),
        ] {
            let (printed, [stack, _], end) = run(&made, words, variables);
            assert_eq!((String::from_utf8_lossy(&printed).as_ref(), end.as_str()), (said, "exit code 7"));
            assert_eq!(stack as usize, (3 + 16) * PAGE - ALIGN, "behind everything else");
        }
        let long = "x".repeat(1_000);
        for word in ["p", "", &format!("+{long}")] {
            let (printed, _, end) = run(&made, &[word], &["A=1"]);
            assert_eq!(String::from_utf8_lossy(&printed), "8300 8400\n1 starts; went on", "as it was published");
            assert_eq!(end, "by itself");
        }
    }

    #[test]
    fn a_program_may_keep_its_stack() {
        let module = wat::parse_str(INTERPRETER).unwrap();
        let (printed, ..) = run(&recorder(&module).unwrap(), &["p"], &[]);
        let made = started(&module, &printed, &StartedInterpreter { stack_mib: 0, ..PLACES }).unwrap();
        let (printed, stack, end) = run(&made, &["+p"], &[]);
        assert_eq!((String::from_utf8_lossy(&printed).as_ref(), stack), ("1 starts; ok:+p\0!", [4000; 2]));
        assert_eq!(end, "exit code 7");
        let (_, stack, end) = run(&made, &["p"], &[]);
        assert_eq!((stack, end.as_str()), ([4000; 2], "by itself"), "it begins where it began when it was published");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let module = wat::parse_str(INTERPRETER).unwrap();
        let (printed, ..) = run(&recorder(&module).unwrap(), &["p"], &[]);
        let refused = |printed: &[u8], places: StartedInterpreter| started(&module, printed, &places).unwrap_err();
        for (printed, expected) in [
            (&b"no addresses"[..], "there are no addresses"),
            (b"one two\n", "no numbers"),
            (&printed[..15], "cut off"),
            (&printed[..printed.len() - 1], "bytes of 3 pages"),
        ] {
            let error = refused(printed, PLACES);
            assert!(error.contains(expected), "{error}");
        }
        assert!(refused(&printed, StartedInterpreter { exit: 7, ..PLACES }).contains("functions are others"));
        for (more, expected) in [
            ("(global (mut i32) (i32.const 7))", "a second global that changes"),
            ("(func (data.drop 0)) (data \"nobody's\")", "data that is not there at once"),
        ] {
            let text = INTERPRETER.replace("(global i32 (i32.const 7))", more);
            let error = started(&wat::parse_str(text).unwrap(), &printed, &PLACES).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(refused(&printed, StartedInterpreter { call: u32::MAX, ..PLACES }).contains("is no address"));
        assert!(
            refused(&printed, StartedInterpreter { stack_mib: 1 << 11, ..PLACES }).contains("no room for its stack")
        );
        let other = wat::parse_str(INTERPRETER.replace("clock_res_get", "clock_get")).unwrap();
        assert!(recorder(&other).unwrap_err().contains("does not import wasi_snapshot_preview1 clock_res_get"));
    }

    #[test]
    fn pieces_leave_out_what_is_zero() {
        let mut memory = vec![0; 10 * GAP];
        (memory[3], memory[3 + GAP], memory[5 * GAP], memory[10 * GAP - 1]) = (1, 2, 3, 4);
        let found: Vec<_> = pieces(&memory).into_iter().map(|(at, bytes)| (at, bytes.len())).collect();
        assert_eq!(found, [(3, GAP + 1), (5 * GAP, 1), (10 * GAP - 1, 1)]);
        assert!(pieces(&[0; 100]).is_empty());
    }
}
