package core

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"edge.svc/caddy/exchange"
	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// Kind is what the edge does with the entries of a kind. Settings of the cluster and parts of sites have helpers that
// make it: SettingKind and PartOf.
type Kind struct {
	Name string
	// Features are the capabilities that a node has because it understands the kind.
	Features []string
	// MaxBody is the size of the largest body in bytes; 0 = as large as a record of a journal.
	MaxBody int
	// Compile decodes and checks, and changes nothing. It may run while requests are served.
	Compile func(c *Core, id string, body []byte) (Change, error)
	Remove  func(e *Edit, id string)
	// Settle is for what follows from several entries together; nil where nothing does. It is called whenever a whole
	// change is in the edit, be it of this kind or not, and cannot fail.
	Settle func(e *Edit)
}

// Change puts a compiled entry into an edit. It cannot fail, so a change is taken whole.
type Change func(*Edit)

// KindOptions are those of a kind that several features share.
type KindOptions struct {
	Features []string
	MaxBody  int
	// Guards says that the kind, one of settings or of parts of sites, keeps out what must not pass: without it the door is
	// open. Where an entry does not compile and no former version of it does, what it guards answers nothing; see Guarded.
	Guards bool
}

// kind is a registered kind: of a feature's own making, a setting, or parts of sites.
type kind struct {
	name    string
	maxBody int
	own     *Kind
	// Of settings and parts.
	decode   func(body []byte) (proto.Message, error)
	settings []settingCompiler
	parts    []partCompiler
	// guards is nil for guarding kinds of which every entry guards; see GuardsOf.
	guards func(proto.Message) bool
	// switches is nil for kinds without emergency switches; see SwitchesOf.
	switches func(running, received proto.Message) proto.Message
}

type settingCompiler struct {
	compile func(proto.Message) (func(*exchange.Tables), error)
	reset   func(*exchange.Tables)
}

type partCompiler struct {
	index int
	// compile returns nil for a part that the site does not have.
	compile func(c *Core, siteID string, m proto.Message) (unsafe.Pointer, error)
}

var (
	kinds = map[string]*kind{}
	// The kind that each part comes from, by the index of the part.
	kindOfPart []*kind
	settlers   []func(*Edit)
	// Kinds that keep out what must not pass.
	guards []*kind
)

// partOfSites reports whether parts of sites come from the kind.
func (k *kind) partOfSites() bool { return k.own == nil && len(k.settings) == 0 }

func kindNamed(name string) *kind {
	if kinds[name] == nil {
		kinds[name] = &kind{name: name}
	}
	return kinds[name]
}

// RegisterKind adds a kind of entries. Call it from init.
func RegisterKind(k Kind) {
	ConfigureKind(k.Name, KindOptions{Features: k.Features, MaxBody: k.MaxBody})
	to := kindNamed(k.Name)
	if to.own != nil || to.decode != nil {
		panic("two features bring the kind " + k.Name)
	}
	to.own = &k
	if k.Settle != nil {
		settlers = append(settlers, k.Settle)
	}
}

// ConfigureKind says what holds for a kind of settings or parts. Call it from init.
func ConfigureKind(name string, o KindOptions) {
	RegisterCapability(o.Features...)
	k := kindNamed(name)
	if o.MaxBody > 0 {
		k.maxBody = o.MaxBody
	}
	if o.Guards && !slices.Contains(guards, k) {
		guards = append(guards, k)
	}
}

// SettingKind fills a setting from the entries of a kind of which a cluster has one, without an id. Several settings may
// come from the same kind. Call it from init.
func SettingKind[M proto.Message, T any](name string, setting exchange.Setting[T], compile func(M) (T, error)) {
	k := kindNamed(name)
	k.decodes(decoder[M]())
	k.settings = append(k.settings, settingCompiler{
		func(m proto.Message) (func(*exchange.Tables), error) {
			v, err := compile(m.(M))
			return func(t *exchange.Tables) { setting.Set(t, v) }, err
		},
		setting.Reset,
	})
}

// PartOf registers a part of sites that is made from the entries of a kind whose id is the site's. Several parts, of
// several features, may come from the same kind. An entry is checked by compiling all its parts when it is applied;
// what serves is compiled when the first request needs it, and kept until an entry of this kind changes for the site.
// compile must not keep the message; it returns nil for a part that the site does not have. Call it from a package
// variable or init.
func PartOf[M proto.Message, T any](name, part string, compile func(c *Core, siteID string, m M) (*T, error)) exchange.Part[T] {
	slot := exchange.NewPart[T](part)
	k := kindNamed(name)
	k.decodes(decoder[M]())
	k.parts = append(k.parts, partCompiler{slot.Index(), func(c *Core, siteID string, m proto.Message) (unsafe.Pointer, error) {
		v, err := compile(c, siteID, m.(M))
		return unsafe.Pointer(v), err
	}})
	for len(kindOfPart) <= slot.Index() {
		kindOfPart = append(kindOfPart, nil)
	}
	kindOfPart[slot.Index()] = k
	return slot
}

func (k *kind) decodes(decode func([]byte) (proto.Message, error)) {
	if k.own != nil {
		panic("two features bring the kind " + k.name)
	}
	k.decode = decode
}

func decoder[M proto.Message]() func([]byte) (proto.Message, error) {
	var none M
	made := none.ProtoReflect().Type()
	return func(body []byte) (proto.Message, error) {
		m := made.New().Interface()
		return m, proto.Unmarshal(body, m)
	}
}

var errOnlyOne = errors.New("an entry of this kind must have an empty id, because a cluster has only one")

// compileEntry decodes and checks one entry.
func (c *Core) compileEntry(entry *configv1.Entry, hash [sha256.Size]byte) (Change, error) {
	if err := c.able(entry.GetFeatures()); err != nil {
		return nil, err
	}
	k, ok := kinds[entry.GetKind()]
	if !ok {
		return nil, fmt.Errorf("entries of kind %q need a capability that this node does not have", entry.GetKind())
	}
	if n := len(entry.GetBody()); k.maxBody > 0 && n > k.maxBody {
		return nil, fmt.Errorf("the body has %d bytes; the maximum is %d", n, k.maxBody)
	}
	switch {
	case k.own != nil:
		return k.own.Compile(c, entry.GetId(), entry.GetBody())
	case len(k.settings) > 0:
		return k.compileSettings(entry.GetId(), entry.GetBody())
	}
	return k.compileParts(c, entry.GetId(), entry.GetBody(), hash)
}

func (k *kind) message(body []byte) (proto.Message, error) {
	m, err := k.decode(body)
	if err != nil {
		return nil, fmt.Errorf("the body is no valid entry of kind %q: %w", k.name, err)
	}
	return m, nil
}

func (k *kind) compileSettings(id string, body []byte) (Change, error) {
	if id != "" {
		return nil, errOnlyOne
	}
	m, err := k.message(body)
	if err != nil {
		return nil, err
	}
	set := make([]func(*exchange.Tables), len(k.settings))
	for i, setting := range k.settings {
		if set[i], err = setting.compile(m); err != nil {
			return nil, err
		}
	}
	return func(e *Edit) {
		for _, f := range set {
			f(e.Tables)
		}
	}, nil
}

func (k *kind) remove(e *Edit, id string) {
	switch {
	case k.own != nil:
		k.own.Remove(e, id)
	case len(k.settings) > 0:
		for _, setting := range k.settings {
			setting.reset(e.Tables)
		}
	default:
		e.removePart(k, id)
	}
}
