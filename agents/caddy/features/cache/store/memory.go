package store

import (
	"container/list"
	"sync"
)

// memory is the tier of objects whose heads, and small bodies, are in memory; the ones least recently used leave.
type memory struct{ parts [16]memoryPart }

type memoryPart struct {
	mu    sync.Mutex
	byID  map[uint64]*list.Element
	order list.List
	bytes int64
	most  int64
}

func newMemory(most int64) *memory {
	m := &memory{}
	for i := range m.parts {
		m.parts[i].byID, m.parts[i].most = map[uint64]*list.Element{}, most/int64(len(m.parts))
	}
	return m
}

func (m *memory) part(id uint64) *memoryPart { return &m.parts[id%uint64(len(m.parts))] }

func (m *memory) get(id uint64) *Object {
	p := m.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.byID[id]
	if at == nil {
		return nil
	}
	p.order.MoveToFront(at)
	return at.Value.(*Object)
}

func (m *memory) put(o *Object) {
	p := m.part(o.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(p.byID[o.id])
	p.byID[o.id] = p.order.PushFront(o)
	for p.bytes += o.cost; p.bytes > p.most && p.order.Len() > 0; {
		p.drop(p.order.Back())
	}
}

// replace puts an object in the place of another head of it, unless a newer one came.
func (m *memory) replace(o, next *Object) {
	p := m.part(o.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.byID[o.id]; at != nil && at.Value.(*Object) == o {
		at.Value = next
	}
}

func (m *memory) remove(id uint64) {
	p := m.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(p.byID[id])
}

func (p *memoryPart) drop(at *list.Element) {
	if at == nil {
		return
	}
	o := p.order.Remove(at).(*Object)
	delete(p.byID, o.id)
	p.bytes -= o.cost
}
