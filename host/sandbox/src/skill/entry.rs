//! The functions of a compiled component, and the tools that they become.

use super::capability::is_offered;
use super::command_entry::CommandEntry;
use super::engine::Sandbox;
use super::function_call::Function;
use super::instance::EntryPoint;
use super::loader::Shape;
use super::surface::brief;
use super::values::{self, NoSchema, SchemaRoom};
use super::wit::{self, SkillPre, V0_1, Version, version_of};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use wasmtime::component::Component;
use wasmtime::component::types::{ComponentFunc, ComponentItem};

/// Links a compiled component and finds its entry point; for plain functions also the schema of each.
pub(super) fn entry(
    sandbox: &Sandbox,
    component: &Component,
    shape: Shape,
) -> Result<(EntryPoint, Vec<(String, Value)>), String> {
    imports_what_is_offered(component)?;
    let linker = sandbox.pool(component.engine()).linker();
    let pre = linker.instantiate_pre(component).map_err(|e| said("it does not fit this host", &e))?;
    match shape {
        Shape::Skill => {
            let version = skill_run(component)?;
            let pre = SkillPre::new(version, pre)
                .map_err(|e| said(&format!("its `skill.run` is not the one of kiso:skill@{version}"), &e))?;
            Ok((EntryPoint::Skill(pre), Vec::new()))
        }
        Shape::Command => {
            let pre = CommandEntry::new(component, pre);
            let pre = pre.map_err(|e| said("its `wasi:cli/run` cannot be called", &e))?;
            Ok((EntryPoint::Command(pre), Vec::new()))
        }
        Shape::Functions => {
            let functions = functions(component)?;
            let (mut schemas, mut room) = (Vec::new(), SchemaRoom::default());
            for function in &functions {
                let unusable =
                    |why: NoSchema| format!("its function {} takes or returns {why}", brief(&function.tool, 80));
                for result in function.ty.results() {
                    values::check_result(&result, &mut room).map_err(unusable)?;
                }
                schemas
                    .push((function.tool.clone(), values::object(function.ty.params(), &mut room).map_err(unusable)?));
            }
            Ok((EntryPoint::Functions { pre, functions }, schemas))
        }
    }
}

/// The engine's message, cut to a readable length: it repeats names that a component chose.
fn said(what: &str, error: &wasmtime::Error) -> String {
    format!("{what}: {}", brief(&format!("{error:#}"), 2_000))
}

/// Most functions of one component that become tools.
const MAX_FUNCTIONS: usize = 64;

/// The exported functions of a component, those inside exported interfaces included.
fn functions(component: &Component) -> Result<Vec<Function>, String> {
    let engine = component.engine();
    let mut found: Vec<(Option<String>, Function)> = Vec::new();
    for (name, item) in component.component_type().exports(engine) {
        match item.ty {
            ComponentItem::ComponentFunc(ty) if !is_left_over(name, &ty) => {
                let index = component.get_export_index(None, name).ok_or("its exports cannot be read")?;
                found.push((None, Function { tool: name.to_owned(), index, ty }));
            }
            // componentize-py adds an instance `exports`.
            ComponentItem::ComponentInstance(instance) if !name.starts_with("wasi:") && name != "exports" => {
                let outer = component.get_export_index(None, name).ok_or("its exports cannot be read")?;
                let short = name.split('@').next().unwrap_or(name).rsplit('/').next().unwrap_or(name);
                for (inner, item) in instance.exports(engine) {
                    if let ComponentItem::ComponentFunc(ty) = item.ty {
                        let index =
                            component.get_export_index(Some(&outer), inner).ok_or("its exports cannot be read")?;
                        found.push((Some(short.to_owned()), Function { tool: inner.to_owned(), index, ty }));
                    }
                }
            }
            _ => {}
        }
    }
    if found.is_empty() {
        return Err("it exports no functions".to_owned());
    }
    if found.len() > MAX_FUNCTIONS {
        return Err(format!("it exports {} functions; {MAX_FUNCTIONS} can become tools", found.len()));
    }
    // Uses the interface's name only if two functions have the same name.
    let mut count: HashMap<String, usize> = HashMap::new();
    for (_, function) in &found {
        *count.entry(function.tool.clone()).or_default() += 1;
    }
    let named = found.into_iter().map(|(interface, mut function)| {
        if count[&function.tool] > 1
            && let Some(interface) = interface
        {
            function.tool = format!("{interface}.{}", function.tool);
        }
        function
    });
    Ok(named.collect())
}

/// componentize-qjs leaves a function that it used to prepare the component.
fn is_left_over(name: &str, ty: &ComponentFunc) -> bool {
    name == "init" && ty.params().map(|(name, _)| name).eq(["shim", "script", "entry-path", "disable-gc"])
}

/// The loader has checked the imports of a file that is added. This checks components that another build of kiso installed.
fn imports_what_is_offered(component: &Component) -> Result<(), String> {
    let imports = component.component_type();
    let functions =
        imports.imports(component.engine()).filter(|(_, import)| !matches!(import.ty, ComponentItem::Type(_)));
    for (name, _) in functions {
        if !is_offered(name, wit::loads_drafts()) {
            return Err(format!("it imports {}, which this kiso does not offer", brief(name, 100)));
        }
    }
    Ok(())
}

/// The version whose `skill.run` is exported, with the type of that version. The engine would detect a wrong type only at the
/// first call.
fn skill_run(component: &Component) -> Result<Version, String> {
    let engine = component.engine();
    let text = || json!({ "type": "string" });
    let maybe = || json!({ "anyOf": [text(), { "type": "null" }] });
    let record = |members: &[(&str, Value)], required: &[&str]| {
        let properties: Map<String, Value> =
            members.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    };
    let call = record(
        &[("tool", text()), ("args", text()), ("session", text()), ("locale", text())],
        &["tool", "args", "session", "locale"],
    );
    let file = record(&[("path", text()), ("media-type", maybe()), ("title", maybe())], &["path"]);
    let files = json!({ "type": "array", "items": file });
    let reply = record(&[("text", text()), ("data", maybe()), ("files", files)], &["text", "files"]);
    let failure = record(
        &[("code", text()), ("message", text()), ("retryable", json!({ "type": "boolean" }))],
        &["code", "message", "retryable"],
    );
    let tagged = |name: &str, value: Value| record(&[(name, value)], &[name]);
    let result = json!({ "oneOf": [tagged("ok", reply), tagged("err", failure)] });

    let exports = component.component_type();
    let found = exports.exports(engine).find_map(|(name, item)| Some((version_of(name, "skill")?, item.ty)));
    let (version, skill) = found.ok_or_else(|| format!("it exports no skill.run of kiso:skill@{V0_1}"))?;
    if version.is_draft() && !wit::loads_drafts() {
        return Err(format!("it is built for the draft {version} of kiso:skill, which this kiso does not load"));
    }
    let expected = || {
        format!(
            "it exports skill.run, but not as kiso:skill@{version} has it: func(call: call) -> result<reply, failure>"
        )
    };
    let ComponentItem::ComponentInstance(skill) = skill else { return Err(expected()) };
    let Some(ComponentItem::ComponentFunc(run)) = skill.get_export(engine, "run").map(|item| item.ty) else {
        return Err(expected());
    };
    let mut room = SchemaRoom::default();
    let params: Vec<_> = run.params().map(|(_, ty)| values::schema(&ty, &mut room)).collect();
    let results: Vec<_> = run.results().map(|ty| values::schema(&ty, &mut room)).collect();
    if params == [Ok(call)] && results == [Ok(result)] { Ok(version) } else { Err(expected()) }
}
