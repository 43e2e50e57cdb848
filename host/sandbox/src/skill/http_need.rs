//! Which hosts a manifest asks for.

use serde::{Deserialize, Serialize};

/// One host that a skill wants to reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpNeed {
    /// "api.example.org", "*.example.org" or "*", with an optional ":port".
    pub host: String,
    /// Methods in upper case; GET when not given.
    #[serde(default = "reading")]
    pub methods: Vec<String>,
    /// A secret that the host puts into a header of each request; it never enters the guest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inject: Option<Inject>,
}

/// Which secret goes into which header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    pub header: String,
    pub secret: String,
}

/// The methods of a need or a grant that names none.
pub(crate) fn reading() -> Vec<String> {
    vec!["GET".to_owned()]
}
