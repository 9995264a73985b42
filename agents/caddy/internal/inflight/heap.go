package inflight

// heap keeps networks so that the one with the most bytes is the first.
type heap []*network

func (h *heap) insert(n *network) {
	n.at = len(*h)
	*h = append(*h, n)
	h.fix(n)
}

func (h *heap) remove(n *network) {
	last := len(*h) - 1
	moved := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	if moved != n {
		h.put(moved, n.at)
		h.fix(moved)
	}
}

// fix moves a network whose bytes changed to its place.
func (h *heap) fix(n *network) {
	for n.at > 0 {
		above := (*h)[(n.at-1)/2]
		if above.bytes >= n.bytes {
			break
		}
		h.swap(above, n)
	}
	for {
		below := n
		for child := 2*n.at + 1; child <= 2*n.at+2 && child < len(*h); child++ {
			if (*h)[child].bytes > below.bytes {
				below = (*h)[child]
			}
		}
		if below == n {
			return
		}
		h.swap(n, below)
	}
}

func (h *heap) swap(a, b *network) {
	at := a.at
	h.put(a, b.at)
	h.put(b, at)
}

func (h *heap) put(n *network, at int) {
	(*h)[at] = n
	n.at = at
}
