//! `kiso skill new`: creates a project that builds and contains all that it needs.

use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};
use clap::ValueEnum;
use kiso_base::home::SkillName;
use serde_json::json;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/templates.rs"));

#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// The skill's name: a-z, 0-9 and -
    name: String,
    /// The language to write it in
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    lang: Language,
    /// Where to put the project [default: a directory of the skill's name]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    Rust,
    /// JavaScript
    Js,
    /// TypeScript
    Ts,
    Python,
}

impl Language {
    fn files(self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let (shared, own) = match self {
            Self::Rust => (&[][..], RUST),
            Self::Js => (WEB, JS),
            Self::Ts => (WEB, TS),
            Self::Python => (&[][..], PYTHON),
        };
        shared.iter().chain(own)
    }

    /// Returns the language's SDK, and its directory in a project.
    fn sdk(self) -> (&'static str, &'static [(&'static str, &'static str)]) {
        match self {
            Self::Rust => ("vendor/kiso-sdk", SDK),
            Self::Js | Self::Ts => ("vendor/kiso-sdk", SDK_JS),
            Self::Python => ("", &[]),
        }
    }
}

impl NewArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let name = SkillName::parse(&self.name)?;
        if name.as_str().starts_with(|c: char| c.is_ascii_digit()) {
            // Build tools do not accept such a name for a package.
            return Err(Failure::new(
                Exit::Usage,
                format!("`{name}` begins with a digit; a project's name begins with a letter"),
            ));
        }
        if kiso_sandbox::skill::is_bundled(&name) {
            return Err(Failure::new(Exit::Usage, format!("`{name}` is a bundled skill; choose another name")));
        }
        let dir = self.dir.clone().unwrap_or_else(|| PathBuf::from(name.as_str()));
        if dir.exists() && std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Failure::new(
                Exit::Usage,
                format!("{} is not empty; choose another place with --dir", dir.display()),
            ));
        }
        for (path, text) in self.lang.files() {
            let source = if self.lang == Language::Ts { "skill.ts" } else { "skill.js" };
            write(&dir.join(path), &text.replace("{{name}}", name.as_str()).replace("{{source}}", source))?;
        }
        // The project contains the interface and the SDK, so that it builds anywhere. Rust's SDK includes both.
        let wit = if self.lang == Language::Rust { &[] } else { WIT };
        for (path, text) in wit {
            write(&dir.join("wit").join(path), text)?;
        }
        let (place, sdk) = self.lang.sdk();
        for (path, text) in sdk {
            write(&dir.join(place).join(path), text)?;
        }
        if shared.json {
            outln!("{}", json!({ "type": "created", "skill": name.as_str(), "dir": dir }));
        } else {
            let shown = printable_line(&dir.display().to_string());
            outln!(
                "created {shown}\n\n  kiso skill build {shown}\n  kiso skill test --dir {shown} name=world\n  kiso skill add {shown}/{name}.wasm"
            );
        }
        Ok(Exit::Done)
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::new(Exit::Failed, format!("cannot write {}: {e}", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}
