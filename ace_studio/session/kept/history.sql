CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    date TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    title TEXT NOT NULL,
    status TEXT NOT NULL,
    target TEXT NOT NULL,
    precision TEXT NOT NULL,
    latency_ms REAL,
    speedup REAL,
    metric REAL,
    metric_drop REAL,
    size_bytes INTEGER,
    output TEXT NOT NULL,
    tags TEXT NOT NULL DEFAULT '[]',
    recipe_toml TEXT NOT NULL,
    result_json BLOB NOT NULL,
    folder TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',
    float_speedup REAL
);
CREATE INDEX IF NOT EXISTS run_by_fingerprint ON run (fingerprint);
