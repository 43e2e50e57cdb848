//! `xlsx2csv`: sheets of XLSX, XLSB, XLS and ODS as CSV.

use std::io::Write;

use super::words::{Word, Words, unexpected, unknown};
use super::{load, save, with_path};
use crate::error::{Error, Result};
use crate::kind::{self, Kind};
use crate::odf;
use crate::read::Reading;
use crate::sheet::csv::write_record;
use crate::sheet::excel::{self, Sheet};

pub const USAGE: &str = "Usage: xlsx2csv [OPTION]... FILE [CSV-FILE]
Convert a sheet of an XLSX, XLSB, XLS or ODS file to CSV, to standard output without CSV-FILE.

  -s N, --sheet N          the sheet's number (1); 0 is all of them
  -n NAME, --sheetname     the sheet's name
  -a, --all                all sheets, each after a line with its number and name; into the directory CSV-FILE if that is given
  -d C, --delimiter C      the delimiter; also tab
  -m, --merge-cells        each cell of a merged range has its value
  -i, --ignoreempty        without empty lines
";

pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let mut sheet = "1".to_owned();
    let mut all = false;
    let mut delimiter = ',';
    let mut skip_empty = false;
    let mut reading = Reading { fill_merged: false, ..Reading::default() };
    let mut files: Vec<&str> = Vec::new();
    let mut words = Words::new(arguments);
    while let Some(word) = words.next() {
        match word {
            Word::Option("-s" | "--sheet") => {
                let number: usize = words.number("-s")?;
                all |= number == 0;
                sheet = number.to_string();
            }
            Word::Option("-n" | "--sheetname") => sheet = words.value("-n")?.to_owned(),
            Word::Option("-a" | "--all") => all = true,
            Word::Option("-m" | "--merge-cells") => reading.fill_merged = true,
            Word::Option("-i" | "--ignoreempty") => skip_empty = true,
            Word::Option("-d" | "--delimiter") => {
                let value = words.value("-d")?;
                delimiter = match value {
                    "tab" | "\\t" | "\t" | "x09" => '\t',
                    _ => value
                        .chars()
                        .next()
                        .filter(|_| value.chars().count() == 1)
                        .ok_or("-d: one character is needed")?,
                };
            }
            Word::Option("-c" | "--outputencoding") => {
                let name = words.value("-c")?;
                if !matches!(name.to_ascii_lowercase().as_str(), "utf-8" | "utf8") {
                    return Err(Error::new(format!("-c {name}: only UTF-8 is supported here (use `iconv`)")));
                }
            }
            Word::Option(option) => return Err(unknown(option)),
            Word::Operand(file) if files.len() < 2 => files.push(file),
            Word::Operand(file) => return Err(unexpected(file)),
        }
    }
    let path = *files.first().ok_or("a file is needed (see xlsx2csv --help)")?;
    reading.sheet = (!all).then_some(sheet.as_str());
    let bytes = load(path)?;
    let kind = kind::find(&bytes, path).map_err(with_path(path))?;
    let target = files.get(1).copied().unwrap_or("-");
    let mut result = Ok(());
    let mut visit = |number: usize, sheet: Sheet| {
        result = write(number, &sheet, all, target, (delimiter, skip_empty), out);
        result.is_ok()
    };
    match kind {
        Kind::Xlsx | Kind::Xlsb | Kind::Xls => {
            excel::for_each(kind, &bytes, &reading, &mut visit).map_err(with_path(path))?
        }
        Kind::Ods => odf::sheet::for_each(&bytes, &reading, &mut visit).map_err(with_path(path))?,
        other => return Err(Error::new(format!("{path}: it is not a workbook but {}: use `document`", other.name()))),
    }
    result
}

fn write(number: usize, sheet: &Sheet, all: bool, target: &str, how: (char, bool), out: &mut dyn Write) -> Result<()> {
    let mut text = String::new();
    if all && target == "-" {
        text.push_str(&format!("-------- {number} - {}\n", sheet.name));
    }
    for row in sheet.grid.dense_rows() {
        if how.1 && row.iter().all(String::is_empty) {
            continue;
        }
        write_record(&mut text, &row, how.0);
        if text.len() > crate::limits::TEXT_BYTES {
            return Err(Error::limit("the sheet is too large as CSV", crate::limits::TEXT_BYTES));
        }
    }
    if all && target != "-" {
        std::fs::create_dir_all(target)?;
        let name = crate::answer::safe_name(&format!("{}.csv", sheet.name));
        return save(&format!("{}/{name}", target.trim_end_matches('/')), text.as_bytes(), out);
    }
    save(target, text.as_bytes(), out)
}
