//! A package of somebody else before it is installed: its source, its digest, and its signer. A package of kiso is identified by
//! its name.

use super::SignatureCheck;
use crate::package::{self, CONTROL_FILE, Package, PackageFolder};
use crate::skill::digest::Digest;
use crate::skill::error::SkillError;
use crate::skill::fetched::FetchedFile;
use crate::skill::installed::Provenance;
use crate::skill::signature::{PACKAGE, Statement};
use crate::skill::source;
use crate::skill::{Skills, is_index_source};
use kiso_base::home::SkillName;
use kiso_plan::code::{Blame, ErrorCode};
use std::path::Path;

/// The identity of a package: the name for one of kiso's, the source and the signer for any other.
#[derive(Debug, Clone)]
pub struct PackageOrigin {
    /// The source that identifies the skill.
    pub source: String,
    /// The place to fetch it again, its digest, and its signer. The digest of a package of kiso is that of its component.
    pub provenance: Provenance,
    /// The reason why an existing signature does not count.
    pub warning: Option<String>,
    /// Whether an index of `config.toml` vouches for it, or kiso itself.
    pub is_vouched: bool,
}

/// A package that was read and checked, before anything is fetched for it.
#[derive(Debug)]
pub struct PackageCandidate {
    pub folder: PackageFolder,
    pub origin: PackageOrigin,
}

impl PackageOrigin {
    /// A package that is a part of the program.
    pub fn of_kiso(folder: &PackageFolder) -> Self {
        let source = folder.package.source();
        let digest = folder.package.spec.component.sha256.clone();
        let provenance = Provenance { location: Some(source.clone()), file_digest: Some(digest), signer: None };
        Self { source, provenance, warning: None, is_vouched: true }
    }

    pub fn is_of_kiso(&self) -> bool {
        Package::is_source_of_kiso(&self.source)
    }
}

impl Skills {
    /// Reads a folder or an archive with a package. Fetches nothing and changes nothing.
    pub fn examine_package_file(
        &self,
        path: &Path,
        fetched: Option<&FetchedFile>,
    ) -> Result<PackageCandidate, SkillError> {
        let shown = path.display().to_string();
        let refuse = |code: ErrorCode, why: String| SkillError::new(&shown, Blame::Caller, code, why);
        let (folder, packed) =
            PackageFolder::read(path).map_err(|error| refuse(ErrorCode::BadManifest, error.to_string()))?;
        let statement = statement(&folder, &packed);
        let (name, digest) = (folder.package.name.clone(), statement.digest.clone());
        let reserved = |why: &str| Err(refuse(ErrorCode::NameTaken, format!("`{name}` is {why}")));
        if let Some(own) = package::find(&name) {
            return match own.is_same(&folder) {
                true => Ok(PackageCandidate { folder, origin: PackageOrigin::of_kiso(own) }),
                false => reserved("a package of kiso, and this one differs from it"),
            };
        }
        if folder.package.asks_for_commands() {
            let message = format!(
                "its `files` name {CONTROL_FILE}, through which a command starts other commands; only packages of kiso may do that"
            );
            return Err(refuse(ErrorCode::BadManifest, message));
        }
        let parsed = SkillName::parse(&name).map_err(|error| refuse(ErrorCode::BadManifest, error.to_string()))?;
        if self.bundled(&parsed).is_some() {
            return reserved("a bundled skill");
        }
        let signed = match fetched {
            None => self.signed_beside(path, &statement)?,
            Some(fetched) => match &fetched.signature {
                Some(text) => self.signed(text, &statement)?,
                None => SignatureCheck::default(),
            },
        };
        let (source, location) = match fetched {
            Some(fetched) => (fetched.source.clone(), fetched.location.clone()),
            None => {
                let source = source::of_file(path)
                    .map_err(|error| refuse(ErrorCode::NotFound, format!("cannot read it: {error}")))?;
                (source.clone(), source)
            }
        };
        let is_vouched = signed.by.is_some() || is_index_source(&source).is_some();
        let provenance = Provenance { location: Some(location), file_digest: Some(digest), signer: signed.by };
        Ok(PackageCandidate {
            folder,
            origin: PackageOrigin { source, provenance, warning: signed.warning, is_vouched },
        })
    }
}

/// The signer of the package. The signature was checked with the archive, which does not contain the component.
pub(super) fn signature(origin: &PackageOrigin) -> SignatureCheck {
    SignatureCheck { by: origin.provenance.signer.clone(), warning: origin.warning.clone() }
}

/// The statement that a signature of a package covers.
pub(super) fn statement(folder: &PackageFolder, packed: &[u8]) -> Statement {
    Statement {
        name: folder.package.name.clone(),
        version: folder.package.version.clone(),
        kind: PACKAGE,
        digest: Digest::compute(packed).to_string(),
        manifest: Some(Digest::compute(folder.manifest.as_bytes()).to_string()),
    }
}
