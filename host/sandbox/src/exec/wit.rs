//! `kiso:exec`, between the host and the bundled commands.

wasmtime::component::bindgen!({
    path: "../../wit/exec",
    world: "kiso:exec/sh",
    imports: {
        "kiso:exec/spawn.open": async | trappable,
        "kiso:exec/spawn.set-permissions": async | trappable,
        "kiso:exec/spawn.[method]channel.read": async | trappable,
        "kiso:exec/spawn.[method]channel.read-line": async | trappable,
        "kiso:exec/spawn.[method]channel.write": async | trappable,
        "kiso:exec/spawn.[method]process.wait": async | trappable,
        "kiso:exec/spawn.[method]process.wait-for": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: {
        "kiso:exec/spawn.channel": super::channel::Channel,
        "kiso:exec/spawn.process": super::process::Child,
    },
});
