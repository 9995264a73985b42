package store

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

var long = flag.Int("kills", 3, "how often the process that writes is killed")

const writerFolder = "SVC_TEST_STORE_WRITER"

// A process that writes responses is killed in the middle of 1,000 writes. Whatever is found after is whole.
func TestNothingWrongIsServedAfterTheProcessWasKilled(t *testing.T) {
	if dir := os.Getenv(writerFolder); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	for round := range *long {
		killAfter(t, dir, 40+round*37%960)
		z := open(t, dir)
		until(t, "the files are swept", z.Swept)
		found := 0
		for i := range 1000 {
			o := z.get(fmt.Sprint("k", i))
			if o == nil {
				continue
			}
			found++
			seed, _ := strconv.Atoi(o.Header.Get("Seed"))
			if got, err := body(o, 0, o.Length); err != nil || !bytes.Equal(got, pattern(seed)) {
				t.Fatalf("round %d: %s is served with %d bytes of %d: %v", round, o.Key, len(got), seed, err)
			}
		}
		if found == 0 {
			t.Fatal("nothing was stored")
		}
		if used, _, n := z.Usage(); used != fileSizes(dir) || n != found {
			t.Errorf("round %d: %d objects of %d bytes, %d found, the files have %d", round, n, used, found, fileSizes(dir))
		}
		z.end()
	}
}

// killAfter kills a process that writes once it has written so much.
func killAfter(t *testing.T, dir string, writes int) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestNothingWrongIsServedAfterTheProcessWasKilled$", "-test.count=1")
	c.Env = append(os.Environ(), writerFolder+"="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), fmt.Sprint("wrote ", writes)) {
		continue
	}
	_ = c.Process.Kill()
	_ = c.Wait()
}

func writeUntilKilled(t *testing.T, dir string) {
	z := open(t, dir)
	seed := int(time.Now().UnixNano() % 1000)
	for i := 0; ; i++ {
		seed = (seed*7 + i) % (4 * chunk)
		m := metaOf(fmt.Sprint("k", i%1000))
		m.Header.Set("Seed", fmt.Sprint(seed))
		o := z.put(t, m, pattern(seed))
		switch i % 10 {
		case 3:
			if _, err := z.Refresh(o, m); err != nil {
				t.Fatal(err)
			}
		case 5:
			z.Remove(o)
		case 7:
			z.flush()
		case 9:
			if i%100 == 99 {
				if err := z.log.checkpoint(&z.index); err != nil {
					t.Fatal(err)
				}
			}
		}
		fmt.Println("wrote", i)
	}
}
