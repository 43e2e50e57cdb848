//! `kiso skill add`.

use super::installing::{GrantAnswer, SkillCandidate, SkillFile};
use super::open;
use super::package::{self, PackageInstall};
use super::push::RegistryArgs;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Shared, block_on};
use kiso_base::home::SkillName;
use kiso_sandbox::package::{PackageFolder, bundled, find};
use kiso_sandbox::skill::{PackageOrigin, Skills, WebError, WebPlace};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// The .wasm file; an Agent Skill (a folder with a SKILL.md, or a .zip or .skill file of one); a package (a folder with
    /// a kiso.toml that has [kiso.package], or a .zip file of one); any of them at https://HOST/FILE with --sha256, at
    /// oci://HOST/NAME:TAG, or by its name in an index; or the name of a package of kiso, such as python (`kiso skill
    /// search` lists them)
    file: PathBuf,
    /// For a package: a file or an address of the component, or of an archive that contains it, to use instead of the
    /// publisher's; repeat for a package of several files. For any name: a folder that `kiso skill mirror` wrote
    #[arg(long, value_name = "FILE|URL|FOLDER", conflicts_with_all = ["manifest", "name"])]
    from: Vec<String>,
    #[command(flatten)]
    registry: RegistryArgs,
    /// For https://: the SHA-256 that the file must have; it can also follow the address, as #sha256=DIGEST
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
    /// For a name: the index to search, as `[skills] index` names it [default: all of them]
    #[arg(long, value_name = "PLACE")]
    index: Option<String>,
    /// Manifest to use instead of the one in the file or beside it
    #[arg(long, value_name = "KISO.TOML")]
    manifest: Option<PathBuf>,
    /// Name to install it under instead of its own
    #[arg(long)]
    name: Option<String>,
    /// Grant everything it asks for (or imports, without a manifest), nothing (not even /work), or what was granted before
    /// [default: ask]
    #[arg(long, value_name = "all|none|keep")]
    grant: Option<GrantAnswer>,
}

impl AddArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        if let Some(folder) = self.package() {
            let grant = self.grant.map(Into::into);
            let how = PackageInstall { from: &self.from, grant, json: shared.json };
            return package::add(&opened, &show, folder, &PackageOrigin::of_kiso(folder), &how);
        }
        let skills = &opened.skills;
        let file = self.file(skills, &show)?;
        let candidate = SkillCandidate::examine(skills, &file, self.manifest.as_deref(), self.name.as_deref())?;
        if !self.from.is_empty() && self.mirrored().is_none() && !matches!(candidate, SkillCandidate::Package(_)) {
            return Err(Failure::new(Exit::Usage, "--from is for packages, and for folders of `kiso skill mirror`"));
        }
        candidate.install(&opened, &self.from, self.grant, &show, shared.json)?;
        Ok(Exit::Done)
    }

    /// Returns the package of kiso with this name. A package's own name always means the package; a command's name does only
    /// if there is no file of this name.
    fn package(&self) -> Option<&'static PackageFolder> {
        let name = self.file.to_str().filter(|_| self.index.is_none() && self.manifest.is_none())?;
        find(name).or_else(|| package::known(name).filter(|_| !self.file.exists()))
    }

    /// Returns the skill's file in a folder of `kiso skill mirror` that `--from` names. For a package, that is its archive
    /// rather than its component.
    fn mirrored(&self) -> Option<PathBuf> {
        let name = self.file.to_str().filter(|name| SkillName::parse(name).is_ok())?;
        let [dir] = &self.from[..] else { return None };
        let dir = Path::new(dir).join(name);
        ["zip", "skill", "wasm"].iter().map(|ending| dir.join(format!("{name}.{ending}"))).find(|file| file.is_file())
    }

    /// Returns the file to install.
    fn file(&self, skills: &Skills, show: &Show) -> Result<SkillFile, Failure> {
        let place = self.file.to_str().unwrap_or_default();
        if WebPlace::is_one(place) {
            let from = WebPlace::parse(place)?.with_digest(self.sha256.as_deref())?;
            if !from.has_digest() {
                return Err(WebError::NoDigest { url: from.url().to_owned() }.into());
            }
        } else if self.sha256.is_some() {
            return Err(Failure::new(Exit::Usage, "--sha256 is for what comes from https://"));
        }
        if let Some(fetched) = self.registry.fetch(skills, place, self.sha256.as_deref(), show)? {
            return Ok(SkillFile::Fetched(fetched));
        }
        let is_name = SkillName::parse(place).is_ok() && !self.file.exists();
        if let Some(file) = self.mirrored() {
            return Ok(SkillFile::Named(file));
        }
        if !is_name {
            return Ok(SkillFile::Named(self.file.clone()));
        }
        if skills.indexes()?.is_empty() && self.index.is_none() {
            let names: Vec<&str> = bundled().iter().map(|folder| folder.package.name.as_str()).collect();
            let message = format!(
                "there is no file `{place}`, no package of this name (there is {}), and config.toml names no index",
                names.join(", ")
            );
            return Err(Failure::new(Exit::Usage, message));
        }
        let who = self.registry.credentials()?;
        show.busy(place);
        let fetched = block_on(async {
            let found = skills.find_indexed(place, self.index.as_deref()).await?;
            Ok::<_, kiso_sandbox::skill::SkillError>((skills.fetch_indexed(&found, &who).await?, found))
        });
        show.rest();
        let (fetched, found) = fetched??;
        let from = format!("{} {} from {} ({})", place, found.skill.version, found.index_name, found.index.at);
        show.line(&show.dim(&printable_line(&from)));
        Ok(SkillFile::Fetched(fetched))
    }
}
