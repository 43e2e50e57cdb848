//! Makes a component of a program for WASI preview 1.
//!
//! The adapter does not support exit codes: it ends a program by `exit`, which only says whether the program failed. So
//! `proc_exit` of a program is connected to `exit-with-code` instead, without the adapter.

use wasi_preview1_component_adapter_provider as adapter;
use wasm_encoder::{EntityType, ImportSection, Module, RawSection};
use wasmparser::{BinaryReaderError, Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The module that such a program imports from.
pub(super) const PREVIEW1: &str = adapter::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;

/// The function by which such a program ends itself.
const PROC_EXIT: &str = "proc_exit";

/// The interface that replaces it. Its version is the adapter's, so that a component imports only one version.
const EXIT: &str = "wasi:cli/exit@0.2.12";
const EXIT_WITH_CODE: &str = "exit-with-code";
const EXIT_WIT: &str = "package wasi:cli@0.2.12;
interface exit { exit-with-code: func(status-code: u8); }
world program { import exit; }";

/// Returns the component, a `wasi:cli/command`. The error is for the program's author.
pub(super) fn wrap(module: &[u8]) -> Result<Vec<u8>, String> {
    let ends = with_exit_code(module)?;
    let encode = || {
        ComponentEncoder::default()
            .module(ends.as_deref().unwrap_or(module))?
            .adapter(PREVIEW1, adapter::WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)?
            .encode()
    };
    encode().map_err(|error| format!("{error:#}"))
}

/// The module with another function for its `proc_exit`; `None` if it does not import that.
fn with_exit_code(module: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let wrong = |error: BinaryReaderError| error.to_string();
    let mut changed = Module::new();
    let mut found = false;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(wrong)? {
            Payload::ImportSection(imports) => {
                let mut section = ImportSection::new();
                for import in imports.into_imports() {
                    let import = import.map_err(wrong)?;
                    let ends = import.module == PREVIEW1 && import.name == PROC_EXIT;
                    let (from, name) = if ends { (EXIT, EXIT_WITH_CODE) } else { (import.module, import.name) };
                    section.import(from, name, EntityType::try_from(import.ty).map_err(|error| error.to_string())?);
                    found |= ends;
                }
                changed.section(&section);
            }
            other => {
                if let Some((id, range)) = other.as_section() {
                    changed.section(&RawSection { id, data: &module[range] });
                }
            }
        }
    }
    if !found {
        return Ok(None);
    }
    let mut changed = changed.finish();
    let mut wit = Resolve::default();
    let package = wit.push_source("exit.wit", EXIT_WIT);
    let world = package.and_then(|package| wit.select_world(&[package], None));
    let embedded = world.and_then(|world| embed_component_metadata(&mut changed, &wit, world, StringEncoding::UTF8));
    embedded.map_err(|error| format!("{error:#}"))?;
    Ok(Some(changed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmparser::Validator;

    /// The interfaces from which the outermost component imports the end of a program.
    fn exits(component: &[u8]) -> Vec<String> {
        let mut depth = 0;
        let mut exits = Vec::new();
        for payload in Parser::new(0).parse_all(component) {
            match payload.unwrap() {
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                Payload::ComponentImportSection(imports) if depth == 1 => {
                    let names = imports.into_iter().map(|import| import.unwrap().name.name.to_owned());
                    exits.extend(names.filter(|name| name.starts_with("wasi:cli/exit@")));
                }
                _ => {}
            }
        }
        exits
    }

    fn program(imports: &str, body: &str) -> Vec<u8> {
        let text = format!(r#"(module {imports} (memory (export "memory") 1) (func (export "_start") {body}))"#);
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn a_program_ends_with_its_code_past_the_adapter() {
        let ends = r#"(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))"#;
        let component = wrap(&program(ends, "(drop (call $yield)) (call $exit (i32.const 3))")).unwrap();
        Validator::new().validate_all(&component).unwrap();
        assert_eq!(exits(&component), [EXIT], "the adapter's version of it");
        // The adapter alone would import `exit`.
        let text = String::from_utf8_lossy(&component);
        assert!(text.contains(EXIT_WITH_CODE));
        // A program that only returns imports neither.
        let returns = wrap(&program("", "nop")).unwrap();
        assert!(with_exit_code(&program("", "nop")).unwrap().is_none());
        Validator::new().validate_all(&returns).unwrap();
    }

    #[test]
    fn a_program_that_calls_it_wrongly_is_refused() {
        let other = r#"(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i64)))"#;
        let error = wrap(&program(other, "(call $exit (i64.const 3))")).unwrap_err();
        assert!(error.contains(EXIT_WITH_CODE), "{error}");
    }
}
