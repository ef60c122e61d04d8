package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/example-org/subrelay-operator/test/scale/bench/report"
)

// continued returns the results that are in a folder already, if they are of the same operator on the same machine, so that a long
// measurement can be made in parts, and else the fresh ones.
func continued(folder string, fresh report.Results) (report.Results, error) {
	samples, err := os.ReadFile(filepath.Join(folder, "bench.json"))
	if errors.Is(err, os.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return fresh, fmt.Errorf("read earlier results: %w", err)
	}
	var earlier report.Results
	if err := json.Unmarshal(samples, &earlier); err != nil {
		return fresh, fmt.Errorf("read earlier results (remove %s to begin anew): %w", folder, err)
	}
	if earlier.Operator != fresh.Operator || earlier.Machine != fresh.Machine {
		return fresh, nil
	}
	return earlier, nil
}

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
