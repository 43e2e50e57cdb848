//! Runs wasm-smith in its own process: `fuzz/smith/Cargo.toml` says why it is not a dependency of this target.

#[path = "../build/guests.rs"]
#[allow(dead_code, reason = "build scripts use the rest")]
mod guests;

use kiso_tests::root;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Smith {
    process: Child,
    seeds: ChildStdin,
    files: ChildStdout,
}

impl Smith {
    /// Builds the program if it does not exist yet, and starts it.
    pub(crate) fn start() -> Smith {
        let (manifest, target) = (root().join("fuzz/smith/Cargo.toml"), root().join("target/guests"));
        let built = guests::cargo(&manifest, &target, "release").status().expect("cargo can be started");
        assert!(built.success(), "{} cannot be built", manifest.display());
        let program = target.join("release/smith").with_extension(std::env::consts::EXE_EXTENSION);
        let started = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = started.unwrap_or_else(|error| panic!("{} cannot be started: {error}", program.display()));
        let (seeds, files) = (process.stdin.take().expect("it is piped"), process.stdout.take().expect("it is piped"));
        Smith { process, seeds, files }
    }

    /// A component or a core module. The same seed gives the same bytes.
    pub(crate) fn make(&mut self, seed: u64) -> Vec<u8> {
        let mut answer = || {
            self.seeds.write_all(&seed.to_le_bytes())?;
            let mut length = [0; 4];
            self.files.read_exact(&mut length)?;
            let mut file = vec![0; u32::from_le_bytes(length) as usize];
            self.files.read_exact(&mut file).map(|()| file)
        };
        answer().unwrap_or_else(|error| panic!("wasm-smith gave no file for the seed {seed}: {error}"))
    }
}

impl Drop for Smith {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
