-- What went wrong, by signature, and what was tried against it. `state` is the fold of `memory`, as JSON; the other columns
-- are what queries ask for.
CREATE TABLE failure (
    scope TEXT NOT NULL,
    signature TEXT NOT NULL,
    category TEXT NOT NULL,
    seen BIGINT NOT NULL,
    last_ms BIGINT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (scope, signature)
) WITHOUT ROWID;

CREATE INDEX failure_by_seen ON failure (scope, seen DESC, signature);

CREATE TABLE fix (
    scope TEXT NOT NULL,
    signature TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (scope, signature, id)
);

-- Everything that the two are made of, in the order in which it came: what runs saw and tried, and what people taught. It
-- names runs that may be forgotten; what was learnt in them is not.
CREATE TABLE memory (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    signature TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    run TEXT,
    body TEXT NOT NULL,
    batch TEXT NOT NULL
);

CREATE INDEX memory_by_signature ON memory (scope, signature, id);

-- What could not be handled. `digest` tells what is the same again.
CREATE TABLE letter (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    status TEXT NOT NULL,
    priority BIGINT NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL,
    batch TEXT NOT NULL
);

CREATE INDEX letter_by_status ON letter (status, priority DESC, number);
CREATE INDEX letter_by_digest ON letter (scope, digest);
