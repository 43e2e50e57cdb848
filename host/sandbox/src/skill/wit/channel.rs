//! `kiso:channel@0.1.0`.

wasmtime::component::bindgen!({
    path: ["../../wit/since_v0_1", "../../wit/channel"],
    world: "kiso:channel/messenger",
    imports: { default: async | trappable },
    exports: { default: async },
    with: {
        "kiso:skill/types@0.1.0": crate::skill::wit::since_v0_1::kiso::skill::types,
        "kiso:skill/kv@0.1.0": crate::skill::wit::since_v0_1::kiso::skill::kv,
        "kiso:skill/log@0.1.0": crate::skill::wit::since_v0_1::kiso::skill::log,
        "wasi:http": wasmtime_wasi_http::p2::bindings::http,
        "wasi": wasmtime_wasi::p2::bindings,
    },
});

pub(crate) use self::kiso::channel::types;
