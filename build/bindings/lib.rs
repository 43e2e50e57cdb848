//! The bindings to WIT that the SDK and the bundled guests are built with lie in the repository, so that building a skill
//! does not first build a generator and the parsers behind it. `KISO_BINDINGS=1` writes them.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that panics has failed")]
#![cfg(test)]

use std::path::{Path, PathBuf};
use wit_bindgen_core::Files;
use wit_bindgen_core::WorldGenerator as _;
use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_rust::Opts;

/// One file of bindings.
struct Bindings {
    /// Where it lies, below the root of the repository, as all paths here.
    file: &'static str,
    /// Where the WIT of its world is.
    wit: &'static [&'static str],
    /// A package with the world, if it is in none of them.
    inline: Option<&'static str>,
    world: &'static str,
    /// The name of the macro that exports an implementation, and the path of its module, for crates that others export from.
    export: Option<(&'static str, &'static str)>,
}

const ALL: &[Bindings] = &[
    Bindings {
        file: "sdk/src/bindings.rs",
        wit: &["wit/since_v0_1"],
        inline: Some(
            "package kiso:sdk;
            world rust {
                import kiso:skill/types@0.1.0;
                import kiso:skill/log@0.1.0;
                import kiso:skill/progress@0.1.0;
                import kiso:skill/secrets@0.1.0;
                import kiso:skill/publish@0.1.0;
                import kiso:skill/kv@0.1.0;
                export kiso:skill/skill@0.1.0;
                export kiso:skill/self-test@0.1.0;
            }",
        ),
        world: "kiso:sdk/rust",
        export: Some(("export_rust", "kiso_sdk::bindings")),
    },
    Bindings {
        file: "skills/channel/src/bindings.rs",
        wit: &["wit/since_v0_1", "wit/channel"],
        inline: Some(
            "package kiso:channel-guest;
            world guest {
                import kiso:skill/kv@0.1.0;
                export kiso:channel/channel@0.1.0;
            }",
        ),
        world: "kiso:channel-guest/guest",
        export: Some(("export_channel", "channel::bindings")),
    },
    Bindings {
        file: "skills/command/src/bindings.rs",
        wit: &["wit/exec"],
        inline: None,
        world: "command",
        export: None,
    },
    Bindings { file: "skills/shell/src/bindings.rs", wit: &["wit/exec"], inline: None, world: "sh", export: None },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn generate(bindings: &Bindings) -> String {
    let mut resolve = Resolve::default();
    let mut packages = Vec::new();
    for wit in bindings.wit {
        packages.push(resolve.push_path(root().join(wit)).unwrap().0);
    }
    if let Some(inline) = bindings.inline {
        packages = vec![resolve.push_str("inline.wit", inline).unwrap()];
    }
    let world = resolve.select_world(&packages, Some(bindings.world)).unwrap();
    let mut options = Opts { format: true, generate_all: true, ..Opts::default() };
    if let Some((name, module)) = bindings.export {
        options.pub_export_macro = true;
        options.export_macro_name = Some(name.to_owned());
        options.default_bindings_module = Some(module.to_owned());
    }
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).unwrap();
    let (_, source) = files.iter().next().unwrap();
    format!("// Made by `just bindings` from wit/. Do not change it by hand.\n{}", String::from_utf8_lossy(source))
}

#[test]
fn bindings_are_those_of_wit() {
    for bindings in ALL {
        let made = generate(bindings);
        let path = root().join(bindings.file);
        if std::env::var_os("KISO_BINDINGS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(made == kept, "{} is old: run `KISO_BINDINGS=1 cargo test -p kiso-bindings`", bindings.file);
    }
}
