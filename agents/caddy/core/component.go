package core

import (
	"reflect"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// component is what one feature keeps for a core.
type component struct {
	name string
	kind reflect.Type
	make func(*Core) any
}

var components []component

// Component is a slot of cores for what a feature keeps beside the configuration: counters, connections, tables. Every
// core has its own, made with the core. It may have methods that the core calls:
//
//	Restore()                                  once, after the configuration was read and before anything is served
//	Run(stop <-chan struct{})                  in a goroutine of its own in the process that serves, not in tests
//	End()                                      once, when the process ends in order and serves no more
//	FillStatus(*edgev1.GetStatusResponse)      whenever the agent asks how the edge is
type Component[T any] struct{ index int }

type (
	restorer interface{ Restore() }
	runner   interface{ Run(stop <-chan struct{}) }
	ender    interface{ End() }
	// statusFiller may be asked by several goroutines at once.
	statusFiller interface {
		FillStatus(status *edgev1.GetStatusResponse)
	}
)

// NewComponent registers what every core has one of. make may ask the core for other components. Call it from a package
// variable or init.
func NewComponent[T any](name string, make func(*Core) *T) Component[T] {
	components = append(components, component{name, reflect.TypeFor[*T](), func(c *Core) any { return make(c) }})
	return Component[T]{len(components) - 1}
}

// Of returns the component of a core.
func (s Component[T]) Of(c *Core) *T {
	v := c.components[s.index]
	if v == nil {
		v = c.makeComponent(s.index)
	}
	return v.(*T)
}

// makeComponent makes a component, unless another that needs it had it made already. All are there once New returns.
func (c *Core) makeComponent(index int) any {
	if c.components[index] == nil {
		if c.making[index] {
			panic("component " + components[index].name + " needs itself")
		}
		c.making[index] = true
		c.components[index] = components[index].make(c)
	}
	return c.components[index]
}

// Each returns the components of a core that can do what I asks for, in the order in which they were registered.
func Each[I any](c *Core) []I {
	var found []I
	for i := range components {
		if components[i].kind.Implements(reflect.TypeFor[I]()) {
			found = append(found, c.makeComponent(i).(I))
		}
	}
	return found
}

// Find returns the first component of a core that can do what I asks for; nil when there is none.
func Find[I any](c *Core) (found I) {
	if all := Each[I](c); len(all) > 0 {
		return all[0]
	}
	return found
}

// run has every component that runs do so until stop is closed. One that panics is started again, a second later.
func (c *Core) run(stop <-chan struct{}) {
	for i, v := range c.components {
		if r, ok := v.(runner); ok {
			go c.keepRunning(components[i].name, r, stop)
		}
	}
}

// end tells every component that the process ends in order.
func (c *Core) end() {
	for i, v := range c.components {
		if e, ok := v.(ender); ok {
			c.panics("the end of "+components[i].name, e.End)
		}
	}
}

func (c *Core) keepRunning(name string, r runner, stop <-chan struct{}) {
	for c.panics(name, func() { r.Run(stop) }) {
		select {
		case <-stop:
			return
		case <-time.After(time.Second):
		}
	}
}

func (c *Core) panics(name string, f func()) (panicked bool) {
	defer func() {
		if p := recover(); p != nil {
			c.LogPanic("running "+name, p)
			panicked = true
		}
	}()
	f()
	return false
}
