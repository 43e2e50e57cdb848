//! Converts a task's report to a part of a reply.

use serde_json::Value;

use crate::block::Block;
use crate::plan::TaskKind;
use crate::report::{TaskReport, TaskStatus};

/// Maximum rows of a table in a reply; the file or the trace has all of them.
const MAX_ROWS: usize = 200;

/// Maximum bytes of a program's output in a reply.
const MAX_TEXT: usize = 16_000;

impl Block {
    /// Converts the report of one task.
    pub fn from_report(report: &TaskReport) -> Block {
        if report.task.kind == TaskKind::Exec {
            return Block::Command {
                command: report.task.detail.clone(),
                output: short(&report.text),
                stderr: short(&report.stderr),
                exit_code: report.exit_code.filter(|_| report.error.is_none()),
                error: match &report.error {
                    Some(error) => Some(error.message.clone()),
                    None if report.status == TaskStatus::Interrupted => report.trouble(),
                    None => None,
                },
            };
        }
        if let Some(trouble) = report.trouble() {
            return Block::Text { text: format!("{} failed: {trouble}", report.task.label()) };
        }
        report.data.as_ref().and_then(table).unwrap_or_else(|| written(&report.text))
    }
}

/// Returns the table in a skill's data, if it contains one.
fn table(data: &Value) -> Option<Block> {
    let names = data.get("columns")?.as_array()?;
    let columns: Vec<String> = names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let all = data.get("rows")?.as_array()?;
    let rows = all.iter().take(MAX_ROWS).map(|row| row.as_array().filter(|row| row.len() == columns.len()).cloned());
    let rows: Vec<Vec<Value>> = rows.collect::<Option<_>>()?;
    let total = data.get("total").and_then(Value::as_u64).unwrap_or(all.len() as u64);
    (!columns.is_empty()).then_some(Block::Table { columns, rows, total })
}

/// Returns a skill's text. Columns aligned with spaces would be lost in Markdown.
fn written(text: &str) -> Block {
    let text = text.trim_matches('\n').trim_end();
    let aligned = |line: &str| line.trim().contains("   ") || line.trim_end().contains('\t');
    if !text.contains("```") && text.lines().filter(|line| aligned(line)).count() > 1 {
        return Block::Output { text: short(text) };
    }
    Block::Text { text: text.to_owned() }
}

/// Returns the beginning and the end of a long text.
fn short(text: &str) -> String {
    let text = text.trim_matches('\n').trim_end();
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(MAX_TEXT / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_TEXT / 2);
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Task;
    use serde_json::json;

    fn report(task: Value, text: &str) -> TaskReport {
        let task: Task = serde_json::from_value(task).unwrap();
        TaskReport::new(task, TaskStatus::Done, text)
    }

    #[test]
    fn a_command_stands_with_its_output_and_its_exit_code() {
        let mut ended = report(json!({"type": "exec", "detail": "df -h"}), "");
        (ended.status, ended.exit_code, ended.stderr) =
            (TaskStatus::Failed, Some(127), "sh: df: not found\n".to_owned());
        let Block::Command { command, stderr, exit_code, error, .. } = Block::from_report(&ended) else {
            panic!("{ended:?}")
        };
        assert_eq!(
            (command.as_str(), stderr.as_str(), exit_code, error),
            ("df -h", "sh: df: not found", Some(127), None)
        );
        let long = "ü".repeat(MAX_TEXT);
        let Block::Command { output, .. } = Block::from_report(&report(json!({"type": "exec", "detail": "x"}), &long))
        else {
            panic!("a command")
        };
        assert!(output.len() < MAX_TEXT + 100 && output.contains("bytes left out"), "{}", output.len());
    }

    #[test]
    fn a_table_is_known_by_its_data_and_no_other_text_is_one() {
        let mut found =
            report(json!({"type": "skill", "skill": "data", "args": {}, "detail": "d"}), "a  b\n-  -\n1  x\n");
        found.data = Some(json!({"columns": ["a", "b"], "rows": [[1, "x"]], "total": 7}));
        let table = Block::from_report(&found);
        assert_eq!(
            table,
            Block::Table { columns: vec!["a".into(), "b".into()], rows: vec![vec![json!(1), json!("x")]], total: 7 }
        );
        // A row with the wrong length makes it invalid.
        found.data = Some(json!({"columns": ["a", "b"], "rows": [[1]]}));
        assert!(matches!(Block::from_report(&found), Block::Text { .. }));
        let aligned =
            report(json!({"type": "skill", "skill": "s", "args": {}, "detail": "d"}), "name     size\nrain.csv   68\n");
        assert!(matches!(Block::from_report(&aligned), Block::Output { .. }));
        let fenced =
            report(json!({"type": "skill", "skill": "s", "args": {}, "detail": "d"}), "```chart\n{    }\n{    }\n```");
        assert!(matches!(Block::from_report(&fenced), Block::Text { .. }));
    }
}
