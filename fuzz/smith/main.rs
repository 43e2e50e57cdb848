//! Reads seeds from standard input, eight bytes each, and writes a file from wasm-smith for each to standard output: its length
//! in four bytes, then the file. All numbers are little-endian. The same seed gives the same file, so that a failure can be
//! reproduced by its number.

use arbitrary::{Arbitrary, Unstructured};
use std::io::{Read, Write};
use wasm_smith::{Component, Config, Module};

/// Imports that a WASI preview 1 program may have. `kiso skill add` makes a component of such a module.
const PROGRAM_IMPORTS: &str = r#"(module
    (import "wasi_snapshot_preview1" "args_get" (func (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_seek" (func (param i32 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open"
        (func (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff" (func (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))
    (import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32))))"#;

const PROGRAM_EXPORTS: &str = r#"(module (func (export "_start")) (memory (export "memory") 1))"#;

/// Seeds to try until one gives a file: wasm-smith refuses some seeds and panics on a few.
const ATTEMPTS: u64 = 8;

fn main() -> std::io::Result<()> {
    // Errors of wasm-smith itself would only distract from failures of kiso.
    std::panic::set_hook(Box::new(|_| {}));
    let smith = Smith {
        imports: wat::parse_str(PROGRAM_IMPORTS).expect("the text is a module"),
        exports: wat::parse_str(PROGRAM_EXPORTS).expect("the text is a module"),
    };
    let (mut seeds, mut files) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut seed = [0; 8];
    while seeds.read_exact(&mut seed).is_ok() {
        let seed = u64::from_le_bytes(seed);
        let make = |attempt| std::panic::catch_unwind(|| smith.make(seed.wrapping_add(attempt))).ok()?.ok();
        let file = (0..ATTEMPTS).find_map(make).unwrap_or_default();
        files.write_all(&u32::try_from(file.len()).expect("a file is small").to_le_bytes())?;
        files.write_all(&file)?;
        files.flush()?;
    }
    Ok(())
}

struct Smith {
    imports: Vec<u8>,
    exports: Vec<u8>,
}

impl Smith {
    fn make(&self, seed: u64) -> arbitrary::Result<Vec<u8>> {
        let mut numbers = Numbers(seed);
        // More input gives a larger file; most bugs need only a small one.
        let sizes = [64, 256, 1 << 10, 4 << 10, 16 << 10];
        let size = sizes[(numbers.next() % sizes.len() as u64) as usize];
        let kind = numbers.next() % 8;
        let bytes: Vec<u8> = (0..size / 8).flat_map(|_| numbers.next().to_le_bytes()).collect();
        let mut random = Unstructured::new(&bytes);
        // Half of the files use every feature that is on by default, half use random limits and features.
        let mut config = if kind.is_multiple_of(2) { Config::default() } else { Config::arbitrary(&mut random)? };
        config.generate_custom_sections = kind != 0;
        match kind {
            0..=3 => Ok(Component::new(config, &mut random)?.to_bytes()),
            4 | 5 => {
                config.allow_invalid_funcs = numbers.next().is_multiple_of(4);
                Ok(Module::new(config, &mut random)?.to_bytes())
            }
            _ => {
                config.available_imports = Some(self.imports.clone());
                config.exports = Some(self.exports.clone());
                Ok(Module::new(config, &mut random)?.to_bytes())
            }
        }
    }
}

/// A generator of 64 bits (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
