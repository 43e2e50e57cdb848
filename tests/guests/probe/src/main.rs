//! A command without a manifest and without knowledge of kiso: it imports the files of WASI and `wasi:http`.
//!
//! `probe read FILE`, `probe write FILE TEXT`, `probe env NAME`, `probe get URL`; without arguments it reads `{"args": {"url"}}`
//! on standard input. Errors are reported on standard error, with exit code 1.

#[allow(missing_docs)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/since_v0_1",
        inline: "
            package probe:http;
            world client {
                import wasi:http/outgoing-handler@0.2.12;
                import wasi:http/types@0.2.12;
            }
        ",
        world: "probe:http/client",
        generate_all,
    });
}

use bindings::wasi::http::outgoing_handler;
use bindings::wasi::http::types::{Fields, OutgoingRequest, Scheme};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["read", file] => std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}")),
        ["write", file, text] => {
            std::fs::write(file, text).map(|()| String::new()).map_err(|error| format!("{file}: {error}"))
        }
        ["env", name] => Ok(std::env::var(name).unwrap_or_else(|_| "unset".to_owned())),
        ["get", url] => get(url),
        _ => {
            let call: serde_json::Value = serde_json::from_reader(std::io::stdin()).unwrap_or_default();
            get(call["args"]["url"].as_str().unwrap_or_default())
        }
    };
    match done {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the status of the response.
fn get(url: &str) -> Result<String, String> {
    let rest = url.strip_prefix("http://").ok_or("no http:// address")?;
    let (authority, path) = rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, path.to_owned()));
    let request = OutgoingRequest::new(Fields::new());
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| "scheme")?;
    request.set_authority(Some(authority)).map_err(|()| "authority")?;
    request.set_path_with_query(Some(&format!("/{path}"))).map_err(|()| "path")?;
    let future = outgoing_handler::handle(request, None).map_err(|error| format!("{error:?}"))?;
    future.subscribe().block();
    let response = future.get().ok_or("no answer")?.map_err(|()| "taken")?;
    response.map(|response| response.status().to_string()).map_err(|error| format!("{error:?}"))
}
