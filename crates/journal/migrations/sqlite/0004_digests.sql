-- Every row that is shown to people has a digest. `event.prev` is the digest of the event before it in its run, and
-- `run.head` that of its last event. Digests of rows from before are computed when this migration is applied.
--
-- Programs of an older version would write rows without digests. The tables that each of their writes needs are made anew
-- with a column that has no default, so that their transactions fail.
ALTER TABLE event RENAME TO event_before;
CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL REFERENCES run (id),
    seq BIGINT NOT NULL,
    v BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    batch TEXT NOT NULL,
    prev BLOB NOT NULL,
    row_digest BLOB NOT NULL,
    UNIQUE (run, seq)
);
INSERT INTO sqlite_sequence (name, seq) SELECT 'event', seq FROM sqlite_sequence WHERE name = 'event_before';
INSERT INTO event SELECT id, run, seq, v, at_ms, type, payload, batch, x'', x'' FROM event_before;
DROP TABLE event_before;

ALTER TABLE memory RENAME TO memory_before;
CREATE TABLE memory (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    signature TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    run TEXT,
    body TEXT NOT NULL,
    batch TEXT NOT NULL,
    row_digest BLOB NOT NULL
);
INSERT INTO sqlite_sequence (name, seq) SELECT 'memory', seq FROM sqlite_sequence WHERE name = 'memory_before';
INSERT INTO memory SELECT id, scope, signature, at_ms, run, body, batch, x'' FROM memory_before;
DROP TABLE memory_before;
CREATE INDEX memory_by_signature ON memory (scope, signature, id);

-- The `digest` of a letter tells what is the same again; `row_digest` covers the row.
ALTER TABLE letter RENAME TO letter_before;
CREATE TABLE letter (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    status TEXT NOT NULL,
    priority BIGINT NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL,
    batch TEXT NOT NULL,
    row_digest BLOB NOT NULL
);
INSERT INTO sqlite_sequence (name, seq) SELECT 'letter', seq FROM sqlite_sequence WHERE name = 'letter_before';
INSERT INTO letter SELECT number, id, scope, status, priority, digest, state, batch, x'' FROM letter_before;
DROP TABLE letter_before;
CREATE INDEX letter_by_status ON letter (status, priority DESC, number);
CREATE INDEX letter_by_digest ON letter (scope, digest);

ALTER TABLE run ADD COLUMN head BLOB NOT NULL DEFAULT x'';
ALTER TABLE run ADD COLUMN row_digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE request ADD COLUMN row_digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE step ADD COLUMN row_digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE failure ADD COLUMN row_digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE fix ADD COLUMN row_digest BLOB NOT NULL DEFAULT x'';

-- Lists are filtered by these columns. SQLite compares a column with its index when it checks a table, so a changed column
-- takes no row out of a list unnoticed.
CREATE INDEX run_by_kind ON run (kind, number);
CREATE INDEX run_by_workspace ON run (workspace, number);
CREATE INDEX failure_by_category ON failure (scope, category);
