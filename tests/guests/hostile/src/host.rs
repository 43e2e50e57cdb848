//! The host's interfaces: kv, publish, secrets, environment and network.

use crate::symlink;
use kiso_sdk::{Failure, Reply, kv, publish};
use serde_json::json;
use std::io::Read;
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};

pub fn kv_flood() -> Result<Reply, Failure> {
    let code = |result: Result<(), Failure>| result.err().map_or_else(|| "ok".to_owned(), |f| f.code);
    let empty = code(kv::set("", b"x"));
    let long = code(kv::set(&"k".repeat(257), b"x"));
    assert_eq!((empty.as_str(), long.as_str()), ("bad-args", "bad-args"), "keys of 0 and 257 bytes");
    assert_eq!(code(kv::set("large", &vec![0; (64 << 10) + 1])), "quota", "a value over 64 KiB");

    let mut pairs = 0;
    let refused = loop {
        assert!(pairs <= 1_000, "more than 1,000 keys");
        match kv::set(&format!("key-{pairs}"), b"x") {
            Ok(()) => pairs += 1,
            Err(failure) => break failure,
        }
    };
    assert_eq!(refused.code, "quota", "{refused}");
    for n in 0..pairs {
        assert!(kv::delete(&format!("key-{n}"))?, "key-{n} was set");
    }

    let mut bytes = 0;
    let refused = loop {
        assert!(bytes <= 1 << 20, "more than 1 MiB");
        match kv::set(&format!("big-{bytes}"), &vec![0; 60 << 10]) {
            Ok(()) => bytes += 60 << 10,
            Err(failure) => break failure,
        }
    };
    assert_eq!(refused.code, "quota", "{refused}");
    for key in kv::keys("big-")? {
        kv::delete(&key)?;
    }
    assert!(kv::keys("")?.is_empty(), "nothing stays");
    Ok(Reply::text(format!("{pairs} keys, {bytes} bytes")).data(&json!({ "keys": pairs, "bytes": bytes })))
}

pub fn publish_flood() -> Result<Reply, Failure> {
    let mut published = 0;
    let refused = loop {
        assert!(published <= 1_000, "more than 1,000 published files");
        let path = format!("/work/p/{published}.txt");
        kiso_sdk::write(&path, "published")?;
        match publish(&path, None) {
            Ok(_) => published += 1,
            Err(failure) => break failure,
        }
    };
    assert_eq!(refused.code, "quota", "{refused}");
    Ok(Reply::text(format!("{published} published")).data(&json!({ "published": published })))
}

pub fn publish_escape() -> Result<Reply, Failure> {
    std::fs::create_dir_all("/work/folder")?;
    assert!(symlink("../../../store.db", "/work/out.txt").is_err(), "a link to the outside was made");
    assert!(symlink("../../..", "/work/up").is_err(), "a link to the outside was made");
    std::fs::write("/work/folder/kept.txt", "kept")?;
    symlink("folder/kept.txt", "/work/out.txt")?;
    symlink("folder", "/work/up")?;
    let paths = [
        "../../../store.db",
        "/work/../../../store.db",
        "pub/../../../../store.db",
        "/etc/passwd",
        "file:///etc/passwd",
        "out.txt",
        "/work/out.txt",
        "up/kept.txt",
        "folder",
        "/work",
        "missing.txt",
        "a\0b",
        "",
    ];
    let mut tried = Vec::new();
    for path in paths {
        match publish(path, None) {
            Ok(link) => panic!("ESCAPED: {path:?} was published as {link}"),
            Err(f) => {
                assert!(f.code == "denied" || f.code == "not-found" || f.code == "bad-args", "{path:?}: {f}");
                tried.push(format!("{path:?}: {}", f.code));
            }
        }
    }
    let long = "t".repeat(1 << 20);
    kiso_sdk::write("/work/fine.txt", "fine")?;
    let first = publish("fine.txt", Some(&long))?;
    assert_eq!(first, publish("/work/fine.txt", None)?, "the same file keeps its link");
    Ok(Reply::text(tried.join("\n")).data(&json!({ "tried": tried })))
}

pub fn secrets() -> Result<Reply, Failure> {
    let code = |name: &str| kiso_sdk::secret(name).err().map_or_else(|| "ok".to_owned(), |f| f.code);
    for name in ["", "other", "API_KEY", "api_key\0", "../api_key", "KISO_SKILL_HOSTILE_API_KEY"] {
        assert_eq!(code(name), "undeclared", "{name:?}");
    }
    let declared = code("api_key");
    let message = kiso_sdk::secret("api_key").err().map(|f| f.message);
    let data = json!({ "undeclared": "undeclared", "api_key": declared, "message": message });
    Ok(Reply::text(format!("api_key: {declared}")).data(&data))
}

pub fn environment() -> Result<Reply, Failure> {
    let vars: std::collections::BTreeMap<String, String> = std::env::vars().collect();
    let args: Vec<String> = std::env::args().collect();
    let mut stdin = String::new();
    std::io::stdin().read_to_string(&mut stdin)?;
    let data = json!({ "env": vars, "args": args, "stdin": stdin });
    Ok(Reply::text(data.to_string()).data(&data))
}

pub fn net() -> Result<Reply, Failure> {
    let mut tried = Vec::new();
    let mut refused = |what: String, result: std::io::Result<String>| match result {
        Ok(got) => panic!("ESCAPED: {what} worked: {got}"),
        Err(e) => tried.push(format!("{what}: {e}")),
    };
    for address in ["127.0.0.1:22", "127.0.0.1:80", "[::1]:80", "169.254.169.254:80", "1.1.1.1:53"] {
        refused(format!("tcp {address}"), TcpStream::connect(address).map(|s| format!("{s:?}")));
    }
    for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
        refused(format!("listen {address}"), TcpListener::bind(address).map(|s| format!("{s:?}")));
        let sent = UdpSocket::bind(address).and_then(|s| s.send_to(b"?", "127.0.0.1:53"));
        refused(format!("udp {address}"), sent.map(|n| format!("{n} bytes")));
    }
    for name in ["localhost:80", "example.com:80"] {
        refused(format!("dns {name}"), name.to_socket_addrs().map(|a| format!("{:?}", a.collect::<Vec<_>>())));
    }
    for url in
        ["http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://169.254.169.254/", "https://example.com/"]
    {
        match kiso_sdk::http::Get::new(url).send() {
            Ok(response) => panic!("ESCAPED: {url} answered {}", response.status),
            Err(f) => {
                assert_eq!(f.code, "denied", "{url}: {f}");
                tried.push(format!("{url}: {}", f.code));
            }
        }
    }
    Ok(Reply::text(tried.join("\n")).data(&json!({ "tried": tried })))
}
