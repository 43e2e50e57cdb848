//! Finds out which engine a component needs: that of WASI 0.3 has asynchronous functions, streams and futures.

use super::wit::is_wasi_0_3;
use wasmparser::{
    CanonicalFunction, CanonicalOption, ComponentDefinedType, ComponentType, ComponentTypeDeclaration,
    InstanceTypeDeclaration, Parser, Payload,
};

/// Whether a component needs the engine of WASI 0.3. A component that cannot be read needs none; the other engine says what is wrong.
pub(crate) fn needs_concurrency(wasm: &[u8]) -> bool {
    Parser::new(0).parse_all(wasm).map_while(Result::ok).any(|payload| has_concurrency(&payload).unwrap_or(false))
}

fn has_concurrency(payload: &Payload<'_>) -> wasmparser::Result<bool> {
    match payload {
        Payload::ComponentImportSection(imports) => {
            for import in imports.clone() {
                if is_wasi_0_3(import?.name.name) {
                    return Ok(true);
                }
            }
        }
        Payload::ComponentExportSection(exports) => {
            for export in exports.clone() {
                if is_wasi_0_3(export?.name.name) {
                    return Ok(true);
                }
            }
        }
        Payload::ComponentTypeSection(types) => {
            for ty in types.clone() {
                if is_concurrent(&ty?) {
                    return Ok(true);
                }
            }
        }
        Payload::ComponentCanonicalSection(functions) => {
            for function in functions.clone() {
                let plain = match function? {
                    CanonicalFunction::Lift { options, .. } | CanonicalFunction::Lower { options, .. } => !options
                        .iter()
                        .any(|option| matches!(option, CanonicalOption::Async | CanonicalOption::Callback(_))),
                    CanonicalFunction::ResourceNew { .. }
                    | CanonicalFunction::ResourceDrop { .. }
                    | CanonicalFunction::ResourceRep { .. } => true,
                    // The others are functions of tasks, streams and futures.
                    _ => false,
                };
                if !plain {
                    return Ok(true);
                }
            }
        }
        _ => {}
    }
    Ok(false)
}

fn is_concurrent(ty: &ComponentType<'_>) -> bool {
    match ty {
        ComponentType::Func(function) => function.async_,
        ComponentType::Defined(ComponentDefinedType::Future(_) | ComponentDefinedType::Stream(_)) => true,
        ComponentType::Component(parts) => {
            parts.iter().any(|part| matches!(part, ComponentTypeDeclaration::Type(ty) if is_concurrent(ty)))
        }
        ComponentType::Instance(parts) => {
            parts.iter().any(|part| matches!(part, InstanceTypeDeclaration::Type(ty) if is_concurrent(ty)))
        }
        ComponentType::Defined(_) | ComponentType::Resource { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_needs_the_engine_of_what_is_in_it() {
        for (text, needs) in [
            (r#"(component (import "wasi:cli/environment@0.2.3" (instance)))"#, false),
            (r#"(component (import "wasi:cli/environment@0.3.0" (instance)))"#, true),
            (r#"(component (import "kiso:skill/kv@0.3.0" (instance)))"#, false),
            (r#"(component (type (stream u8)))"#, true),
            (r#"(component (component (type (func async))))"#, true),
            (r#"(component (type (instance (type (func async)) (export "f" (func (type 0))))))"#, true),
            (r#"(component (core func (canon waitable-set.new)))"#, true),
            (r#"(component (type (func)))"#, false),
            ("(module)", false),
        ] {
            assert_eq!(needs_concurrency(&wat::parse_str(text).unwrap()), needs, "{text}");
        }
        assert!(!needs_concurrency(b"\0asm\x0d"));
    }
}
