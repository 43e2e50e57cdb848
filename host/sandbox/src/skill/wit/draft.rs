//! `kiso:skill@0.2.0-draft`: what `wit/draft` adds to 0.1, and what it changes of it.

wasmtime::component::bindgen!({
    path: ["../../wit/since_v0_1", "../../wit/draft"],
    world: "kiso:skill/sandbox@0.2.0-draft",
    imports: {
        "kiso:skill/log.write": trappable,
        default: async | trappable,
    },
    exports: { default: async },
    with: {
        "kiso:skill/types@0.1.0": crate::skill::wit::since_v0_1::kiso::skill::types,
        "kiso:skill/kv@0.1.0": crate::skill::wit::since_v0_1::kiso::skill::kv,
        "kiso:skill/progress@0.1.0": crate::skill::wit::since_v0_1::kiso::skill::progress,
        "kiso:skill/publish@0.1.0": crate::skill::wit::since_v0_1::kiso::skill::publish,
        "kiso:skill/secrets@0.1.0": crate::skill::wit::since_v0_1::kiso::skill::secrets,
        "wasi:http": wasmtime_wasi_http::p2::bindings::http,
        "wasi": wasmtime_wasi::p2::bindings,
    },
});

/// Its interfaces; beside those of 0.1, the bindings give the version a name of its own.
pub(crate) use self::kiso::skill0_2_0_draft as skill;
