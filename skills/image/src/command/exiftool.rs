//! `exiftool`: metadata as ExifTool prints it, and taken out.

use super::output::write_file;
use super::{Outcome, Words, print, unknown};
use crate::metadata::{self, Entry, label};
use crate::source::{Source, reason};
use crate::strip::{Part, strip};
use serde_json::{Map, Value};
use std::fmt::Write;
use std::path::Path;

const USAGE: &str = "Usage: exiftool [-TAG]... [OPTION]... FILE...
Print metadata of pictures, such as -Make, -DateTimeOriginal, -GPSPosition or -gps*, or all of it.
  -j  as JSON      -s  names instead of labels   -s3  only values
  -n  numbers as they are stored                 -G   with the group of each tag
       exiftool -all= FILE...      take all metadata out; FILE_original keeps the old file
       exiftool -gps:all= FILE...  take the place out
  -overwrite_original   keep no old file         -o OUT  write there instead
";

/// How fields are printed.
#[derive(Default)]
struct Printing {
    json: bool,
    names: u8,
    numbers: bool,
    groups: bool,
    tags: Vec<String>,
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut printing = Printing::default();
    let (mut files, mut part, mut overwrites, mut out) = (Vec::new(), None, false, None);
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word.strip_prefix('-').map(str::to_ascii_lowercase).as_deref() {
            None | Some("") => files.push(word),
            Some("-help" | "help" | "h" | "?") => return print(USAGE),
            Some("ver") => return print(concat!(env!("CARGO_PKG_VERSION"), " (kiso)\n")),
            Some("j" | "json") => printing.json = true,
            Some("s" | "short" | "s1") => printing.names += 1,
            Some("s2") => printing.names = 2,
            Some("s3") => printing.names = 3,
            Some("n") => printing.numbers = true,
            Some("g" | "g0" | "g1") => printing.groups = true,
            Some("a" | "u" | "m" | "q" | "p" | "fast" | "f" | "e" | "common") => {}
            Some("overwrite_original" | "overwrite_original_in_place") => overwrites = true,
            Some("o") => out = Some(words.value(word)?),
            Some("all=" | "all:all=") => part = Some(Part::All),
            Some("gps:all=" | "gps*=" | "gpsposition=" | "location:all=") => part = part.or(Some(Part::Place)),
            Some(tag) if tag.ends_with('=') || tag.contains('=') || tag.contains('<') => {
                return Err(format!(
                    "option {word} is not known here: tags are only taken out, with -all= or -gps:all="
                ));
            }
            Some(tag) => {
                let tag = plain_tag(tag);
                if !is_tag(&tag) {
                    return Err(unknown(word));
                }
                printing.tags.push(tag);
            }
        }
    }
    if files.is_empty() {
        return Err("files are missing; use: exiftool [-TAG]... FILE...".to_owned());
    }
    match part {
        Some(part) => take_out(&files, part, overwrites, out),
        None if out.is_some() => Err("option -o needs -all= or -gps:all=".to_owned()),
        None => show(&files, &printing),
    }
}

/// Returns a tag without its group: `exif:make` as `make`, `gps:all` as `gps*`.
fn plain_tag(tag: &str) -> String {
    match tag.split_once(':') {
        Some(("gps", "all" | "*")) => "gps*".to_owned(),
        Some((_, "all" | "*")) => "*".to_owned(),
        Some((_, name)) => name.to_owned(),
        None if tag == "all" => "*".to_owned(),
        None => tag.trim_end_matches('#').to_owned(),
    }
}

/// Tags of the file itself.
const OF_FILES: [&str; 12] = [
    "FileName",
    "Directory",
    "FileSize",
    "FileType",
    "FileTypeExtension",
    "MIMEType",
    "ImageWidth",
    "ImageHeight",
    "ImageSize",
    "Megapixels",
    "FrameCount",
    "BitsPerSample",
];

fn is_tag(tag: &str) -> bool {
    tag.contains('*') || OF_FILES.iter().any(|name| name.eq_ignore_ascii_case(tag)) || metadata::is_known(tag)
}

/// Whether a name is one that a tag in small letters stands for, in which `*` is any text.
fn matches(tag: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut parts = tag.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn show(files: &[&str], printing: &Printing) -> Outcome {
    let (mut text, mut list, mut failed) = (String::new(), Vec::new(), None);
    for file in files {
        let entries = match entries(file) {
            Ok(entries) => entries,
            Err(message) => {
                if let Some(before) = failed.replace(message) {
                    eprintln!("exiftool: {before}");
                }
                continue;
            }
        };
        let chosen: Vec<&Entry> = if printing.tags.is_empty() {
            entries.iter().collect()
        } else {
            let all = &entries;
            printing.tags.iter().flat_map(|tag| all.iter().filter(move |entry| matches(tag, &entry.name))).collect()
        };
        if printing.json {
            list.push(json(file, &chosen, printing));
        } else {
            if files.len() > 1 {
                let _ = writeln!(text, "======== {file}");
            }
            text.push_str(&lines(&chosen, printing));
        }
    }
    if printing.json && !list.is_empty() {
        text = serde_json::to_string_pretty(&list).map_err(|e| e.to_string())? + "\n";
    }
    print(&text)?;
    failed.map_or(Ok(()), Err)
}

fn shown(entry: &Entry, printing: &Printing) -> String {
    match entry.number.filter(|_| printing.numbers) {
        Some(number) => metadata::decimal(number),
        None if printing.numbers => entry.raw.clone(),
        None => entry.value.clone(),
    }
}

fn lines(entries: &[&Entry], printing: &Printing) -> String {
    let mut text = String::new();
    for entry in entries {
        let value = shown(entry, printing);
        let group = if printing.groups { format!("{:<16}", format!("[{}]", entry.group)) } else { String::new() };
        let _ = match printing.names {
            0 => writeln!(text, "{group}{:<32}: {value}", entry.label),
            1 => writeln!(text, "{group}{:<32}: {value}", entry.name),
            2 => writeln!(text, "{group}{}: {value}", entry.name),
            _ => writeln!(text, "{value}"),
        };
    }
    text
}

fn json(file: &str, entries: &[&Entry], printing: &Printing) -> Value {
    let mut object = Map::new();
    object.insert("SourceFile".to_owned(), Value::from(file));
    for entry in entries {
        let key = if printing.groups { format!("{}:{}", entry.group, entry.name) } else { entry.name.clone() };
        let text = shown(entry, printing);
        // A number is one in JSON, too, unless it begins with a zero that says something, as that of a version.
        let whole = text.split('.').next().unwrap_or_default();
        let is_plain = (whole == "0" || !whole.starts_with('0'))
            && text.ends_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let value = match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) if is_plain => Value::from(number),
            (_, Ok(number)) if is_plain => Value::from(number),
            _ => Value::from(text),
        };
        object.insert(key, value);
    }
    Value::Object(object)
}

/// Returns the fields of the file itself, and those of its metadata.
fn entries(file: &str) -> Result<Vec<Entry>, String> {
    let source = Source::open(file)?;
    let header = source.header(0).map_err(|e| format!("{file}: {e}"))?;
    let path = Path::new(file);
    let parent = path.parent().map(|parent| parent.to_string_lossy().into_owned()).filter(|parent| !parent.is_empty());
    let size = source.bytes().len();
    let megapixels = f64::from(header.width) * f64::from(header.height) / 1e6;
    let mut found = Vec::new();
    let mut add = |name: &str, value: String| {
        let number = value.parse().ok();
        let (name, label, raw) = (name.to_owned(), label(name), value.clone());
        found.push(Entry { group: "File", standard: name.clone(), name, label, value, raw, number });
    };
    add("FileName", path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    add("Directory", parent.unwrap_or_else(|| ".".to_owned()));
    add("FileSize", human(size));
    add("FileType", source.kind.name().to_owned());
    add("FileTypeExtension", source.kind.ending().to_owned());
    add("MIMEType", source.kind.media_type().to_owned());
    add("ImageWidth", header.width.to_string());
    add("ImageHeight", header.height.to_string());
    add("BitsPerSample", header.depth().to_string());
    if source.count() > 1 {
        add("FrameCount", source.count().to_string());
    }
    found.extend(metadata::entries(&source, header.exif.as_deref()));
    let mut add = |name: &str, value: String| {
        let number = value.parse().ok();
        let (name, label, raw) = (name.to_owned(), label(name), value.clone());
        found.push(Entry { group: "Composite", standard: name.clone(), name, label, value, raw, number });
    };
    add("ImageSize", format!("{}x{}", header.width, header.height));
    add("Megapixels", format!("{megapixels:.3}").trim_end_matches('0').trim_end_matches('.').to_owned());
    Ok(found)
}

fn human(bytes: usize) -> String {
    let bytes = bytes as f64;
    match bytes {
        _ if bytes < 2_000.0 => format!("{bytes} bytes"),
        _ if bytes < 10_000.0 => format!("{:.1} kB", bytes / 1e3),
        _ if bytes < 2e6 => format!("{:.0} kB", bytes / 1e3),
        _ if bytes < 1e7 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.0} MB", bytes / 1e6),
    }
}

fn take_out(files: &[&str], part: Part, overwrites: bool, out: Option<&str>) -> Outcome {
    let (mut updated, mut failed) = (0, Vec::new());
    if out.is_some() && files.len() > 1 {
        return Err("option -o is for one file".to_owned());
    }
    for file in files {
        match one(file, part, overwrites, out) {
            Ok(()) => updated += 1,
            Err(message) => failed.push(message),
        }
    }
    if out != Some("-") {
        let what = if out.is_some() { "created" } else { "updated" };
        print(&format!("{updated:5} image files {what}\n"))?;
    }
    match failed.pop() {
        None => Ok(()),
        Some(last) => {
            failed.iter().for_each(|message| eprintln!("exiftool: {message}"));
            Err(last)
        }
    }
}

fn one(file: &str, part: Part, overwrites: bool, out: Option<&str>) -> Outcome {
    let source = Source::open(file)?;
    let bare = strip(source.bytes(), source.kind, part).map_err(|e| format!("{file}: {e}"))?;
    match out {
        Some("-") => super::write_out(&bare),
        Some(out) if Path::new(out).exists() => Err(format!("{out} is there already")),
        Some(out) => write_file(out, &bare),
        None if file == "-" => super::write_out(&bare),
        None => {
            let original = format!("{file}_original");
            if !overwrites && !Path::new(&original).exists() {
                std::fs::copy(file, &original).map_err(|e| format!("{original}: {}", reason(&e)))?;
            }
            write_file(file, &bare)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_named_in_many_ways() {
        assert_eq!(plain_tag("exif:make"), "make");
        assert_eq!(plain_tag("gps:all"), "gps*");
        assert!(matches("gps*", "GPSLatitude") && matches("*date*", "CreateDate") && matches("*", "Make"));
        assert!(!matches("make", "Makes") && !matches("*date", "DateStamp") && !matches("a*a", "a"));
        assert!(is_tag("imagesize") && is_tag("createdate") && !is_tag("foo"));
        assert_eq!(human(1_500), "1500 bytes");
        assert_eq!(human(2_500_000), "2.5 MB");
    }
}
