package count

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

const runCounting = "SVC_COUNT_TEST_FOLDER"

// The test binary counts without end when it is started with the variable set.
func TestMain(m *testing.M) {
	if folder := os.Getenv(runCounting); folder != "" {
		countForever(folder)
		return
	}
	os.Exit(m.Run())
}

// countForever counts requests, and says after each second how many there were before it settled them.
func countForever(folder string) {
	stats := newStats(folder, time.Now, func(doing string, err error) { fmt.Fprintln(os.Stderr, doing, err) })
	site := stats.counter("a")
	for n := uint64(0); ; {
		for range 1000 {
			site.request(3, 5)
			n++
		}
		stats.Settle()
		fmt.Println(n)
	}
}

// A process that is killed at any point leaves all that it had settled, once, and a gap from then on.
func TestAProcessKilledAtAnyPointLosesAtMostWhatItHadNotSettled(t *testing.T) {
	for turn := range 3 {
		folder := t.TempDir()
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), runCounting+"="+folder)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		told := uint64(0)
		for range 50 + 37*turn {
			if !lines.Scan() {
				t.Fatal("it ended by itself")
			}
			if told, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		_ = child.Process.Kill()
		for lines.Scan() {
			// What it said before it was killed; a torn line is none.
			if n, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil && n > told {
				told = n
			}
		}
		_ = child.Wait()

		stats := newStats(folder, time.Now, func(doing string, err error) { t.Errorf("%s: %v", doing, err) })
		var requests, sent, received, gaps uint64
		for acknowledged := uint64(0); ; {
			batch := stats.Drain(acknowledged)
			if batch.GetSequence() == 0 {
				break
			}
			acknowledged = batch.GetSequence()
			gaps += uint64(len(batch.GetGaps()))
			for _, minute := range batch.GetMinutes() {
				requests += minute.GetRequests()
				sent += minute.GetBytesSent()
				received += minute.GetBytesReceived()
			}
		}
		if requests < told || requests > told+1000 || sent < 3*told || sent > 3*(told+1000) || received < 5*told || received > 5*(told+1000) {
			t.Errorf("%d requests, %d and %d bytes; %d were settled", requests, sent, received, told)
		}
		if gaps != 1 {
			t.Errorf("%d gaps", gaps)
		}
	}
}
