package exchange

import (
	"runtime/debug"
	"sync/atomic"
)

var panicked atomic.Pointer[func(doing string, p any, stack []byte)]

// OnPanic says who hears of panics that were contained. The default is nobody.
func OnPanic(hear func(doing string, p any, stack []byte)) { panicked.Store(&hear) }

// Panicked tells of a panic that was contained while something was done.
func Panicked(doing string, p any) {
	if hear := panicked.Load(); hear != nil {
		(*hear)(doing, p, debug.Stack())
	}
}

// Go runs what belongs to an exchange in a goroutine of its own. A panic in it ends neither the process nor the exchange:
// it is told by the name of what was done, and failed is called, which must make whoever waits stop waiting.
func Go(doing string, run, failed func()) {
	go func() {
		defer func() {
			if p := recover(); p != nil {
				Panicked(doing, p)
				failed()
			}
		}()
		run()
	}()
}
