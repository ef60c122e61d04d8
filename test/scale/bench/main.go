// Command bench measures what the operator costs next to plain writes of the same objects and to peers, judges that by the
// project's goals, and writes a report. It starts control planes of its own and takes them down again. Run it from its
// module's folder, test/scale.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/example-org/subrelay-operator/test/scale/internal/site"
)

// measurements can be asked for one by one. All but limit, with its variants, and peers are of the operator, whose pools are made in
// any case.
var measurements = []string{"limit", "variants", "create", "peers", "steady", "restart", "heal", "change", "delete"}

// mostForPeers is the most pools that peers and variants of plain writes are measured with: some take minutes for more.
const mostForPeers = 200

type options struct {
	pools   []int
	rounds  int
	only    []string
	peers   bool
	quiet   time.Duration
	out     string
	profile string
}

func main() {
	opts, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = site.WithFiles(func() error { return run(opts) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	opts := options{}
	var pools, only string
	var quick bool
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&pools, "pools", "100,200,1000", "Numbers of pools to measure with, separated by commas.")
	flags.IntVar(&opts.rounds, "rounds", 3, "How often to measure with each number of pools.")
	flags.StringVar(&only, "only", strings.Join(measurements, ","), "What to measure, separated by commas.")
	flags.BoolVar(&opts.peers, "peers", false, fmt.Sprintf("Also measure kro, Helm and kubectl, with up to %d pools.", mostForPeers))
	flags.DurationVar(&opts.quiet, "quiet", 2*time.Minute, "How long to watch that the operator does nothing.")
	flags.StringVar(&opts.out, "out", "../../bin/bench",
		"Folder for the report, the plot and the samples. What is there of the same operator and machine is added to.")
	flags.StringVar(&opts.profile, "profile", "", "Folder for profiles of the operator: CPU time while it makes pools, memory after that.")
	flags.BoolVar(&quick, "quick", false, "Try it: one round with 50 pools and a short quiet window. Overrides those flags.")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
	}
	if quick {
		pools, opts.rounds, opts.quiet = "50", 1, 15*time.Second
	}
	opts.only = strings.Split(only, ",")
	for text := range strings.SplitSeq(pools, ",") {
		number, err := strconv.Atoi(text)
		if err != nil {
			return opts, fmt.Errorf("--pools is %q: it must be numbers separated by commas, such as 100,200", pools)
		}
		opts.pools = append(opts.pools, number)
	}
	return opts, opts.validate()
}

func (o options) validate() error {
	var errs []error
	// The repairs need a pool each that nothing else concerns at the time.
	const fewest, most = 20, 10_000
	for _, pools := range o.pools {
		if pools < fewest || pools > most {
			errs = append(errs, fmt.Errorf("--pools has %d: it must be from %d to %d", pools, fewest, most))
		}
	}
	if o.rounds < 1 {
		errs = append(errs, errors.New("--rounds must be 1 or more"))
	}
	if o.quiet <= 0 {
		errs = append(errs, errors.New("--quiet must be more than 0"))
	}
	for _, name := range o.only {
		if !slices.Contains(measurements, name) {
			errs = append(errs, fmt.Errorf("--only has %q: there are %s", name, strings.Join(measurements, ", ")))
		}
	}
	return errors.Join(errs...)
}

// wants tells whether any of the measurements was asked for.
func (o options) wants(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.only, name) })
}

func run(opts options) error {
	if err := site.CheckEnvironment(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	bench, err := newBench(ctx, opts)
	if err != nil {
		return err
	}
	err = bench.run(ctx)
	if ctx.Err() != nil {
		err = errors.Join(errors.New("interrupted"), err)
	}
	return errors.Join(err, bench.show(os.Stdout))
}
