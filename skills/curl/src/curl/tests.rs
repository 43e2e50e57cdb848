//! Whole lines of curl over plain sockets, with what they leave in files and as their exit codes.

use crate::server::Server;
use std::fs;
use std::path::PathBuf;

/// A server, and a directory for what is downloaded.
struct Site {
    url: String,
    dir: PathBuf,
}

impl Site {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("curl-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        Self { url: format!("http://127.0.0.1:{}", Server::start().unwrap().port), dir }
    }

    /// Runs a line, in which `U` is the server and `D` the directory; the body goes into `D/out`.
    fn curl(&self, line: &str) -> (i32, String) {
        let dir = self.dir.to_str().unwrap();
        let _ = fs::remove_file(self.dir.join("out"));
        let words =
            line.split(' ').map(|word| word.replace("U/", &format!("{}/", self.url)).replace("D/", &format!("{dir}/")));
        let words = words.chain(["-s".to_owned(), "-o".to_owned(), format!("{dir}/out")]);
        let code = super::run(&words.collect::<Vec<_>>());
        (code, fs::read_to_string(self.dir.join("out")).unwrap_or_default())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn lines_end_with_curls_codes() {
    let site = Site::new("codes");
    for (line, code, body) in [
        ("U/a.json", 0, "{\"name\": \"kiso\"}\n"),
        ("-L U/hops/3", 0, "{\"name\": \"kiso\"}\n"),
        ("-L --max-redirs 2 U/hops/3", 47, ""),
        ("-f U/404", 22, ""),
        ("--fail-with-body U/404", 22, "nothing here\n"),
        ("--compressed U/gz", 0, "alpha beta\n"),
        ("--compressed U/br", 61, ""),
        ("--max-filesize 5 U/a.json", 63, ""),
        ("U/short", 18, "0123456789"),
        ("U/empty", 52, ""),
        ("-m 0.3 U/slow", 28, "half"),
        ("-L U/other", 1, ""),
        ("http://127.0.0.1:1/", 7, ""),
        ("http://no.denied/", 7, ""),
        ("http://", 3, ""),
        ("--retry 3 U/flaky", 0, "up\n"),
        ("-r -10 U/big", 0, "line 0999\n"),
    ] {
        assert_eq!(site.curl(line), (code, body.to_owned()), "{line}");
    }
}

#[test]
fn requests_carry_what_the_line_says() {
    let site = Site::new("requests");
    fs::write(site.dir.join("up"), "from a file").unwrap();
    for (line, expected) in [
        ("-d a=1 U/echo", "POST /echo\naccept: */*\ncontent-type: application/x-www-form-urlencoded\n3 bytes: a=1\n"),
        ("-T D/up U/put", "PUT /put\naccept: */*\n11 bytes: from a file\n"),
        ("-G -d a=1 U/search?z", "GET /search?z&a=1\naccept: */*\n0 bytes: \n"),
        ("-L -d a=1 U/moved", "GET /echo?x=1\naccept: */*\n0 bytes: \n"),
        ("-L -u u:p -H Cookie:s=1 U/elsewhere", "GET /echo\naccept: */*\n0 bytes: \n"),
        ("-u u:p U/echo", "GET /echo\nauthorization: Basic dTpw\naccept: */*\n0 bytes: \n"),
    ] {
        assert_eq!(site.curl(line), (0, expected.to_owned()), "{line}");
    }
}

#[test]
fn cookies_and_downloads_go_on() {
    let site = Site::new("cookies");
    assert_eq!(site.curl("-c D/jar U/cookie").1, "cookie: none\n");
    assert_eq!(site.curl("-b D/jar U/cookie").1, "cookie: deep=1; sid=abc\n");
    assert_eq!(site.curl("-D D/heads -w %output{D/report}%{http_code} U/a.json").0, 0);
    assert!(
        fs::read_to_string(site.dir.join("heads"))
            .unwrap()
            .starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    );
    assert_eq!(fs::read_to_string(site.dir.join("report")).unwrap(), "200");
    let part = site.dir.join("big");
    fs::write(&part, "line 0000\n").unwrap();
    assert_eq!(site.curl("-C - -o D/big U/big").0, 0);
    let whole = fs::read_to_string(&part).unwrap();
    assert_eq!((whole.len(), whole.matches("line 0000").count()), (10_000, 1));
    fs::write(&part, "line").unwrap();
    assert_eq!(site.curl("-C - -o D/big U/unranged").0, 33);
}
