//! Removes comment lines from scripts, which are a fifth of the first load.

/// Returns the script with an empty line in place of each pure comment line, so that line numbers in the browser match the
/// source. Nothing else changes. A multi-line string must not contain a line that begins like a comment.
pub(super) fn lean(script: &str) -> String {
    let mut within = false;
    let mut kept = String::with_capacity(script.len());
    for line in script.split_inclusive('\n') {
        let text = line.trim();
        let begins = !within && text.starts_with("/*");
        let comment = within || begins || text.starts_with("//");
        if within || begins {
            within = !text.ends_with("*/");
        }
        kept.push_str(if comment { "\n" } else { line });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::lean;

    #[test]
    fn comments_go_and_lines_stay_where_they_are() {
        let script = "// A head.\nconst a = 1; // stays\n\n/** One line. */\nfunction f() {\n  /**\n   * Several\n   * lines.\n   */\n  \
                      return '// no comment';\n  // why\n}\n";
        let kept = "\nconst a = 1; // stays\n\n\nfunction f() {\n\n\n\n\n  return '// no comment';\n\n}\n";
        assert_eq!(lean(script), kept);
    }
}
