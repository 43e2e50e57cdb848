//! The shell commands, by the names that they have elsewhere.

mod document;
mod docx2txt;
mod htmlpdf;
mod macros;
mod made;
mod pandoc;
mod pdfinfo;
mod pdftoppm;
mod pdftotext;
mod sheets;
mod soffice;
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
pub const COMMANDS: [Command; 13] = [
    Command { name: "csv2xlsx", usage: sheets::USAGE, run: sheets::run },
    Command { name: "document", usage: document::USAGE, run: document::run },
    Command { name: "docx2txt", usage: docx2txt::USAGE, run: docx2txt::run },
    Command { name: "libreoffice", usage: soffice::USAGE, run: soffice::run },
    Command { name: "pandoc", usage: pandoc::USAGE, run: pandoc::run },
    Command { name: "pdfinfo", usage: pdfinfo::USAGE, run: pdfinfo::run },
    Command { name: "pdftoppm", usage: pdftoppm::USAGE, run: pdftoppm::run },
    Command { name: "pdftotext", usage: pdftotext::USAGE, run: pdftotext::run },
    Command { name: "soffice", usage: soffice::USAGE, run: soffice::run },
    Command { name: "ssconvert", usage: sheets::CONVERT_USAGE, run: sheets::convert },
    Command { name: "weasyprint", usage: htmlpdf::WEASY_USAGE, run: htmlpdf::weasy },
    Command { name: "wkhtmltopdf", usage: htmlpdf::USAGE, run: htmlpdf::run },
    Command { name: "xlsx2csv", usage: xlsx2csv::USAGE, run: xlsx2csv::run },
];

/// The password of a command line, and those of the conversation, which the host puts into the environment.
fn passwords(given: Option<String>) -> Vec<String> {
    let is_password = |name: &str| name.starts_with("KISO_SKILL_") && name.contains("PASSWORD");
    let of_host = std::env::vars().filter(|(name, _)| is_password(name)).map(|(_, value)| value);
    given.into_iter().chain(of_host).collect()
}

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
        return crate::answer::load(Path::new(path)).map_err(with_path(path));
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

/// Whether a file is there, before something else is wrong.
fn check(path: &str) -> Result<()> {
    if path == "-" || std::fs::metadata(path).is_ok() {
        return Ok(());
    }
    Err(with_path(path)("there is no such file".into()))
}

/// Puts the path before an error.
fn with_path(path: &str) -> impl Fn(Error) -> Error {
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

    #[test]
    fn documents_are_made() {
        let directory = std::env::temp_dir().join(format!("document-made-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = |name: &str| directory.join(name).to_string_lossy().into_owned();
        let text = |name: &str| output(&format!("pdftotext {} -", path(name))).unwrap();
        std::fs::write(path("a.md"), "# Title\n\nSome \"text\".\n").unwrap();
        std::fs::write(path("a.html"), "<title>T</title><h1>Invoice</h1><p>of [May]").unwrap();
        std::fs::write(path("a.csv"), "name,zip\nAda,01234\n").unwrap();
        std::fs::write(path("b.json"), "[{\"n\": 1.5}]").unwrap();

        output(&format!(
            "pandoc {} -o {} --toc -N -V geometry:margin=3cm -V papersize=letter",
            path("a.md"),
            path("a.pdf")
        ))
        .unwrap();
        assert!(text("a.pdf").contains("Some “text”."), "{}", text("a.pdf"));
        assert!(output(&format!("pdfinfo {}", path("a.pdf"))).unwrap().contains("612 x 792"));
        output(&format!("pandoc -t docx -o {} {}", path("a.docx"), path("a.md"))).unwrap();
        assert_eq!(output(&format!("pandoc -t markdown {}", path("a.docx"))).unwrap(), "# Title\n\nSome “text”.\n");
        output(&format!("weasyprint {} {}", path("a.html"), path("w.pdf"))).unwrap();
        output(&format!("wkhtmltopdf -q --footer-right [page]/[topage]-[title] {} {}", path("a.html"), path("k.pdf")))
            .unwrap();
        assert!(text("w.pdf").contains("Invoice") && text("k.pdf").contains("1/1-T"), "{}", text("k.pdf"));
        let line =
            output(&format!("soffice --headless --convert-to pdf --outdir {} {}", path("o"), path("a.docx"))).unwrap();
        assert!(line.ends_with("a.pdf\n") && text("o/a.pdf").contains("Title"));

        output(&format!("csv2xlsx {} {} {}", path("a.csv"), path("b.json"), path("x.xlsx"))).unwrap();
        output(&format!("ssconvert -S {} {}", path("x.xlsx"), path("c.csv"))).unwrap();
        assert_eq!(std::fs::read_to_string(path("c.csv.0")).unwrap(), "name,zip\nAda,01234\n");
        assert_eq!(std::fs::read_to_string(path("c.csv.1")).unwrap(), "n\n1.5\n");
        for (line, reason) in [
            (format!("pandoc {} -o x.epub", path("a.md")), "`epub`"),
            (format!("pandoc {} -o x.pdf -V papersize=huge", path("a.md")), "huge"),
            (format!("soffice --convert-to odt {}", path("a.md")), "`odt`"),
            (format!("ssconvert {} x.pdf", path("a.csv")), "`pdf`"),
            (format!("wkhtmltopdf --footer-html x {} x.pdf", path("a.html")), "--footer-html"),
            ("weasyprint https://x.y/ x.pdf".to_owned(), "download"),
        ] {
            let error = output(&line).unwrap_err();
            assert!(error.to_string().contains(reason), "{line}: {error}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
