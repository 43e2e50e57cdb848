//! Whether the output of a slow tool is up to date: the digest of its inputs is stored beside it. So a second build is quick
//! and gives the same component, which the host need not compile again.

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The inputs of an output.
pub(super) struct Inputs(Context);

impl Default for Inputs {
    fn default() -> Self {
        let mut inputs = Self(Context::new(&SHA256));
        inputs.add("kiso", env!("CARGO_PKG_VERSION").as_bytes());
        inputs
    }
}

impl Inputs {
    pub(super) fn add(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        for part in [name.as_bytes(), bytes] {
            self.0.update(&(part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
        self
    }

    /// Adds all files below `dir`, except files and directories with skipped names.
    pub(super) fn tree(&mut self, dir: &Path, skipped: impl Fn(&str) -> bool) -> io::Result<()> {
        for path in files(dir, &skipped)? {
            let bytes = std::fs::read(&path)?;
            self.add(&path.strip_prefix(dir).unwrap_or(&path).to_string_lossy(), &bytes);
        }
        Ok(())
    }

    /// Adds size and time of all files below `dir`: for packages, which are large and not edited.
    pub(super) fn stamps(&mut self, dir: &Path) -> io::Result<()> {
        for path in files(dir, &|name| name == "__pycache__")? {
            let metadata = path.metadata()?;
            let time = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            self.add(&path.to_string_lossy(), format!("{} {time}", metadata.len()).as_bytes());
        }
        Ok(())
    }

    /// Returns whether `out` was made of these inputs.
    pub(super) fn made(&self, out: &Path) -> bool {
        out.exists() && std::fs::read_to_string(beside(out)).is_ok_and(|digest| digest == self.digest())
    }

    /// Records that `out` was made of these inputs. If that fails, the next build repeats the work.
    pub(super) fn note(&self, out: &Path) {
        let _ = std::fs::write(beside(out), self.digest());
    }

    fn digest(&self) -> String {
        HEXLOWER.encode(self.0.clone().finish().as_ref())
    }
}

fn beside(out: &Path) -> PathBuf {
    out.with_extension("made-of")
}

/// Returns the files below a directory, sorted; none if it is missing.
fn files(dir: &Path, skipped: &impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(dir) = directories.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if skipped(&entry.file_name().to_string_lossy()) {
                continue;
            }
            // Links are neither followed nor read: they could lead anywhere, even in a circle.
            let kind = entry.file_type()?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out.wasm");
        let inputs = |text: &str| {
            std::fs::write(dir.path().join("a.py"), text).unwrap();
            let mut inputs = Inputs::default();
            inputs.tree(dir.path(), |name| name.starts_with("out.")).unwrap();
            inputs
        };
        assert!(!inputs("one").made(&out));
        std::fs::write(&out, "component").unwrap();
        inputs("one").note(&out);
        assert!(inputs("one").made(&out));
        assert!(!inputs("two").made(&out));
        std::fs::rename(dir.path().join("a.py"), dir.path().join("b.py")).unwrap();
        let mut renamed = Inputs::default();
        renamed.tree(dir.path(), |name| name.starts_with("out.")).unwrap();
        assert!(!renamed.made(&out));
        std::fs::remove_file(&out).unwrap();
        assert!(!inputs("one").made(&out));
    }
}
