package exchange

// Outbound is what an origin gets in place of what was asked. Its zero value changes nothing.
type Outbound struct {
	Method string
	// Host is sent where the origin has none of its own.
	Host   string
	Target *Target
	// Group names the origins that are asked, "" the default group.
	Group string
	// HostHeader, SNI and Port take the place of what each origin of the group has; empty and 0 leave it.
	HostHeader, SNI string
	Port            uint16
	// Edits are of the header, in their order, after fields of one hop are gone.
	Edits []HeaderEdit
	// Identity asks for an answer without any coding, whatever the client accepts: the edge compresses, or nobody is to.
	Identity bool
}

// HeaderEdit changes the header of a request on its way to an origin.
type HeaderEdit struct {
	// Name is in canonical form.
	Name string
	// Values replace the field; with Add they are added to it. None removes it.
	Values []string
	Add    bool
}

// Method is the method that an origin gets.
func (x *Exchange) Method() string { return x.Out.MethodOf(&x.In) }

// Target is the target that an origin gets.
func (x *Exchange) Target() *Target { return x.Out.TargetOf(&x.In) }

// MethodOf is the method that an origin gets in place of what was asked.
func (o *Outbound) MethodOf(in *Inbound) string {
	if o.Method != "" {
		return o.Method
	}
	return in.Method
}

// TargetOf is the target that an origin gets in place of what was asked.
func (o *Outbound) TargetOf(in *Inbound) *Target {
	if o.Target != nil {
		return o.Target
	}
	return &in.Target
}

// Withholds reports whether an origin is not told a field at all, be it the client's or a rule's; name is in canonical form.
func (o *Outbound) Withholds(name string) bool { return o.Identity && name == "Accept-Encoding" }

// Replaces reports whether the edits set or remove a field; name is in canonical form.
func (o *Outbound) Replaces(name string) bool {
	for i := range o.Edits {
		if !o.Edits[i].Add && o.Edits[i].Name == name {
			return true
		}
	}
	return false
}
