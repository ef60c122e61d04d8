package controllers

import "testing"

// BenchmarkAssess is the cost of a status.
func BenchmarkAssess(b *testing.B) {
	seen := published(b)
	b.ReportAllocs()
	for b.Loop() {
		_ = assess(seen, outcome{})
	}
}
