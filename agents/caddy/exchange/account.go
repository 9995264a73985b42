package exchange

import "sync/atomic"

// Account takes the bytes that connections carry for a site, or for the node alone. Its counters only grow until
// somebody takes what is in them, so a byte that is counted late is counted all the same.
type Account struct {
	received, sent atomic.Uint64
	touched        atomic.Bool
	// touch hears once that there is something to take.
	touch func()
	// refused hears of answers that the server gave by itself; nil for accounts of sites.
	refused func(status int)
}

// Accounts is who knows the account of what belongs to no site.
type Accounts interface{ NodeAccount() *Account }

// Init makes an account ready. touch hears, once between two calls of Take, that there is something in it; refused, which
// may be nil, of answers that the server gave before any stage saw the request.
func (a *Account) Init(touch func(), refused func(status int)) { a.touch, a.refused = touch, refused }

// Touch says that something was counted.
func (a *Account) Touch() {
	if !a.touched.Load() && a.touched.CompareAndSwap(false, true) {
		a.touch()
	}
}

// Take empties the account. Whatever else is counted beside it must be read after this call, and counted before Touch:
// then nothing is ever left without a touch to come.
func (a *Account) Take() (received, sent uint64) {
	a.touched.Store(false)
	return a.received.Swap(0), a.sent.Swap(0)
}

func (a *Account) receive(n uint64) {
	if n > 0 {
		a.received.Add(n)
		a.Touch()
	}
}

func (a *Account) send(n uint64) {
	if n > 0 {
		a.sent.Add(n)
		a.Touch()
	}
}
