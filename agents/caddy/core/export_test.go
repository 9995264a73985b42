package core

type runFunc func(<-chan struct{})

func (f runFunc) Run(stop <-chan struct{}) { f(stop) }

// KeepRunning is what keeps a component running.
func KeepRunning(c *Core, f func(<-chan struct{}), stop <-chan struct{}) {
	c.keepRunning("a test", runFunc(f), stop)
}
