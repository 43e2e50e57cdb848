//! The tasks of a run: one row each, with its result.

use rusqlite::types::{FromSqlError, ValueRef};
use schemars::JsonSchema;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

use super::{RunId, StoreError, Tx, View};
use kiso_plan::plan::TaskKind;

/// A task of a run, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Assigned by the run, and unique in it.
    pub id: u32,
    /// Its position in the plan.
    pub position: u32,
    pub kind: TaskKind,
    /// A short name, such as `skill chart`.
    pub label: String,
    /// The task as JSON; sealed until a model has searched the message for secrets.
    pub task: String,
    pub status: TaskState,
    /// Its output, if it ran.
    pub output: Option<String>,
    /// Why it failed, in one line.
    pub error: Option<String>,
    pub started_ms: Option<i64>,
    /// Only if the status is one of the four that end a task.
    pub ended_ms: Option<i64>,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TaskState {
    #[serde(rename = "waiting")]
    Planned,
    Running,
    Done,
    Failed,
    /// The daemon stopped while it ran, so it may or may not have taken effect.
    Interrupted,
    /// A new plan does not contain it.
    Dropped,
}

impl TaskState {
    /// Parses the name of a state.
    pub fn named(name: &str) -> Option<TaskState> {
        name.parse().ok()
    }
}

impl View<'_> {
    /// Returns all tasks of a run in the order of the plan, including dropped ones.
    pub fn tasks_of(&self, run: &RunId) -> Result<Vec<TaskRow>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id, position, kind, label, task, status, output, error, started_ms, ended_ms FROM tasks
             WHERE run = ?1 ORDER BY id",
        )?;
        let rows = query.query_map([self.num(run)?], |row| {
            Ok(TaskRow {
                id: row.get(0)?,
                position: row.get(1)?,
                kind: kind(row.get_ref(2)?)?,
                label: row.get(3)?,
                task: row.get(4)?,
                status: row.get(5)?,
                output: row.get(6)?,
                error: row.get(7)?,
                started_ms: row.get(8)?,
                ended_ms: row.get(9)?,
            })
        })?;
        let mut tasks = rows.collect::<Result<Vec<TaskRow>, _>>()?;
        // There are few, and an index of their order would be written with every change.
        tasks.sort_by_key(|task| task.position);
        Ok(tasks)
    }
}

impl Tx<'_> {
    /// Stores the rows, replacing those with the same ids; all other rows of the run stay.
    pub fn put_tasks(&self, run: &RunId, rows: &[TaskRow]) -> Result<(), StoreError> {
        let run = self.num(run)?;
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO tasks (run, id, position, kind, label, task, status, output, error, started_ms, ended_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (run, id) DO UPDATE SET position = excluded.position, kind = excluded.kind,
                 label = excluded.label, task = excluded.task, status = excluded.status, output = excluded.output,
                 error = excluded.error, started_ms = excluded.started_ms, ended_ms = excluded.ended_ms",
        )?;
        for row in rows {
            let TaskRow { id, position, kind, label, task, status, output, error, started_ms, ended_ms } = row;
            upsert.execute((
                run,
                id,
                position,
                kind.name(),
                label,
                task,
                status,
                output,
                error,
                started_ms,
                ended_ms,
            ))?;
        }
        Ok(())
    }

    /// Ends the tasks of a run that will not continue: a running one is interrupted, waiting ones are dropped.
    pub fn leave_tasks(&self, run: &RunId, at_ms: i64) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE tasks SET status = CASE status WHEN 'running' THEN 'interrupted' ELSE 'dropped' END, ended_ms = ?2
             WHERE run = ?1 AND status IN ('planned', 'running')",
        )?;
        update.execute((self.num(run)?, at_ms))?;
        Ok(())
    }
}

fn kind(value: ValueRef<'_>) -> Result<TaskKind, FromSqlError> {
    let name = value.as_str()?;
    let kinds = [TaskKind::Exec, TaskKind::Skill, TaskKind::Msg, TaskKind::Act];
    kinds.into_iter().find(|kind| kind.name() == name).ok_or(FromSqlError::InvalidType)
}
