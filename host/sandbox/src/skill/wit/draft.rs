//! `kiso:skill@0.2.0-draft`: the additions of `wit/draft` to 0.1, and its changes.

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

/// Its interfaces. The bindings add the version to the name, because those of 0.1 have the same one.
pub(crate) use self::kiso::skill0_2_0_draft as skill;
