package controllers

import (
	"sync"
	"time"
)

// troubleDelay is how soon a pool whose Pod is not Ready is looked at again: the Events that say why are not watched.
const troubleDelay = 20 * time.Second

// patience says when to look again at pools that are not well. As long as a look shows nothing new, the next one takes twice as
// long: a thousand pools that nobody mends must not keep the operator, or the API server, busy. The zero value is ready to use.
type patience struct {
	mu     sync.Mutex
	delays map[string]time.Duration // by pool id; the last one
}

// wait returns how long to wait: between troubleDelay and checkPeriod.
func (p *patience) wait(poolID string, news bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.delays == nil {
		p.delays = map[string]time.Duration{}
	}
	delay := min(2*p.delays[poolID], checkPeriod)
	if news || delay == 0 {
		delay = troubleDelay
	}
	p.delays[poolID] = delay
	return delay
}

// end is for a pool that is well, or gone.
func (p *patience) end(poolID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.delays, poolID)
}
