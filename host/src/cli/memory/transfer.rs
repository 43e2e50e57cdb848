//! `kiso memory export` and `import`.

use crate::cli::{Exit, Failure, Opened, environment_secrets};
use kiso_base::clock::now_ms;
use kiso_store::memory::{self, MemoryImport, MemoryImportError};
use kiso_store::secret::found;
use kiso_store::store::StoreError;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Cursor, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Maximum bytes of standard input, which is kept in memory because it is read twice. Larger input must be a file.
const MAX_STDIN: u64 = 64 << 20;

pub(super) fn export(opened: &Opened, file: Option<&Path>) -> Result<Exit, Failure> {
    let Some(path) = file else {
        crate::cli::out::is_json();
        memory::export::<StoreError>(&opened.store, |record| {
            outln!("{}", json!(record));
            Ok(())
        })?;
        return Ok(Exit::Done);
    };
    let failed = |error: io::Error| {
        let why = match error.kind() {
            ErrorKind::AlreadyExists => "it already exists; choose another name".to_owned(),
            _ => error.to_string(),
        };
        Failure::new(Exit::Failed, format!("{} cannot be written: {why}", path.display()))
    };
    // Readable only by its owner, as the home is.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let mut file = BufWriter::new(file);
    let written = memory::export::<WriteError>(&opened.store, |record| Ok(writeln!(file, "{}", json!(record))?));
    let written = written.and_then(|()| Ok(file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?));
    match written {
        Ok(()) => Ok(Exit::Done),
        Err(error) => {
            // An incomplete export would look like a complete one.
            let _ = std::fs::remove_file(path);
            Err(match error {
                WriteError::Io(error) => failed(error),
                WriteError::Store(error) => error.into(),
            })
        }
    }
}

enum WriteError {
    Io(io::Error),
    Store(StoreError),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::Io(error)
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> WriteError {
        WriteError::Store(error)
    }
}

pub(super) fn import(opened: &Opened, path: &Path, json: bool) -> Result<Exit, Failure> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let failed = |why: String| Failure::new(Exit::Failed, format!("{name} cannot be read: {why}"));
    let secrets = environment_secrets();
    let clean = |text: &str| found::extract(&secrets.redact(text), &secrets).0;
    let (store, now) = (&opened.store, now_ms());
    let done = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().take(MAX_STDIN + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
        if bytes.len() as u64 > MAX_STDIN {
            let why = format!("it is larger than {} MiB; write it to a file and import that", MAX_STDIN >> 20);
            return Err(Failure::new(Exit::Limit, format!("{name} cannot be read: {why}")));
        }
        memory::import(store, Cursor::new(bytes), &clean, now)
    } else {
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            return Err(failed("it is not a file; `-` reads standard input".to_owned()));
        }
        memory::import(store, BufReader::new(file), &clean, now)
    };
    let MemoryImport { core, facts, passages, known } = done.map_err(|error| match error {
        MemoryImportError::Store(error) => error.into(),
        MemoryImportError::Line { line, why } => {
            Failure::new(Exit::Failed, format!("{name}:{line}: {why}; nothing was imported"))
        }
        MemoryImportError::TooMany { .. } => Failure::new(Exit::Limit, format!("{error}; nothing was imported")),
        MemoryImportError::Io(error) => failed(error.to_string()),
    })?;
    if json {
        outln!("{}", json!({ "type": "imported", "core": core, "facts": facts, "passages": passages, "known": known }));
    } else {
        let and_core = if core { "core memory, " } else { "" };
        outln!("imported {and_core}{facts} facts and {passages} passages; {known} already existed");
    }
    Ok(Exit::Done)
}
