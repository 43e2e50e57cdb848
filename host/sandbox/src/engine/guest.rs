//! The data in the store of every instance, for skills and commands alike.

use super::meter::Meter;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView};

/// Most random bytes that one call of the guest into the host gets: more only makes the host work.
const RANDOM_BYTES: u64 = 1 << 20;

/// The WASI context of an instance, its handles, and its meter.
pub(crate) struct Guest {
    wasi: WasiCtx,
    pub table: ResourceTable,
    pub meter: Meter,
}

impl Guest {
    /// Completes a context. A guest has no sockets: it sends data through functions that check the destination.
    pub(crate) fn new(wasi: &mut WasiCtxBuilder, meter: Meter) -> Self {
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false).max_random_size(RANDOM_BYTES);
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(meter.budget().handles()).unwrap_or(usize::MAX));
        Self { wasi: wasi.build(), table, meter }
    }

    /// The view for functions of WASI.
    pub(crate) fn wasi(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Makes a store with the limits of its guest. It stops at the first tick unless the caller sets what happens then.
pub(crate) fn store<T: 'static>(engine: &Engine, data: T, guest: fn(&mut T) -> &mut Guest) -> Store<T> {
    let mut store = Store::new(engine, data);
    store.limiter(move |data| &mut guest(data).meter);
    let transfer = guest(store.data_mut()).meter.budget().transfer_bytes();
    store.set_hostcall_fuel(transfer);
    let budget = guest(store.data_mut()).meter.budget();
    let (entries, handles) = (budget.concurrent_entries(), budget.component_handles());
    // Only an engine for WASI 0.3 has this table.
    if let Some(table) = store.concurrent_resource_table() {
        table.set_max_capacity(entries);
        store.set_max_component_handles(handles);
    }
    store.set_epoch_deadline(1);
    store
}
