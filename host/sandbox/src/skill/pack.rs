//! Puts a manifest into a wasm file: a custom section at its end, which components and core modules both allow.

/// The name of the section.
pub const SECTION: &str = "kiso.toml";

/// Returns the file with `manifest` as its outermost custom section `kiso.toml`. An older outermost section of that name is
/// replaced; all other bytes stay the same.
pub fn pack(wasm: &[u8], manifest: &str) -> Vec<u8> {
    let mut out = without_section(wasm);
    let mut body = Vec::with_capacity(manifest.len() + 16);
    leb128(&mut body, SECTION.len());
    body.extend_from_slice(SECTION.as_bytes());
    body.extend_from_slice(manifest.as_bytes());
    out.push(0);
    leb128(&mut out, body.len());
    out.extend_from_slice(&body);
    out
}

/// Copies all outermost sections except the custom section `kiso.toml`. A file that is not a sequence of sections is returned
/// unchanged.
fn without_section(wasm: &[u8]) -> Vec<u8> {
    let Some((head, mut rest)) = wasm.split_at_checked(8) else { return wasm.to_vec() };
    let mut out = head.to_vec();
    while let Some((&id, after_id)) = rest.split_first() {
        let Some((size, header)) = read_leb128(after_id) else { return wasm.to_vec() };
        let Some(end) = size.checked_add(1 + header).filter(|end| *end <= rest.len()) else { return wasm.to_vec() };
        let body = &rest[1 + header..end];
        let is_ours =
            id == 0 && read_leb128(body).is_some_and(|(length, n)| body.get(n..n + length) == Some(SECTION.as_bytes()));
        if !is_ours {
            out.extend_from_slice(&rest[..end]);
        }
        rest = &rest[end..];
    }
    out
}

#[expect(clippy::expect_used, reason = "seven bits fit")]
fn leb128(out: &mut Vec<u8>, mut value: usize) {
    loop {
        let byte = u8::try_from(value & 0x7f).expect("seven bits fit");
        value >>= 7;
        if value == 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

/// A value of at most 32 bits and the bytes it took.
fn read_leb128(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0usize;
    for (i, byte) in bytes.iter().take(5).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty component: magic, version, layer.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn packing_twice_keeps_the_last_manifest_only() {
        let long = "x".repeat(300);
        let once = pack(EMPTY, &long);
        assert_eq!(pack(&once, "b"), pack(EMPTY, "b"));
        assert!(once.ends_with(long.as_bytes()));
    }

    #[test]
    fn a_file_that_is_cut_off_is_left_alone() {
        let packed = pack(EMPTY, "manifest");
        let cut = &packed[..packed.len() - 1];
        assert!(pack(cut, "other").starts_with(cut));
    }
}
