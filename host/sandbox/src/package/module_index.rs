//! An index of a core module: its functions and their types.

use wasmparser::{CompositeInnerType, ExternalKind, FuncType, Parser, Payload, TypeRef, ValType};

/// The module of the functions that a program imports from WASI preview 1.
pub(super) const WASI: &str = "wasi_snapshot_preview1";

/// Functions that are added to a module, at most.
const MAX_ADDED: usize = 1_000;

/// The types of a module, and the type of each function. Imported functions have the first indices.
#[derive(Debug, Default)]
pub(super) struct ModuleIndex<'a> {
    types: Vec<Option<FuncType>>,
    /// Module and name of each imported function, and its type.
    imports: Vec<((&'a str, &'a str), u32)>,
    /// The types of the functions that it has itself.
    defined: Vec<u32>,
    /// Its exported functions.
    exports: Vec<(&'a str, u32)>,
}

impl<'a> ModuleIndex<'a> {
    pub(super) fn read(module: &'a [u8]) -> Result<ModuleIndex<'a>, String> {
        let wrong = |error: wasmparser::Error| error.to_string();
        let mut index = ModuleIndex::default();
        for payload in Parser::new(0).parse_all(module) {
            match payload.map_err(wrong)? {
                Payload::TypeSection(groups) => {
                    for group in groups {
                        index.types.extend(group.map_err(wrong)?.into_types().map(
                            |ty| match ty.composite_type.inner {
                                CompositeInnerType::Func(ty) => Some(ty),
                                _ => None,
                            },
                        ));
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import.map_err(wrong)?;
                        if let TypeRef::Func(ty) = import.ty {
                            index.imports.push(((import.module, import.name), ty));
                        }
                    }
                }
                Payload::FunctionSection(section) => {
                    index.defined = section.into_iter().collect::<Result<_, _>>().map_err(wrong)?
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export.map_err(wrong)?;
                        if export.kind == ExternalKind::Func {
                            index.exports.push((export.name, export.index));
                        }
                    }
                }
                _ => {}
            }
        }
        // The code below counts functions in a `u32`.
        u32::try_from(index.imports.len() + index.defined.len() + MAX_ADDED).map_err(|error| error.to_string())?;
        Ok(index)
    }

    pub(super) fn import(&self, module: &str, name: &str) -> Result<u32, String> {
        let found = self.imports.iter().position(|(import, _)| *import == (module, name));
        found.map(|at| at as u32).ok_or_else(|| format!("it does not import {module} {name}"))
    }

    pub(super) fn export(&self, name: &str) -> Result<u32, String> {
        let found = self.exports.iter().find(|(exported, _)| *exported == name);
        found.map(|(_, index)| *index).ok_or_else(|| format!("it does not export {name}"))
    }

    pub(super) fn imported(&self) -> u32 {
        self.imports.len() as u32
    }

    pub(super) fn functions(&self) -> u32 {
        (self.imports.len() + self.defined.len()) as u32
    }

    /// The index of the type of a function.
    pub(super) fn type_of(&self, function: u32) -> Option<u32> {
        let function = function as usize;
        match function.checked_sub(self.imports.len()) {
            None => Some(self.imports[function].1),
            Some(at) => self.defined.get(at).copied(),
        }
    }

    /// The parameters and results of a function.
    pub(super) fn signature(&self, function: u32) -> Option<&FuncType> {
        self.types.get(self.type_of(function)? as usize)?.as_ref()
    }

    pub(super) fn has_type(&self, function: u32, params: &[ValType], results: &[ValType]) -> bool {
        self.signature(function).is_some_and(|ty| ty.params() == params && ty.results() == results)
    }

    /// The number of its types.
    pub(super) fn types(&self) -> u32 {
        self.types.len() as u32
    }

    /// The index of the first type of functions that fits.
    pub(super) fn position(&self, fits: impl Fn(&FuncType) -> bool) -> Option<u32> {
        let found = self.types.iter().position(|ty| ty.as_ref().is_some_and(&fits));
        found.map(|at| at as u32)
    }

    /// The functions that are imported from a module.
    pub(super) fn imports_from(&self, module: &str) -> Vec<u32> {
        let from = (0..).zip(&self.imports).filter(|(_, ((from, _), _))| *from == module);
        from.map(|(at, _)| at).collect()
    }

    /// The name of an imported function.
    pub(super) fn import_name(&self, function: u32) -> &'a str {
        self.imports.get(function as usize).map_or("", |((_, name), _)| name)
    }
}
