-- `state` is the fold of a run's events as JSON; the other columns are what queries ask for.
CREATE TABLE run (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    workspace TEXT NOT NULL,
    labels TEXT NOT NULL,
    priority BIGINT NOT NULL,
    status TEXT NOT NULL,
    seq BIGINT NOT NULL,
    token BIGINT NOT NULL,
    worker TEXT,
    lease_until_ms BIGINT,
    not_before_ms BIGINT NOT NULL,
    state TEXT NOT NULL
);

-- What is finished is in none of these three, so that a long history does not slow down the queue.
CREATE INDEX run_oldest_first ON run (priority DESC, number) WHERE status = 'queued';
CREATE INDEX run_newest_first ON run (priority DESC, number DESC) WHERE status = 'queued';
CREATE INDEX run_under_way ON run (workspace) WHERE status = 'running';
CREATE INDEX run_by_status ON run (status, number);
CREATE INDEX run_by_name ON run (name);

-- Never changes, and may be large: it is apart so that a step does not write it again.
CREATE TABLE request (
    run TEXT NOT NULL PRIMARY KEY REFERENCES run (id),
    body TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE step (
    run TEXT NOT NULL REFERENCES run (id),
    number BIGINT NOT NULL,
    status TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, number)
);

-- `batch` is the same for everything that one transaction wrote.
CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL REFERENCES run (id),
    seq BIGINT NOT NULL,
    v BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    batch TEXT NOT NULL,
    UNIQUE (run, seq)
);
