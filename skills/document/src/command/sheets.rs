//! `csv2xlsx` and `ssconvert`: tables to workbooks and back.

use std::io::Write;
use std::path::Path;

use super::words::{Word, Words, unexpected, unknown};
use super::{check, load, save, with_end, with_path};
use crate::error::{Error, Result};
use crate::kind::{self, Kind, extension};
use crate::make::xlsx::{self, Sheet, Taking, from_json, from_records, name_sheets};
use crate::read::Reading;
use crate::sheet::csv::{Records, find_delimiter, write_record};
use crate::sheet::excel;
use crate::{charset, limits, odf};

pub const USAGE: &str = "Usage: csv2xlsx [OPTION]... FILE... [OUT.xlsx]
Make a workbook from CSV, TSV or JSON (a list of objects, or one on each line). Each file is a sheet.

  -o FILE, --output      the workbook; else the last argument that ends with .xlsx, else the first file's name with .xlsx
  -d CHAR, --delimiter   between fields; else the first lines tell
  -n NAME, --sheet-name  the name of a sheet, once for each file; else the file's name
  -t, --text             everything stays text
  -H, --no-header        the first row does not name the columns

Numbers, dates (2026-05-01), times, percents and true/false become what they are. Digits with zeros before them stay text, and
so does the rest of their column. Formulas are not made: `=1+1` is text.
";

pub const CONVERT_USAGE: &str = "Usage: ssconvert [OPTION]... IN OUT
Convert between CSV, TSV, JSON and workbooks; the end of OUT tells: .xlsx, .csv or .tsv.

  -T TYPE, --export-type   xlsx or csv, also as Gnumeric_Excel:xlsx and Gnumeric_stf:stf_csv
  -S, --export-file-per-sheet  a file for each sheet: OUT.csv.0, or the place of %n and %s in OUT
  -M OUT, --merge-to OUT   all files as sheets of one workbook
  -O separator=CHAR        between the fields of CSV
  -I TYPE, --import-type, --recalc  accepted
";

#[derive(Default)]
pub struct Options {
    pub delimiter: Option<char>,
    pub names: Vec<String>,
    pub taking: Taking,
}

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let mut options = Options::default();
    let mut output = None;
    let mut files: Vec<&str> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option(option @ ("-o" | "--output" | "--out")) => output = Some(words.value(option)?),
            Word::Option(option @ ("-d" | "--delimiter" | "--colsep" | "-s" | "--separator")) => {
                options.delimiter = Some(delimiter(words.value(option)?)?);
            }
            Word::Option(option @ ("-n" | "--sheet-name" | "--sheet" | "--name")) => {
                options.names.push(words.value(option)?.to_owned());
            }
            Word::Option("-t" | "--text") => options.taking.only_text = true,
            Word::Option("-H" | "--no-header") => options.taking.no_head = true,
            Word::Option("-f" | "--force" | "-q" | "--quiet") => {}
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(file) => files.push(file),
        }
    }
    if output.is_none() && files.len() > 1 && files.last().is_some_and(|last| extension(last) == "xlsx") {
        output = files.pop();
    }
    let first = *files.first().ok_or("a file is needed (see csv2xlsx --help)")?;
    let target = output.map_or_else(|| with_end(if first == "-" { "out" } else { first }, "xlsx"), str::to_owned);
    to_workbook(&files, &target, &options, out)
}

pub fn convert(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let (mut kind, mut per_sheet, mut merged) = (None, false, None);
    let mut options = Options::default();
    let mut files: Vec<&str> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option(option @ ("-T" | "--export-type")) => kind = Some(words.value(option)?),
            Word::Option(option @ ("-I" | "--import-type" | "-E" | "--import-encoding")) => drop(words.value(option)?),
            Word::Option("-S" | "--export-file-per-sheet") => per_sheet = true,
            Word::Option(option @ ("-M" | "--merge-to")) => merged = Some(words.value(option)?),
            Word::Option(option @ ("-O" | "--export-options")) => {
                let value = words.value(option)?;
                let separator = value.split_whitespace().find_map(|part| part.strip_prefix("separator="));
                let separator = separator
                    .ok_or_else(|| Error::new(format!("the option {option}: only separator=CHAR is known")))?;
                options.delimiter = Some(delimiter(separator.trim_matches(['\'', '"']))?);
            }
            Word::Option("--recalc" | "-v" | "--verbose") => {}
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(file) => files.push(file),
        }
    }
    if let Some(target) = merged {
        return to_workbook(&files, target, &Options::default(), out);
    }
    let (file, target) = match files.as_slice() {
        [file, target] => (*file, (*target).to_owned()),
        [file] if kind.is_some() => {
            (*file, with_end(file, if kind.is_some_and(|kind| kind.contains("xls")) { "xlsx" } else { "csv" }))
        }
        [_, _, more, ..] => return Err(unexpected(more)),
        [file] => {
            check(file)?;
            return Err(Error::new("a name for the result is needed (see ssconvert --help)"));
        }
        [] => return Err(Error::new("a file and a name for the result are needed (see ssconvert --help)")),
    };
    let end = kind.map_or_else(
        || extension(&target.replace(".%n", "").replace("-%s", "")),
        |kind| kind.rsplit([':', '_']).next().unwrap_or_default().to_owned(),
    );
    match end.as_str() {
        "xlsx" | "dialog" => to_workbook(&[file], &target, &Options { delimiter: None, ..options }, out),
        "csv" | "txt" | "assistant" => {
            let delimiter = options.delimiter.unwrap_or(',');
            to_csv(file, &target, delimiter, per_sheet.then_some(()), out)
        }
        "tsv" => to_csv(file, &target, '\t', per_sheet.then_some(()), out),
        other => Err(Error::new(format!("cannot write `{other}` here; there are xlsx, csv and tsv"))),
    }
}

fn delimiter(text: &str) -> Result<char> {
    match text {
        "\\t" | "tab" | "t" => Ok('\t'),
        _ => {
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(only), None) => Ok(only),
                _ => Err(Error::new(format!("the delimiter `{text}` is not one character"))),
            }
        }
    }
}

/// Makes a workbook of files.
pub fn to_workbook(files: &[&str], target: &str, options: &Options, out: &mut dyn Write) -> Result<()> {
    let mut sheets: Vec<Sheet> = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let stem = if *file == "-" { "Sheet1".to_owned() } else { stem };
        let name = options.names.get(number).unwrap_or(&stem);
        sheets.extend(read(file, name, options)?);
    }
    if sheets.is_empty() {
        return Err(Error::new("a file is needed (see --help)"));
    }
    name_sheets(&mut sheets);
    save(target, &xlsx::write(&sheets)?, out)
}

/// The sheets of a file.
fn read(file: &str, name: &str, options: &Options) -> Result<Vec<Sheet>> {
    let bytes = load(file)?;
    let end = extension(file);
    if matches!(end.as_str(), "json" | "jsonl" | "ndjson") {
        return from_json(name, &charset::decode(&bytes, None), options.taking).map_err(with_path(file));
    }
    let kind = match end.as_str() {
        "csv" | "tsv" | "tab" | "txt" => Kind::Csv,
        _ => kind::find(&bytes, file).map_err(with_path(file))?,
    };
    match kind {
        Kind::Csv | Kind::Text | Kind::Markdown => {
            let text = charset::decode(&bytes, None);
            let text = text.trim_start_matches('\u{feff}');
            let delimiter = options.delimiter.unwrap_or_else(|| if end == "tsv" { '\t' } else { find_delimiter(text) });
            let mut cells = 0;
            let mut records = Vec::new();
            for record in Records::new(text, delimiter) {
                cells += record.len();
                if cells > limits::CELLS {
                    return Err(with_path(file)(Error::limit("it has too many cells", limits::CELLS)));
                }
                records.push(record);
            }
            Ok(vec![from_records(name, records, options.taking)])
        }
        _ => {
            let mut sheets = Vec::new();
            for_each(file, kind, &bytes, &mut |_, sheet| {
                sheets.push(from_records(&sheet.0, sheet.1, options.taking));
                true
            })?;
            Ok(sheets)
        }
    }
}

/// Name and rows of a sheet.
type Rows = (String, Vec<Vec<String>>);

/// Visits the sheets of a workbook until `visit` says that it is enough.
fn for_each(file: &str, kind: Kind, bytes: &[u8], visit: &mut dyn FnMut(usize, Rows) -> bool) -> Result<()> {
    let reading = Reading { fill_merged: false, ..Reading::default() };
    let mut cells = 0;
    let mut result = Ok(());
    let mut forward = |number: usize, sheet: excel::Sheet| {
        let mut rows = Vec::new();
        for row in sheet.grid.dense_rows() {
            // Few cells far apart make many empty ones.
            cells += row.len();
            if cells > limits::CELLS {
                result = Err(with_path(file)(Error::limit("it has too many cells", limits::CELLS)));
                return false;
            }
            rows.push(row);
        }
        visit(number, (sheet.name, rows))
    };
    match kind {
        Kind::Xlsx | Kind::Xlsb | Kind::Xls => {
            excel::for_each(kind, bytes, &reading, &mut forward).map_err(with_path(file))?
        }
        Kind::Ods => odf::sheet::for_each(bytes, &reading, &mut forward).map_err(with_path(file))?,
        other => return Err(Error::new(format!("{file}: it is not a table but {}", other.name()))),
    }
    result
}

/// Writes the first sheet, or each one, as CSV.
pub fn to_csv(file: &str, target: &str, delimiter: char, all: Option<()>, out: &mut dyn Write) -> Result<()> {
    let bytes = load(file)?;
    let kind = kind::find(&bytes, file).map_err(with_path(file))?;
    if matches!(kind, Kind::Csv | Kind::Text) || matches!(extension(file).as_str(), "csv" | "tsv") {
        let text = charset::decode(&bytes, None);
        let records = Records::new(&text, find_delimiter(&text)).collect();
        return save_csv(records, target, delimiter, out);
    }
    let mut result = Ok(());
    for_each(file, kind, &bytes, &mut |number, (name, rows)| {
        let target = match all {
            None => target.to_owned(),
            Some(()) if target.contains("%n") || target.contains("%s") => target
                .replace("%n", &(number.saturating_sub(1)).to_string())
                .replace("%s", &crate::answer::safe_name(&name)),
            Some(()) => format!("{target}.{}", number.saturating_sub(1)),
        };
        result = save_csv(rows, &target, delimiter, out);
        result.is_ok() && all.is_some()
    })?;
    result
}

fn save_csv(rows: Vec<Vec<String>>, target: &str, delimiter: char, out: &mut dyn Write) -> Result<()> {
    let mut text = String::new();
    for row in rows {
        write_record(&mut text, &row, delimiter);
        if text.len() > limits::TEXT_BYTES {
            return Err(Error::limit("the sheet is too large as CSV", limits::TEXT_BYTES));
        }
    }
    save(target, text.as_bytes(), out)
}
