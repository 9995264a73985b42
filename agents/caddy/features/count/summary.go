package count

import "slices"

const (
	// Keys a summary keeps.
	summarySlots = 64
	// Twice as many places, so that a key is found after few looks.
	summaryPlaces = 2 * summarySlots
)

// summary finds the keys that come most often (Space-Saving): where all slots are taken, a new key takes the one of the lightest
// key and inherits its weight, so that a key which comes often enough cannot be kept out. What is told of a key is what it
// was counted since it is in, which is never too much. Keys are kept in buffers that stay with the slots: counting
// allocates only while those grow.
type summary struct {
	slots   []slot
	weights [summarySlots]uint32
	// Numbers of slots plus 1 by hash, 0 where nothing is; a key lies at its place or behind it without a gap.
	places [summaryPlaces]uint8
	used   int
}

type slot struct {
	hash            uint64
	requests, bytes uint64
	key             []byte
	label           string
}

// count counts the key that first and second make together, of the hash that they have.
func (s *summary) count(hash uint64, first, second, label string, bytes uint64) {
	at := int(hash % summaryPlaces)
	for ; s.places[at] != 0; at = (at + 1) % summaryPlaces {
		number := s.places[at] - 1
		if known := &s.slots[number]; known.hash == hash && known.is(first, second) {
			known.requests++
			known.bytes += bytes
			s.weights[number]++
			return
		}
	}
	number := s.used
	if number < summarySlots {
		s.used++
		if number == len(s.slots) {
			s.slots = append(s.slots, slot{})
		}
		s.weights[number] = 1
	} else {
		number = s.lightest()
		s.weights[number]++
		s.remove(number)
		for at = int(hash % summaryPlaces); s.places[at] != 0; at = (at + 1) % summaryPlaces {
		}
	}
	s.places[at] = uint8(number + 1)
	fresh := &s.slots[number]
	fresh.hash, fresh.requests, fresh.bytes, fresh.label = hash, 1, bytes, label
	fresh.key = append(append(fresh.key[:0], first...), second...)
}

func (s *slot) is(first, second string) bool {
	return len(s.key) == len(first)+len(second) && string(s.key[len(first):]) == second && string(s.key[:len(first)]) == first
}

func (s *summary) lightest() int {
	lightest := 0
	for number, weight := range s.weights {
		if weight < s.weights[lightest] {
			lightest = number
		}
	}
	return lightest
}

// remove takes a slot out of the places, and closes the gap that it leaves.
func (s *summary) remove(number int) {
	at := int(s.slots[number].hash % summaryPlaces)
	for s.places[at] != uint8(number+1) {
		at = (at + 1) % summaryPlaces
	}
	for next := (at + 1) % summaryPlaces; s.places[next] != 0; next = (next + 1) % summaryPlaces {
		home := int(s.slots[s.places[next]-1].hash % summaryPlaces)
		// One that lies at its home, or between the gap and where it is, stays.
		if (next-home+summaryPlaces)%summaryPlaces >= (next-at+summaryPlaces)%summaryPlaces {
			s.places[at] = s.places[next]
			at = next
		}
	}
	s.places[at] = 0
}

// most returns the keys that came most often, at most so many. They are valid until the next count.
func (s *summary) most(limit int) []slot {
	found := slices.Clone(s.slots[:s.used])
	slices.SortFunc(found, func(a, b slot) int {
		if a.requests != b.requests {
			return int(min(max(int64(b.requests)-int64(a.requests), -1), 1))
		}
		return slices.Compare(a.key, b.key)
	})
	return found[:min(len(found), limit)]
}

// reset forgets all keys and keeps their buffers.
func (s *summary) reset() {
	s.used = 0
	s.places = [summaryPlaces]uint8{}
}
