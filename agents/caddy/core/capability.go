package core

import (
	"fmt"
	"maps"
	"slices"
)

var capabilities = map[string]bool{}

func init() { RegisterCapability("domains-v2") }

// RegisterCapability names what a feature makes a node able to do; entries ask for it by this name, and the console
// learns it from the node. Two features may name the same one. Call it from init.
func RegisterCapability(names ...string) {
	for _, name := range names {
		capabilities[name] = true
	}
}

// Capabilities returns the names of all that this program can do, sorted.
func Capabilities() []string { return slices.Sorted(maps.Keys(capabilities)) }

// lackError says that an entry needs a capability that this node lacks: it is lacking, and not failed.
type lackError struct{ feature string }

func (e lackError) Error() string {
	return fmt.Sprintf("the entry needs capability %q, which this node lacks", e.feature)
}

// able fails with a lackError when an entry asks for what neither this program nor its agent can do.
func (c *Core) able(features []string) error {
	for _, feature := range features {
		if !capabilities[feature] && !slices.Contains(c.agentCapabilities, feature) {
			return lackError{feature}
		}
	}
	return nil
}
