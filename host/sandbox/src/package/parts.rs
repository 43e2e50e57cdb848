//! What belongs to a package's component besides: files of its publisher that are too large to be part of kiso, such as an
//! interpreter's library. They are written into the home when the package is added, in a directory that is named by their digests.

use super::{Package, archive};
use data_encoding::HEXLOWER;
use kiso_base::home::Home;
use ring::digest::{Context, SHA256};
use std::fs;
use std::io::{Error, Result};
use std::path::{Component, Path, PathBuf};

/// A file of the publisher's.
#[derive(Debug)]
pub struct PackagePart {
    /// SHA-256, in hexadecimal.
    pub sha256: &'static str,
    /// Bytes.
    pub size: u64,
    /// Where the publisher has it, if it is not in what contains the component.
    pub url: Option<&'static str>,
    /// Its path below the directory of all parts. The first component of it is what the command sees.
    pub path: &'static str,
    /// Where the command sees that, read-only.
    pub at: &'static str,
    /// An archive in this archive whose files the command sees as files.
    pub tree: Option<NestedArchive>,
}

/// An archive in an archive.
#[derive(Debug)]
pub struct NestedArchive {
    /// Its path in the outer one.
    pub entry: &'static str,
    /// The directory for its files, below that of all parts.
    pub path: &'static str,
    /// Where the command sees that, read-only.
    pub at: &'static str,
}

/// Writes them: whole, or nothing.
pub(super) fn keep(package: &Package, home: &Home, parts: &[Vec<u8>]) -> Result<()> {
    let dir = directory(package, home);
    if package.parts.is_empty() || dir.is_dir() {
        return Ok(());
    }
    let new = dir.with_extension(format!("{}.new", std::process::id()));
    if new.exists() {
        // Of a process that had our id and was killed.
        fs::remove_dir_all(&new)?;
    }
    for (part, bytes) in package.parts.iter().zip(parts) {
        write(&new, part.path, bytes)?;
        let Some(tree) = &part.tree else { continue };
        let damaged = |error: archive::PackageError| Error::other(error);
        let inner = archive::at(bytes, tree.entry).map_err(damaged)?;
        let inner = inner.ok_or_else(|| Error::other(format!("there is no {} in it", tree.entry)))?;
        for (path, bytes) in archive::tree(&inner).map_err(damaged)? {
            write(&new.join(tree.path), &path, &bytes)?;
        }
    }
    match fs::rename(&new, &dir) {
        // Another one was first, with the same files.
        Err(_) if dir.is_dir() => fs::remove_dir_all(&new),
        renamed => renamed,
    }
}

fn write(dir: &Path, path: &str, bytes: &[u8]) -> Result<()> {
    let path = Path::new(path);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(Error::other(format!("{} leads elsewhere", path.display())));
    }
    let file = dir.join(path);
    fs::create_dir_all(file.parent().unwrap_or(dir))?;
    fs::write(file, bytes)
}

/// Where they are, and where the command sees them.
pub(super) fn directories(package: &Package, home: &Home) -> Result<Vec<(PathBuf, &'static str)>> {
    let dir = directory(package, home);
    if !package.parts.is_empty() && !dir.is_dir() {
        let message = format!("they are not there; `kiso package add {}` writes them again", package.name);
        return Err(Error::other(message));
    }
    let mut seen = Vec::new();
    for part in package.parts {
        let first = part.path.split('/').next().unwrap_or(part.path);
        seen.push((dir.join(first), part.at));
        seen.extend(part.tree.as_ref().map(|tree| (dir.join(tree.path), tree.at)));
    }
    Ok(seen)
}

fn directory(package: &Package, home: &Home) -> PathBuf {
    let mut context = Context::new(&SHA256);
    for part in package.parts {
        context.update(part.sha256.as_bytes());
    }
    let name = HEXLOWER.encode(&context.finish().as_ref()[..8]);
    home.package_dir(package.name).join(format!("parts-{name}"))
}
