-- Of a fleet: the label of machines that the session's runs prefer; null for any.
ALTER TABLE sessions ADD COLUMN runs_on TEXT;
