//! Labels of rows: their authors, and who may read them. Only unusual labels are stored.

use rusqlite::OptionalExtension;
use strum::IntoStaticStr;

use super::{KvOwner, StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;

/// The kind of a row with a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum LabelledRow {
    Message,
    Fact,
    Passage,
    /// The whole core memory.
    Core,
    /// The summary of a session.
    Summary,
    /// An entry of the scratchpad.
    Ref,
    /// The values of a skill in a session.
    Kv,
    Schedule,
}

impl LabelledRow {
    /// The label of a row without a stored label.
    fn usual(self) -> Label {
        match self {
            // A person's own message to kiso has the default label; so has a schedule.
            Self::Message | Self::Schedule => Label::default(),
            _ => Label::session(),
        }
    }
}

impl View<'_> {
    /// Returns the label of a row with a number; the default is that of its kind.
    pub fn label(&self, kind: LabelledRow, id: i64) -> Result<Label, StoreError> {
        self.label_by_key(kind, &id.to_string())
    }

    /// Whether any labels are stored. If not, they need not be looked up.
    pub fn has_labels(&self) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM labels)")?;
        Ok(query.query_row((), |row| row.get(0))?)
    }

    /// Returns the joined label of everything that was said in a session.
    pub fn session_label(&self, session: &SessionName) -> Result<Label, StoreError> {
        let mut label = Label::session();
        if !self.has_labels()? {
            return Ok(label);
        }
        let mut query = self.conn.prepare_cached(
            "SELECT DISTINCT l.label FROM messages m JOIN labels l ON l.kind = 'message' AND l.key = CAST(m.id AS TEXT)
             WHERE m.session = (SELECT id FROM sessions WHERE name = ?1)",
        )?;
        let rows = query.query_map([session.as_str()], |row| row.get::<_, String>(0))?;
        for row in rows {
            label.join(&read(&row?)?);
        }
        Ok(label)
    }

    /// The label of core memory.
    pub fn core_label(&self) -> Result<Label, StoreError> {
        self.label(LabelledRow::Core, 1)
    }

    /// The label of a session's summary.
    pub fn summary_label(&self, session: &SessionName) -> Result<Label, StoreError> {
        match self.session_id(session)? {
            Some(id) => self.label(LabelledRow::Summary, id),
            None => Ok(Label::session()),
        }
    }

    /// Returns the label of a scratchpad entry.
    pub fn ref_label(&self, session: &SessionName, key: &str) -> Result<Label, StoreError> {
        self.label_of_name(LabelledRow::Ref, session, key)
    }

    /// Returns the joined label of a session's scratchpad entries.
    pub fn refs_label(&self, session: &SessionName) -> Result<Label, StoreError> {
        let mut label = Label::session();
        let Some(id) = self.session_id(session)? else { return Ok(label) };
        let mut query = self
            .conn
            .prepare_cached("SELECT label FROM labels WHERE kind = 'ref' AND key >= ?1 || '/' AND key < ?1 || '0'")?;
        let rows = query.query_map([id.to_string()], |row| row.get::<_, String>(0))?;
        for row in rows {
            label.join(&read(&row?)?);
        }
        Ok(label)
    }

    /// Returns the joined label of a skill's values in a session.
    pub fn kv_label(&self, session: &SessionName, owner: &KvOwner) -> Result<Label, StoreError> {
        self.label_of_name(LabelledRow::Kv, session, owner.name())
    }

    fn label_of_name(&self, kind: LabelledRow, session: &SessionName, name: &str) -> Result<Label, StoreError> {
        match self.session_id(session)? {
            Some(id) => self.label_by_key(kind, &format!("{id}/{name}")),
            None => Ok(Label::session()),
        }
    }

    fn label_by_key(&self, kind: LabelledRow, key: &str) -> Result<Label, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT label FROM labels WHERE kind = ?1 AND key = ?2")?;
        let name: &str = kind.into();
        let label: Option<String> = query.query_row((name, key), |row| row.get(0)).optional()?;
        label.map_or_else(|| Ok(kind.usual()), |label| read(&label))
    }
}

fn read(label: &str) -> Result<Label, StoreError> {
    serde_json::from_str(label).map_err(|error| StoreError::corrupt(format!("a label is broken: {error}")))
}

impl Tx<'_> {
    /// Sets the label of a row with a number.
    pub fn set_label(&self, kind: LabelledRow, id: i64, label: &Label) -> Result<(), StoreError> {
        self.set_label_by_key(kind, &id.to_string(), label)
    }

    /// Joins the label of core memory with this one.
    pub fn join_core_label(&self, label: &Label) -> Result<(), StoreError> {
        let joined = self.core_label()?.joined(label);
        self.set_label(LabelledRow::Core, 1, &joined)
    }

    /// Joins the label of a schedule with this one.
    pub fn join_schedule_label(&self, id: i64, label: &Label) -> Result<(), StoreError> {
        let joined = self.label(LabelledRow::Schedule, id)?.joined(label);
        self.set_label(LabelledRow::Schedule, id, &joined)
    }

    pub fn set_summary_label(&self, session: &SessionName, label: &Label) -> Result<(), StoreError> {
        match self.session_id(session)? {
            Some(id) => self.set_label(LabelledRow::Summary, id, label),
            None => Ok(()),
        }
    }

    pub fn set_ref_label(&self, session: &SessionName, key: &str, label: &Label) -> Result<(), StoreError> {
        match self.session_id(session)? {
            Some(id) => self.set_label_by_key(LabelledRow::Ref, &format!("{id}/{key}"), label),
            None => Ok(()),
        }
    }

    /// Joins the label of a skill's values in a session with this one.
    pub fn join_kv_label(&self, session: &SessionName, owner: &KvOwner, label: &Label) -> Result<(), StoreError> {
        let joined = self.kv_label(session, owner)?.joined(label);
        match self.session_id(session)? {
            Some(id) => self.set_label_by_key(LabelledRow::Kv, &format!("{id}/{}", owner.name()), &joined),
            None => Ok(()),
        }
    }

    fn set_label_by_key(&self, kind: LabelledRow, key: &str, label: &Label) -> Result<(), StoreError> {
        let usual = kind.usual();
        let kind: &str = kind.into();
        if usual.clone().joined(label) == usual {
            let mut delete = self.conn.prepare_cached("DELETE FROM labels WHERE kind = ?1 AND key = ?2")?;
            delete.execute((kind, key))?;
            return Ok(());
        }
        let text = kiso_base::json::text(label);
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO labels (kind, key, label) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET label = excluded.label",
        )?;
        upsert.execute((kind, key, text))?;
        Ok(())
    }
}
