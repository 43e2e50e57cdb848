//! `openssl`, of which there are digests, base64 and random bytes.

use std::io::{self, Read, Write};

use uucore::sum::{
    Blake2b, Digest, Md5, Sha1, Sha3_224, Sha3_256, Sha3_384, Sha3_512, Sha224, Sha256, Sha384, Sha512, Sm3,
};

use crate::cli::{self, Error};

const USAGE: &str = "Usage: openssl dgst [-DIGEST] [-r | -c | -binary] [-hmac KEY] [-out FILE] [FILE]...
       openssl DIGEST [OPTION]... [FILE]...
       openssl rand [-hex | -base64] COUNT
       openssl version
Print digests of files. DIGEST: md5, sha1, sha224, sha256 (as usual), sha384, sha512, sha3-224, sha3-256, sha3-384, sha3-512,
blake2b512, sm3.

  -r  -c  -binary   as sha256sum prints it, with colons, as bytes
  -hmac KEY         the code of a message with this key
There are no keys, certificates, ciphers and connections here. `base64` encodes and decodes.
";

/// A digest: its name, what it prints in front, the bytes of its blocks.
struct Algorithm {
    name: &'static str,
    label: &'static str,
    block: usize,
    make: fn() -> Box<dyn Digest>,
}

const fn algorithm(name: &'static str, label: &'static str, block: usize, make: fn() -> Box<dyn Digest>) -> Algorithm {
    Algorithm { name, label, block, make }
}

static ALGORITHMS: &[Algorithm] = &[
    algorithm("md5", "MD5", 64, || Box::new(Md5::default())),
    algorithm("sha1", "SHA1", 64, || Box::new(Sha1::default())),
    algorithm("sha224", "SHA2-224", 64, || Box::new(Sha224::default())),
    algorithm("sha256", "SHA2-256", 64, || Box::new(Sha256::default())),
    algorithm("sha384", "SHA2-384", 128, || Box::new(Sha384::default())),
    algorithm("sha512", "SHA2-512", 128, || Box::new(Sha512::default())),
    algorithm("sha3-224", "SHA3-224", 144, || Box::new(Sha3_224::default())),
    algorithm("sha3-256", "SHA3-256", 136, || Box::new(Sha3_256::default())),
    algorithm("sha3-384", "SHA3-384", 104, || Box::new(Sha3_384::default())),
    algorithm("sha3-512", "SHA3-512", 72, || Box::new(Sha3_512::default())),
    algorithm("blake2b512", "BLAKE2B-512", 128, || Box::new(Blake2b::default())),
    algorithm("sm3", "SM3", 64, || Box::new(Sm3::default())),
];

/// Random bytes at once.
const MOST_RANDOM: u64 = 64 << 20;

fn find(name: &str) -> Option<&'static Algorithm> {
    let name = name.to_ascii_lowercase().replace("sha2-", "sha");
    let name = if name == "sha" { "sha1" } else { &name };
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let Some(command) = parser.raw_args()?.next() else {
            return Err("a command is needed (see openssl --help)".into());
        };
        let command = command.to_string_lossy().into_owned();
        match command.as_str() {
            "dgst" => digests(parser, None),
            "rand" => random(parser),
            "version" => {
                println!("openssl (kiso) {}", env!("CARGO_PKG_VERSION"));
                Ok(0)
            }
            "help" => {
                print!("{USAGE}");
                Ok(0)
            }
            "base64" | "enc" => Err(format!("{command} is not here; use `base64` and `base64 -d`").into()),
            name => match find(name) {
                Some(algorithm) => digests(parser, Some(algorithm)),
                None => Err(format!("{name} is not here, only digests (dgst) and rand; see openssl --help").into()),
            },
        }
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Labelled,
    Colons,
    Reversed,
    Binary,
}

fn digests(mut parser: lexopt::Parser, named: Option<&'static Algorithm>) -> cli::Outcome {
    let mut algorithm = named;
    let (mut form, mut key, mut output) = (Form::Labelled, None, None);
    let mut files = Vec::new();
    let mut words = parser.raw_args()?;
    // Its long options have one dash.
    while let Some(word) = words.next() {
        let word = word.to_string_lossy().into_owned();
        let mut value = || {
            let value = words.next().ok_or_else(|| Error::from(format!("{word} needs a value")));
            value.map(|value| value.to_string_lossy().into_owned())
        };
        match word.strip_prefix('-').map(|option| option.trim_start_matches('-')) {
            None | Some("") => files.push(word),
            Some("r") => form = Form::Reversed,
            Some("c") => form = Form::Colons,
            Some("binary") => form = Form::Binary,
            Some("hex" | "d") => {}
            Some("hmac") => key = Some(value()?),
            Some("out") => output = Some(value()?),
            Some("list") => {
                ALGORITHMS.iter().for_each(|algorithm| println!("-{}", algorithm.name));
                return Ok(0);
            }
            Some("sign" | "verify" | "prverify" | "signature" | "mac" | "macopt" | "engine" | "provider") => {
                return Err(format!("{word} is not here: there are no keys but that of -hmac").into());
            }
            Some(option) => match find(option) {
                Some(found) => algorithm = Some(found),
                None => return Err(format!("unknown option or digest: {option} (see openssl --help)").into()),
            },
        }
    }
    let usual = algorithm.is_none();
    let algorithm = algorithm.or_else(|| find("sha256")).ok_or("there is no digest")?;
    let mut out: Box<dyn Write> = match &output {
        Some(path) => Box::new(std::fs::File::create(path).map_err(cli::with_path(path))?),
        None => Box::new(io::stdout().lock()),
    };
    let mut code = 0;
    let implied = files.is_empty();
    for file in cli::files_or_stdin(files) {
        let digest = match cli::open(&file).and_then(|input| digest(algorithm, key.as_deref(), input)) {
            Ok(digest) => digest,
            Err(e) => {
                cli::complain("openssl", &file, &e);
                code = 1;
                continue;
            }
        };
        let name = if implied { "stdin" } else { &file };
        let separator = if form == Form::Colons { ":" } else { "" };
        let hex = hexadecimal(&digest, separator);
        let label = if usual { "SHA256" } else { algorithm.label };
        let keyed = if key.is_some() { "HMAC-" } else { "" };
        match form {
            Form::Binary => out.write_all(&digest)?,
            Form::Reversed => writeln!(out, "{hex} *{name}")?,
            Form::Labelled | Form::Colons => writeln!(out, "{keyed}{label}({name})= {hex}")?,
        }
    }
    out.flush()?;
    Ok(code)
}

fn digest(algorithm: &Algorithm, key: Option<&str>, input: impl Read) -> io::Result<Vec<u8>> {
    let Some(key) = key else { return hash((algorithm.make)(), &[], input) };
    // RFC 2104.
    let mut block = match key.len() > algorithm.block {
        true => hash((algorithm.make)(), &[], key.as_bytes())?,
        false => key.as_bytes().to_vec(),
    };
    block.resize(algorithm.block, 0);
    let padded = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = hash((algorithm.make)(), &padded(0x36), input)?;
    hash((algorithm.make)(), &padded(0x5c), inner.as_slice())
}

fn hash(mut digest: Box<dyn Digest>, before: &[u8], mut input: impl Read) -> io::Result<Vec<u8>> {
    digest.hash_update(before);
    let mut piece = vec![0; 64 << 10];
    loop {
        let count = input.read(&mut piece)?;
        if count == 0 {
            break;
        }
        digest.hash_update(&piece[..count]);
    }
    let mut out = vec![0; digest.output_bytes()];
    digest.hash_finalize(&mut out);
    Ok(out)
}

/// Two digits for each byte.
fn hexadecimal(bytes: &[u8], separator: &str) -> String {
    let mut text = String::with_capacity(bytes.len() * (2 + separator.len()));
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 {
            text.push_str(separator);
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn random(mut parser: lexopt::Parser) -> cli::Outcome {
    let (mut hex, mut base64, mut count) = (false, false, None);
    for word in parser.raw_args()? {
        let word = word.to_string_lossy().into_owned();
        match word.as_str() {
            "-hex" => hex = true,
            "-base64" => base64 = true,
            number => count = Some(number.parse::<u64>().map_err(|_| format!("invalid count '{number}'"))?),
        }
    }
    let count = count.ok_or("rand needs a count of bytes")?;
    if count > MOST_RANDOM {
        return Err(format!("rand makes at most {MOST_RANDOM} bytes at once").into());
    }
    let mut bytes = Vec::new();
    std::fs::File::open("/dev/urandom")?.take(count).read_to_end(&mut bytes)?;
    let mut out = io::stdout().lock();
    if hex {
        writeln!(out, "{}", hexadecimal(&bytes, ""))?;
    } else if base64 {
        return Err("rand -base64 is not here; use `openssl rand COUNT | base64`".into());
    } else {
        out.write_all(&bytes)?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(name: &str, key: Option<&str>, text: &str) -> String {
        let digest = digest(find(name).unwrap(), key, text.as_bytes()).unwrap();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_are_those_of_the_standards() {
        assert_eq!(hex("md5", None, ""), "d41d8cd98f00b204e9800998ecf8427e");
        assert!(hex("sha256", None, "abc").starts_with("ba7816bf8f01cfea"));
        assert!(hex("sha3-256", None, "").starts_with("a7ffc6f8bf1ed766"));
        assert!(hex("sha512", None, "abc").starts_with("ddaf35a193617aba"));
        for algorithm in ALGORITHMS {
            assert_eq!(hex(algorithm.name, None, "x").len() % 4, 0, "{}", algorithm.name);
        }
    }

    /// The test cases 2 and 6 of RFC 4231.
    #[test]
    fn codes_of_messages() {
        let code = hex("sha256", Some("Jefe"), "what do ya want for nothing?");
        assert_eq!(code, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let code = hex("sha512", Some("Jefe"), "what do ya want for nothing?");
        assert!(code.starts_with("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"), "{code}");
        let long = "k".repeat(200);
        assert_ne!(hex("sha256", Some(&long), "x"), hex("sha256", Some(&long[..199]), "x"));
    }
}
