package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// The names of the command that replaces the stored admin key while the
// manager is not running.
const (
	resetCommand      = "reset-admin-key"
	resetCommandAlias = "reset-admin-password"
)

type resetOptions struct {
	adminKey     string
	adminKeyFile string
	dbPath       string // empty: that of the manager's environment
}

// resetAdminKey runs the command. A given key is never printed; without one a
// key is generated and printed, which is the only way to learn it.
func resetAdminKey(
	ctx context.Context, getenv func(string) string, arguments []string, stdout, stderr io.Writer,
) (err error) {
	options, err := parseResetOptions(arguments, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	given, err := options.key()
	if err != nil {
		return err
	}
	dbPath, err := options.database(getenv)
	if err != nil {
		return err
	}
	unlock, err := lockDatabase(dbPath)
	if err != nil {
		return err
	}
	defer unlock()
	key, err := storeAdminKey(ctx, dbPath, given)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "The admin key was replaced.")
	if given == "" {
		fmt.Fprintln(stdout, "New admin key:", key)
	}
	return nil
}

func parseResetOptions(arguments []string, stderr io.Writer) (resetOptions, error) {
	var options resetOptions
	flags := flag.NewFlagSet(resetCommand, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&options.adminKey, "admin-key", "", "the new admin key (default: one is generated)")
	flags.StringVar(&options.adminKeyFile, "admin-key-file", "", "a file with the new admin key")
	flags.StringVar(&options.dbPath, "db-path", "", "the database (default: that of the environment)")
	if err := flags.Parse(arguments); err != nil {
		return options, err
	}
	if flags.NArg() > 0 {
		return options, fmt.Errorf("%q is not a flag: see %s -help", flags.Arg(0), resetCommand)
	}
	if strings.TrimSpace(options.adminKey) != "" && strings.TrimSpace(options.adminKeyFile) != "" {
		return options, errors.New("give -admin-key or -admin-key-file, not both")
	}
	return options, nil
}

// key returns the given key, empty if there is none.
func (o resetOptions) key() (string, error) {
	if strings.TrimSpace(o.adminKeyFile) == "" {
		return strings.TrimSpace(o.adminKey), nil
	}
	content, err := os.ReadFile(o.adminKeyFile)
	if err != nil {
		return "", fmt.Errorf("read -admin-key-file: %w", err)
	}
	key := strings.TrimSpace(string(content))
	if key == "" {
		return "", fmt.Errorf("-admin-key-file %s is empty", o.adminKeyFile)
	}
	return key, nil
}

// database returns the path of a database that is there. The command makes none.
func (o resetOptions) database(getenv func(string) string) (string, error) {
	path := strings.TrimSpace(o.dbPath)
	if path == "" {
		cfg, err := loadConfig(getenv)
		if err != nil {
			return "", err
		}
		path = cfg.dbPath
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("there is no database: give the right -db-path: %w", err)
	case info.IsDir():
		return "", fmt.Errorf("database %s is a folder: give the right -db-path", path)
	case info.Size() == 0:
		return "", fmt.Errorf("database %s is empty: give the right -db-path", path)
	}
	return path, nil
}

// storeAdminKey replaces the credential in a database of the manager. It
// returns the key, generated if none is given.
func storeAdminKey(ctx context.Context, dbPath, key string) (_ string, err error) {
	if err := requireManagerDatabase(ctx, dbPath); err != nil {
		return "", err
	}
	db, err := openStore(ctx, dbPath)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if key == "" {
		key = generateAdminKey()
	}
	return key, db.saveAdminCredential(ctx, newAdminCredential(key))
}
