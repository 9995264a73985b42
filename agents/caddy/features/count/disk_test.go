package count

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

// failingDisk fails the call after `left` more. A torn one does half of its work first.
type failingDisk struct {
	realDisk
	left int
	err  error
	torn bool
	came bool
}

func (d *failingDisk) fails(half func()) error {
	d.left--
	if d.left != -1 {
		return nil
	}
	d.came = true
	if d.torn {
		half()
	}
	return d.err
}

func (d *failingDisk) create(path string) (*os.File, error) {
	if err := d.fails(func() {}); err != nil {
		return nil, err
	}
	return d.realDisk.create(path)
}

func (d *failingDisk) allocate(file *os.File, size int) error {
	if err := d.fails(func() { _ = d.realDisk.allocate(file, size/2) }); err != nil {
		return err
	}
	return d.realDisk.allocate(file, size)
}

func (d *failingDisk) truncate(file *os.File, size int64) error {
	if err := d.fails(func() {}); err != nil {
		return err
	}
	return d.realDisk.truncate(file, size)
}

func (d *failingDisk) write(path string, data []byte) error {
	if err := d.fails(func() { _ = d.realDisk.write(path, data[:len(data)/2]) }); err != nil {
		return err
	}
	return d.realDisk.write(path, data)
}

func (d *failingDisk) rename(from, to string) error {
	if err := d.fails(func() {}); err != nil {
		return err
	}
	return d.realDisk.rename(from, to)
}

func TestAFaultAtAnyCallLosesNoCountAndRepeatsNone(t *testing.T) {
	for name, fault := range map[string]failingDisk{
		"EIO":    {err: syscall.EIO},
		"ENOSPC": {err: syscall.ENOSPC},
		"torn":   {err: syscall.EIO, torn: true},
	} {
		calls := 0
		for {
			d := fault
			d.left = calls
			t.Run(fmt.Sprintf("%s at call %d", name, calls), func(t *testing.T) { failOnce(t, &d) })
			if !d.came {
				break
			}
			calls++
		}
		if calls < 8 {
			t.Errorf("%s: only %d calls", name, calls)
		}
	}
}

// failOnce has three processes count: the first is killed, the second meets the fault and ends in order.
func failOnce(t *testing.T, d *failingDisk) {
	folder, clock := t.TempDir(), &fakeClock{start}
	first := statsIn(t, folder, clock)
	first.counter("a").request(1, 0)
	first.Settle()
	clock.pass(time.Second)

	second := statsIn(t, folder, clock)
	second.disk = d
	acknowledged, sent := uint64(0), uint64(0)
	var last *edgev1.DrainStatsResponse
	for n := uint64(10); n <= 1000; n *= 10 {
		second.counter("a").request(n, 0)
		second.Settle()
		clock.pass(time.Second)
		last = second.Drain(acknowledged)
		if again := second.Drain(acknowledged); again.String() != last.String() {
			t.Errorf("a batch changed: %v, then %v", last, again)
		}
		sent += sentIn(last)
		acknowledged = last.GetSequence()
	}
	for {
		batch := second.Drain(acknowledged)
		if batch.GetSequence() == 0 {
			break
		}
		last, acknowledged = batch, batch.GetSequence()
		sent += sentIn(batch)
	}
	if sent != 1111 {
		t.Errorf("%d bytes of 1111 were told", sent)
	}
	second.counter("a").request(10_000, 0)
	second.End()

	// Acknowledged batches are not repeated, and new counts are in a file again.
	third := statsIn(t, folder, clock)
	next := third.Drain(acknowledged)
	if told := sentIn(next); told != 10_000 && !(d.came && told == 0) {
		t.Errorf("%d bytes were told of the 10000 that were not", told)
	}
	third.counter("a").request(1, 0)
	third.Settle()
	if third.spool.mapped == nil || third.spool.failing {
		t.Error("the next process does not use the disk")
	}
	left, err := filepath.Glob(filepath.Join(folder, "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("%s is left behind (%v)", strings.Join(left, ", "), err)
	}
}

func sentIn(batch *edgev1.DrainStatsResponse) uint64 {
	sum := uint64(0)
	for _, minute := range batch.GetMinutes() {
		sum += minute.GetBytesSent()
	}
	return sum
}
