//! Archives that want to get out.

use super::*;

/// Builds an archive without the checks of the crate, unpacks it into a directory, and returns what holds that
/// directory and the code.
fn unpacked(entries: &[(&str, EntryType, &str, &[u8])], size: Option<u64>) -> (tempfile::TempDir, i32) {
    let base = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    for (name, kind, link, content) in entries {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(size.unwrap_or(content.len() as u64));
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1024]);
    std::fs::write(base.path().join("a.tar"), bytes).unwrap();
    std::fs::create_dir(base.path().join("in")).unwrap();
    let path = |name: &str| base.path().join(name).to_str().unwrap().to_owned();
    let code = main(["tar", "-xf", &path("a.tar"), "-C", &path("in")].map(String::from).to_vec());
    (base, code)
}

const FILE: EntryType = EntryType::Regular;

#[test]
fn names_stay_in_the_directory() {
    let (base, code) =
        unpacked(&[("../evil", FILE, "", b"x"), ("a/../../evil", FILE, "", b"x"), ("b", FILE, "", b"y")], None);
    assert_eq!(code, 2);
    assert!(!base.path().join("evil").exists());
    assert_eq!(std::fs::read(base.path().join("in/b")).unwrap(), b"y");
    let absolute = base.path().join("absolute");
    let (other, code) = unpacked(&[(absolute.to_str().unwrap(), FILE, "", b"x")], None);
    assert_eq!(code, 0);
    assert!(!absolute.exists());
    assert!(other.path().join("in").join(absolute.strip_prefix("/").unwrap()).exists());
}

#[test]
fn links_are_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().to_str().unwrap();
    let (_base, code) = unpacked(&[("l", EntryType::Symlink, target, b""), ("l/evil", FILE, "", b"x")], None);
    assert_eq!(code, 2);
    assert_eq!(outside.path().read_dir().unwrap().count(), 0);

    let file = outside.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    let entries = [("l", EntryType::Symlink, file.to_str().unwrap(), b"".as_slice()), ("l", FILE, "", b"evil")];
    let (base, code) = unpacked(&entries, None);
    assert_eq!((code, std::fs::read(&file).unwrap().as_slice()), (0, b"kept".as_slice()));
    assert_eq!(std::fs::read(base.path().join("in/l")).unwrap(), b"evil");
}

#[test]
fn hard_links_copy_only_from_inside() {
    let entries = [("a", FILE, "", b"x".as_slice()), ("b", EntryType::Link, "a", b"")];
    let (base, code) = unpacked(&entries, None);
    assert_eq!((code, std::fs::read(base.path().join("in/b")).unwrap().as_slice()), (0, b"x".as_slice()));

    let (base, code) = unpacked(&[("b", EntryType::Link, "../a.tar", b"")], None);
    assert!(code == 2 && !base.path().join("in/b").exists());

    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let target = outside.path().to_str().unwrap();
    let entries = [("l", EntryType::Symlink, target, b"".as_slice()), ("b", EntryType::Link, "l/secret", b"")];
    let (base, code) = unpacked(&entries, None);
    assert!(code == 2 && !base.path().join("in/b").exists());
}

#[test]
fn devices_are_refused() {
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo] {
        let (base, code) = unpacked(&[("d", kind, "", b"")], None);
        assert!(code == 2 && base.path().join("in/d").symlink_metadata().is_err());
    }
}

#[test]
fn sizes_that_cannot_be_are_errors() {
    for size in [1 << 63, u64::MAX, (1 << 63) - 1, 1 << 40] {
        let (_base, code) = unpacked(&[("a", FILE, "", b"x")], Some(size));
        assert_eq!(code, 2, "{size}");
        let (_base, code) = unpacked(&[("././@LongLink", EntryType::GNULongName, "", b"x")], Some(size));
        assert_eq!(code, 2, "{size}");
    }
}
