//! `df`: what the directories hold, and how much they may.

use command::spawn::{self, Volume};
use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};
use crate::du::{human, unit};

const USAGE: &str = "Usage: df [OPTION]... [FILE]...
Print how much the workspace holds and may hold. /work and /tmp share one quota, in which every file and directory counts with
4 KiB beside its bytes; directories that an administrator mounted have none of their own.

  -h  -H  -k  -m  -B SIZE   sizes for people, with powers of 1000, in KiB, MiB, SIZE
  -i  -T  -P  -a            files in place of bytes, with types, in one line each, all
  --total                   with a sum
  --output[=FIELD,...]      source, fstype, size, used, avail, pcent, itotal, iused, iavail, ipcent, target
";

const FIELDS: &[&str] =
    &["source", "fstype", "size", "used", "avail", "pcent", "itotal", "iused", "iavail", "ipcent", "target"];

struct Options {
    unit: u64,
    human: Option<f64>,
    files: bool,
    types: bool,
    portable: bool,
    total: bool,
    output: Option<Vec<String>>,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let mut options = Options {
            unit: 1024,
            human: None,
            files: false,
            types: false,
            portable: false,
            total: false,
            output: None,
        };
        let mut names = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('h') | Long("human-readable") => options.human = Some(1024.0),
                Short('H') | Long("si") => options.human = Some(1000.0),
                Short('k') => options.unit = 1 << 10,
                Short('m') => options.unit = 1 << 20,
                Short('B') | Long("block-size") => options.unit = unit(&cli::value(&mut parser)?)?,
                Short('i') | Long("inodes") => options.files = true,
                Short('T') | Long("print-type") => options.types = true,
                Short('P') | Long("portability") => options.portable = true,
                Long("total") => options.total = true,
                Long("output") => {
                    let fields = parser.optional_value().map(|value| value.to_string_lossy().into_owned());
                    let fields = fields.unwrap_or_else(|| FIELDS.join(","));
                    options.output = Some(fields.split(',').map(String::from).collect());
                }
                Short('a' | 'l') | Long("all" | "local" | "sync" | "no-sync") => {}
                Value(name) => names.push(name.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let fields = fields(&options)?;
        let volumes = spawn::volumes();
        let mut rows = vec![fields.iter().map(|field| title(&options, field)).collect::<Vec<_>>()];
        let mut code = 0;
        let mut shown: Vec<Volume> = Vec::new();
        if names.is_empty() {
            shown = volumes;
        } else {
            for name in names {
                match holding(&volumes, &name) {
                    Ok(volume) => shown.push(volume),
                    Err(e) => {
                        eprintln!("df: {e}");
                        code = 1;
                    }
                }
            }
        }
        if shown.is_empty() {
            return Ok(code);
        }
        rows.extend(shown.iter().map(|volume| fields.iter().map(|field| cell(&options, field, volume)).collect()));
        if options.total {
            let total = sum(&shown);
            rows.push(fields.iter().map(|field| cell(&options, field, &total)).collect());
        }
        print(&fields, &rows);
        Ok(code)
    })
}

fn fields(options: &Options) -> Result<Vec<&'static str>, Error> {
    if let Some(wanted) = &options.output {
        let known = |name: &String| {
            let name = name.as_str();
            let field = FIELDS.iter().find(|field| **field == name).copied();
            field.ok_or_else(|| format!("option --output: field '{name}' unknown").into())
        };
        return wanted.iter().map(known).collect();
    }
    let mut fields = vec!["source"];
    if options.types {
        fields.push("fstype");
    }
    fields.extend(match options.files {
        true => ["itotal", "iused", "iavail", "ipcent"],
        false => ["size", "used", "avail", "pcent"],
    });
    fields.push("target");
    Ok(fields)
}

fn title(options: &Options, field: &str) -> String {
    match field {
        "source" => "Filesystem".into(),
        "fstype" => "Type".into(),
        "size" if options.human.is_some() => "Size".into(),
        "size" if options.portable => format!("{}-blocks", options.unit),
        "size" => match options.unit {
            1 => "1B-blocks".into(),
            unit if unit == 1 << 20 => "1M-blocks".into(),
            unit if unit % (1 << 30) == 0 => format!("{}G-blocks", unit >> 30),
            unit if unit % (1 << 10) == 0 => format!("{}K-blocks", unit >> 10),
            unit => format!("{unit}B-blocks"),
        },
        "used" => "Used".into(),
        "avail" if options.human.is_some() => "Avail".into(),
        "avail" => "Available".into(),
        "pcent" if options.portable => "Capacity".into(),
        "pcent" => "Use%".into(),
        "itotal" => "Inodes".into(),
        "iused" => "IUsed".into(),
        "iavail" => "IFree".into(),
        "ipcent" => "IUse%".into(),
        _ => "Mounted on".into(),
    }
}

fn cell(options: &Options, field: &str, volume: &Volume) -> String {
    let size = |bytes: u64| match options.human {
        Some(base) => human(bytes, base),
        None => bytes.div_ceil(options.unit).to_string(),
    };
    let Some(space) = &volume.space else {
        return match field {
            "source" => "mount".into(),
            "fstype" => if volume.writable { "writable" } else { "read-only" }.into(),
            "target" => volume.at.clone(),
            _ => "-".into(),
        };
    };
    match field {
        "source" if volume.at == "-" => "total".into(),
        "source" => "workspace".into(),
        "fstype" if volume.at == "-" => "-".into(),
        "fstype" => "quota".into(),
        "size" => size(space.bytes.saturating_add(space.free_bytes)),
        "used" => size(space.bytes),
        "avail" => size(space.free_bytes),
        "pcent" => percent(space.bytes, space.free_bytes),
        "itotal" => (space.files + space.free_files).to_string(),
        "iused" => space.files.to_string(),
        "iavail" => space.free_files.to_string(),
        "ipcent" => percent(space.files, space.free_files),
        _ => volume.at.clone(),
    }
}

fn percent(used: u64, free: u64) -> String {
    match used.saturating_add(free) {
        0 => "-".into(),
        all => format!("{}%", (u128::from(used) * 100).div_ceil(u128::from(all))),
    }
}

/// The directory that a file lies in.
fn holding(volumes: &[Volume], name: &str) -> Result<Volume, Error> {
    let path = std::fs::canonicalize(name).map_err(cli::with_path(name))?;
    let inside = volumes.iter().filter(|volume| path.starts_with(&volume.at));
    let volume = inside.max_by_key(|volume| volume.at.len()).cloned();
    volume.ok_or_else(|| format!("{name}: nothing can be kept there").into())
}

/// Directories that share a quota count once.
fn sum(volumes: &[Volume]) -> Volume {
    Volume { at: "-".into(), writable: true, space: volumes.iter().find_map(|volume| volume.space) }
}

/// In columns: numbers to the right, words to the left.
fn print(fields: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..fields.len()).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for ((cell, field), width) in row.iter().zip(fields).zip(&widths) {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&match *field {
                "source" | "fstype" => format!("{cell:width$}"),
                "target" => cell.clone(),
                _ => format!("{cell:>width$}"),
            });
        }
        println!("{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_up() {
        assert_eq!(percent(0, 100), "0%");
        assert_eq!(percent(1, 999), "1%");
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(u64::MAX, 0), "100%");
    }

    #[test]
    fn fields_have_names() {
        let options = |output: &str| Options {
            unit: 1024,
            human: None,
            files: false,
            types: true,
            portable: false,
            total: false,
            output: (!output.is_empty()).then(|| output.split(',').map(String::from).collect()),
        };
        assert_eq!(fields(&options("")).unwrap().join(" "), "source fstype size used avail pcent target");
        assert_eq!(fields(&options("avail,target")).unwrap(), ["avail", "target"]);
        assert!(fields(&options("nonsense")).unwrap_err().to_string().contains("'nonsense' unknown"));
    }
}
