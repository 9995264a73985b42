package count

import "time"

// clock is the console's, as far as it is known: where this machine's is stepped, it goes on as before.
type clock struct {
	machine func() time.Time
	// The console's time when the machine's clock was read, which carries a monotonic reading.
	console, at time.Time
}

// newClock begins with the difference that was known last.
func newClock(machine func() time.Time, offset time.Duration) *clock {
	c := &clock{machine: machine}
	c.set(offset)
	return c
}

// set takes over the console's clock minus this machine's.
func (c *clock) set(offset time.Duration) {
	c.at = c.machine()
	c.console = c.at.Round(0).Add(offset)
}

// now is the console's time.
func (c *clock) now() time.Time { return c.console.Add(c.machine().Sub(c.at)) }

// offset is the console's clock minus this machine's at this moment.
func (c *clock) offset() time.Duration { return c.now().Sub(c.machine().Round(0)) }
