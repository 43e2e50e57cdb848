//! The shell commands, by the names that they have elsewhere.

mod document;
mod docx2txt;
mod pandoc;
mod pdfinfo;
mod pdftoppm;
mod pdftotext;
mod words;
mod xlsx2csv;

use std::io::{Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::limits;

/// A command: what it is called, its help, and its work.
pub struct Command {
    pub name: &'static str,
    pub usage: &'static str,
    pub run: fn(&[String], &mut dyn Write) -> Result<()>,
}

/// All of them.
pub const COMMANDS: [Command; 7] = [
    Command { name: "document", usage: document::USAGE, run: document::run },
    Command { name: "docx2txt", usage: docx2txt::USAGE, run: docx2txt::run },
    Command { name: "pandoc", usage: pandoc::USAGE, run: pandoc::run },
    Command { name: "pdfinfo", usage: pdfinfo::USAGE, run: pdfinfo::run },
    Command { name: "pdftoppm", usage: pdftoppm::USAGE, run: pdftoppm::run },
    Command { name: "pdftotext", usage: pdftotext::USAGE, run: pdftotext::run },
    Command { name: "xlsx2csv", usage: xlsx2csv::USAGE, run: xlsx2csv::run },
];

/// Whether a command has this name.
pub fn is_known(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name)
}

/// Runs the command of a name with its arguments, which do not begin with the name.
pub fn run(name: &str, arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let found = COMMANDS.iter().find(|command| command.name == name);
    let command = found.ok_or_else(|| Error::new("it is not one of the commands in this component"))?;
    match arguments.first().map(String::as_str) {
        Some("--help" | "-help" | "-h" | "-?") => out.write_all(command.usage.as_bytes())?,
        Some("--version") => writeln!(out, "{name} (kiso) {}", env!("CARGO_PKG_VERSION"))?,
        Some("-v") if name.starts_with("pdf") => writeln!(out, "{name} (kiso) {}", env!("CARGO_PKG_VERSION"))?,
        _ => (command.run)(arguments, out)?,
    }
    out.flush()?;
    Ok(())
}

/// Reads a file, or standard input for `-`.
fn load(path: &str) -> Result<Vec<u8>> {
    if path != "-" {
        return crate::answer::load(Path::new(path)).map_err(at(path));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(limits::FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limits::FILE_BYTES {
        return Err(Error::limit("standard input is too long", limits::FILE_BYTES));
    }
    Ok(bytes)
}

/// Writes a file, or to `out` for `-`.
fn save(path: &str, bytes: &[u8], out: &mut dyn Write) -> Result<()> {
    if path == "-" {
        out.write_all(bytes)?;
        return Ok(());
    }
    std::fs::write(path, bytes).map_err(|e| Error::new(format!("{path}: {e}")))
}

/// Puts the path before an error.
fn at(path: &str) -> impl Fn(Error) -> Error {
    move |error| Error::new(format!("{path}: {error}"))
}

/// The path with another end.
fn with_end(path: &str, end: &str) -> String {
    Path::new(path).with_extension(end).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn output(line: &str) -> Result<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut out = Vec::new();
        run(&words[0], &words[1..], &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn every_command_has_help_and_refuses_what_it_does_not_know() {
        for command in COMMANDS {
            assert!(output(&format!("{} --help", command.name)).unwrap().starts_with("Usage: "));
            let error = output(&format!("{} --no-such-option x", command.name)).unwrap_err().to_string();
            assert!(error.contains("no-such-option"), "{}: {error}", command.name);
            let error = output(&format!("{} /nonexistent/file", command.name)).unwrap_err().to_string();
            assert!(error.contains("no such file"), "{}: {error}", command.name);
        }
    }

    #[test]
    fn files_are_converted() {
        let directory = std::env::temp_dir().join(format!("document-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = |name: &str| directory.join(name).to_string_lossy().into_owned();
        std::fs::write(
            path("a.docx"),
            crate::office::docx::tests::docx("<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>Hello</w:t></w:r></w:p>"),
        )
        .unwrap();
        std::fs::write(path("a.xlsx"), crate::sheet::excel::tests::xlsx()).unwrap();
        std::fs::write(path("a.pdf"), crate::pdf::tests::pdf(&["First page", "Second page"])).unwrap();

        assert_eq!(output(&format!("docx2txt {}", path("a.docx"))).unwrap(), "Hello\n");
        assert_eq!(output(&format!("pandoc -t markdown {}", path("a.docx"))).unwrap(), "**Hello**\n");
        assert_eq!(output(&format!("pandoc --to=html {}", path("a.docx"))).unwrap(), "<p><strong>Hello</strong></p>\n");
        assert_eq!(output(&format!("xlsx2csv {}", path("a.xlsx"))).unwrap(), "2024,\nday,sum\n2024-05-01,12.5\n");
        assert_eq!(output(&format!("pdftotext -f 2 {} -", path("a.pdf"))).unwrap(), "Second page\n\u{c}");
        output(&format!("pdftotext {}", path("a.pdf"))).unwrap();
        assert_eq!(std::fs::read_to_string(path("a.txt")).unwrap(), "First page\n\u{c}Second page\n\u{c}");
        assert!(output(&format!("pdfinfo {}", path("a.pdf"))).unwrap().contains("Pages:           2\n"));
        output(&format!("pdftoppm -png -r 40 {} {}", path("a.pdf"), path("p"))).unwrap();
        assert!(std::fs::read(path("p-2.png")).unwrap().starts_with(b"\x89PNG"));
        assert!(
            output(&format!("document {} --search second", path("a.pdf"))).unwrap().starts_with("- p. 2: Second page")
        );
        let both = output(&format!("document {} {} --text", path("a.docx"), path("a.xlsx"))).unwrap();
        assert!(both.starts_with("Hello\n\n## Sheet Costs"), "{both}");
        std::fs::remove_dir_all(directory).unwrap();
    }
}
