//! A component that exports `wasi:cli/run`, in one of the versions of WASI.

use super::ctx::Ctx;
use super::wit::{WASI_0_3, run_version};
use futures_util::future::BoxFuture;
use std::future::poll_fn;
use wasmtime::component::{Accessor, Component, InstancePre};
use wasmtime::{Engine, Store};
use wasmtime_wasi::{p2, p3};

/// A command that is ready to be instantiated.
#[derive(Clone)]
pub(super) enum CommandEntry {
    V0_2(p2::bindings::CommandPre<Ctx>),
    V0_3(p3::bindings::CommandPre<Ctx>),
}

impl CommandEntry {
    pub(super) fn new(component: &Component, pre: InstancePre<Ctx>) -> wasmtime::Result<Self> {
        let ty = component.component_type();
        let version = ty.exports(component.engine()).find_map(|(name, _)| run_version(name));
        match version {
            Some(WASI_0_3) => p3::bindings::CommandPre::new(pre).map(Self::V0_3),
            _ => p2::bindings::CommandPre::new(pre).map(Self::V0_2),
        }
    }

    /// The engine that it was compiled for.
    pub(super) fn engine(&self) -> &Engine {
        match self {
            Self::V0_2(pre) => pre.engine(),
            Self::V0_3(pre) => pre.engine(),
        }
    }

    /// Instantiates it and runs it to its end. The inner error is the guest's. The type of the future is not visible outside: the
    /// compiler would have to look through all of the engine for each caller.
    pub(super) fn run<'a>(&'a self, store: &'a mut Store<Ctx>) -> BoxFuture<'a, wasmtime::Result<Result<(), ()>>> {
        Box::pin(async move {
            match self {
                Self::V0_2(pre) => {
                    let instance = pre.instantiate_async(&mut *store).await?;
                    instance.wasi_cli_run().call_run(store).await
                }
                Self::V0_3(pre) => {
                    let instance = pre.instantiate_async(&mut *store).await?;
                    let run = async |guest: &Accessor<Ctx>| {
                        let ended = instance.wasi_cli_run().call_run(guest).await?;
                        rest(guest).await;
                        wasmtime::error::Ok(ended)
                    };
                    store.run_concurrent(run).await?
                }
            }
        })
    }
}

/// Waits for what a component goes on with after a function of it has returned, such as output that is still written.
pub(super) async fn rest(guest: &Accessor<Ctx>) {
    poll_fn(|cx| guest.poll_no_interesting_tasks(cx)).await;
}
