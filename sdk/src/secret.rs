use crate::Failure;

/// The value of a secret that the manifest declares and an administrator granted.
///
/// Fails with code "undeclared", "denied" or "not-found". Secrets that are only injected into requests never enter the
/// skill and are not readable here: "denied" means that such a secret is set, "not-found" that it is not.
pub fn secret(name: &str) -> Result<String, Failure> {
    Ok(crate::bindings::kiso::skill::secrets::get(name)?)
}
