//! A server that requires a login, and its authorization server, on one port. They follow the specification, except for one
//! deliberate error.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A deliberate error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    NoPkce,
    /// The metadata have another issuer.
    Issuer,
    /// The redirect names another issuer.
    MixUp,
    /// The redirect names no issuer, although the metadata promise one.
    NoIssuer,
    Giant,
    Slow,
    Redirects,
    OtherResource,
    ForeignMetadata,
    NoRegistration,
    TokenType,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub wrong: Option<Wrong>,
    /// Lifetime of tokens in seconds.
    pub life_s: u64,
    /// Whether tokens can be refreshed.
    pub renews: bool,
    /// Whether the server refuses every token.
    pub refuses: bool,
    /// The scope that calls require.
    pub needs: Option<String>,
    /// The issuer in its metadata.
    pub issuer: String,
    /// Codes that were issued and not used, each with its challenge and redirect URI.
    codes: HashMap<String, (String, String)>,
    count: u64,
    pub access: Option<String>,
    pub refresh: Option<String>,
    pub scope: Option<String>,
    /// Requested grants, and the status of each response.
    pub grants: Vec<(String, u16)>,
    pub registered: Vec<Value>,
    pub revoked: Vec<String>,
    /// Values of `Authorization` at the token endpoint.
    pub clients: Vec<String>,
    pub calls: u64,
    /// Every issued token.
    pub given: Vec<String>,
}

#[derive(Clone)]
pub(super) struct Authority {
    pub base: String,
    state: Arc<Mutex<State>>,
}

impl Authority {
    pub(super) fn start() -> Authority {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let base = format!("http://{}", listener.local_addr().unwrap());
        let issuer = format!("{base}/tenant");
        let state = State { life_s: 3_600, renews: true, issuer, ..State::default() };
        let authority = Authority { base, state: Arc::new(Mutex::new(state)) };
        let shared = authority.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let authority = shared.clone();
                std::thread::spawn(move || authority.serve(&stream));
            }
        });
        authority
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    fn serve(&self, stream: &TcpStream) {
        let Some(request) = Request::read(stream) else { return };
        if self.state().wrong == Some(Wrong::Slow) && request.path.contains("oauth-authorization-server") {
            // Until the client closes the connection.
            drop((&*stream).read(&mut [0; 16]));
            return;
        }
        let (status, more, body) = self.answer(&request);
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n{more}\r\n",
            body.len()
        );
        let _ = (&*stream).write_all(&[head.as_bytes(), body.as_bytes()].concat());
    }

    fn answer(&self, request: &Request) -> (u16, String, String) {
        let base = &self.base;
        let mut state = self.state();
        let wrong = |which: Wrong| state.wrong == Some(which);
        let fine = |body: Value| (200, String::new(), body.to_string());
        let issuer = state.issuer.clone();
        match request.path.as_str() {
            "/mcp" => self.call(&mut state, request),
            "/.well-known/oauth-protected-resource/mcp" => {
                let resource = if wrong(Wrong::OtherResource) { format!("{base}/other") } else { self.url() };
                fine(json!({ "resource": resource, "authorization_servers": [issuer], "scopes_supported": ["read"] }))
            }
            // The second place where clients look for metadata.
            "/.well-known/openid-configuration/tenant" => {
                if wrong(Wrong::Redirects) {
                    return (302, format!("Location: {base}/elsewhere\r\n"), String::new());
                }
                let named = if wrong(Wrong::Issuer) { format!("{base}/evil") } else { issuer };
                let mut metadata = json!({
                    "issuer": named, "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": format!("{base}/token"), "revocation_endpoint": format!("{base}/revoke"),
                    "registration_endpoint": format!("{base}/register"),
                    "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": true,
                });
                if wrong(Wrong::NoPkce) {
                    metadata["code_challenge_methods_supported"] = json!(["plain"]);
                }
                if wrong(Wrong::Giant) {
                    metadata["more"] = "x".repeat(1 << 20).into();
                }
                if wrong(Wrong::NoRegistration) {
                    metadata.as_object_mut().unwrap().remove("registration_endpoint");
                }
                fine(metadata)
            }
            "/register" => {
                let asked: Value = serde_json::from_str(&request.body).unwrap();
                state.registered.push(asked);
                (201, String::new(), json!({ "client_id": "made", "token_endpoint_auth_method": "none" }).to_string())
            }
            "/authorize" => {
                let of = |name: &str| request.query.get(name).cloned().unwrap_or_default();
                assert_eq!((of("code_challenge_method").as_str(), of("resource")), ("S256", self.url()));
                state.count += 1;
                let code = format!("code-{}", state.count);
                state.codes.insert(code.clone(), (of("code_challenge"), of("redirect_uri")));
                state.scope = request.query.get("scope").cloned();
                let iss = match state.wrong {
                    Some(Wrong::MixUp) => "&iss=https%3A%2F%2Fevil.example".to_owned(),
                    Some(Wrong::NoIssuer) => String::new(),
                    _ => format!("&iss={issuer}"),
                };
                let to = format!("{}?code={code}&state={}{iss}", of("redirect_uri"), of("state"));
                (302, format!("Location: {to}\r\n"), String::new())
            }
            "/token" => self.token(&mut state, request),
            "/revoke" => {
                state.revoked.push(form(&request.body)["token"].clone());
                (200, String::new(), String::new())
            }
            _ => (404, String::new(), String::new()),
        }
    }

    fn token(&self, state: &mut State, request: &Request) -> (u16, String, String) {
        let asked = form(&request.body);
        assert_eq!(asked["resource"], self.url(), "tokens are asked for this server");
        state.clients.extend(request.authorization.clone());
        let is_fine = match asked["grant_type"].as_str() {
            // Each code is valid once.
            "authorization_code" => state.codes.remove(&asked["code"]).is_some_and(|(challenge, redirect)| {
                let digest = ring_digest(&asked["code_verifier"]);
                challenge == digest && redirect == asked["redirect_uri"]
            }),
            // Each refresh token is valid once.
            _ => state.renews && state.refresh.as_ref() == Some(&asked["refresh_token"]),
        };
        let status = if is_fine { 200 } else { 400 };
        state.grants.push((asked["grant_type"].clone(), status));
        if !is_fine {
            let said = json!({ "error": "invalid_grant", "error_description": "no\u{1b}[31m" });
            return (400, String::new(), said.to_string());
        }
        state.count += 1;
        let (access, refresh) =
            (format!("access-{:08}-hunter2", state.count), format!("refresh-{:08}-hunter2", state.count));
        state.given.extend([access.clone(), refresh.clone()]);
        (state.access, state.refresh) = (Some(access.clone()), Some(refresh.clone()));
        let kind = if state.wrong == Some(Wrong::TokenType) { "mac" } else { "bearer" };
        let body =
            json!({ "access_token": access, "token_type": kind, "expires_in": state.life_s, "refresh_token": refresh });
        (200, String::new(), body.to_string())
    }

    /// A server of the newer era.
    fn call(&self, state: &mut State, request: &Request) -> (u16, String, String) {
        let given = request.authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
        let metadata = match state.wrong {
            Some(Wrong::ForeignMetadata) => "http://localhost:1/x".to_owned(),
            _ => format!("{}/.well-known/oauth-protected-resource/mcp", self.base),
        };
        if given.is_none() || given != state.access.as_deref() || state.refuses {
            let says = format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\", scope=\"read\"\r\n");
            return (401, says, String::new());
        }
        let message: Value = serde_json::from_str(&request.body).expect("kiso sends JSON");
        let mut result = match message["method"].as_str().unwrap() {
            "server/discover" => json!({ "supportedVersions": [super::MODERN], "capabilities": { "tools": {} } }),
            "tools/list" => {
                let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
                json!({ "tools": [{ "name": "ask", "description": "Asks the oracle", "inputSchema": schema }] })
            }
            _ => {
                let has = |needed: &String| state.scope.as_ref().is_some_and(|scope| scope.contains(needed.as_str()));
                if let Some(needed) = state.needs.clone().filter(|needed| !has(needed)) {
                    let says = format!("WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"{needed}\"\r\n");
                    return (403, says, String::new());
                }
                state.calls += 1;
                json!({ "content": [{ "type": "text", "text": format!("you came with {}", given.unwrap()) }] })
            }
        };
        result["resultType"] = json!("complete");
        (200, String::new(), json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string())
    }
}

struct Request {
    path: String,
    query: HashMap<String, String>,
    authorization: Option<String>,
    body: String,
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Request> {
        let mut input = BufReader::new(stream);
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let target = line.split_whitespace().nth(1)?.to_owned();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let (mut length, mut authorization) = (0, None);
        loop {
            line.clear();
            if input.read_line(&mut line).ok()? <= 2 {
                break;
            }
            let (name, value) = line.split_once(':')?;
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "authorization" => authorization = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).ok()?;
        let body = String::from_utf8(body).ok()?;
        Some(Request { path: path.to_owned(), query: form(query), authorization, body })
    }
}

fn form(text: &str) -> HashMap<String, String> {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn ring_digest(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    data_encoding::BASE64URL_NOPAD.encode(digest.as_ref())
}

/// Gets a page as a browser does, without following redirects. Returns its status and location.
pub(super) fn visit(url: &str) -> (u16, Option<String>) {
    let rest = url.strip_prefix("http://").expect("it is on this machine");
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).expect("somebody listens");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: ")).map(str::to_owned);
    (answer.split_whitespace().nth(1).unwrap().parse().unwrap(), location)
}
