//! `wget`: files and sites over HTTP with the options, exit codes and messages of GNU wget.

mod client;
mod fetch;
mod links;
mod log;
mod name;
mod option;
mod request;
mod save;
mod site;
mod table;

use client::Client;
use log::Log;
use option::{Only, Options};
use std::io::Write;

/// How requests name their sender.
const AGENT: &str = concat!("Wget/1.25.0 kiso/", env!("CARGO_PKG_VERSION"));

const HELP: &str = include_str!("wget/help.txt");

/// Exit codes.
mod code {
    pub const GENERAL: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const FILE: u8 = 3;
    pub const NETWORK: u8 = 4;
    pub const TLS: u8 = 5;
    pub const LOGIN: u8 = 6;
    pub const PROTOCOL: u8 = 7;
    pub const SERVER: u8 = 8;
}

/// Runs wget, and returns its exit code.
pub fn run(words: &[String]) -> i32 {
    let options = match Options::parse(words) {
        Ok(options) => options,
        Err((why, code)) => {
            eprint!("wget: {why}\nUsage: wget [OPTION]... [URL]...\n\nTry `wget --help' for more options.\n");
            return code.into();
        }
    };
    let code = match options.only {
        Some(Only::Help) => print(HELP),
        Some(Only::Version) => print(&format!("GNU Wget 1.25.0 (kiso {})\n", env!("CARGO_PKG_VERSION"))),
        None => fetch_all(&options),
    };
    match std::io::stdout().flush() {
        Ok(()) => code.into(),
        Err(_) => code::FILE.into(),
    }
}

fn print(text: &str) -> u8 {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => code::FILE,
    }
}

fn fetch_all(options: &Options) -> u8 {
    let mut log = match Log::new(options) {
        Ok(log) => log,
        Err(why) => {
            eprintln!("wget: {why}");
            return code::FILE;
        }
    };
    let urls = match urls(options) {
        Ok(urls) => urls,
        Err(why) => {
            log.brief(&format!("{why}\n"));
            return code::GENERAL;
        }
    };
    if urls.is_empty() {
        log.brief(&format!("No URLs found in {}.\n", options.input.as_deref().unwrap_or_default()));
        return code::GENERAL;
    }
    let mut client = match Client::new(options, log) {
        Ok(client) => client,
        Err((why, code)) => {
            eprintln!("wget: {why}");
            return code;
        }
    };
    let begun = std::time::Instant::now();
    if options.recursive || options.requisites {
        site::fetch(&mut client, &urls);
    } else {
        for url in &urls {
            client.start(url);
        }
        if options.convert {
            site::convert_single(&mut client);
        }
    }
    client.finish(urls.len() > 1 || options.recursive || options.requisites, begun)
}

/// The URLs of the line and of `-i`.
fn urls(options: &Options) -> Result<Vec<String>, String> {
    let mut urls = options.urls.clone();
    if let Some(file) = &options.input {
        let bytes = crate::body::read_whole(file).map_err(|e| format!("{file}: {}", crate::reason::reason(&e)))?;
        let text = String::from_utf8_lossy(&bytes);
        if options.force_html {
            let page = links::of_page(&text);
            let base = options.base.clone().or(page.base).and_then(|base| crate::url::Url::parse(&base).ok());
            urls.extend(page.links.into_iter().map(|link| match &base {
                Some(base) => base.join(&link.text).map_or(link.text.clone(), |url| url.to_string()),
                None => link.text,
            }));
        } else {
            let base = options.base.as_deref().and_then(|base| crate::url::Url::parse(base).ok());
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            urls.extend(lines.map(|line| match &base {
                Some(base) => base.join(line).map_or(line.to_owned(), |url| url.to_string()),
                None => line.to_owned(),
            }));
        }
    }
    Ok(urls)
}

#[cfg(test)]
mod tests;
