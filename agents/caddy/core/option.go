package core

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Option is a field of the app's JSON that belongs to a feature.
type Option[T comparable] struct {
	name  string
	unset T
}

// options are by their names how their values are read.
var options = map[string]func(raw json.RawMessage) (any, error){}

// NewOption registers a field of the app's JSON. unset is its value when it is missing or zero; check says what is wrong
// with a value and may be nil. Call it from a package variable or init.
func NewOption[T comparable](name string, unset T, check func(T) error) Option[T] {
	options[name] = func(raw json.RawMessage) (any, error) {
		var v, zero T
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if v == zero {
			return unset, nil
		}
		if check != nil {
			if err := check(v); err != nil {
				return nil, fmt.Errorf("%s %w", name, err)
			}
		}
		return v, nil
	}
	return Option[T]{name, unset}
}

// Of returns the value of the option for a core.
func (o Option[T]) Of(c *Core) T {
	if v, ok := c.options[o.name].(T); ok {
		return v
	}
	return o.unset
}
