-- The file of answers. Answers and changes are append-only.
-- An empty line ends each statement.

CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- quota: most pairs to judge, NULL for no limit; expires_at: when the link ends, NULL for never.
CREATE TABLE annotator (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    origin TEXT NOT NULL CHECK (origin IN ('person', 'model', 'import', 'adjudicator')),
    token_hash BLOB NOT NULL UNIQUE,
    added_at TEXT NOT NULL,
    expires_at TEXT,
    retired_at TEXT,
    quota INTEGER);

-- about: the set of classes that is asked about, NULL in a project of two classes;
-- q: the probability with which it was chosen.
CREATE TABLE pair (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    left TEXT NOT NULL,
    right TEXT NOT NULL,
    about TEXT,
    q REAL NOT NULL DEFAULT 1,
    origin TEXT NOT NULL CHECK (origin IN ('plan', 'check', 'import')));

CREATE INDEX pair_ends ON pair (left, right);

-- others: statements of other kinds as a JSON object, '' for none;
-- orders: similarity and difference by each order in which a model saw the items, as JSON;
-- classes: the classes of the two items, if the annotator named them, as JSON.
CREATE TABLE answer (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    annotator INTEGER NOT NULL REFERENCES annotator,
    pair INTEGER NOT NULL REFERENCES pair,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    similarity REAL CHECK (similarity BETWEEN 0 AND 1),
    difference REAL CHECK (difference BETWEEN -1 AND 1),
    cant_say INTEGER NOT NULL CHECK (cant_say IN (0, 1)),
    note TEXT NOT NULL,
    seconds REAL NOT NULL,
    level TEXT NOT NULL,
    others TEXT NOT NULL,
    orders TEXT NOT NULL,
    classes TEXT NOT NULL,
    at TEXT NOT NULL,
    UNIQUE (annotator, pair, key),
    UNIQUE (annotator, pair, revision));

CREATE INDEX answer_by ON answer (annotator, id);

-- answer: the current one, NULL while the pair is open;
-- touched: the last change that closed or reopened it, NULL for one never answered.
CREATE TABLE assignment (
    annotator INTEGER NOT NULL REFERENCES annotator,
    pair INTEGER NOT NULL REFERENCES pair,
    answer INTEGER REFERENCES answer,
    touched INTEGER REFERENCES change,
    PRIMARY KEY (annotator, pair)) WITHOUT ROWID;

CREATE INDEX assignment_open ON assignment (annotator, touched DESC, pair)
    WHERE answer IS NULL;

CREATE INDEX assignment_done ON assignment (annotator, touched) WHERE answer IS NOT NULL;

CREATE TABLE change (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    annotator INTEGER REFERENCES annotator,
    pair INTEGER REFERENCES pair,
    before INTEGER REFERENCES answer,
    after INTEGER REFERENCES answer,
    detail TEXT NOT NULL DEFAULT '');

CREATE TRIGGER answer_update BEFORE UPDATE ON answer
    BEGIN SELECT RAISE(ABORT, 'answers are kept as they are'); END;

CREATE TRIGGER answer_delete BEFORE DELETE ON answer
    BEGIN SELECT RAISE(ABORT, 'answers are kept as they are'); END;

CREATE TRIGGER change_update BEFORE UPDATE ON change
    BEGIN SELECT RAISE(ABORT, 'changes are kept as they are'); END;

CREATE TRIGGER change_delete BEFORE DELETE ON change
    BEGIN SELECT RAISE(ABORT, 'changes are kept as they are'); END;

PRAGMA application_id = 1885432178;
