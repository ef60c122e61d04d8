package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// save writes everything that was found so far.
func (b *bench) save() error {
	samples, err := json.MarshalIndent(b.results, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the samples: %w", err)
	}
	return errors.Join(
		b.write("bench.json", func(out io.Writer) error { _, err := out.Write(samples); return err }),
		b.write("performance.md", b.results.WritePage),
		b.write("performance.svg", b.results.WritePlot),
	)
}

func (b *bench) write(name string, content func(io.Writer) error) error {
	file, err := os.Create(filepath.Join(b.out, name))
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return errors.Join(content(file), file.Close())
}

// show prints the goals and where the rest is, if anything was measured.
func (b *bench) show(out io.Writer) error {
	if len(b.results.Runs) == 0 {
		return nil
	}
	if err := b.results.WriteText(out); err != nil {
		return err
	}
	folder, err := filepath.Abs(b.out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "report, plot and samples are in %s\n", folder)
	return err
}
