//! Refuses workbooks that would fill the memory of their reader, before it sees them.

use std::io::{Cursor, Read};

use crate::error::{Error, Result};
use crate::limits;
use crate::package::Package;

/// Checks a package: its sheets are streamed, everything else is read as a whole.
pub fn check_package(bytes: &[u8]) -> Result<()> {
    let mut package = Package::open(bytes)?;
    let names: Vec<String> = package.names().to_vec();
    for name in names {
        let lower = name.to_ascii_lowercase();
        let is_read = lower.ends_with(".xml") || lower.ends_with(".rels") || lower.ends_with(".bin");
        if is_read && !lower.contains("/media/") && !lower.contains("vbaproject") && !lower.contains("printersettings")
        {
            package.check(&name)?;
        }
    }
    Ok(())
}

/// Checks an old workbook: its reader makes a table of each sheet from its first to its last cell, and keeps all of them.
pub fn check_compound(bytes: &[u8]) -> Result<()> {
    let Ok(mut file) = cfb::CompoundFile::open(Cursor::new(bytes)) else { return check_records(bytes) };
    for name in ["Workbook", "Book", "WORKBOOK", "BOOK"] {
        if file.exists(name) {
            let mut stream = Vec::new();
            let opened = file.open_stream(name);
            opened.and_then(|stream_file| stream_file.take(limits::FILE_BYTES).read_to_end(&mut stream))?;
            return check_records(&stream);
        }
    }
    Ok(())
}

/// Adds up the tables that the records of all sheets stretch over.
fn check_records(stream: &[u8]) -> Result<()> {
    let mut rest = stream;
    let mut area: u64 = 0;
    let mut bounds: Option<[u32; 4]> = None;
    let size = |bounds: Option<[u32; 4]>| {
        bounds.map_or(0, |[top, left, bottom, right]| u64::from(bottom - top + 1) * u64::from(right - left + 1))
    };
    while let [kind_low, kind_high, length_low, length_high, body @ ..] = rest {
        let kind = u16::from_le_bytes([*kind_low, *kind_high]);
        let length = usize::from(u16::from_le_bytes([*length_low, *length_high]));
        let Some(record) = body.get(..length) else { break };
        rest = &body[length..];
        match kind {
            // The rest is encrypted, which its reader says better.
            0x002f => return Ok(()),
            // The beginning of a sheet.
            0x0809 | 0x0409 | 0x0209 | 0x0009 => area += size(bounds.take()),
            // Cells with values, and formulas.
            0x0203 | 0x0204 | 0x00fd | 0x027e | 0x00bd | 0x0006 | 0x0205 | 0x00d6 | 0x0406 | 0x0206 if length >= 4 => {
                let row = u32::from(u16::from_le_bytes([record[0], record[1]]));
                let first = u32::from(u16::from_le_bytes([record[2], record[3]]));
                let last = match kind {
                    0x00bd => u32::from(u16::from_le_bytes([record[length - 2], record[length - 1]])).max(first),
                    _ => first,
                };
                bounds = Some(bounds.map_or([row, first, row, last], |[top, left, bottom, right]| {
                    [top.min(row), left.min(first), bottom.max(row), right.max(last)]
                }));
            }
            _ => {}
        }
    }
    area += size(bounds);
    if area > limits::CELLS as u64 {
        return Err(Error::limit(&format!("its sheets stretch over {area} cells"), limits::CELLS));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_that_stretches_far_is_refused() {
        let number = |row: u16, column: u16| {
            let mut record = vec![0x03, 0x02, 14, 0];
            record.extend(row.to_le_bytes());
            record.extend(column.to_le_bytes());
            record.extend([0; 10]);
            record
        };
        let near = [number(0, 0), number(10, 10)].concat();
        assert!(check_records(&near).is_ok());
        let far = [number(0, 0), number(65_535, 255)].concat();
        assert!(check_records(&far).unwrap_err().to_string().contains("16777216 cells"));
        assert!(check_records(&far[..21]).is_ok());
    }
}
