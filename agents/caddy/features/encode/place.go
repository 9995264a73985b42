package encode

import (
	"net/netip"
	"sync"
	"time"
)

// patience is how long an encoder may wait for a client or an origin and keep its place at work.
const patience = 20 * time.Millisecond

// place is what a response holds of a line of encoders: memory until its end, and a place at work but for long waits.
type place struct {
	encoders *encoders
	line     *line
	bytes    int64
	network  netip.Prefix

	mu    sync.Mutex
	timer *time.Timer
	// It waits for somebody else, and has lost its place over it.
	waits, resting bool
}

// begin takes over what is reserved.
func (p *place) begin(e *encoders, l *line, bytes int64, network netip.Prefix) {
	p.mu.Lock()
	p.encoders, p.line, p.bytes, p.network, p.waits, p.resting = e, l, bytes, network, false, false
	p.mu.Unlock()
}

// wait says that the response waits for somebody else from here.
func (p *place) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == nil {
		return
	}
	p.waits = true
	if p.timer == nil {
		p.timer = time.AfterFunc(patience, p.rest)
	} else {
		p.timer.Reset(patience)
	}
}

// rest frees the place of one that still waits.
func (p *place) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits && !p.resting {
		p.resting = true
		p.encoders.rest(p.line, p.network)
	}
}

// goOn says that the encoder works from here, once it has a place again.
func (p *place) goOn() {
	p.mu.Lock()
	resting := p.resting
	if p.waits {
		p.waits, p.resting = false, false
		p.timer.Stop()
	}
	p.mu.Unlock()
	if resting {
		p.encoders.goOn(p.line, p.network)
	}
}

// end gives everything back.
func (p *place) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits {
		p.timer.Stop()
	}
	p.encoders.giveBack(p.line, p.bytes, p.network, !p.resting)
	p.encoders, p.line, p.waits, p.resting = nil, nil, false, false
}
