package apply

import "testing"

// BenchmarkIntent is the cost of encoding and hashing an intent.
func BenchmarkIntent(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newIntent(serviceIntent("cpa")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompare is the cost of finding out that an object is as intended.
func BenchmarkCompare(b *testing.B) {
	engine, live := newTestEngine(), liveService(b)
	intent, err := newIntent(serviceIntent("cpa"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if cause, err := engine.compare(live, intent); err != nil || cause != "" {
			b.Fatal(cause, err)
		}
	}
}
