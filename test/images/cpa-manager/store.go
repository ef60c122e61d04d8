package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the "sqlite" driver
)

const schema = `
CREATE TABLE IF NOT EXISTS admin_credential (
	id   INTEGER PRIMARY KEY CHECK (id = 1),
	salt BLOB NOT NULL,
	hash BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS usage_events (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	event_hash TEXT NOT NULL UNIQUE,
	payload    TEXT NOT NULL
);`

// store is the SQLite database. It holds the providers' API keys in the
// payloads of usage events, as the real program's does.
type store struct {
	db *sql.DB
}

// openDatabase opens a database as it is.
func openDatabase(path string, parameters url.Values) (*sql.DB, error) {
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: parameters.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	db.SetMaxOpenConns(1) // SQLite has one writer
	return db, nil
}

// openStore makes the database and its tables if they are missing.
func openStore(ctx context.Context, path string) (*store, error) {
	db, err := openDatabase(path, url.Values{"_pragma": {"journal_mode(WAL)", "busy_timeout(5000)"}})
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("prepare the database %s: %w", path, err)
	}
	return &store{db: db}, nil
}

// requireManagerDatabase refuses a database without the manager's tables, and changes nothing in it.
func requireManagerDatabase(ctx context.Context, path string) error {
	db, err := openDatabase(path, url.Values{"mode": {"ro"}})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var tables int
	row := db.QueryRowContext(ctx,
		"SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('admin_credential', 'usage_events')")
	if err := row.Scan(&tables); err != nil {
		return fmt.Errorf("read the database %s: %w", path, err)
	}
	if tables != 2 {
		return fmt.Errorf("%s is not a database of cpa-manager: give the right -db-path", path)
	}
	return nil
}

func (s *store) close() error { return s.db.Close() }

func (s *store) adminCredential(ctx context.Context) (adminCredential, bool, error) {
	var credential adminCredential
	row := s.db.QueryRowContext(ctx, "SELECT salt, hash FROM admin_credential WHERE id = 1")
	err := row.Scan(&credential.salt, &credential.hash)
	if errors.Is(err, sql.ErrNoRows) {
		return credential, false, nil
	}
	if err != nil {
		return credential, false, fmt.Errorf("read the admin credential: %w", err)
	}
	return credential, true, nil
}

// saveAdminCredential replaces the stored credential, if there is one.
func (s *store) saveAdminCredential(ctx context.Context, credential adminCredential) error {
	_, err := s.db.ExecContext(ctx, "INSERT OR REPLACE INTO admin_credential (id, salt, hash) VALUES (1, ?, ?)",
		credential.salt, credential.hash)
	if err != nil {
		return fmt.Errorf("save the admin credential: %w", err)
	}
	return nil
}

// addEvents stores events and leaves out those that are there already. It
// returns how many are new.
func (s *store) addEvents(ctx context.Context, events []json.RawMessage) (added int64, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("store usage events: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	for _, event := range events {
		hash := sha256.Sum256(event)
		result, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO usage_events (event_hash, payload) VALUES (?, ?)",
			hex.EncodeToString(hash[:]), string(event))
		if err != nil {
			return 0, fmt.Errorf("store usage events: %w", err)
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return 0, fmt.Errorf("store usage events: %w", err)
		}
		added += rows
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("store usage events: %w", err)
	}
	return added, nil
}

func (s *store) countEvents(ctx context.Context) (int64, error) {
	var count int64
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM usage_events").Scan(&count); err != nil {
		return 0, fmt.Errorf("count usage events: %w", err)
	}
	return count, nil
}
