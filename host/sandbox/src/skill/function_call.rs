//! One call of a plain function: its arguments from JSON, its result as a reply.

use super::command_entry::rest;
use super::ctx::Ctx;
use super::guest_stop::GuestStop;
use super::wit::since_v0_1::kiso::skill::types;
use super::{streamed, values};
use crate::engine::limits::{Budget, HitCell};
use futures_util::future::BoxFuture;
use kiso_plan::code::ErrorCode;
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{Accessor, ComponentExportIndex, Func, InstancePre, Val};

/// One exported function.
#[derive(Clone)]
pub(super) struct Function {
    /// Name of the tool, unique in the component.
    pub tool: String,
    pub index: ComponentExportIndex,
    pub ty: ComponentFunc,
}

/// A call of one of a component's functions.
pub(super) struct FunctionCall<'a> {
    pub functions: &'a [Function],
    pub tool: &'a str,
    pub args: &'a Value,
    pub budget: &'a Budget,
    pub hit: &'a HitCell,
}

impl FunctionCall<'_> {
    /// Instantiates the component and calls the function.
    pub(super) async fn run(
        self,
        store: &mut Store<Ctx>,
        pre: &InstancePre<Ctx>,
        is_concurrent: bool,
    ) -> Result<types::Reply, GuestStop> {
        let bad = |message: String| GuestStop::failure(ErrorCode::BadArgs, message);
        let function = self.functions.iter().find(|f| f.tool == self.tool);
        let function = function.ok_or_else(|| bad(format!("there is no function {}", self.tool)))?;
        let mut params = Vec::new();
        for (name, ty) in function.ty.params() {
            let value = self.args.get(name).unwrap_or(&Value::Null);
            params.push(values::from_json(&ty, value).map_err(|e| bad(format!("{name}: {e}")))?);
        }
        let instance = pre.instantiate_async(&mut *store).await?;
        let callee = instance.get_func(&mut *store, function.index);
        let callee = callee.ok_or_else(|| wasmtime::format_err!("no function"))?;
        let mut results = vec![Val::Bool(false); function.ty.results().len()];
        match is_concurrent {
            true => self.with_streams(store, callee, &params, &mut results).await?,
            false => callee.call_async(store, &params, &mut results).await?,
        }
        let value = match results.first() {
            // An error that the function returned is the call's failure, not its answer.
            Some(Val::Result(Err(error))) => {
                let message = error.as_deref().map_or_else(|| "the function returned an error".to_owned(), plain);
                return Err(GuestStop::failure(ErrorCode::Failed, message));
            }
            Some(Val::Result(Ok(Some(value)))) => Some(value.as_ref()),
            Some(Val::Result(Ok(None))) | None => None,
            Some(value) => Some(value),
        };
        Ok(types::Reply {
            text: value.map_or_else(|| "done".to_owned(), plain),
            data: value.map(|v| values::to_json(v).to_string()),
            files: Vec::new(),
        })
    }

    /// Calls a function of a component of WASI 0.3, and reads the streams in its result. The type of this future is not visible
    /// outside: the compiler would have to look through all of the engine for each caller.
    fn with_streams<'a>(
        &'a self,
        store: &'a mut Store<Ctx>,
        callee: Func,
        params: &'a [Val],
        results: &'a mut [Val],
    ) -> BoxFuture<'a, wasmtime::Result<()>> {
        Box::pin(async move {
            let called = async |guest: &Accessor<Ctx>| {
                callee.call_concurrent(guest, params, results).await?;
                streamed::gather(guest, results, self.budget, self.hit).await?;
                rest(guest).await;
                wasmtime::error::Ok(())
            };
            store.run_concurrent(called).await?
        })
    }
}

/// A value for people: strings without quotes, everything else as JSON.
fn plain(value: &Val) -> String {
    match values::to_json(value) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
