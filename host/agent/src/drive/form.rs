//! Messages that must be objects of a schema: results of a model without tools reach later tasks only as values that the schema
//! allows. Their label does not change by that.

use serde_json::Value;

use kiso_base::json;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::Violation;
use kiso_plan::report::{TaskError, TaskReport, TaskStatus};
use kiso_sandbox::skill::manifest::validator;

/// Maximum number of reported violations.
const MAX_VIOLATIONS: usize = 3;

/// Parses the object in a report, or reports its violations.
pub(super) fn read(report: TaskReport) -> TaskReport {
    let Some(schema) = report.task.schema.as_ref().filter(|_| report.status == TaskStatus::Done) else { return report };
    match object(&report.text).and_then(|found| fitting(found, schema)) {
        Ok(found) => TaskReport { text: found.to_string(), data: Some(found), ..report },
        Err(why) => {
            let message = format!("the answer of the model is not what its schema says: {why}");
            let error = TaskError { code: ErrorCode::BadForm, retryable: true, ..TaskError::of_host(message) };
            TaskReport { label: report.label, ..TaskReport::failed(report.task, error) }
        }
    }
}

/// Extracts the object from a text, which may be fenced or surrounded by words.
fn object(text: &str) -> Result<Value, String> {
    let from = text.find('{').ok_or("there is no object in it")?;
    let to = text.rfind('}').filter(|to| *to > from).ok_or("its object has no end")?;
    json::parse(&text.as_bytes()[from..=to]).map_err(|error| error.to_string())
}

fn fitting(found: Value, schema: &Value) -> Result<Value, String> {
    let validator = validator(schema).map_err(|error| error.to_string())?;
    let wrong: Vec<String> = validator
        .iter_errors(&found)
        .take(MAX_VIOLATIONS)
        .map(|error| Violation::new(error.instance_path().as_str(), error.masked().to_string()).to_string())
        .collect();
    if wrong.is_empty() { Ok(found) } else { Err(wrong.join("; ")) }
}
