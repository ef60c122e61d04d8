package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// Sizes are the numbers of pools that were measured, least first.
func (r Results) Sizes() []int {
	var sizes []int
	for _, run := range r.Runs {
		sizes = append(sizes, run.Pools)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// Largest is the largest number of pools that was measured.
func (r Results) Largest() int { return slices.Max(r.Sizes()) }

// Rounds is how often the largest number of pools was measured.
func (r Results) Rounds() int { return len(r.at(r.Largest())) }

func (r Results) at(pools int) []Run {
	return slices.DeleteFunc(slices.Clone(r.Runs), func(run Run) bool { return run.Pools != pools })
}

// collect returns a value of each run that has it.
func collect(runs []Run, value func(Run) (float64, bool)) []float64 {
	var values []float64
	for _, run := range runs {
		if found, measured := value(run); measured {
			values = append(values, found)
		}
	}
	return values
}

// Goals compares the operator with its goals, as far as there is something to compare.
func (r Results) Goals() Table {
	sizes := r.Sizes()
	table := Table{Head: []string{"figure"}}
	for _, pools := range sizes {
		table.Head = append(table.Head, "N = "+number(float64(pools), 0))
	}
	table.Head = append(table.Head, "must", "aim", "verdict")
	for _, figure := range figures {
		if len(collect(r.Runs, figure.value)) == 0 {
			continue
		}
		row := []string{figure.name}
		worst := unjudged
		for _, pools := range sizes {
			values := collect(r.at(pools), figure.value)
			row = append(row, spread(values, figure.digits))
			worst = min(worst, figure.judge(values, pools, r.Objects))
		}
		largest := max(sizes[len(sizes)-1], figure.from)
		table.add(append(row, figure.goal(figure.must, largest, r.Objects), figure.goal(figure.aim, largest, r.Objects), worst.String())...)
	}
	return table
}

// column is a number of a wave.
type column struct {
	name   string
	digits int
	value  func(Run, Wave) (float64, bool)
}

func plain(value func(Wave) float64) func(Run, Wave) (float64, bool) {
	return func(_ Run, w Wave) (float64, bool) { return value(w), true }
}

// untilIdle is false for a wave that was not watched until then.
func untilIdle(value func(Wave) float64) func(Run, Wave) (float64, bool) {
	return func(_ Run, w Wave) (float64, bool) { return value(w), w.ToIdle.Seconds > 0 }
}

func milliPerPool(value func(CPU) float64) func(Run, Wave) (float64, bool) {
	return untilIdle(func(w Wave) float64 { return value(w.ToIdle.CPU) / float64(w.Pools) * milli })
}

var waveColumns = []column{
	{"pools/s", 1, plain(Wave.rate)},
	{"pools/s ÷ plain create", 2, func(r Run, w Wave) (float64, bool) { return r.relative(w, Wave.rate) }},
	{"one pool p50, s", 2, plain(func(w Wave) float64 { return Quantile(w.Latencies, 0.5) })},
	{"p99, s", 2, plain(func(w Wave) float64 { return Quantile(w.Latencies, 0.99) })},
	{"requests", 1, plain(func(w Wave) float64 { return w.each(w.Requests) })},
	{"writes", 1, plain(func(w Wave) float64 { return w.each(w.Writes) })},
	{"reads", 1, plain(func(w Wave) float64 { return w.each(w.Reads) })},
	{"own CPU, ms", 0, milliPerPool(CPU.Own)},
	{"API server, ms", 0, milliPerPool(func(c CPU) float64 { return c.APIServer })},
	{"etcd, ms", 0, milliPerPool(func(c CPU) float64 { return c.Etcd })},
	{"controller manager, ms", 0, milliPerPool(func(c CPU) float64 { return c.ControllerManager })},
	{"all CPU, ms", 0, milliPerPool(CPU.All)},
	{"all CPU ÷ plain create", 2, func(r Run, w Wave) (float64, bool) {
		if w.ToIdle.Seconds == 0 {
			return 0, false
		}
		return r.relative(w, allCPU)
	}},
	{"idle after, s", 0, untilIdle(func(w Wave) float64 { return w.ToIdle.Seconds })},
}

// Waves puts the subjects side by side.
func (r Results) Waves() Table {
	table := Table{Head: []string{"subject", "N"}}
	for _, column := range waveColumns {
		table.Head = append(table.Head, column.name)
	}
	for _, pools := range r.Sizes() {
		runs := r.at(pools)
		for _, subject := range subjects(runs) {
			row := []string{subject, number(float64(pools), 0)}
			for _, column := range waveColumns {
				var values []float64
				for _, run := range runs {
					for _, wave := range run.waves() {
						if value, measured := column.value(run, wave); wave.Subject == subject && measured {
							values = append(values, value)
						}
					}
				}
				row = append(row, spread(values, column.digits))
			}
			table.add(row...)
		}
	}
	return table
}

// waves are all waves of a run, the operator's first.
func (r Run) waves() []Wave {
	var waves []Wave
	if r.Operator.Create != nil {
		waves = append(waves, *r.Operator.Create)
	}
	return slices.Concat(waves, r.Before, r.After, r.Peers)
}

func subjects(runs []Run) []string {
	var names []string
	for _, run := range runs {
		for _, wave := range run.waves() {
			if !slices.Contains(names, wave.Subject) {
				names = append(names, wave.Subject)
			}
		}
	}
	return names
}

// Unmeasured says of which peers there is no figure, and why.
func (r Results) Unmeasured() map[string]string {
	reasons := map[string]string{}
	for _, run := range r.Runs {
		maps.Copy(reasons, run.Unmeasured)
	}
	return reasons
}

// keepingRow is a number of the operator that has no goal.
type keepingRow struct {
	name   string
	digits int
	value  func(Run) (float64, bool)
}

func ofSteady(value func(Span) float64) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) {
		if r.Operator.Steady == nil {
			return 0, false
		}
		return value(*r.Operator.Steady), true
	}
}

func ofDelete(value func(Deletion) float64) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) {
		if r.Operator.Delete == nil {
			return 0, false
		}
		return value(*r.Operator.Delete), true
	}
}

var keepingRows = []keepingRow{
	{"quiet window: CPU, ms per minute", 0, ofSteady(func(s Span) float64 { return s.CPU * milli / s.Seconds * 60 })},
	{"quiet window: resident memory, MiB", 0, ofSteady(func(s Span) float64 { return float64(s.Resident) / mebibyte })},
	{"restart: CPU, s", 1, ofRestart(func(r Restart, _ int) float64 { return r.CPU })},
	{"restart: resident memory, MiB", 0, ofRestart(func(r Restart, _ int) float64 { return float64(r.Resident) / mebibyte })},
	{"restart: peak, MiB", 0, ofRestart(func(r Restart, _ int) float64 { return float64(r.Peak) / mebibyte })},
	{"delete: pools/s until their namespaces are gone", 1, ofDelete(func(d Deletion) float64 { return float64(d.Pools) / d.Seconds })},
	{"delete: requests per pool", 1, ofDelete(func(d Deletion) float64 { return float64(d.Requests) / float64(d.Pools) })},
}

// Keeping shows what it costs to keep pools.
func (r Results) Keeping() Table {
	table := Table{Head: []string{"figure"}}
	rows := slices.Clone(keepingRows)
	requests := func(c Change, pools int) float64 { return perPool(c.Requests, pools) }
	writes := func(c Change, pools int) float64 { return perPool(c.Writes, pools) }
	idle := func(c Change, _ int) float64 { return c.Idle }
	for _, name := range r.changes() {
		rows = append(rows,
			keepingRow{name + ": requests per pool", 2, ofChange(name, requests)},
			keepingRow{name + ": writes per pool", 2, ofChange(name, writes)},
			keepingRow{name + ": all pools have it after, s", 1, allHave(name)},
			keepingRow{name + ": idle after, s", 1, ofChange(name, idle)})
	}
	for _, pools := range r.Sizes() {
		table.Head = append(table.Head, "N = "+number(float64(pools), 0))
	}
	for _, row := range rows {
		cells := []string{row.name}
		for _, pools := range r.Sizes() {
			cells = append(cells, spread(collect(r.at(pools), row.value), row.digits))
		}
		table.add(cells...)
	}
	return table
}

func (r Results) changes() []string {
	var names []string
	for _, run := range r.Runs {
		for _, change := range run.Operator.Changes {
			if !slices.Contains(names, change.Name) {
				names = append(names, change.Name)
			}
		}
	}
	return names
}

func ofChange(name string, value func(change Change, pools int) float64) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) {
		for _, change := range r.Operator.Changes {
			if change.Name == name {
				return value(change, r.Pools), true
			}
		}
		return 0, false
	}
}

// allHave leaves out a change of which pools keep nothing.
func allHave(name string) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) {
		seconds, measured := ofChange(name, func(c Change, _ int) float64 { return c.Seconds })(r)
		return seconds, measured && seconds > 0
	}
}

// Repairs shows at the largest number of pools how each kind comes back.
func (r Results) Repairs() Table {
	table := Table{Head: []string{"", "calm: p50, ms", "worst, ms", "requests", "busy: p50, ms", "p99, ms"}}
	runs := r.at(r.Largest())
	calm, busy := map[string][]Repair{}, map[string][]Repair{}
	for _, run := range runs {
		for _, repair := range run.Operator.Repairs {
			calm[repair.Action+" "+repair.Kind] = append(calm[repair.Action+" "+repair.Kind], repair)
		}
		for _, repair := range busyRepairs(run.Operator) {
			busy[repair.Action+" "+repair.Kind] = append(busy[repair.Action+" "+repair.Kind], repair)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(calm)) {
		seconds := secondsOf(calm[name])
		requests := 0
		for _, repair := range calm[name] {
			requests += repair.Requests
		}
		row := []string{
			name, number(Median(seconds)*milli, 0), number(slices.Max(seconds)*milli, 0),
			number(float64(requests)/float64(len(seconds)), 1), missing, missing,
		}
		if others := secondsOf(busy[name]); len(others) > 0 {
			row[4], row[5] = number(Median(others)*milli, 0), number(Quantile(others, 0.99)*milli, 0)
		}
		table.add(row...)
	}
	return table
}

// Kinds shows at the largest number of pools what the operator asks for, by verb and resource.
func (r Results) Kinds() Table {
	pools := r.Largest()
	table := Table{Head: []string{"request", "per pool, create to idle"}}
	counts := map[string][]float64{}
	for _, run := range r.at(pools) {
		if run.Operator.Create == nil {
			continue
		}
		for kind, count := range run.Operator.Create.ByKind {
			counts[kind] = append(counts[kind], perPool(count, pools))
		}
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(Median(counts[b]), Median(counts[a])), cmp.Compare(a, b))
	})
	rare := 0
	for _, kind := range kinds {
		const least = 0.01
		if Median(counts[kind]) < least {
			rare++
			continue
		}
		table.add(kind, spread(counts[kind], 2))
	}
	if rare > 0 {
		table.add(strconv.Itoa(rare)+" others", "less than 0.01 each")
	}
	return table
}
