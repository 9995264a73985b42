package requestlog

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

func logIn(t testing.TB, folder string, room int) *Log {
	return newLog(folder, room, time.Now, func(doing string, err error) { t.Errorf("%s: %v", doing, err) })
}

// drained takes everything out as the agent does.
func drained(l *Log) (rows [][]byte, losses map[string]uint64) {
	losses = map[string]uint64{}
	request := &edgev1.DrainLogsRequest{}
	for {
		response := l.Drain(request)
		for _, loss := range response.GetLosses() {
			losses[loss.GetSiteId()] = loss.GetRows()
		}
		if len(response.GetRows()) == 0 {
			return rows, losses
		}
		rows = append(rows, response.GetRows()...)
		request = &edgev1.DrainLogsRequest{Ring: response.GetRing(), Acknowledged: response.GetPosition()}
	}
}

func (l *Log) endForTest() { l.ring.close() }

// Rows come out whole and in order, however often the ring went around and whichever process asks.
func TestRowsComeOutInTheirOrderAcrossProcesses(t *testing.T) {
	folder := t.TempDir()
	var want []string
	l := logIn(t, folder, 64<<10)
	for turn := range 200 {
		for i := range 20 {
			row := fmt.Sprintf("%d-%d-%s", turn, i, strings.Repeat("x", (turn*7+i*13)%300))
			want = append(want, row)
			l.put("site", []byte(row))
		}
		if turn%3 == 0 {
			l.endForTest()
			l = logIn(t, folder, 64<<10)
		}
		rows, losses := drained(l)
		if len(losses) > 0 {
			t.Fatalf("losses %v", losses)
		}
		if len(rows) != len(want) {
			t.Fatalf("%d rows, not %d", len(rows), len(want))
		}
		for i := range rows {
			if string(rows[i]) != want[i] {
				t.Fatalf("row %d is %.30q, not %.30q", i, rows[i], want[i])
			}
		}
		want = nil
	}
}

// Rows that nobody acknowledged are returned again, by the next process too.
func TestRowsStayUntilTheyAreAcknowledged(t *testing.T) {
	folder := t.TempDir()
	l := logIn(t, folder, 64<<10)
	l.put("a", []byte("one"))
	first := l.Drain(&edgev1.DrainLogsRequest{})
	l.put("a", []byte("two"))
	l.endForTest()
	l = logIn(t, folder, 64<<10)
	again := l.Drain(&edgev1.DrainLogsRequest{})
	if len(first.GetRows()) != 1 || len(again.GetRows()) != 2 || first.GetRing() != again.GetRing() {
		t.Fatalf("%v, %v", first, again)
	}
	// What another ring acknowledged is none of this one's.
	if rest := l.Drain(&edgev1.DrainLogsRequest{Ring: again.GetRing() + 1, Acknowledged: again.GetPosition()}); len(rest.GetRows()) != 2 {
		t.Errorf("%d rows are left", len(rest.GetRows()))
	}
	rest := l.Drain(&edgev1.DrainLogsRequest{Ring: first.GetRing(), Acknowledged: first.GetPosition()})
	if len(rest.GetRows()) != 1 || string(rest.GetRows()[0]) != "two" {
		t.Errorf("%q is left", rest.GetRows())
	}
}

// A site that fills the ring leaves room for others, and each lost row counts for its site until the console has the number.
func TestASiteThatLogsMuchLeavesRoomForOthers(t *testing.T) {
	folder := t.TempDir()
	l := logIn(t, folder, 4<<20)
	row := bytes.Repeat([]byte("x"), 1000)
	sent := 0
	for range 6000 {
		l.put("heavy", row)
		sent++
	}
	for i := range 100 {
		for range 5 {
			l.put(fmt.Sprintf("light-%d", i), row)
		}
	}
	l.endForTest()
	l = logIn(t, folder, 4<<20)
	response := l.Drain(&edgev1.DrainLogsRequest{})
	if len(response.GetLosses()) != 1 || response.GetLosses()[0].GetSiteId() != "heavy" {
		t.Fatalf("losses %v", response.GetLosses())
	}
	// Nobody took the answer: the losses are told again.
	rows, losses := drained(l)
	if uint64(len(rows))+losses["heavy"] != uint64(sent+500) {
		t.Errorf("%d rows and %d losses of %d", len(rows), losses["heavy"], sent+500)
	}
	if again := l.Drain(&edgev1.DrainLogsRequest{}); len(again.GetLosses()) != 0 {
		t.Errorf("told again: %v", again.GetLosses())
	}
	l.put("heavy", row)
	if rest, _ := drained(l); len(rest) != 1 {
		t.Errorf("%d rows once there is room again", len(rest))
	}
}

// A file that is no ring is replaced, and the problem is told; a node that never logged makes no file.
func TestADamagedRingIsReplaced(t *testing.T) {
	folder := t.TempDir()
	if response := logIn(t, folder, 64<<10).Drain(&edgev1.DrainLogsRequest{}); response.GetRing() != 0 {
		t.Errorf("%v", response)
	}
	if _, err := os.Stat(ringPath(folder)); err == nil {
		t.Error("there is a file")
	}
	l := logIn(t, folder, 64<<10)
	l.put("a", []byte("one"))
	copy(l.ring.data[ringHeader+4:], "damage")
	l.endForTest()
	told := 0
	l = newLog(folder, 64<<10, time.Now, func(string, error) { told++ })
	l.put("a", []byte("two"))
	rows, _ := drained(l)
	if told != 1 || len(rows) != 1 || string(rows[0]) != "two" || l.broken {
		t.Errorf("told %d times, %q", told, rows)
	}
}

// Whatever a client sends becomes text that every database takes.
func TestTextOfRowsIsCleanAndBounded(t *testing.T) {
	for given, want := range map[string]string{
		"plain": "plain", "a\x00b": "a?b", "a\xff\xfeb": "a?b", "é": "é", "12345678é": "12345678", "1234567é9": "1234567é",
		"123456789012": "1234567890"[:9], "\x1b[31mred": "\x1b[31mred"[:8], "=1+1": "=1+1",
	} {
		if got := clean(given, 9); got != want {
			t.Errorf("%q becomes %q, not %q", given, got, want)
		}
	}
	b := text(nil, 8, "/\xff\x00", maxPath)
	var row nodev1.LogRow
	if err := proto.Unmarshal(b, &row); err != nil || row.GetPath() != "/??" {
		t.Errorf("%q, %v", row.GetPath(), err)
	}
}
