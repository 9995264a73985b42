package origin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// dns is DNS for one name: addresses, or an error.
type dns struct {
	resolver *resolver
	answer   atomic.Value
	asked    atomic.Int64
}

const nameAddress = "1.1.1.1"

func newDNS(t *testing.T) *dns {
	t.Helper()
	n := &dns{resolver: newResolver()}
	// Tests say themselves when names are looked up again.
	n.resolver.outage.again = time.Hour
	n.resolver.lookup = func(context.Context, string) ([]netip.Addr, error) {
		n.asked.Add(1)
		return n.answer.Load().(func() ([]netip.Addr, error))()
	}
	n.set(nameAddress)
	n.want(t, "at first", nameAddress)
	return n
}

func (n *dns) set(address string) {
	n.answer.Store(func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(address)}, nil })
}

func (n *dns) fail(err error) { n.answer.Store(func() ([]netip.Addr, error) { return nil, err }) }

// expire has the next request look the name up again. age makes what was good last older.
func (n *dns) expire(age time.Duration) {
	n.resolver.mu.Lock()
	defer n.resolver.mu.Unlock()
	a := n.resolver.answers["o.test"]
	<-a.done
	a.expires, a.good, a.lastUntil = time.Time{}, a.good.Add(-age), a.lastUntil.Add(-age)
}

func (n *dns) want(t *testing.T, what, address string) {
	t.Helper()
	got, err := n.resolver.resolve(t.Context(), "o.test", nil)
	told := fmt.Sprint(got)
	if err != nil {
		told = string(classOf(err))
	}
	if told != address && told != "["+address+"]" {
		t.Errorf("%s: %s, not %s", what, told, address)
	}
}

func TestLastAddressesServeWhileDNSDoesNotRespond(t *testing.T) {
	timeout := &net.DNSError{Err: "i/o timeout", IsTimeout: true}
	missing := &net.DNSError{Err: "no such host", IsNotFound: true}
	broken := &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a timeout", timeout, nameAddress},
		{"a broken server", broken, nameAddress},
		{"any other failure", errors.New("no route to host"), nameAddress},
		{"a name that is gone", missing, "dns_failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newDNS(t)
			n.fail(c.err)
			n.expire(0)
			n.want(t, "after the first failure", c.want)
			n.expire(0)
			n.want(t, "after the second failure", c.want)
			n.expire(defaultKeep + resolvedFor + time.Minute)
			n.resolver.mu.Lock()
			a := n.resolver.answers["o.test"]
			n.resolver.mu.Unlock()
			<-a.done
			n.expire(0)
			n.want(t, "after the time for last addresses", "dns_failed")
			n.set("9.9.9.9")
			n.expire(0)
			n.want(t, "when DNS responds again", "9.9.9.9")
		})
	}
}

// A lookup that hangs holds up one request for a moment, and later ones not at all.
func TestLookupsThatHangDoNotHoldRequestsUp(t *testing.T) {
	n := newDNS(t)
	release := make(chan struct{})
	defer close(release)
	n.answer.Store(func() ([]netip.Addr, error) { <-release; return nil, errors.New("late") })
	n.expire(0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if addrs, err := n.resolver.resolve(ctx, "o.test", nil); err != nil || addrs[0].String() != nameAddress {
		t.Error(addrs, err)
	}
	if ctx.Err() != nil {
		t.Error("the request waited for the lookup")
	}
	n.resolver.mu.Lock()
	n.resolver.answers["o.test"].failing = true
	n.resolver.mu.Unlock()
	ended, end := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer end()
	if addrs, err := n.resolver.resolve(ended, "o.test", nil); err != nil || addrs[0].String() != nameAddress {
		t.Error(addrs, err)
	}
}

func TestLastAddressesAreForThePolicy(t *testing.T) {
	n := newDNS(t)
	n.fail(errors.New("down"))
	n.expire(0)
	n.want(t, "at first", nameAddress)
	n.resolver.mu.Lock()
	n.resolver.answers["o.test"].last = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	n.resolver.mu.Unlock()
	n.want(t, "a private address", string(failForbidden))
}

func TestFailingNamesAreLookedUpInTheBackground(t *testing.T) {
	n := newDNS(t)
	n.resolver.outage.again = time.Millisecond
	told := make(chan bool, 10)
	n.resolver.outage.told = func(failing bool) { told <- failing }
	tr := NewTransportSet(func() *AddressPolicy { return nil })
	tr.resolver = n.resolver
	n.fail(errors.New("down"))
	n.expire(0)
	n.want(t, "while DNS is down", nameAddress)
	if failing := <-told; !failing {
		t.Error("the end before the beginning")
	}
	status, metrics := new(edgev1.GetStatusResponse), new(bytes.Buffer)
	tr.FillStatus(status)
	tr.WriteMetrics(metrics)
	if len(status.Warnings) != 1 || !strings.Contains(status.Warnings[0], "serve: o.test") {
		t.Errorf("%q", status.Warnings)
	}
	if !strings.Contains(metrics.String(), "\nsvc_edge_origin_names_stale 1\n") {
		t.Error(metrics)
	}
	n.set("9.9.9.9")
	if failing := <-told; failing {
		t.Error("told twice")
	}
	n.want(t, "without another request", "9.9.9.9")
	if tr.FillStatus(status); len(status.Warnings) != 1 {
		t.Errorf("%q", status.Warnings)
	}
}

// A panic in a lookup fails the lookup alone.
func TestLookupsThatPanicFail(t *testing.T) {
	n := newDNS(t)
	n.answer.Store(func() ([]netip.Addr, error) { panic("lookup") })
	n.expire(0)
	n.want(t, "a panic", string(failDNS))
	n.set("9.9.9.9")
	n.expire(0)
	n.want(t, "after it", "9.9.9.9")
}
