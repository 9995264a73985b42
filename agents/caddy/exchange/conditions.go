package exchange

// Conditions compiles conditions of settings that belong to no rule. It is a component that core.Find finds.
type Conditions interface {
	// AskedCondition compiles the encoding of an Expression. It reads the request as the client sent it, whatever rules changed.
	AskedCondition(encoded []byte) (Condition, error)
}

// Condition is one that was compiled.
type Condition interface {
	// Holds reports whether the condition holds for the request. decided is false where that cannot be told.
	Holds(x *Exchange) (holds, decided bool)
}
