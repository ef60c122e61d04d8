package report

// verdict is how a figure compares with its goals, from worst to best.
type verdict int

const (
	missed verdict = iota
	withinSlack
	met
	aimMet
	// unjudged is for what has no goal, was not measured or is below the number of pools at which the goal holds.
	unjudged
)

func (v verdict) String() string {
	return map[verdict]string{missed: "missed", withinSlack: "within slack", met: "must", aimMet: "aim", unjudged: missing}[v]
}

// judge compares the median of several rounds with the goals.
func (f figure) judge(values []float64, pools, objects int) verdict {
	if f.must == nil || len(values) == 0 || pools < f.from {
		return unjudged
	}
	value, must, aim := Median(values), f.must(pools, objects), f.aim(pools, objects)
	switch {
	case f.keeps(value, aim):
		return aimMet
	case f.keeps(value, must):
		return met
	case f.noisy && f.keeps(value, f.slacken(must)):
		return withinSlack
	default:
		return missed
	}
}

func (f figure) keeps(value, limit float64) bool {
	if f.more {
		return value >= limit
	}
	return value <= limit
}

func (f figure) slacken(limit float64) float64 {
	if f.more {
		return limit * (1 - slack)
	}
	return limit * (1 + slack)
}

// goal writes a bound at the given number of pools.
func (f figure) goal(limit bound, pools, objects int) string {
	if limit == nil {
		return missing
	}
	sign := "≤ "
	if f.more {
		sign = "≥ "
	}
	value := limit(pools, objects)
	digits := 0
	if value != float64(int(value)) {
		digits = 2
	}
	return sign + number(value, digits)
}
