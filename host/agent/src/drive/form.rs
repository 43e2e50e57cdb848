//! Messages that are to be objects of a form: what a model without tools has read comes to later tasks as values that can only be what their
//! schema lets them be. Whose words they are does not change by that.

use serde_json::Value;

use kiso_base::json;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::Violation;
use kiso_plan::report::{TaskError, TaskReport, TaskStatus};
use kiso_sandbox::skill::manifest::validator;

/// Of what is wrong with an answer, this much is told.
const MAX_VIOLATIONS: usize = 3;

/// Makes the object of a report that has written one, or says what is wrong with it.
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

/// The object in a text, which may be fenced or have words around it.
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
