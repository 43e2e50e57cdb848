//! `npm` and `npx`: scripts of package.json, and packages from a registry on loopback.

use super::{home, shell};
use crate::web;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;

/// The archive of a package and its SHA-1, as in a registry.
fn archive(manifest: &Value, script: &str) -> (Vec<u8>, String) {
    let dir = tempfile::tempdir().unwrap();
    let package = dir.path().join("package");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(package.join("package.json"), manifest.to_string()).unwrap();
    std::fs::write(package.join("index.js"), script).unwrap();
    let run = |words: &str| Command::new("sh").args(["-c", words]).current_dir(dir.path()).output().unwrap().stdout;
    let bytes = run("tar -czf a.tgz package && cat a.tgz");
    (bytes, String::from_utf8(run("sha1sum a.tgz")).unwrap()[..40].to_owned())
}

/// `tool` needs `leaf` 1 and `other`, which needs `leaf` 2; the digest of `bad` is wrong in the registry.
fn registry() -> String {
    let packages = [
        (json!({ "name": "leaf", "version": "1.0.0" }), "module.exports = 'leaf 1.0.0'"),
        (json!({ "name": "leaf", "version": "1.2.0" }), "module.exports = 'leaf 1.2.0'"),
        (json!({ "name": "leaf", "version": "2.0.0-rc.1" }), "module.exports = 'leaf rc'"),
        (json!({ "name": "leaf", "version": "2.1.0" }), "module.exports = 'leaf 2.1.0'"),
        (
            json!({ "name": "@a/other", "version": "0.3.1", "dependencies": { "leaf": "^2.0.0" } }),
            "module.exports = 'other with ' + require('leaf')",
        ),
        (
            json!({
                "name": "tool", "version": "1.0.0", "bin": "index.js", "hasInstallScript": true,
                "dependencies": { "leaf": "~1.0.0 || 1.x", "@a/other": ">=0.3 <1" }, "optionalDependencies": { "missing": "*" },
            }),
            "module.exports = require('leaf') + ', ' + require('@a/other'); if (require.main === module) console.log('tool', process.argv.slice(2).join(' '))",
        ),
        (json!({ "name": "bad", "version": "1.0.0" }), ""),
    ];
    let mut documents: BTreeMap<String, Value> = BTreeMap::new();
    let mut files = BTreeMap::new();
    for (mut manifest, script) in packages {
        let (bytes, digest) = archive(&manifest, script);
        let [name, version] = ["name", "version"].map(|key| manifest[key].as_str().unwrap().to_owned());
        let path = format!("/files/{}-{version}.tgz", name.replace('/', "-"));
        let digest = if name == "bad" { "0".repeat(40) } else { digest };
        manifest["dist"] = json!({ "tarball": path, "shasum": digest });
        files.insert(path, bytes);
        let document =
            documents.entry(format!("/{}", name.replace('/', "%2f"))).or_insert_with(|| json!({ "name": name }));
        document["dist-tags"]["latest"] = version.as_str().into();
        document["versions"][&version] = manifest;
    }
    web::serve(move |path| {
        let document = documents.get(path).map(|document| document.to_string().into_bytes());
        let (status, body) = match document.or_else(|| files.get(path).cloned()) {
            Some(body) => ("200 OK", body),
            None => ("404 Not Found", b"{}".to_vec()),
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        [head.as_bytes(), &body].concat()
    })
}

#[test]
fn packages_are_installed_with_what_they_need() {
    let home = home(&[("package.json", r#"{"name": "p", "version": "1.2.3"}"#)]);
    shell(&home, "npm i leaf --registry http://denied.test")
        .exit(1)
        .says(&["denied.test may not be reached", "npm error"]);
    let address = registry();
    home.kiso(&["network", "allow", &address, "--private"]).ok();
    shell(&home, &format!("echo registry=http://{address}/ > .npmrc")).ok();
    shell(&home, "npm install tool").ok().prints(&["added 4 packages"]).says(&["npm warn tool@1.0.0 has a script"]);
    shell(&home, "node -p \"require('tool')\"; npx tool a 'b c'; npm ls --all; jq -c .dependencies package.json")
        .ok()
        .prints(&[
            "leaf 1.2.0, other with leaf 2.1.0\ntool a b c\n",
            "├── leaf@1.2.0\n└── tool@1.0.0\n{\"tool\":\"^1.0.0\"}\n",
        ]);
    shell(&home, "npm i leaf@2.0.0-rc.1; npm i -D 'leaf@>=1.0 <1.1'; npm i leaf; jq -c .devDependencies package.json; npm view leaf versions")
        .ok()
        .prints(&["{\"leaf\":\">=1.0 <1.1\"}", "2.0.0-rc.1"]);
    shell(&home, "cat node_modules/leaf/package.json").ok().prints(&["\"1.0.0\""]);
    shell(&home, "rm -r node_modules; npm install && npm uninstall tool && ls node_modules")
        .ok()
        .prints(&["added 4", "removed 1 package"]);
    for (line, says) in [
        ("npm i bad", "integrity checksum failed"),
        ("npm i nowhere", "404 Not Found - GET"),
        ("npm i leaf@9", "No matching version found for leaf@9"),
        ("npm i ../x", "Invalid package name"),
        ("npm i leaf@file:../../x", "packages are installed from a registry only"),
        ("npm ci", "can only install with an existing package-lock.json"),
        ("npm publish", "Unknown command: \"publish\""),
        ("npm config set registry http://x", "only `npm config get NAME`"),
        ("npm pkg set name=x", "only `npm pkg get NAME`"),
        ("npm i -w a leaf", "workspaces are not available here"),
        ("npm --prefix nowhere i", "there is no such directory"),
    ] {
        shell(&home, line).exit(1).says(&[says]);
    }
    let lock = json!({ "lockfileVersion": 3, "packages": {
        "": {}, "node_modules/leaf": { "version": "1.0.0", "resolved": format!("http://{address}/files/leaf-1.0.0.tgz") },
        "node_modules/../../up": { "version": "1.0.0", "resolved": "http://x/" },
    } });
    std::fs::write(home.work("default").join("package-lock.json"), lock.to_string()).unwrap();
    shell(&home, "npm ci").exit(1).says(&["the registry gives no checksum"]);
    let lock = json!({ "packages": { "node_modules/../../up": { "version": "1.0.0" } } });
    std::fs::write(home.work("default").join("package-lock.json"), lock.to_string()).unwrap();
    shell(&home, "npm ci").exit(1).says(&["is not a place of a package"]);
    // The project's own files are not replaced, and a dependency that is missing in the lockfile is installed, too.
    let lock = json!({ "packages": {
        "": {}, "packages/member": { "version": "1.0.0", "resolved": format!("http://{address}/files/leaf-1.0.0.tgz") },
    } });
    std::fs::write(home.work("default").join("package-lock.json"), lock.to_string()).unwrap();
    shell(&home, "mkdir -p packages/member up; echo kept > packages/member/index.js; npm install && cat packages/member/index.js")
        .ok()
        .prints(&["added 1 package\nkept\n"]);
    shell(&home, "ls node_modules; cd up; npm -C .. ls; npm --prefix=.. config get registry; npm install --help")
        .ok()
        .prints(&["leaf\np@1.2.3 /work\n└── leaf@1.0.0\n", &format!("http://{address}/\nUsage: npm")]);
}

#[test]
fn scripts_of_package_json_run() {
    let scripts = json!({ "name": "p", "version": "1.2.3", "scripts": {
        "pretest": "echo before", "test": "node t.js", "posttest": "echo after $npm_lifecycle_event", "fail": "exit 3", "tool": "made hello",
    } });
    let home = home(&[
        ("package.json", &scripts.to_string()),
        ("t.js", "console.log('test', process.argv.slice(2)); process.exitCode = process.argv[2] === 'no' ? 4 : 0"),
        ("node_modules/.bin/made", "echo made of $1"),
    ]);
    shell(&home, "chmod +x node_modules/.bin/made; mkdir -p d; cd d; npm test -- 'a b'").ok().prints(&[
        "\n> p@1.2.3 pretest\n> echo before\n\nbefore\n",
        "> node t.js 'a b'\n\ntest [ 'a b' ]\n",
        "\nafter posttest\n",
    ]);
    shell(&home, "npm test no").exit(4);
    shell(&home, "npm run fail").exit(3);
    shell(&home, "npm run -s tool").ok().prints(&["made of hello"]);
    shell(&home, "npm run nothing").exit(1).says(&["npm error Missing script: \"nothing\""]);
    shell(&home, "npm run nothing --if-present; npm run; npm --version; npm root").ok().prints(&[
        "  fail\n    exit 3\n",
        "10.",
        "/work/node_modules",
    ]);
    shell(&home, "cd /tmp; npm test").exit(1).says(&["Could not read package.json"]);
}
