//! A package's files in the home: those beside its `kiso.toml`, and the parts that came with its component. They are written when
//! the package is added, all or none, into a directory with the name of its version. Those of another version stay until the new
//! one is installed.

use super::{Package, archive};
use kiso_base::home::Home;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Error, Result};
use std::path::{Component, Path, PathBuf};

/// The directories below that of the version: of files beside the manifest, of parts, and an empty one.
const FILES: &str = "files";
const PARTS: &str = "parts";
const EMPTY: &str = "empty";

/// The directory of the files that the package's build made. A package with this directory has no parts.
const BUILT: &str = "built";

/// Writes the files and replaces those of the same version.
pub(super) fn write(
    package: &Package,
    files: &BTreeMap<String, Cow<'static, [u8]>>,
    (parts, built): (&[Vec<u8>], &BTreeMap<String, Vec<u8>>),
    home: &Home,
) -> Result<()> {
    let parent = home.package_dir(&package.name);
    let dir = parent.join(&package.version);
    // A name that no version has. An existing directory of this name was left by a process that was killed.
    let new = parent.join(format!(".{}.new", std::process::id()));
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    fs::create_dir_all(new.join(FILES))?;
    for (path, bytes) in files {
        write_file(&new.join(FILES), path, bytes)?;
    }
    for (part, bytes) in package.spec.parts.iter().zip(parts) {
        write_file(&new.join(PARTS), &part.path, bytes)?;
        let Some(tree) = &part.tree else { continue };
        let damaged = |error: archive::PackageError| Error::other(error);
        let inner = archive::read_file(bytes, &tree.entry).map_err(damaged)?;
        let inner = inner.ok_or_else(|| Error::other(format!("there is no {} in it", tree.entry)))?;
        for (path, bytes) in archive::tree(&inner).map_err(damaged)? {
            write_file(&new.join(PARTS).join(&tree.path), &path, &bytes)?;
        }
    }
    for (path, bytes) in built {
        write_file(&new.join(BUILT), path, bytes)?;
    }
    if dir.exists() {
        home.remove_tree(&dir)?;
    }
    fs::rename(&new, &dir)
}

/// Removes the files of this version. Files that cannot be removed stay, and are rewritten when the package is added.
pub(super) fn remove(package: &Package, home: &Home) {
    if let Ok(dir) = directory(package, home) {
        let _ = home.remove_tree(&dir);
    }
}

/// Removes everything but the files of this version.
pub(super) fn remove_others(package: &Package, home: &Home) -> Result<()> {
    let parent = home.package_dir(&package.name);
    for entry in fs::read_dir(&parent)? {
        let path = entry?.path();
        if path != parent.join(&package.version) {
            home.remove_tree(&path)?;
        }
    }
    Ok(())
}

fn write_file(dir: &Path, path: &str, bytes: &[u8]) -> Result<()> {
    let path = Path::new(path);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(Error::other(format!("{} leads elsewhere", path.display())));
    }
    let file = dir.join(path);
    fs::create_dir_all(file.parent().unwrap_or(dir))?;
    fs::write(file, bytes)
}

/// Returns the directories with the files of an installed package, and where its commands see each.
pub(super) fn mounts(package: &Package, home: &Home) -> Result<Vec<(PathBuf, String)>> {
    let (dir, spec) = (directory(package, home)?, &package.spec);
    let mut mounts: Vec<_> = spec.mount.iter().map(|mount| (dir.join(FILES), mount.clone())).collect();
    if let Some(build) = &spec.build {
        mounts.push((dir.join(BUILT), build.at.clone()));
        return Ok(mounts);
    }
    for part in &spec.parts {
        let first = part.path.split('/').next().unwrap_or(&part.path);
        mounts.push((dir.join(PARTS).join(first), part.at.clone()));
        mounts.extend(part.tree.as_ref().map(|tree| (dir.join(PARTS).join(&tree.path), tree.at.clone())));
    }
    // Parts beside each other are in one directory.
    mounts.dedup();
    Ok(mounts)
}

/// Returns an empty directory, which a kept interpreter sees in the place of one that its line does not see.
pub(super) fn empty(package: &Package, home: &Home) -> Result<PathBuf> {
    // A copy of a home may lack it.
    let dir = directory(package, home)?.join(EMPTY);
    fs::create_dir_all(&dir).map(|()| dir)
}

fn directory(package: &Package, home: &Home) -> Result<PathBuf> {
    let name = &package.name;
    let dir = home.package_dir(name).join(&package.version);
    match dir.is_dir() {
        true => Ok(dir),
        false => Err(Error::other(format!("they are not there; `kiso skill add {name}` writes them again"))),
    }
}
