//! The hosts that command lines may reach: the rules of `kiso network` and `[network]`, and the trusted certificates.

mod ask;
mod curl;
mod git;
mod pip;
mod python;
mod secret;
mod tls;
mod ways;

use crate::harness::{Home, root};
use crate::served::Served;
use crate::web::text;
use serde_json::json;

#[test]
fn rules_are_listed_changed_and_forgotten() {
    let home = Home::new();
    home.kiso(&["network"]).ok().prints(&["ask    any other host  [network] default in config.toml"]);
    let says = |args: &[&str], expected: &str| {
        let ran = home.kiso(&[&["network"], args].concat());
        assert_eq!((ran.ok().stdout.trim_end(), ran.stderr.as_str()), (expected, ""), "{args:?}");
    };
    says(&["allow", "Example.org"], "command lines can send GET, HEAD and OPTIONS requests to example.org");
    says(
        &["allow", "api.example.org", "--method", "post", "--method", "HEAD"],
        "command lines can send GET, HEAD, POST and OPTIONS requests to api.example.org",
    );
    says(
        &["ask", "127.0.0.1:8080", "--private", "--session", "s"],
        "kiso asks you before command lines of session s send GET, HEAD and OPTIONS requests to 127.0.0.1:8080, also at a private address",
    );
    says(&["deny", "*.example.net"], "command lines cannot send any requests to *.example.net");
    says(&["deny", "example.org", "--method", "PUT"], "command lines cannot send PUT requests to example.org");
    let listed = home.kiso(&["network"]).ok().stdout.clone();
    assert_eq!(
        listed,
        "deny   *.example.net  all methods, every session\n\
         allow  api.example.org  GET, HEAD, POST, OPTIONS, every session\n\
         allow  example.org  GET, HEAD, OPTIONS, every session\n\
         deny   example.org  PUT, every session\n\
         ask    127.0.0.1:8080  GET, HEAD, OPTIONS; private addresses too, session s\n\
         ask    any other host  [network] default in config.toml\n"
    );
    let other = home.kiso(&["network", "list", "--session", "other"]).ok().stdout.clone();
    assert!(other.contains("*.example.net") && !other.contains("127.0.0.1"), "{other}");

    let forget = |args: &[&str]| home.kiso(&[&["network", "forget"], args].concat());
    forget(&["127.0.0.1:8080"]).exit(2).says(&["there is no rule about \"127.0.0.1:8080\" for every session"]);
    forget(&["127.0.0.1:8080", "--session", "s"]).ok().prints(&["forgot the rules about 127.0.0.1:8080 for session s"]);
    forget(&["EXAMPLE.org"]).ok().prints(&["forgot the rules about EXAMPLE.org for every session"]);
    assert_eq!(home.kiso(&["network"]).ok().stdout.lines().count(), 3);
    for (args, expected) in [
        (&["allow", "https://example.org"][..], "\"https://example.org\" is not a host"),
        (&["allow", "*.example.org", "--private"], "`private` needs a host by its full name"),
        (&["allow", "example.org:443"], "leave out :443, the port of the scheme"),
        (&["allow", "example.org", "--method", "BREW"], "invalid value 'BREW'"),
        (&["deny", "example.org", "--private"], "unexpected argument '--private'"),
        (&["allow"], "<HOST[:PORT]>"),
    ] {
        home.kiso(&[&["network"], args].concat()).exit(2).says(&[expected]);
    }
}

#[test]
fn a_rule_of_the_file_comes_first_and_is_named() {
    let home = Home::new();
    home.config(
        "[network]\ndefault = \"deny\"\n[[network.rules]]\nhost = \"*.example.org\"\naccess = \"deny\"\nmethods = [\"POST\"]\n\
         [[network.rules]]\nhost = \"b.example.org\"\naccess = \"allow\"\nrole = \"admin\"\nlabel = \"world\"\n",
    );
    home.kiso(&["network"]).ok().prints(&[
        "deny   *.example.org  POST, in config.toml\n",
        "allow  b.example.org  GET, HEAD, OPTIONS; only admin; only after text written by anybody, in config.toml\n",
        "deny   any other host",
    ]);
    let allow = |args: &[&str]| home.kiso(&[&["network", "allow"], args].concat());
    assert_eq!(allow(&["a.example.org"]).ok().stderr, "");
    allow(&["a.example.org", "--method", "GET", "--method", "POST"])
        .ok()
        .says(&["note: a rule in config.toml comes first and refuses a.example.org (POST)"]);
    home.kiso(&["network", "deny", "c.example", "--session", "s"]).ok();
    assert_eq!(allow(&["c.example"]).ok().stderr, "", "other sessions can");
    home.kiso(&["network", "deny", "d.example"]).ok();
    allow(&["d.example", "--session", "s"]).ok().says(&["note: another rule comes first and refuses d.example"]);

    let lines = home.kiso(&["--json", "network", "list", "--session", "s"]).ok().json_lines();
    let host = |host: &str| lines.iter().filter(|line| line["host"] == host).cloned().collect::<Vec<_>>();
    let expected = json!({ "type": "network_rule", "source": "config", "host": "*.example.org", "access": "deny", "methods": ["POST"] });
    assert_eq!(host("*.example.org"), [expected]);
    let of_c: Vec<_> = host("c.example").iter().map(|line| (line["access"].clone(), line["session"].clone())).collect();
    assert_eq!(of_c, [(json!("allow"), json!(null)), (json!("deny"), json!("s"))]);
    assert_eq!(lines.last(), Some(&json!({ "type": "network_default", "access": "deny" })));
    let made = home.kiso(&["--json", "network", "deny", "e.example", "--session", "s"]).json();
    let parts =
        ["type", "source", "host", "access", "session", "by"].map(|name| made[name].as_str().unwrap().to_owned());
    assert_eq!(parts, ["network_rule", "remembered", "e.example", "deny", "s", "command line"]);
    let gone = home.kiso(&["--json", "network", "forget", "e.example", "--session", "s"]).json();
    assert_eq!(gone, json!({ "type": "forgotten", "host": "e.example", "session": "s", "rules": 1 }));
}

#[test]
fn rules_change_beside_a_daemon_and_go_with_their_session() {
    let home = Home::new();
    home.config("model = \"reflex\"\n");
    let served = Served::spawn(home.command(&["--json", "serve"]));
    home.kiso(&["network", "allow", "example.org", "--session", "s"]).ok();
    home.kiso(&["network", "deny", "example.org"]).ok();
    home.kiso(&["network", "list", "--session", "s"]).ok().prints(&["deny   example.org", "session s"]);
    home.kiso(&["session", "delete", "s", "--yes"]).ok();
    let listed = home.kiso(&["network"]).ok().stdout.clone();
    assert!(listed.contains("deny   example.org") && !listed.contains("session s"), "{listed}");
    drop(served);
}

/// Also with the machine's IP address, which the certificate includes.
#[test]
fn a_server_is_trusted_by_the_file_of_certificates_and_by_nothing_less() {
    let home = Home::new();
    let address = tls::serve(|_| text("Rain in Oslo"));
    let port = address.rsplit(':').next().unwrap();
    let urls = [format!("https://127.0.0.1:{port}/"), format!("https://localhost:{port}/")];
    for host in ["127.0.0.1", "localhost"] {
        home.kiso(&["skill", "grant", "fetch", "--host", &format!("{host}:{port}"), "--private"]).ok();
    }
    home.config("model = \"reflex\"\n");
    let fetch = |url: &str| home.kiso(&["skill", "run", "fetch", &format!("url={url}")]);
    home.kiso(&["skill", "grant", "fetch", "--host", &address, "--private"]).ok();
    let refused = fetch(&urls[0]);
    assert!(refused.code != 0 && !refused.stdout.contains("Rain"), "{refused:?}");

    let certificates = std::fs::read(root().join("tests/all/network/tls/ca.pem")).unwrap();
    std::fs::write(home.path().join("ca.pem"), certificates).unwrap();
    home.config("model = \"reflex\"\n[network]\nca_file = \"ca.pem\"\n");
    fetch(&urls[0]).ok().prints(&["Rain in Oslo"]);
    home.kiso(&["skill", "grant", "fetch", "--host", &format!("localhost:{port}"), "--private"]).ok();
    fetch(&urls[1]).ok().prints(&["Rain in Oslo"]);

    std::fs::write(home.path().join("ca.pem"), "none").unwrap();
    let expected = "config.toml:3:1: network.ca_file: ";
    home.kiso(&["serve"]).exit(3).says(&[expected, "it has no certificates in PEM format"]);
    home.kiso(&["doctor", "--offline"]).exit(3).prints(&["FAIL config", expected]);
    home.kiso(&["config", "check"]).exit(3);
}
