package apply

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// mostWritten bounds the intents that are remembered, far above those on their way at once. One that was forgotten is
	// written once more.
	mostWritten = 1024

	// trustWritten is how long a cache may be behind before what was written is written once more: what the cache waits for
	// may be lost, in a cluster that was restored from a backup.
	trustWritten = 30 * time.Second
)

// written remembers the intents that were written last, because live objects come from a cache that may not have them yet. It
// is safe for concurrent use.
type written struct{ intents *lru.Cache }

type writtenIntent struct {
	hash    string
	uid     types.UID
	version string
	at      time.Time
}

func newWritten() written { return written{lru.New(mostWritten)} }

// remember takes the API server's answer to the write of an intent.
func (w written) remember(intent *intent, answer *metav1.PartialObjectMetadata) {
	w.intents.Add(intent.key, writtenIntent{intent.hash, answer.UID, answer.ResourceVersion, time.Now()})
}

// judge compares an object that was seen with the last write of this very intent to it, as far as that is known: nothing is to be
// done to one that is as it was written, and nothing yet to an older one. Whoever sees it newer later sees what others have done
// to it since, too.
func (w written) judge(object client.Object, intent *intent) (cause Cause, known bool) {
	found, ok := w.intents.Get(intent.key)
	if !ok {
		return "", false
	}
	last := found.(writtenIntent)
	if last.hash != intent.hash || last.uid != object.GetUID() {
		return "", false
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.version)
	switch {
	case err != nil || order > 0:
		return "", false
	case order == 0:
		return "", true
	default:
		return Unseen, time.Since(last.at) < trustWritten
	}
}
