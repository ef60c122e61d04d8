package subpool

import "testing"

// BenchmarkDesired is the cost of all objects of a pool as intents, which every pass builds.
func BenchmarkDesired(b *testing.B) {
	in := exampleInput(b)
	b.ReportAllocs()
	for b.Loop() {
		_ = Desired(in).All()
		_ = Workload(in)
	}
}
