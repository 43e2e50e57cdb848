//! Tables in reports: the columns and the number of rows, from the data if available, otherwise from the text.

use serde_json::Value;

use kiso_plan::report::TaskReport;

/// The properties of a table that expectations check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportTable {
    pub columns: Vec<String>,
    pub rows: u64,
}

/// Returns the table of a report. Data is a list of objects, or an object with `rows` and, if these are lists, `columns`; text is
/// a Markdown table, or columns separated by `|`, tabs, commas or two spaces.
pub(crate) fn read(report: &TaskReport) -> Option<ReportTable> {
    report.data.as_ref().and_then(of_data).or_else(|| of_text(&report.text))
}

fn of_data(data: &Value) -> Option<ReportTable> {
    let rows = match data {
        Value::Array(rows) => rows,
        Value::Object(object) => object.get("rows")?.as_array()?,
        _ => return None,
    };
    let named = data["columns"].as_array().map(|columns| {
        let name = |c: &Value| c.as_str().or(c["name"].as_str()).unwrap_or_default().to_owned();
        columns.iter().map(name).collect::<Vec<_>>()
    });
    let keys = || rows.first()?.as_object().map(|row| row.keys().cloned().collect());
    // The rows may be truncated; a count beside them is exact.
    let counted = ["row_count", "total", "count"].iter().find_map(|k| data[*k].as_u64());
    let columns = named.or_else(keys)?;
    Some(ReportTable { columns, rows: counted.unwrap_or(rows.len() as u64) })
}

fn of_text(text: &str) -> Option<ReportTable> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let is_rule = |line: &str| {
        !line.is_empty() && line.contains("--") && line.chars().all(|c| "|-:+ ".contains(c)) || line.contains('─')
    };
    // The header is the line above a rule, or the first line with several cells, or a single word above values.
    let header = lines
        .windows(2)
        .position(|pair| !pair[0].trim().is_empty() && is_rule(pair[1]))
        .or_else(|| lines.iter().position(|line| cells(line).len() > 1))
        .or_else(|| lines.iter().position(|line| !line.trim().is_empty()))?;
    let columns = cells(lines[header]);
    let body = lines[header + 1..].iter().skip_while(|line| is_rule(line)).take_while(|line| !line.trim().is_empty());
    let rows = body.filter(|line| !is_rule(line)).count() as u64;
    (!columns.is_empty()).then_some(ReportTable { columns, rows })
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_matches(['|', '│']);
    let parts: Vec<&str> = match line {
        _ if line.contains(['|', '│']) => line.split(['|', '│']).collect(),
        _ if line.contains('\t') => line.split('\t').collect(),
        _ if line.contains("  ") => line.split("  ").collect(),
        _ => line.split(',').collect(),
    };
    parts.into_iter().map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_plan::plan::{Task, TaskKind};
    use kiso_plan::report::TaskStatus;
    use serde_json::json;

    fn report(text: &str, data: Option<Value>) -> TaskReport {
        TaskReport { data, ..TaskReport::new(Task::new(TaskKind::Msg, ""), TaskStatus::Done, text) }
    }

    #[test]
    fn reads() {
        let wanted = Some(ReportTable { columns: vec!["month".to_owned(), "rain".to_owned()], rows: 2 });
        for text in [
            "| month | rain |\n|---|---:|\n| 1 | 2 |\n| 3 | 4 |",
            "month  rain\n1      2\n3      4",
            "2 rows\n\nmonth    rain\n-----  ------\n1  2\n3  4\n\nsaved",
            "month,rain\n1,2\n3,4\n",
        ] {
            assert_eq!(read(&report(text, None)), wanted, "{text}");
        }
        for data in [
            json!([{"month": 1, "rain": 2}, {"month": 3, "rain": 4}]),
            json!({"columns": ["month", "rain"], "rows": [[1, 2], [3, 4]]}),
            json!({"columns": [{"name": "month"}, {"name": "rain"}], "rows": [[1, 2]], "row_count": 2}),
        ] {
            assert_eq!(read(&report("", Some(data))), wanted);
        }
    }
}
