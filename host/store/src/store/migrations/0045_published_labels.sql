-- Of a published file: whose words it had when it was let out. What has become worse since is not served.
ALTER TABLE published ADD COLUMN label TEXT CHECK (json_valid(label));
