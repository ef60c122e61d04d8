package load

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

const (
	// poolsTick is how often all SubPools are read while they become Ready: seldom, since that is work for the API server too.
	poolsTick = 2 * time.Second

	// stalled is how long not one more pool may become Ready.
	stalled = 5 * time.Minute
)

// Pool returns the SubPool with this number.
func Pool(number int) client.Object { return NamedPool(fmt.Sprintf("pool-%05d", number)) }

// NamedPool returns an internal SubPool with this id.
func NamedPool(id string) *v1alpha1.SubPool {
	pool := harness.NewPool("pool", "registry.example.invalid/subrelay/cpa:v1", "registry.example.invalid/subrelay/cpa-manager:v1",
		harness.Resources("100m", "128Mi", "200m", "256Mi"))
	pool.Name = id
	return pool
}

// AwaitReady waits until count SubPools are Ready. It calls progress with how many are whenever it looks.
func AwaitReady(ctx context.Context, reader client.Reader, count int, progress func(ready int)) error {
	most, grown := 0, time.Now()
	return wait.PollUntilContextCancel(ctx, poolsTick, true, func(ctx context.Context) (bool, error) {
		pools := &v1alpha1.SubPoolList{}
		if err := reader.List(ctx, pools); err != nil {
			return false, fmt.Errorf("list SubPools: %w", err)
		}
		ready := 0
		for i := range pools.Items {
			if meta.IsStatusConditionTrue(pools.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}
		progress(ready)
		if ready > most {
			most, grown = ready, time.Now()
		}
		if ready < count && time.Since(grown) > stalled {
			return false, fmt.Errorf("only %d of %d pools are Ready, and for %s there was not one more", ready, count, stalled)
		}
		return ready >= count, nil
	})
}
