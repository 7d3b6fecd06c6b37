-- Every row that is shown to people has a digest. `event.prev` is the digest of the event before it in its run, and
-- `run.head` that of its last event. Digests of rows from before are computed when this migration is applied.
ALTER TABLE event ADD COLUMN prev BYTEA NOT NULL DEFAULT '';
ALTER TABLE event ADD COLUMN row_digest BYTEA NOT NULL DEFAULT '';
ALTER TABLE memory ADD COLUMN row_digest BYTEA NOT NULL DEFAULT '';
ALTER TABLE letter ADD COLUMN row_digest BYTEA NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN head BYTEA NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN row_digest BYTEA NOT NULL DEFAULT '';
ALTER TABLE request ADD COLUMN row_digest BYTEA NOT NULL DEFAULT '';
ALTER TABLE step ADD COLUMN row_digest BYTEA NOT NULL DEFAULT '';
ALTER TABLE failure ADD COLUMN row_digest BYTEA NOT NULL DEFAULT '';
ALTER TABLE fix ADD COLUMN row_digest BYTEA NOT NULL DEFAULT '';

-- Programs of an older version would write rows without digests. Without a default their transactions fail.
ALTER TABLE event ALTER COLUMN prev DROP DEFAULT, ALTER COLUMN row_digest DROP DEFAULT;
ALTER TABLE memory ALTER COLUMN row_digest DROP DEFAULT;
ALTER TABLE letter ALTER COLUMN row_digest DROP DEFAULT;

CREATE INDEX run_by_kind ON run (kind, number);
CREATE INDEX run_by_workspace ON run (workspace, number);
CREATE INDEX failure_by_category ON failure (scope, category);
