//! `kiso skill pack`.

use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};
use kiso_sandbox::package::PackageFolder;
use kiso_sandbox::skill::manifest::Manifest;
use kiso_sandbox::skill::pack::pack;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct PackArgs {
    /// The .wasm file, or the folder of a package
    file: PathBuf,
    /// The manifest to put inside [default: kiso.toml beside the file, then in the current directory]
    #[arg(long, value_name = "KISO.TOML")]
    manifest: Option<PathBuf>,
    /// Where to write; without it the file is replaced, and the archive of a package is NAME-VERSION.zip
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl PackArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        if self.file.is_dir() {
            return self.pack_package(shared);
        }
        if !self.file.is_file() {
            return Err(Failure::new(Exit::Usage, format!("{} is not a file", self.file.display())));
        }
        let manifest = match &self.manifest {
            Some(path) => path.clone(),
            None => {
                let beside = self.file.with_file_name("kiso.toml");
                if beside.exists() { beside } else { PathBuf::from("kiso.toml") }
            }
        };
        let out = self.out.as_deref().unwrap_or(&self.file);
        let name = write_packed(&self.file, &manifest, out)?;
        if shared.json {
            outln!("{}", json!({ "type": "packed", "skill": name, "file": out }));
        } else {
            outln!("packed {name} into {}", printable_line(&out.display().to_string()));
        }
        Ok(Exit::Done)
    }
}

impl PackArgs {
    fn pack_package(&self, shared: &Shared) -> Result<Exit, Failure> {
        if self.manifest.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                "the manifest of a package lies in its folder; leave --manifest out",
            ));
        }
        let read = PackageFolder::read(&self.file);
        let (folder, packed) = read.map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
        let name = &folder.package.name;
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}-{}.zip", folder.package.version)));
        std::fs::write(&out, packed)
            .map_err(|error| Failure::new(Exit::Failed, format!("cannot write {}: {error}", out.display())))?;
        if shared.json {
            outln!("{}", json!({ "type": "packed", "skill": name, "file": out }));
        } else {
            outln!("packed {name} into {}", printable_line(&out.display().to_string()));
        }
        Ok(Exit::Done)
    }
}

/// Checks the manifest and writes the packed file; returns the skill's name.
pub(super) fn write_packed(wasm: &Path, manifest: &Path, out: &Path) -> Result<String, Failure> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|e| Failure::new(Exit::Usage, format!("cannot read {}: {e}", path.display())))
    };
    let text = String::from_utf8(read(manifest)?)
        .map_err(|_| Failure::new(Exit::Usage, format!("{} is not UTF-8 text", manifest.display())))?;
    let parsed = Manifest::parse(&manifest.display().to_string(), &text)
        .map_err(|e| Failure::new(Exit::Usage, e.to_string()))?;
    let bytes = read(wasm)?;
    if !bytes.starts_with(b"\0asm") {
        return Err(Failure::new(Exit::Usage, format!("{} is not WebAssembly", wasm.display())));
    }
    std::fs::write(out, pack(&bytes, &text))
        .map_err(|e| Failure::new(Exit::Failed, format!("cannot write {}: {e}", out.display())))?;
    Ok(parsed.name.to_string())
}
