//! `kiso --version`: one line, and build details with `--verbose`.

use super::Shared;
use serde_json::json;

/// The commit, set by `build/dist`. Other builds do not read it, because they would be compiled again after every commit.
const COMMIT: Option<&str> = option_env!("KISO_COMMIT");

#[derive(Debug, clap::Args)]
pub(super) struct VersionArgs {
    /// Print the version
    #[arg(short = 'V', long = "version")]
    version: bool,
    /// With --version: also print the commit, the target, and the version of wasmtime
    #[arg(short, long, requires = "version")]
    verbose: bool,
}

impl VersionArgs {
    pub(super) fn wanted(&self) -> bool {
        self.version
    }

    pub(super) fn print(&self, shared: &Shared) {
        let (version, target, wasmtime) = (env!("CARGO_PKG_VERSION"), env!("KISO_TARGET"), env!("KISO_WASMTIME"));
        if shared.json {
            let line = json!({ "type": "version", "version": version, "commit": COMMIT, "target": target, "wasmtime": wasmtime });
            return outln!("{line}");
        }
        outln!("kiso {version}");
        if self.verbose {
            outln!("commit: {}", COMMIT.unwrap_or("unknown (not built by build/dist)"));
            outln!("target: {target}");
            outln!("wasmtime: {wasmtime}");
        }
    }
}
