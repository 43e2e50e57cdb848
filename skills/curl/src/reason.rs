//! Errors of files in the words that commands print.

/// An I/O error in the words of C's library.
pub fn reason(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "No such file or directory".to_owned(),
        ErrorKind::PermissionDenied => "Permission denied".to_owned(),
        ErrorKind::IsADirectory => "Is a directory".to_owned(),
        ErrorKind::NotADirectory => "Not a directory".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "Read-only file system".to_owned(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "No space left on device".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    }
}
