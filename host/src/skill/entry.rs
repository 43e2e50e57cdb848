//! What is called in a compiled component, and the tools that its functions become.

use super::engine::Sandbox;
use super::instance::{Entry, Function};
use super::loader::Shape;
use super::surface::brief;
use super::values::{self, NoSchema, Room};
use super::wit::since_v0_1::SandboxWithHttpPre;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use wasmtime::component::Component;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime_wasi::p2::bindings::CommandPre;

/// Links a compiled component and finds what is called in it; for plain functions also the schema of each.
pub fn entry(sandbox: &Sandbox, component: &Component, shape: Shape) -> Result<(Entry, Vec<(String, Value)>), String> {
    let pre = sandbox.linker().instantiate_pre(component).map_err(|e| said("it does not fit this host", &e))?;
    match shape {
        Shape::Skill => {
            is_skill_run(component)?;
            let pre = SandboxWithHttpPre::new(pre)
                .map_err(|e| said("its `skill.run` is not the one of kiso:skill@0.1", &e))?;
            Ok((Entry::Skill(pre), Vec::new()))
        }
        Shape::Command => {
            let pre = CommandPre::new(pre).map_err(|e| said("its `wasi:cli/run` cannot be called", &e))?;
            Ok((Entry::Command(pre), Vec::new()))
        }
        Shape::Functions => {
            let functions = functions(component)?;
            let (mut schemas, mut room) = (Vec::new(), Room::default());
            for function in &functions {
                let unusable =
                    |why: NoSchema| format!("its function {} takes or returns {why}", brief(&function.tool, 80));
                for result in function.ty.results() {
                    // Only to know that it has a form; what models are told are the arguments.
                    values::schema(&result, &mut room).map_err(unusable)?;
                }
                schemas
                    .push((function.tool.clone(), values::object(function.ty.params(), &mut room).map_err(unusable)?));
            }
            Ok((Entry::Functions { pre, functions }, schemas))
        }
    }
}

/// What the engine said, as far as a person reads on: it repeats names that a component chose.
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
            // componentize-py leaves an instance `exports` behind.
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
    // The interface's name only where two functions would have one name.
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

/// componentize-qjs leaves the function behind that it prepared the component with.
fn is_left_over(name: &str, ty: &ComponentFunc) -> bool {
    name == "init" && ty.params().map(|(name, _)| name).eq(["shim", "script", "entry-path", "disable-gc"])
}

/// Whether the exported `skill.run` has the type of `kiso:skill@0.1`. The engine would notice at the first call only.
fn is_skill_run(component: &Component) -> Result<(), String> {
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

    let expected = "it exports skill.run, but not as kiso:skill@0.1 has it: func(call: call) -> result<reply, failure>";
    let exports = component.component_type();
    let skill = exports.exports(engine).find(|(name, _)| name.starts_with("kiso:skill/skill@0.1."));
    let Some((_, ComponentItem::ComponentInstance(skill))) = skill.map(|(name, item)| (name, item.ty)) else {
        return Err(expected.to_owned());
    };
    let Some(ComponentItem::ComponentFunc(run)) = skill.get_export(engine, "run").map(|item| item.ty) else {
        return Err(expected.to_owned());
    };
    let mut room = Room::default();
    let params: Vec<_> = run.params().map(|(_, ty)| values::schema(&ty, &mut room)).collect();
    let results: Vec<_> = run.results().map(|ty| values::schema(&ty, &mut room)).collect();
    if params == [Ok(call)] && results == [Ok(result)] { Ok(()) } else { Err(expected.to_owned()) }
}
