//! Compiled code on disk.
//!
//! Loading compiled code is as dangerous as running a native program. So a file of the cache is used only if it has the host's
//! own signature (HMAC-SHA256 with the home's key) over the digest of the component and the engine that it was compiled for. Any
//! other file is deleted, and the component is compiled again.

use super::digest::Digest;
use super::installed::BundledSkill;
use data_encoding::HEXLOWER;
use kiso_base::home::Home;
use kiso_base::system::path_to_open;
use ring::hmac;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use wasmtime::component::Component;

const TAG_BYTES: u64 = 32;

/// Bytes of compiled skills that a home keeps. Each try of a skill leaves an entry, a language's interpreter one of 80 MiB, and one with
/// its libraries 500 MiB.
const MAX_BYTES: u64 = 1536 << 20;

/// The precision of an entry's last use: it is not recorded more often.
const USED: Duration = Duration::from_secs(3_600);

/// The compiled code that a home keeps for one engine.
pub(crate) struct CodeCache {
    engine: wasmtime::Engine,
    /// Digest of everything that compiled code depends on, except the component: wasmtime's version, target, and settings.
    compatibility: [u8; 32],
    home: Home,
    dir: PathBuf,
    max_bytes: u64,
}

impl std::fmt::Debug for CodeCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeCache").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl CodeCache {
    /// A cache in a directory of the home, of at most this many bytes.
    pub(crate) fn new(engine: &wasmtime::Engine, home: &Home, dir: PathBuf, max_bytes: u64) -> Self {
        let mut hasher = DigestHasher(ring::digest::Context::new(&ring::digest::SHA256));
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let mut compatibility = [0; 32];
        compatibility.copy_from_slice(hasher.0.finish().as_ref());
        Self { engine: engine.clone(), compatibility, home: home.clone(), dir, max_bytes }
    }

    /// The cache of skills.
    pub(super) fn of_skills(engine: &wasmtime::Engine, home: &Home) -> Self {
        Self::new(engine, home, home.cache_dir(), MAX_BYTES)
    }

    /// Loads the code that a compiler of this home has just made, and keeps it for the next time. Blocking.
    pub(crate) fn keep(&self, digest: &Digest, mut code: Vec<u8>) -> wasmtime::Result<Component> {
        let bytes = code.len();
        let tag = self.sign(digest, &Digest::compute(&code));
        code.extend_from_slice(tag.as_ref());
        let path = self.entry_path(digest);
        // If this fails, writing the file fails, too.
        let _ = std::fs::create_dir_all(&self.dir);
        let kept = match self.home.write_atomic(&path, &code) {
            Ok(()) => {
                sweep(&self.dir, &path, self.max_bytes);
                File::open(&path).ok()
            }
            // The cache is a convenience: with a full disk the next start is slower, but this call works.
            Err(error) => {
                tracing::warn!(%error, "skill.cache could not be written");
                None
            }
        };
        // SAFETY: a process of this very program made these bytes with `Engine::precompile_component`, and they came from it
        // through a pipe that nobody else holds; the file is this home's own.
        let component = unsafe {
            match kept.and_then(|file| self.mapped(&file)) {
                Some(component) => Ok(component),
                None => Component::deserialize(&self.engine, &code[..bytes]),
            }
        };
        if component.is_err() {
            // The code fits no slot of this engine.
            let _ = std::fs::remove_file(&path);
        }
        component
    }

    /// Loads the component from the file with its code, without reading all of it into memory: most of an interpreter is never
    /// used. Returns `None` if the system has no path for an open file, or forbids running code from this directory.
    ///
    /// # Safety
    ///
    /// The file holds what `Engine::precompile_component` made, and nobody changes it in place. Who could, in the home, could read its
    /// key as well.
    unsafe fn mapped(&self, file: &File) -> Option<Component> {
        let path = path_to_open(file)?;
        // SAFETY: as the caller says.
        unsafe { Component::deserialize_file(&self.engine, path) }.ok()
    }

    /// Removes the code of a component that is not used again.
    pub(super) fn forget(&self, digest: &Digest) {
        // If this fails, the file is removed when space is needed.
        let _ = std::fs::remove_file(self.entry_path(digest));
    }

    /// The compiled form of a component, if a valid entry is there. Blocking.
    pub(crate) fn read(&self, digest: &Digest) -> Option<Component> {
        let path = self.entry_path(digest);
        let mut file = File::open(&path).ok()?;
        let discard = |why: &str| {
            tracing::warn!(path = %path.display(), why, "skill.cache entry discarded");
            let _ = std::fs::remove_file(&path);
            None
        };
        let signed = match file.metadata().map(|found| found.len().checked_sub(TAG_BYTES)) {
            Ok(Some(bytes)) => signed(&mut file, bytes),
            Ok(None) => return discard("too short"),
            Err(error) => Err(error),
        };
        let (code, tag) = match signed {
            Ok(signed) => signed,
            Err(error) => return discard(&error.to_string()),
        };
        if hmac::verify(&self.key(), &self.message(digest, &code), &tag).is_err() {
            return discard("not signed by this home for this engine");
        }
        // SAFETY: the signature shows that this very code was taken from a compiler by a process that holds the home's key ([`keep`]),
        // for this component and an engine of the same compatibility hash. The file is still the one that was verified: another one
        // of its name would be another file.
        let component = unsafe { self.mapped(&file) };
        let component = component.map_or_else(|| self.copied(&mut file, &code), Ok);
        match component {
            Ok(component) => {
                mark_used(&path);
                Some(component)
            }
            Err(error) => discard(&format!("{error:#}")),
        }
    }

    /// Loads the component from a copy of its code in memory.
    fn copied(&self, file: &mut File, verified: &Digest) -> wasmtime::Result<Component> {
        file.rewind()?;
        let mut code = Vec::new();
        file.read_to_end(&mut code)?;
        code.truncate(code.len().saturating_sub(TAG_BYTES as usize));
        if Digest::compute(&code) != *verified {
            return Err(wasmtime::Error::msg("it was changed while it was read"));
        }
        // SAFETY: these are the bytes that carry the signature.
        unsafe { Component::deserialize(&self.engine, &code) }
    }

    /// The file of a component for an engine. Two versions of kiso on one home have different files.
    fn entry_path(&self, digest: &Digest) -> PathBuf {
        let engine = HEXLOWER.encode(&self.compatibility[..4]);
        self.dir.join(format!("{digest}-{engine}.cwasm"))
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.home.key().as_bytes())
    }

    fn sign(&self, digest: &Digest, code: &Digest) -> hmac::Tag {
        hmac::sign(&self.key(), &self.message(digest, code))
    }

    /// The signed message. It contains the digest of the code, so that the code need not be copied.
    fn message(&self, component: &Digest, code: &Digest) -> Vec<u8> {
        let mut message = b"kiso compiled code v1\0".to_vec();
        message.extend(component.bytes());
        message.extend(self.compatibility);
        message.extend(code.bytes());
        message
    }
}

/// A bundled skill's code, as compiled with the program; `None` if this engine has other settings.
pub(super) fn of_binary(engine: &wasmtime::Engine, bundled: &BundledSkill) -> Option<Component> {
    // SAFETY: `build.rs` made these bytes with `Engine::precompile_component`, and they are part of the program.
    unsafe { Component::deserialize(engine, bundled.code.unpack()) }.ok()
}

/// The digest of the code in a file, and the signature behind it.
fn signed(file: &mut File, bytes: u64) -> io::Result<(Digest, [u8; TAG_BYTES as usize])> {
    let code = Digest::of_reader(&mut file.take(bytes))?;
    let mut tag = [0; TAG_BYTES as usize];
    file.read_exact(&mut tag)?;
    Ok((code, tag))
}

/// Records that an entry was used now.
fn mark_used(path: &Path) {
    let Ok(file) = File::open(path) else { return };
    let old = file.metadata().and_then(|m| m.modified()).is_ok_and(|at| at.elapsed().is_ok_and(|age| age > USED));
    if old {
        // On a read-only disk, the entry is removed earlier than necessary.
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Removes the entries that were not used for the longest time, until all have at most `max` bytes; never `kept`. A process that
/// wants to read a removed one compiles again.
fn sweep(dir: &Path, kept: &Path, max: u64) {
    let entry = |entry: std::fs::DirEntry| {
        let (path, metadata) = (entry.path(), entry.metadata().ok()?);
        let is_entry = path.extension().is_some_and(|extension| extension == "cwasm") && metadata.is_file();
        is_entry.then_some((metadata.modified().ok()?, metadata.len(), path))
    };
    let mut entries: Vec<_> = std::fs::read_dir(dir).into_iter().flatten().flatten().filter_map(entry).collect();
    let mut bytes: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
    entries.sort();
    for (_, size, path) in entries.iter().filter(|(_, _, path)| path != kept) {
        if bytes <= max {
            return;
        }
        if std::fs::remove_file(path).is_ok() {
            bytes -= size;
        }
    }
}

/// Feeds a `Hash` into SHA-256: the standard hasher's 64 bits may collide and may change between versions of Rust.
struct DigestHasher(ring::digest::Context);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let now = SystemTime::now();
        for (name, bytes, hours) in
            [("old.cwasm", 40, 9), ("new.cwasm", 40, 1), ("kept.cwasm", 40, 30), ("other.txt", 90, 50)]
        {
            std::fs::write(path(name), vec![0; bytes]).unwrap();
            let used = now - Duration::from_secs(hours * 3_600);
            File::open(path(name)).unwrap().set_modified(used).unwrap();
        }
        sweep(dir.path(), &path("kept.cwasm"), 120);
        assert!(path("old.cwasm").exists(), "they fit");
        mark_used(&path("old.cwasm"));
        sweep(dir.path(), &path("kept.cwasm"), 100);
        let there = ["old.cwasm", "new.cwasm", "kept.cwasm", "other.txt"].map(|name| path(name).exists());
        assert_eq!(there, [true, false, true, true]);
        sweep(dir.path(), &path("kept.cwasm"), 10);
        assert!(!path("old.cwasm").exists() && path("kept.cwasm").exists());
    }
}
