//! `kiso skill add`.

use super::installing::{GrantAnswer, SkillCandidate, SkillFile};
use super::open;
use super::package::{self, PackageInstall};
use super::push::RegistryArgs;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Shared, block_on};
use kiso_base::home::SkillName;
use kiso_sandbox::package::{PackageFolder, bundled, find};
use kiso_sandbox::skill::{Skills, WebError, WebPlace};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// The .wasm file, or an Agent Skill: a folder with a SKILL.md, or a .zip or .skill file of one; or either at https://HOST/FILE with --sha256, at oci://HOST/NAME:TAG, or by its name in an index; or the name of a package, such as python (`kiso skill search` lists them)
    file: PathBuf,
    /// For a package: a file or an address to take it from instead of the publisher's: the component, or an archive that contains it; repeat for a package of several files
    #[arg(long, value_name = "FILE|URL", conflicts_with_all = ["sha256", "index", "manifest", "name"])]
    from: Vec<String>,
    #[command(flatten)]
    registry: RegistryArgs,
    /// For https://: the SHA-256 that the file must have; it can also stand behind the address, as #sha256=DIGEST
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
    /// For a name: the index that it is looked for in, as `[skills] index` names it [default: all of them]
    #[arg(long, value_name = "PLACE")]
    index: Option<String>,
    /// Manifest to use instead of the one in the file or beside it
    #[arg(long, value_name = "KISO.TOML")]
    manifest: Option<PathBuf>,
    /// Name to install it under instead of its own
    #[arg(long)]
    name: Option<String>,
    /// Grant everything it asks for (or imports, without a manifest), nothing, not even /work, or what was granted before [default: ask]
    #[arg(long, value_name = "all|none|keep")]
    grant: Option<GrantAnswer>,
}

impl AddArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        if let Some(folder) = self.package() {
            let how = PackageInstall { from: &self.from, grant: self.grant };
            return package::add(&opened, &show, folder, &how, shared.json);
        }
        if !self.from.is_empty() {
            let names: Vec<&str> = bundled().iter().map(|folder| folder.package.name.as_str()).collect();
            let message = format!("there is no package `{}`; there is {}", self.file.display(), names.join(", "));
            return Err(Failure::new(Exit::Usage, message));
        }
        let skills = &opened.skills;
        let file = self.file(skills, &show)?;
        let candidate = SkillCandidate::examine(skills, &file, self.manifest.as_deref(), self.name.as_deref())?;
        candidate.install(skills, self.grant, &show, shared.json)?;
        Ok(Exit::Done)
    }

    /// The package of kiso that is meant. Its name alone means the package, whatever the directory has in it.
    fn package(&self) -> Option<&'static PackageFolder> {
        let name = self.file.to_str().filter(|_| self.index.is_none() && self.manifest.is_none())?;
        find(name).or_else(|| package::known(name).filter(|_| !self.file.exists()))
    }

    /// The file that is meant.
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
