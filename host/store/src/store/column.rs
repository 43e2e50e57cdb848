//! Enums that are stored as words, spelt by their `strum` derives.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

macro_rules! column {
    ($($name:ident),+ $(,)?) => {$(
        impl super::$name {
            /// Returns the word in the store.
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }

        impl ToSql for super::$name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(self.as_str()))
            }
        }

        impl FromSql for super::$name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_str()?.parse().map_err(|_| FromSqlError::InvalidType)
            }
        }
    )+};
}

column!(
    ApprovalState,
    DueKind,
    JobPriority,
    JobState,
    Mark,
    MessageRole,
    NoticeKind,
    Placement,
    ReceiptState,
    RunStatus,
    SenderStanding,
    TaskState,
    TokenScope,
    WebhookEvent,
);
