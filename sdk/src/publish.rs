use crate::Failure;

/// Publishes a file under `/work` for the people in the conversation and returns its link, "/pub/ID".
pub fn publish(path: &str, title: Option<&str>) -> Result<String, Failure> {
    Ok(crate::bindings::kiso::skill::publish::file(path, title)?)
}
