-- Of each sum, the calls of the built-in rules, which are not calls of a model.
ALTER TABLE usage_totals ADD COLUMN rule_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_totals ADD COLUMN rule_input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_totals ADD COLUMN rule_output INTEGER NOT NULL DEFAULT 0;
