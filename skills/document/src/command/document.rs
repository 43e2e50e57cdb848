//! `document`: everything, with the arguments of the skill as options.

use std::io::Write;
use std::path::Path;

use super::words::{Word, Words, unknown};
use crate::answer::{answer, answer_bytes};
use crate::error::Result;
use crate::pages::Pages;
use crate::request::{Format, Request};

pub const USAGE: &str = "Usage: document FILE... [OPTION]...
Read a PDF, DOCX, DOC, PPTX, PPT, XLSX, XLS, ODT, ODS, ODP, EPUB, RTF, HTML, EML, MBOX, MSG, vCard, iCalendar, CSV or text
file as Markdown; - is standard input.

  --pages LIST         pages, slides, sheets or messages such as 3-5,8
  --sheet NAME         one sheet, by its name or number
  --outline            kind, pages, title, language, headings with their pages, and the first lines
  --search TEXT        passages with their pages
  --format FORMAT      markdown (default), text or json; also --text and --json
  --attachments DIR    save attachments and pictures into DIR
  --render LIST        draw pages of a PDF file as FILE-pN.png
  --dpi N              resolution of --render (110)
  --max N              characters of the answer
  --from N             characters to pass over
  --password-file FILE the password of a PDF file, as the first line of FILE; those said in the conversation are tried, too
";

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let (mut request, mut password) = (Request::new(""), None);
    let mut files: Vec<&str> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option("--pages" | "-p") => request.pages = Some(Pages::parse(words.value("--pages")?)?),
            Word::Option("--sheet") => request.sheet = Some(words.value("--sheet")?.to_owned()),
            Word::Option("--outline") => request.outline = true,
            Word::Option("--search") => request.search = Some(words.value("--search")?.to_owned()),
            Word::Option("--format" | "-f") => request.format = Format::parse(words.value("--format")?)?,
            Word::Option("--json") => request.format = Format::Json,
            Word::Option("--text") => request.format = Format::Text,
            Word::Option("--markdown") => request.format = Format::Markdown,
            Word::Option("--attachments") => request.attachments = Some(words.value("--attachments")?.to_owned()),
            Word::Option("--render") => request.render = Some(Pages::parse(words.value("--render")?)?),
            Word::Option("--dpi") => request.dpi = words.number("--dpi")?,
            Word::Option("--max") => request.max = words.number("--max")?,
            Word::Option("--from") => request.from = words.number("--from")?,
            Word::Option("--password") => password = Some(words.value("--password")?.to_owned()),
            Word::Option("--password-file") => {
                let text = super::load(words.value("--password-file")?)?;
                let text = String::from_utf8_lossy(&text).into_owned();
                password = Some(text.lines().next().unwrap_or_default().to_owned());
            }
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(file) => files.push(file),
        }
    }
    request.passwords = super::passwords(password);
    if files.is_empty() {
        return Err("a file is needed (see document --help)".into());
    }
    // One that cannot be read does not keep the others back.
    let mut failed: Vec<String> = Vec::new();
    for (number, file) in files.iter().enumerate() {
        request.file = (*file).to_owned();
        request.check()?;
        let answered = match *file {
            "-" => answer_bytes(&request, Path::new(""), super::load("-")?),
            _ => answer(&request, Path::new("")),
        };
        match answered {
            Ok(text) => {
                let separator = if number > 0 { "\n" } else { "" };
                out.write_all(format!("{separator}{text}").as_bytes())?;
            }
            Err(error) => failed.push(error.to_string()),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ").into()) }
}
