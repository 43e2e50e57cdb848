//! Signatures of skills: Ed25519 in the form of minisign, over a statement that names the skill and has its digests. The
//! statement is never sent along or believed: to check a signature, kiso builds the statement from the files themselves.

use blake2b_simd::Params;
use data_encoding::BASE64;
use minisign_verify::{PublicKey, Signature};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use std::fmt;

/// The extension of a signature's file, after the name of the signed file.
pub const ENDING: &str = "minisig";

/// Bytes of a signature file, and of a key file: four short lines.
pub const MAX_FILE: u64 = 8 << 10;

/// Ed25519 over the BLAKE2b of the message; an older minisign signed the message itself.
const HASHED: &[u8; 2] = b"ED";
const PURE: &[u8; 2] = b"Ed";

/// The marks of a secret key without a password, and of its checksum.
const NO_PASSWORD: [u8; 2] = [0, 0];
const CHECKSUM: &[u8; 2] = b"B2";

/// The kinds of skills that are signed.
pub const COMPONENT: &str = "component";
pub const AGENT_SKILL: &str = "agent-skill";
pub const PACKAGE: &str = "package";

/// The signed statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub name: String,
    pub version: String,
    /// [`COMPONENT`], [`AGENT_SKILL`] or [`PACKAGE`].
    pub kind: &'static str,
    /// SHA-256 of the file; of an Agent Skill, over its files.
    pub digest: String,
    /// SHA-256 of the manifest that applies, if there is one.
    pub manifest: Option<String>,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values must not contain line breaks, so that no two statements have the same text.
        let line = |text: &str| text.replace(|c: char| c.is_control(), " ");
        writeln!(f, "kiso skill statement 1")?;
        writeln!(f, "name {}", line(&self.name))?;
        writeln!(f, "version {}", line(&self.version))?;
        writeln!(f, "kind {}", self.kind)?;
        writeln!(f, "sha256 {}", self.digest)?;
        writeln!(f, "manifest-sha256 {}", self.manifest.as_deref().unwrap_or("none"))
    }
}

/// The reason why a key or a signature is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    #[error("this is not a signature of minisign: {0}")]
    NoSignature(String),
    #[error("this is not a public key of minisign: {0}")]
    NoPublicKey(String),
    #[error("this is not a secret key of minisign: {0}")]
    NoSecretKey(&'static str),
    #[error(
        "the secret key has a password; sign what `kiso skill statement` prints with minisign itself, or make a key without one (`kiso skill trust new`)"
    )]
    Password,
    #[error(
        "the signature by {key} is not one of this skill: its files, its manifest, its name or its version are others"
    )]
    Wrong { key: KeyId },
}

/// The number of a key, as minisign prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyId([u8; 8]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", u64::from_le_bytes(self.0))
    }
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublisherKey {
    pub id: KeyId,
    /// One line of base64, as minisign writes it.
    pub text: String,
}

impl PublisherKey {
    /// Reads a key: the line itself, or a file with a comment above it.
    pub fn read(text: &str) -> Result<Self, SignatureError> {
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        let refuse = |why: &str| SignatureError::NoPublicKey(why.to_owned());
        let bytes = BASE64.decode(line.as_bytes()).map_err(|_| refuse("it is no base64"))?;
        PublicKey::from_base64(line).map_err(|error| refuse(&error.to_string()))?;
        let id = bytes.get(2..10).and_then(|id| id.try_into().ok()).ok_or_else(|| refuse("it is too short"))?;
        Ok(Self { id: KeyId(id), text: line.to_owned() })
    }

    /// Checks that a signature is by this key and of this statement.
    pub fn verify(&self, statement: &Statement, signature: &str) -> Result<(), SignatureError> {
        let read = Signature::decode(signature).map_err(|error| SignatureError::NoSignature(error.to_string()))?;
        let key = PublicKey::from_base64(&self.text).map_err(|error| SignatureError::NoPublicKey(error.to_string()))?;
        // A signature over the text itself is accepted, too: it has only a few hundred bytes.
        let verified = key.verify(statement.to_string().as_bytes(), &read, true);
        verified.map_err(|_| SignatureError::Wrong { key: self.id })
    }
}

/// The key that a signature names. This does not prove who signed it.
pub fn claimed_by(signature: &str) -> Result<KeyId, SignatureError> {
    let refuse = |why: &str| SignatureError::NoSignature(why.to_owned());
    let line = signature.lines().nth(1).ok_or_else(|| refuse("it has no second line"))?;
    let bytes = BASE64.decode(line.trim().as_bytes()).map_err(|_| refuse("its second line is no base64"))?;
    let id = bytes.get(2..10).and_then(|id| id.try_into().ok()).ok_or_else(|| refuse("it is too short"))?;
    Ok(KeyId(id))
}

/// A secret key without a password, and its public one.
pub struct SecretKey {
    id: [u8; 8],
    /// Seed and public key.
    bytes: [u8; 64],
    pair: Ed25519KeyPair,
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

impl SecretKey {
    /// Makes a new key.
    #[expect(clippy::expect_used, reason = "eight bytes are left")]
    pub fn generate() -> Result<Self, SignatureError> {
        let mut random = [0u8; 40];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random)
            .map_err(|_| SignatureError::NoSecretKey("the system has no random numbers"))?;
        let (seed, id) = random.split_at(32);
        let pair = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|_| SignatureError::NoSecretKey("the system refuses the key"))?;
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(seed);
        bytes[32..].copy_from_slice(pair.public_key().as_ref());
        Ok(Self { id: id.try_into().expect("eight bytes are left"), bytes, pair })
    }

    /// Reads a key file of minisign.
    #[expect(clippy::expect_used, reason = "it was measured")]
    pub fn read(text: &str) -> Result<Self, SignatureError> {
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        let bytes = BASE64.decode(line.as_bytes()).map_err(|_| SignatureError::NoSecretKey("it is no base64"))?;
        // Algorithm, derivation of the key from the password, checksum; salt and cost of the derivation; number, key, sum.
        if bytes.len() != 6 + 48 + 8 + 64 + 32 || !bytes.starts_with(PURE) {
            return Err(SignatureError::NoSecretKey("it is of another kind or length"));
        }
        let (head, rest) = bytes.split_at(6);
        if head[2..4] != NO_PASSWORD {
            return Err(SignatureError::Password);
        }
        let rest = &rest[48..];
        let id: [u8; 8] = rest[..8].try_into().expect("it was measured");
        let key: [u8; 64] = rest[8..72].try_into().expect("it was measured");
        let pair = Ed25519KeyPair::from_seed_and_public_key(&key[..32], &key[32..])
            .map_err(|_| SignatureError::NoSecretKey("it does not belong to its public key"))?;
        Ok(Self { id, bytes: key, pair })
    }

    /// The key file. Its owner can sign.
    pub fn to_file(&self) -> String {
        let mut bytes = [PURE.as_slice(), &NO_PASSWORD, CHECKSUM, &[0; 48], &self.id, &self.bytes].concat();
        let summed = [PURE.as_slice(), &self.id, &self.bytes].concat();
        bytes.extend_from_slice(Params::new().hash_length(32).hash(&summed).as_bytes());
        format!("untrusted comment: secret key of kiso without a password\n{}\n", BASE64.encode(&bytes))
    }

    /// The public key.
    pub fn public(&self) -> PublisherKey {
        let bytes = [PURE.as_slice(), &self.id, &self.bytes[32..]].concat();
        PublisherKey { id: KeyId(self.id), text: BASE64.encode(&bytes) }
    }

    /// The file of the public key.
    pub fn public_file(&self) -> String {
        let PublisherKey { id, text } = self.public();
        format!("untrusted comment: minisign public key {id}\n{text}\n")
    }

    /// The signature of a statement, as a file.
    pub fn sign(&self, statement: &Statement) -> String {
        let text = statement.to_string();
        let signature = self.pair.sign(blake2b_simd::blake2b(text.as_bytes()).as_bytes());
        let comment =
            format!("kiso skill {} {}", statement.name, statement.version).replace(|c: char| c.is_control(), " ");
        let whole = self.pair.sign(&[signature.as_ref(), comment.as_bytes()].concat());
        let line = BASE64.encode(&[HASHED.as_slice(), &self.id, signature.as_ref()].concat());
        format!(
            "untrusted comment: signature of what `kiso skill statement` prints\n{line}\ntrusted comment: {comment}\n{}\n",
            BASE64.encode(whole.as_ref())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement() -> Statement {
        Statement {
            name: "greet".to_owned(),
            version: "1.0.0".to_owned(),
            kind: "component",
            digest: "a".repeat(64),
            manifest: None,
        }
    }

    #[test]
    fn a_signature_is_of_one_statement_and_by_one_key() {
        let (key, other) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
        let read = SecretKey::read(&key.to_file()).unwrap();
        assert_eq!(read.public(), key.public());
        let public = PublisherKey::read(&key.public_file()).unwrap();
        let signature = read.sign(&statement());
        assert_eq!(claimed_by(&signature).unwrap(), public.id);
        public.verify(&statement(), &signature).unwrap();
        for changed in [
            Statement { name: "greet2".to_owned(), ..statement() },
            Statement { version: "1.0.1".to_owned(), ..statement() },
            Statement { kind: "agent-skill", ..statement() },
            Statement { digest: "b".repeat(64), ..statement() },
            Statement { manifest: Some("a".repeat(64)), ..statement() },
        ] {
            assert!(matches!(public.verify(&changed, &signature), Err(SignatureError::Wrong { .. })), "{changed}");
        }
        // Another key, also one with the same number.
        assert!(matches!(other.public().verify(&statement(), &signature), Err(SignatureError::Wrong { .. })));
        let claimed =
            SecretKey { id: key.id, bytes: other.bytes, pair: SecretKey::read(&other.to_file()).unwrap().pair };
        let forged = claimed.sign(&statement());
        assert!(matches!(public.verify(&statement(), &forged), Err(SignatureError::Wrong { .. })));
        // The trusted comment is signed as well.
        let commented = signature.replace("trusted comment: kiso skill", "trusted comment: another skill");
        assert!(public.verify(&statement(), &commented).is_err());
    }

    #[test]
    fn what_is_no_key_or_signature_is_said() {
        let key = SecretKey::generate().unwrap();
        assert!(matches!(SecretKey::read(&key.public_file()), Err(SignatureError::NoSecretKey(_))));
        assert!(matches!(PublisherKey::read(&key.to_file()), Err(SignatureError::NoPublicKey(_))));
        assert!(matches!(PublisherKey::read(""), Err(SignatureError::NoPublicKey(_))));
        for text in ["", "one line", "a\nb\nc\nd"] {
            assert!(claimed_by(text).is_err(), "{text:?}");
            assert!(matches!(key.public().verify(&statement(), text), Err(SignatureError::NoSignature(_))), "{text:?}");
        }
        // minisign begins a key with a password in this way.
        let mut bytes = BASE64.decode(key.to_file().lines().nth(1).unwrap().as_bytes()).unwrap();
        bytes[2..4].copy_from_slice(b"Sc");
        assert!(matches!(SecretKey::read(&BASE64.encode(&bytes)), Err(SignatureError::Password)));
    }

    /// Line breaks in the parts do not change the structure of a statement.
    #[test]
    fn no_part_of_a_statement_begins_a_line() {
        let odd = Statement { version: "1\nkind agent-skill".to_owned(), ..statement() };
        assert_eq!(odd.to_string().lines().count(), statement().to_string().lines().count());
    }
}
