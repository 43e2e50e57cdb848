//! Gives a module a larger stack, and takes its debugging information away.
//!
//! A module of C has its stack at the beginning of its memory, with data behind it, so the stack cannot be made larger where it is.
//! It is moved behind everything else instead: the memory begins with as many pages more, and the stack pointer at their end. That
//! is safe in a module whose allocator asks for more memory at the end of what there is, as the C library for WASI does.

use wasm_encoder::{ConstExpr, GlobalSection, GlobalType, MemorySection, MemoryType, Module, RawSection, ValType};
use wasmparser::{Operator, Parser, Payload};

const PAGE: u64 = 64 << 10;
/// The stack is aligned to this many bytes, as the calling convention of C wants it.
const ALIGN: u64 = 16;

/// The module with a stack of `bytes`. The first global must be the stack pointer, as linkers place it.
pub fn enlarge(module: &[u8], bytes: u64) -> Result<Vec<u8>, String> {
    let unfit = |what: &str| format!("its stack cannot be moved: {what}");
    let wrong = |error: wasmparser::BinaryReaderError| unfit(&error.to_string());
    let mut fitted = Module::new();
    let mut end = None;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(wrong)? {
            Payload::MemorySection(memories) => {
                let all: Vec<_> = memories.into_iter().collect::<Result<_, _>>().map_err(wrong)?;
                let [memory] = all[..] else { return Err(unfit("it has not one memory")) };
                if memory.memory64 || memory.shared || memory.page_size_log2.is_some() {
                    return Err(unfit("its memory is of another kind"));
                }
                let minimum = memory.initial + bytes.div_ceil(PAGE);
                if minimum * PAGE > i32::MAX as u64 || memory.maximum.is_some_and(|most| minimum > most) {
                    return Err(unfit("there is no room for it"));
                }
                end = Some(minimum * PAGE - ALIGN);
                let mut section = MemorySection::new();
                let (maximum, memory64, shared, page_size_log2) = (memory.maximum, false, false, None);
                section.memory(MemoryType { minimum, maximum, memory64, shared, page_size_log2 });
                fitted.section(&section);
            }
            Payload::GlobalSection(globals) => {
                let all: Vec<_> = globals.into_iter().collect::<Result<_, _>>().map_err(wrong)?;
                let [pointer] = &all[..] else { return Err(unfit("it has not one global")) };
                let first = pointer.init_expr.get_operators_reader().read().map_err(wrong)?;
                let is_pointer = pointer.ty.mutable && pointer.ty.content_type == wasmparser::ValType::I32;
                if !is_pointer || !matches!(first, Operator::I32Const { .. }) {
                    return Err(unfit("its first global is no stack pointer"));
                }
                let end = end.and_then(|end| i32::try_from(end).ok()).ok_or_else(|| unfit("it has no memory"))?;
                let mut section = GlobalSection::new();
                section.global(
                    GlobalType { val_type: ValType::I32, mutable: true, shared: false },
                    &ConstExpr::i32_const(end),
                );
                fitted.section(&section);
            }
            Payload::CustomSection(custom) if custom.name().starts_with(".debug_") => {}
            other => {
                if let Some((id, range)) = other.as_section() {
                    fitted.section(&RawSection { id, data: &module[range] });
                }
            }
        }
    }
    Ok(fitted.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_lies_behind_everything_else() {
        let module = wat::parse_str(
            r#"(module (memory (export "memory") 2) (global $sp (mut i32) (i32.const 1024))
                 (data (i32.const 2000) "x") (func (export "f") (result i32) global.get $sp) (@custom ".debug_info" "text"))"#,
        );
        let fitted = enlarge(&module.unwrap(), 100_000).unwrap();
        let text = figures(&fitted);
        assert_eq!(text, ((2 + 2) * PAGE - ALIGN, 4, false));
        let two = wat::parse_str("(module (memory 1 1) (global (mut i32) (i32.const 16)))").unwrap();
        assert!(enlarge(&two, 1).unwrap_err().contains("no room"));
        let none = wat::parse_str("(module (memory 1) (global i32 (i32.const 16)))").unwrap();
        assert!(enlarge(&none, 1).unwrap_err().contains("no stack pointer"));
        assert!(enlarge(b"\0asm", 1).is_err());
    }

    /// The stack pointer, the pages at the beginning, and whether there is debugging information.
    fn figures(module: &[u8]) -> (u64, u64, bool) {
        let (mut pointer, mut pages, mut debug) = (0, 0, false);
        for payload in Parser::new(0).parse_all(module) {
            match payload.unwrap() {
                Payload::MemorySection(memories) => pages = memories.into_iter().next().unwrap().unwrap().initial,
                Payload::GlobalSection(globals) => {
                    let global = globals.into_iter().next().unwrap().unwrap();
                    if let Operator::I32Const { value } = global.init_expr.get_operators_reader().read().unwrap() {
                        pointer = u64::try_from(value).unwrap();
                    }
                }
                Payload::CustomSection(custom) => debug |= custom.name().starts_with(".debug_"),
                _ => {}
            }
        }
        (pointer, pages, debug)
    }
}
