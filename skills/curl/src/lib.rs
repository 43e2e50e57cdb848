//! Requests over HTTP with the options of curl and wget.
//!
//! The host decides which hosts can be reached, resolves names, verifies certificates and names refused hosts on standard error. `limits`
//! bounds the answers of servers: headers, redirects, files of a site, compressed bodies in memory.

mod body;
mod cookie;
mod curl;
mod date;
mod decode;
mod limits;
mod multipart;
mod reason;
mod transport;
mod url;
mod wget;

/// Runs the command that the first word names, and returns its exit code.
pub fn run(words: &[String]) -> i32 {
    let path = words.first().map(String::as_str).unwrap_or_default();
    let rest = words.get(1..).unwrap_or_default();
    match path.rsplit('/').next().unwrap_or_default() {
        "wget" => wget::run(rest),
        _ => curl::run(rest),
    }
}

#[cfg(test)]
mod server;
