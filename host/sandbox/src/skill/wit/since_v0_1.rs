//! `kiso:skill@0.1.0`.

wasmtime::component::bindgen!({
    path: "../../wit/since_v0_1",
    world: "kiso:skill/sandbox-with-http",
    imports: {
        "kiso:skill/log.write": trappable,
        "kiso:skill/progress.report": trappable,
        default: async | trappable,
    },
    exports: { default: async },
    with: {
        "wasi:http": wasmtime_wasi_http::p2::bindings::http,
        "wasi": wasmtime_wasi::p2::bindings,
    },
});
