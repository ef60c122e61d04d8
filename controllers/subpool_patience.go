package controllers

import (
	"sync"
	"time"
)

// troubleDelay is how soon a pool in trouble is looked at again: the Events that say why its Pod is not Ready are not watched.
const troubleDelay = 20 * time.Second

// patience says when to look again at pools that are not well. The longer nothing new is seen, the longer it waits: a thousand
// pools that nobody mends must not keep the operator, or the API server, busy. The zero value is ready to use.
type patience struct {
	mu       sync.Mutex
	troubles map[string]trouble // by pool id
}

type trouble struct {
	since time.Time // of the last news
	due   time.Time // when to look again
}

// wait returns how long after a look the next one is due: twice as long as nothing new has been seen, but at least troubleDelay and
// at most checkPeriod. A look before that is due leaves it as it is.
func (p *patience) wait(poolID string, news bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.troubles == nil {
		p.troubles = map[string]trouble{}
	}
	found, known := p.troubles[poolID]
	if news || !known {
		found = trouble{since: now, due: now}
	}
	if !now.Before(found.due) {
		found.due = now.Add(min(max(2*now.Sub(found.since), troubleDelay), checkPeriod))
	}
	p.troubles[poolID] = found
	return found.due.Sub(now)
}

// over tells whether the pool has been in trouble for as long as the last look asked to wait.
func (p *patience) over(poolID string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, known := p.troubles[poolID]
	return known && !now.Before(found.due)
}

// end is for a pool that is well, or gone.
func (p *patience) end(poolID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.troubles, poolID)
}
