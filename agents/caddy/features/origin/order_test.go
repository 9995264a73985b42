package origin

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// What an origin of the model does with a request.
type doing int

const (
	serves doing = iota
	servesTLS
	isBusy
	hangsUp
	isDead
	isDeadTLS
	isForbidden
	doings
)

// modelled is an origin of the model, and a request over it.
type modelled struct {
	doing  doing
	backup bool
	// It was found down before the request.
	down bool
}

func (m modelled) secure() bool { return m.doing == servesTLS || m.doing == isDeadTLS }

// expect is the order as docs/origins.md has it: which origins get the request, and what the client gets. rank orders origins as
// their policy does.
func expect(origins []modelled, rank []int, tries int, statusRetry, once bool) (asked []int, status int, body string) {
	those := func(of func(modelled) bool) (list []int) {
		for _, i := range rank {
			if of(origins[i]) {
				list = append(list, i)
			}
		}
		return list
	}
	backupsUp := those(func(m modelled) bool { return m.backup && !m.down })
	list := those(func(m modelled) bool { return !m.backup && !m.down })
	switch {
	case len(list) > 0:
		list = append(list, backupsUp...)
	case len(backupsUp) > 0:
		list = backupsUp
	default:
		list = append(those(func(m modelled) bool { return !m.backup }), those(func(m modelled) bool { return m.backup })...)
	}
	if len(origins) == 1 {
		list = []int{0}
	}
	secure := origins[list[0]].secure()
	list = slices.DeleteFunc(list, func(i int) bool { return origins[i].secure() != secure })

	status, body = 502, "edge: no-origin"
	own := false
	for _, i := range list {
		if tries == 0 {
			break
		}
		sent := false
		switch origins[i].doing {
		case serves, servesTLS:
			return append(asked, i), 200, strconv.Itoa(i)
		case isBusy:
			asked, sent, own = append(asked, i), true, true
			status, body = 503, strconv.Itoa(i)
			if !statusRetry {
				return asked, status, body
			}
		case hangsUp:
			asked, sent = append(asked, i), true
		case isForbidden:
			continue
		}
		if tries--; !own {
			status, body = 502, "edge: origin-unreachable"
		}
		if sent && once {
			break
		}
	}
	return asked, status, body
}

// stagedOrigins are origins of every kind, in every place of a list.
type stagedOrigins struct {
	addresses [maxModelled][doings]string
	mu        sync.Mutex
	asked     []int
}

const maxModelled = 6

func (s *stagedOrigins) hear(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, i)
}

func (s *stagedOrigins) take() (asked []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, s.asked = s.asked, nil
	return asked
}

func newStagedOrigins(t testing.TB) *stagedOrigins {
	s := new(stagedOrigins)
	for i := range maxModelled {
		with := func(status int) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				s.hear(i)
				w.WriteHeader(status)
				fmt.Fprint(w, i)
			}
		}
		secure := httptest.NewTLSServer(with(200))
		t.Cleanup(secure.Close)
		s.addresses[i] = [doings]string{
			serves: addressOf(httpOrigin(t, with(200))), servesTLS: addressOf(secure), isBusy: addressOf(httpOrigin(t, with(503))),
			hangsUp: newRawOrigin(t, func(c net.Conn, _ int64) {
				_, _, _ = readRequest(bufio.NewReader(c))
				s.hear(i)
			}).Addr().String(),
			isDead: dead, isDeadTLS: dead, isForbidden: "10.0.0.1:80",
		}
	}
	return s
}

// checkOrder plays one case: a site and a request, both drawn from the seed.
func checkOrder(t *testing.T, s *stagedOrigins, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	origins := make([]modelled, 1+random.IntN(maxModelled))
	var entries []*configv1.Origin
	for i := range origins {
		origins[i] = modelled{doing(random.IntN(int(doings))), i > 0 && random.IntN(3) == 0, random.IntN(4) == 0}
		o := originAt(strconv.Itoa(i), s.addresses[i][origins[i].doing])
		o.Backup, o.Https, o.Weight = origins[i].backup, origins[i].secure(), 1+uint32(random.IntN(100))
		entries = append(entries, o)
	}
	tries, statusRetry := 1+random.IntN(5), random.IntN(4) > 0
	method := []string{"GET", "PUT", "DELETE", "POST", "PATCH", "LOCK"}[random.IntN(6)]
	target := fmt.Sprintf("/%d", random.Uint32())
	pool := settings(func(p *configv1.OriginPool) {
		p.Policy, p.Tries, p.StatusRetry, p.TlsVerify, p.MaxFails = configv1.BalancePolicy_BALANCE_POLICY_CONSISTENT_HASH, uint32(tries), statusRetry, false, 100
	})
	// The hash orders all origins as it orders each part of them.
	ordered := make([]*configv1.Origin, len(entries))
	for i, o := range entries {
		ordered[i] = &configv1.Origin{Id: o.Id, Address: "192.0.2.1", Port: 1, Weight: o.Weight}
	}
	all, err := Compile("site", ordered, pool, NewState())
	if err != nil {
		t.Fatal(err)
	}
	var rank []int
	for _, i := range all.candidates(nil, target, new(instead), -1) {
		rank = append(rank, int(i))
	}

	e := newEdge(t, pool, entries...)
	for i, m := range origins {
		if m.down {
			e.state.fail(e.pool.Load().origins[i].health, reason{class: failConnect}, 1, time.Hour)
		}
	}
	status, body := e.send(method, target, nil)
	asked := s.take()
	once := method == "POST" || method == "PATCH" || method == "LOCK"
	wantAsked, wantStatus, wantBody := expect(origins, rank, tries, statusRetry, once)
	if status != wantStatus || body != wantBody || !slices.Equal(asked, wantAsked) {
		t.Errorf("seed %d: %s, %d tries, retry on status %t, origins %+v in the order %v: asked %v for %d %q, not %v for %d %q",
			seed, method, tries, statusRetry, origins, rank, asked, status, body, wantAsked, wantStatus, wantBody)
	}
}

// A request goes from origin to origin as a small model of the order says, whatever the origins do.
func FuzzOrder(f *testing.F) {
	s := newStagedOrigins(f)
	const cases = 400
	for seed := range uint64(cases) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkOrder(t, s, seed) })
}
