//! OCI registries: Debian's on loopback, and one that lies.

mod agent;

use crate::harness::{Home, guest, missing_tool, own_port, root, wait_for};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", data_encoding::HEXLOWER.encode(digest(&SHA256, bytes).as_ref()))
}

/// The guest `echo`, with its manifest inside.
fn echo(home: &Home) -> PathBuf {
    let toml = root().join("tests/guests/echo/kiso.toml");
    let wasm = home.file("packed/echo.wasm", std::fs::read(guest("echo")).unwrap());
    home.kiso(&["skill", "pack", path(&wasm), "--manifest", path(&toml)]).ok();
    wasm
}

/// A `docker-registry` with its own directory.
struct DebianRegistry {
    child: Child,
    address: String,
}

impl DebianRegistry {
    fn start(home: &Home, auth: &str) -> Option<Self> {
        let address = format!("127.0.0.1:{}", own_port());
        let store = home.file("registry/placeholder", "");
        let store = store.parent().unwrap().display().to_string();
        let config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {store}\nhttp:\n  addr: {address}\n{auth}"
        );
        let config = home.file("registry.yml", config);
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = child.ok()?;
        wait_for("the registry", || TcpStream::connect(&address).ok());
        Some(Self { child, address })
    }
}

impl Drop for DebianRegistry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pushes the guest `echo` in this version with this tag.
fn push_version(home: &Home, version: &str, place: &str) {
    let manifest = std::fs::read_to_string(root().join("tests/guests/echo/kiso.toml")).unwrap();
    let manifest = manifest.replace("version = \"0.1.0\"", &format!("version = \"{version}\""));
    let toml = home.file("versions/manifest.toml", manifest);
    let wasm = home.file("versions/echo.wasm", std::fs::read(guest("echo")).unwrap());
    home.kiso(&["skill", "pack", path(&wasm), "--manifest", path(&toml)]).ok();
    home.kiso(&["skill", "push", path(&wasm), place]).ok();
}

#[test]
fn tags_are_searched_and_followed_to_the_highest_version() {
    let home = Home::new();
    let Some(registry) = DebianRegistry::start(&home, "") else {
        return missing_tool("updating from a registry", "there is no docker-registry (Debian: docker-registry)");
    };
    let place = format!("oci://{}/ada/echo", registry.address);
    push_version(&home, "1.9.0", &format!("{place}:1.9.0"));
    push_version(&home, "1.9.0", &format!("{place}:stable"));
    home.kiso(&["skill", "add", &format!("{place}:1.9.0"), "--grant", "all"]).ok();
    home.kiso(&["skill", "outdated"]).ok().prints(&["current  echo 1.9.0"]);
    // Versions are compared by number, not alphabetically, and a tag that is not a version is not considered.
    push_version(&home, "1.10.0", &format!("{place}:v1.10.0"));
    push_version(&home, "3.0.0", &format!("{place}:zoo"));
    home.kiso(&["skill", "outdated"]).ok().prints(&["outdated echo 1.9.0 → 1.10.0", ":v1.10.0"]);
    let found = home.kiso(&["--json", "skill", "search", "--registry", &place]).json_lines();
    let versions: Vec<_> = found.iter().map(|line| line["version"].as_str().unwrap()).collect();
    assert_eq!(versions[..2], ["1.10.0", "1.9.0"], "{found:?}");
    assert_eq!(found.len(), 4, "{found:?}");
    let zoo = home.kiso(&["skill", "search", "--registry", &place, "ZOO"]);
    assert!(zoo.ok().stdout.contains(":zoo@sha256:") && !zoo.stdout.contains("1.10.0"), "{zoo:?}");
    home.kiso(&["skill", "update"]).ok().prints(&["loaded echo 1.10.0"]);
    home.kiso(&["skill", "outdated"]).ok().prints(&["current  echo 1.10.0"]);
    home.kiso(&["skill", "remove", "echo"]).ok();

    // An installed tag that is not a version is followed to its current target.
    home.kiso(&["skill", "add", &format!("{place}:stable"), "--grant", "all"]).ok();
    home.kiso(&["skill", "outdated"]).ok().prints(&["current  echo 1.9.0"]);
    push_version(&home, "2.0.0", &format!("{place}:stable"));
    home.kiso(&["skill", "update", "echo"]).ok().prints(&["loaded echo 2.0.0"]);
    // The tag was set back to a lower version, which does not count as an update.
    push_version(&home, "1.9.0", &format!("{place}:stable"));
    home.kiso(&["skill", "update", "echo"]).ok().prints(&["current  echo 2.0.0"]);
    assert_eq!(home.kiso(&["--json", "skill", "info", "echo"]).json()["version"], "2.0.0");
    drop(registry);
    home.kiso(&["skill", "outdated"]).exit(1).prints(&["failed   echo"]);
}

#[test]
fn a_component_goes_into_a_registry_and_comes_out_the_same() {
    let home = Home::new();
    let Some(registry) = DebianRegistry::start(&home, "") else {
        return missing_tool(
            "pushing to a registry and pulling from it",
            "there is no docker-registry (Debian: docker-registry)",
        );
    };
    let file = echo(&home);
    let place = format!("oci://{}/ada/echo", registry.address);
    home.kiso(&["skill", "trust", "new", path(&home.file("keys/x", "").with_file_name("ada"))]).ok();
    let key = home.path().with_file_name("keys").join("ada");
    home.kiso(&["skill", "sign", path(&file), "--key", path(&key)]).ok();
    home.kiso(&["skill", "trust", "add", &format!("{}.pub", key.display()), "--label", "ada"]).ok();
    let pushed = home.kiso(&["--json", "skill", "push", path(&file), &format!("{place}:1.0")]).json();
    let (at, manifest) = (pushed["place"].as_str().unwrap(), pushed["digest"].as_str().unwrap());
    assert_eq!(at, format!("{place}:1.0@{manifest}"));
    // A second push uploads nothing new, and gives the same artifact.
    let again = home.kiso(&["--json", "skill", "push", path(&file), &format!("{place}:1.0")]).json();
    assert_eq!(again["digest"], pushed["digest"]);

    home.kiso(&["skill", "add", &format!("{place}:1.0"), "--grant", "all"]).ok().prints(&["loaded echo"]);
    home.kiso(&["skill", "info", "echo"]).ok().prints(&["signed by ada", &format!("from {place}")]);
    home.kiso(&["skill", "run", "echo", "text=hi"]).ok();
    // In another home by digest, as in the lockfile.
    let other = Home::new();
    let lock = home.path().join("skills.lock");
    assert!(std::fs::read_to_string(&lock).unwrap().contains(at), "the lockfile has the place with its digest");
    other.kiso(&["skill", "trust", "add", &format!("{}.pub", key.display())]).ok();
    other.kiso(&["skill", "sync", path(&lock)]).ok().prints(&["installed echo"]);
    let digest = |home: &Home| home.kiso(&["skill", "info", "echo", "--json"]).json()["digest"].clone();
    assert_eq!(digest(&home), digest(&other));

    home.kiso(&["skill", "add", &format!("{place}:2.0")]).exit(2).says(&["has no manifest of ada/echo:2.0"]);
    let wrong = format!("{place}@sha256:{}", "0".repeat(64));
    home.kiso(&["skill", "add", &wrong]).exit(2);
    home.kiso(&["skill", "push", path(&file), "oci://127.0.0.1:1/x:1"]).exit(1).says(&["cannot be reached"]);
    home.kiso(&["skill", "push", path(&file), &wrong]).exit(2).says(&["name a tag"]);
    // No pulled file is left behind.
    let left = std::fs::read_dir(home.path()).unwrap().flatten().filter(|e| e.path().join("echo.wasm").exists());
    assert_eq!(left.count(), 0);
}

/// Apache's password file format: "ada" with "s3cret", by bcrypt.
const HTPASSWD: &str = "ada:$2y$05$";

#[test]
fn a_registry_that_wants_to_know_who_asks_is_told() {
    let home = Home::new();
    let made = Command::new("htpasswd").args(["-Bbn", "ada", "s3cret"]).stdin(Stdio::null()).output();
    let Some(line) = made.ok().filter(|made| made.status.success()) else {
        return missing_tool("a registry with passwords", "there is no htpasswd (Debian: apache2-utils)");
    };
    assert!(String::from_utf8_lossy(&line.stdout).starts_with(HTPASSWD));
    let passwords = home.file("htpasswd", &line.stdout);
    let auth = format!("auth:\n  htpasswd:\n    realm: test\n    path: {}\n", passwords.display());
    let Some(registry) = DebianRegistry::start(&home, &auth) else {
        return missing_tool("a registry with passwords", "there is no docker-registry (Debian: docker-registry)");
    };
    let file = echo(&home);
    let place = format!("oci://{}/ada/echo:1", registry.address);
    home.kiso(&["skill", "push", path(&file), &place]).exit(4).says(&["wants to know who asks", "KISO_REGISTRY_AUTH"]);
    let auths = |password: &str| {
        let pair = data_encoding::BASE64.encode(format!("ada:{password}").as_bytes());
        json!({ "auths": { registry.address.clone(): { "auth": pair } } }).to_string()
    };
    let wrong = home.file("wrong.json", auths("other"));
    let ran = home.kiso(&["skill", "push", path(&file), &place, "--auth", path(&wrong)]);
    assert!(!format!("{:?}", ran.exit(4)).contains("other\""));
    let right = home.file("right.json", auths("s3cret"));
    home.kiso(&["skill", "push", path(&file), &place, "--auth", path(&right)]).ok();
    home.kiso(&["skill", "add", &place]).exit(4).says(&["wants to know who asks"]);
    let ran = home.kiso_with(&["skill", "add", &place, "--grant", "all"], |command| {
        command.env("KISO_REGISTRY_AUTH", auths("s3cret"));
    });
    ran.ok().prints(&["loaded echo"]);
}

/// A registry's answers by path, and all received requests.
type Answers = HashMap<String, (u16, Vec<(&'static str, String)>, Vec<u8>)>;

struct LyingRegistry {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl LyingRegistry {
    fn start(answers: impl FnOnce(&str) -> Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (answers, asked) = (answers(&address), Arc::<Mutex<Vec<String>>>::default());
        let heard = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &answers, &heard);
            }
        });
        Self { address, asked }
    }

    fn heard(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, answers: &Answers, heard: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let (mut head, mut length) = (String::new(), 0);
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    heard.lock().unwrap().push(head);
    let nothing = (404, Vec::new(), Vec::new());
    let (status, headers, body) = answers.get(path.split('?').next().unwrap_or_default()).unwrap_or(&nothing);
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n", body.len())?;
    stream.write_all(body)
}

/// The answers of an honest registry for a component `a` with the tag 1.
fn honest(layer: &[u8]) -> (Answers, Value) {
    let config = json!({ "created": "1970-01-01T00:00:00Z", "architecture": "wasm", "os": "wasip2", "layerDigests": [sha256(layer)] });
    artifact(("application/vnd.wasm.config.v0+json", &config), ("application/wasm", layer))
}

/// The answers of an honest registry for an artifact `a` with the tag 1: types and contents of its configuration and its layer.
fn artifact((config_type, config): (&str, &Value), (layer_type, layer): (&str, &[u8])) -> (Answers, Value) {
    let config = config.to_string().into_bytes();
    let part = |kind: &str, bytes: &[u8]| json!({ "mediaType": kind, "digest": sha256(bytes), "size": bytes.len() });
    let manifest = json!({
        "schemaVersion": 2,
        "config": part(config_type, &config),
        "layers": [part(layer_type, layer)],
    });
    let mut answers = Answers::new();
    answers.insert(format!("/v2/a/blobs/{}", sha256(layer)), (200, Vec::new(), layer.to_vec()));
    answers.insert(format!("/v2/a/blobs/{}", sha256(&config)), (200, Vec::new(), config));
    answers.insert("/v2/a/manifests/1".to_owned(), (200, Vec::new(), manifest.to_string().into_bytes()));
    (answers, manifest)
}

#[test]
fn a_registry_that_lies_is_told_apart() {
    let home = Home::new();
    let layer = std::fs::read(echo(&home)).unwrap();
    let blob = format!("/v2/a/blobs/{}", sha256(&layer));
    let refused = |answers: Answers, reference: &str, code: i32, says: &[&str]| {
        let registry = LyingRegistry::start(|_| answers);
        let place = format!("oci://{}/a{reference}", registry.address);
        home.kiso(&["skill", "add", &place, "--grant", "all"]).exit(code).says(says);
        home.kiso(&["skill", "info", "echo"]).exit(2);
        registry.heard()
    };
    let with = |change: &dyn Fn(&mut Answers, &mut Value)| {
        let (mut answers, mut manifest) = honest(&layer);
        change(&mut answers, &mut manifest);
        let at = "/v2/a/manifests/1".to_owned();
        answers.entry(at).and_modify(|(_, _, body)| *body = manifest.to_string().into_bytes());
        answers
    };
    // A layer with one changed byte.
    let tampered = with(&|answers, _| answers.get_mut(&blob).unwrap().2[100] ^= 1);
    refused(tampered, ":1", 4, &["the layer has the digest sha256:", "was asked for"]);
    // A layer that is longer than in the manifest, by much and by little.
    let longer = with(&|answers, _| answers.get_mut(&blob).unwrap().2.extend(vec![0; 1 << 20]));
    refused(longer, ":1", 2, &["the layer has more than"]);
    let longer = with(&|answers, _| answers.get_mut(&blob).unwrap().2.push(0));
    refused(longer, ":1", 2, &["the layer has more than"]);
    // A layer whose declared size is too large is not requested.
    let huge = with(&|_, manifest| manifest["layers"][0]["size"] = json!(1_u64 << 40));
    let heard = refused(huge, ":1", 2, &["the layer has more than the 134217728 bytes"]);
    assert!(heard.iter().all(|head| !head.contains(&blob)), "{heard:?}");
    // A manifest other than the requested one.
    let other = with(&|answers, _| {
        let body = answers["/v2/a/manifests/1"].clone();
        answers.insert(format!("/v2/a/manifests/sha256:{}", "0".repeat(64)), body);
    });
    refused(other, &format!("@sha256:{}", "0".repeat(64)), 4, &["the manifest has the digest"]);
    let endless = with(&|_, manifest| manifest["annotations"] = json!({ "x": "x".repeat(2 << 20) }));
    refused(endless, ":1", 2, &["the manifest has more than the 1048576 bytes"]);
    // Artifacts of another kind.
    for (pointer, value, says) in [
        ("/config/mediaType", json!("application/vnd.oci.image.config.v1+json"), "its configuration is"),
        ("/layers/0/mediaType", json!("application/vnd.oci.image.layer.v1.tar+gzip"), "its layer is"),
        ("/layers/0/digest", json!("md5:1"), "is not sha256"),
        ("/layers", json!([]), "it has 0 layers"),
        ("/schemaVersion", json!(1), "of another version"),
    ] {
        let odd = with(&|_, manifest| *manifest.pointer_mut(pointer).unwrap() = value.clone());
        refused(odd, ":1", 2, &[says]);
    }
    // An honest registry is accepted.
    let registry = LyingRegistry::start(|_| honest(&layer).0);
    home.kiso(&["skill", "add", &format!("oci://{}/a:1", registry.address), "--grant", "all"])
        .ok()
        .prints(&["loaded echo"]);
}

#[test]
fn nothing_leads_to_an_address_that_nobody_named() {
    let home = Home::new();
    let layer = std::fs::read(echo(&home)).unwrap();
    let blob = format!("/v2/a/blobs/{}", sha256(&layer));
    let secret = data_encoding::BASE64.encode(b"ada:s3cret");
    // Another service of this machine, which must not receive a request.
    let inside = LyingRegistry::start(|_| Answers::new());
    for (to, says) in [
        (format!("http://{}/x", inside.address), "it is not encrypted"),
        (format!("https://{}/x", inside.address), "its address is private"),
        ("https://169.254.169.254/latest".to_owned(), "its address is private"),
        ("https://[::ffff:10.0.0.1]/x".to_owned(), "its address is private"),
        ("/v2/a/again".to_owned(), "sent on too often"),
    ] {
        let registry = LyingRegistry::start(|address| {
            let (mut answers, _) = honest(&layer);
            let again = format!("http://{address}/v2/a/again");
            answers.insert(blob.clone(), (307, vec![("location", to.clone())], Vec::new()));
            answers.insert("/v2/a/again".to_owned(), (307, vec![("location", again)], Vec::new()));
            answers
        });
        let place = format!("oci://{}/a:1", registry.address);
        home.kiso(&["skill", "add", &place, "--grant", "all"]).exit(4).says(&[says]);
    }
    // A password is not sent to a token address chosen by the registry either.
    for (realm, says) in [
        (format!("http://{}/token", inside.address), "encrypted"),
        (format!("https://{}/token", inside.address), "private"),
    ] {
        let registry = LyingRegistry::start(|_| {
            let wants = format!("Bearer realm=\"{realm}\",service=\"x\"");
            Answers::from([("/v2/a/manifests/1".to_owned(), (401, vec![("www-authenticate", wants)], Vec::new()))])
        });
        let auths = json!({ "auths": { registry.address.clone(): { "auth": secret } } }).to_string();
        let auth = home.file("auth.json", auths);
        let place = format!("oci://{}/a:1", registry.address);
        let ran = home.kiso(&["skill", "add", &place, "--auth", path(&auth)]);
        assert_ne!(ran.code, 0, "{ran:?}");
        assert!(ran.says(&[says]).stderr.find(&secret).is_none() && !ran.stderr.contains("s3cret"));
    }
    // An upload is not redirected to another host either.
    let registry = LyingRegistry::start(|_| {
        let there = format!("http://{}/upload", inside.address);
        Answers::from([("/v2/a/blobs/uploads/".to_owned(), (202, vec![("location", there)], Vec::new()))])
    });
    let file = home.path().with_file_name("packed").join("echo.wasm");
    let ran = home.kiso(&["skill", "push", path(&file), &format!("oci://{}/a:1", registry.address)]);
    ran.exit(4).says(&["an upload stays with its registry"]);
    assert_eq!(inside.heard(), Vec::<String>::new());
    // Other machines are only contacted with encryption.
    home.kiso(&["skill", "add", "oci://h/A:1"]).exit(2).says(&["is not a place in a registry"]);
}

/// A token is requested with name and password, and used from then on; neither is sent to the blob store.
#[test]
fn a_token_is_got_and_shown() {
    let home = Home::new();
    let layer = std::fs::read(echo(&home)).unwrap();
    let registry = LyingRegistry::start(|address| {
        let (mut answers, _) = honest(&layer);
        let wants = format!("Bearer realm=\"http://{address}/token\",service=\"{address}\"");
        // A real registry asks for a login when there is no token: this server cannot distinguish, so it asks once on another
        // path.
        answers.insert("/v2/a/manifests/2".to_owned(), (401, vec![("www-authenticate", wants)], Vec::new()));
        answers.insert("/token".to_owned(), (200, Vec::new(), br#"{"token": "t0ken"}"#.to_vec()));
        answers
    });
    let secret = data_encoding::BASE64.encode(b"ada:s3cret");
    let auth = home.file("auth.json", json!({ "auths": { registry.address.clone(): { "auth": secret } } }).to_string());
    let place = format!("oci://{}/a:2", registry.address);
    home.kiso(&["skill", "add", &place, "--auth", path(&auth)]).exit(4).says(&["wants to know who asks"]);
    let heard = registry.heard();
    assert!(!heard[0].to_lowercase().contains("authorization"), "{heard:?}");
    assert!(
        heard[1].starts_with("GET /token?service=") && heard[1].contains("scope=repository%3Aa%3Apull"),
        "{heard:?}"
    );
    assert!(heard[1].contains(&format!("Basic {secret}")), "{heard:?}");
    assert!(heard[2].starts_with("GET /v2/a/manifests/2") && heard[2].contains("Bearer t0ken"), "{heard:?}");
}
