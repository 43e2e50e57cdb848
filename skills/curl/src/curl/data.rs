//! Data and forms as they stand on the command line.

use super::failed::Failed;
use super::settings::{Data, Options};
use crate::body::{Piece, read_whole};
use crate::multipart::{Part, type_of};
use crate::url::encode;
use std::io;
use std::path::{Path, PathBuf};

/// A file as text, or standard input for `-`.
pub fn text_of(path: &str) -> io::Result<String> {
    read_whole(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn unread(path: &str, error: &io::Error) -> Failed {
    Failed::new(26, format!("Failed to open {path}: {}", crate::reason::reason(error)))
}

/// Adds what an option such as `-d` names to the data of the request.
pub fn add(options: &mut Options, option: &str, value: &str) -> Result<(), Failed> {
    let file = value.strip_prefix('@').filter(|_| option != "data-raw");
    let bytes = match (option, file) {
        ("data-urlencode", _) => url_encoded(value)?.into_bytes(),
        (_, None) => value.as_bytes().to_vec(),
        ("data-binary" | "json", Some(path)) if path != "-" && options.data.is_none() => {
            if let Err(e) = std::fs::File::open(path) {
                return Err(unread(path, &e));
            }
            options.json |= option == "json";
            options.data = Some(Data::File(path.to_owned()));
            return Ok(());
        }
        (_, Some(path)) => {
            let mut bytes = read_whole(path).map_err(|e| unread(path, &e))?;
            if matches!(option, "data" | "data-ascii") {
                bytes.retain(|byte| !b"\r\n\0".contains(byte));
            }
            bytes
        }
    };
    let joined = match options.data.take() {
        None => bytes,
        Some(before) => {
            let mut joined = match before {
                Data::Bytes(bytes) => bytes,
                Data::File(path) => read_whole(&path).map_err(|e| unread(&path, &e))?,
            };
            if option != "json" {
                joined.push(b'&');
            }
            joined.extend(bytes);
            joined
        }
    };
    options.json |= option == "json";
    options.data = Some(Data::Bytes(joined));
    Ok(())
}

/// Encodes as `--data-urlencode` does: `content`, `=content`, `name=content`, `@file`, `name@file`.
fn url_encoded(value: &str) -> Result<String, Failed> {
    let end = value.find(['=', '@']);
    let (name, content) = match end {
        None => ("", value.as_bytes().to_vec()),
        Some(at) if value.as_bytes()[at] == b'=' => (&value[..at], value.as_bytes()[at + 1..].to_vec()),
        Some(at) => (&value[..at], read_whole(&value[at + 1..]).map_err(|e| unread(&value[at + 1..], &e))?),
    };
    let content = encode(&content).replace("%20", "+");
    Ok(if name.is_empty() { content } else { format!("{name}={content}") })
}

/// A part of a query for `--url-query`: encoded, unless it begins with a plus.
pub fn query(value: &str) -> Result<String, Failed> {
    match value.strip_prefix('+') {
        Some(plain) => Ok(plain.to_owned()),
        None => url_encoded(value),
    }
}

/// A field as `-F` has it: `name=content`, `name=@file`, `name=<file`, each with `;type=` and so on.
pub fn part(value: &str) -> Result<Part, Failed> {
    let illegal = || Failed::usage("option -F: is badly used here");
    let (name, content) = value.split_once('=').ok_or_else(illegal)?;
    let (kind, content) = match content.chars().next() {
        Some(kind @ ('@' | '<')) => (Some(kind), &content[1..]),
        Some('(') => return Err(Failed::usage("option -F: parts within a part are not supported")),
        _ => (None, content),
    };
    let (content, settings) = split(content);
    let mut part = match kind {
        None => Part::text(name, &content),
        Some('<') => Part::of_file(name, &content),
        Some(_) => {
            let base = Path::new(&content).file_name().map(|name| name.to_string_lossy().into_owned());
            let mut part = Part::of_file(name, &content);
            part.file_name = Some(base.unwrap_or_else(|| content.clone()));
            part
        }
    };
    match &part.content {
        Piece::File { path, .. } => readable(path)?,
        // As curl does: a server then hears how long the form is, and it can be sent again.
        Piece::Input => part.content = Piece::Bytes(read_whole("-").map_err(|e| unread("-", &e))?),
        Piece::Bytes(_) => {}
    }
    for setting in settings {
        let (key, value) = setting.split_once('=').unwrap_or((&setting, ""));
        match key.trim() {
            "type" => part.content_type = Some(value.to_owned()),
            "filename" => part.file_name = Some(value.to_owned()),
            "headers" => match value.strip_prefix('@') {
                Some(file) => {
                    let text = text_of(file).map_err(|e| unread(file, &e))?;
                    part.headers.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
                }
                None => part.headers.push(value.to_owned()),
            },
            "encoder" => return Err(Failed::usage("option -F: encoders are not supported")),
            // A parameter of the type before it: `text/plain;charset=utf-8`.
            _ if part.content_type.is_some() => {
                part.content_type = part.content_type.map(|kind| format!("{kind};{setting}"));
            }
            _ => {}
        }
    }
    if let (Some('@'), Some(name), None) = (kind, &part.file_name, &part.content_type) {
        let guessed = type_of(name).or_else(|| type_of(&content)).unwrap_or("application/octet-stream");
        part.content_type = Some(guessed.to_owned());
    }
    Ok(part)
}

fn readable(path: &PathBuf) -> Result<(), Failed> {
    match std::fs::File::open(path) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failed::new(26, "Failed to open/read local data from file/application")),
    }
}

/// A field of `--form-string`.
pub fn string_part(value: &str) -> Result<Part, Failed> {
    let (name, content) =
        value.split_once('=').ok_or_else(|| Failed::usage("option --form-string: is badly used here"))?;
    Ok(Part::text(name, content))
}

/// The content, and what follows behind semicolons. Double quotes protect semicolons.
fn split(text: &str) -> (String, Vec<String>) {
    let (mut words, mut word, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in text.chars() {
        match c {
            _ if escaped => {
                escaped = false;
                if c != '"' && c != '\\' {
                    word.push('\\');
                }
                word.push(c);
            }
            '\\' if quoted => escaped = true,
            '"' if quoted => quoted = false,
            '"' if word.is_empty() || word.ends_with('=') => quoted = true,
            ';' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    let content = words.remove(0);
    (content, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_a_type_and_a_name() {
        let plain = part("n=x;type=text/plain;charset=utf-8").unwrap();
        assert_eq!(
            (plain.content, plain.content_type.as_deref()),
            (Piece::Bytes(b"x".to_vec()), Some("text/plain;charset=utf-8"))
        );
        let quoted = part("n=\"a;b\";filename=\"q\\\".txt\"").unwrap();
        assert_eq!((quoted.content, quoted.file_name.as_deref()), (Piece::Bytes(b"a;b".to_vec()), Some("q\".txt")));
        assert_eq!(part("n=@/nowhere/x").unwrap_err().code, 26);
        assert_eq!(part("no equals sign").unwrap_err().code, 2);
        assert_eq!(string_part("n=@x;type=y").unwrap().content, Piece::Bytes(b"@x;type=y".to_vec()));
    }

    #[test]
    fn data_is_joined_and_encoded() {
        let mut options = Options::default();
        add(&mut options, "data", "a=1").unwrap();
        add(&mut options, "data-urlencode", "q=a b&c").unwrap();
        add(&mut options, "data-urlencode", "=x=y").unwrap();
        add(&mut options, "data-raw", "@b").unwrap();
        assert_eq!(options.data, Some(Data::Bytes(b"a=1&q=a+b%26c&x%3Dy&@b".to_vec())));
        let mut json = Options::default();
        add(&mut json, "json", "{\"a\":").unwrap();
        add(&mut json, "json", "1}").unwrap();
        assert_eq!((json.data, json.json), (Some(Data::Bytes(b"{\"a\":1}".to_vec())), true));
        assert_eq!(add(&mut Options::default(), "data", "@/nowhere/x").unwrap_err().code, 26);
        assert_eq!((query("a=b c").unwrap(), query("+a=b c").unwrap()), ("a=b+c".into(), "a=b c".into()));
    }
}
