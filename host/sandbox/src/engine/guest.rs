//! The data in the store of every instance, for skills and commands alike.

use super::meter::Meter;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView};

/// Most random bytes that one call of the guest into the host gets: more only makes the host work.
const RANDOM_BYTES: u64 = 1 << 20;

/// The WASI context of an instance, its handles, and the meter of what it uses.
pub(crate) struct Guest {
    wasi: WasiCtx,
    pub table: ResourceTable,
    pub meter: Meter,
}

impl Guest {
    /// Completes a context. A guest has no sockets: what it sends goes through functions that check where to.
    pub(crate) fn new(wasi: &mut WasiCtxBuilder, meter: Meter) -> Self {
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false).max_random_size(RANDOM_BYTES);
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(meter.budget().handles()).unwrap_or(usize::MAX));
        Self { wasi: wasi.build(), table, meter }
    }

    /// As functions of WASI get it.
    pub(crate) fn wasi(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// A store with the limits of its guest. It stops at the first tick unless it is told how to go on.
pub(crate) fn store<T: 'static>(engine: &Engine, data: T, guest: fn(&mut T) -> &mut Guest) -> Store<T> {
    let mut store = Store::new(engine, data);
    store.limiter(move |data| &mut guest(data).meter);
    let transfer = guest(store.data_mut()).meter.budget().transfer_bytes();
    store.set_hostcall_fuel(transfer);
    store.set_epoch_deadline(1);
    store
}
