// Command challenge-load answers challenges as fast as an edge takes them. It knows the key of the cluster, so it makes
// the tokens itself: every answer is one that the edge has not seen.
package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/bits"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type run struct {
	addr, host, site, kind, key string
	valid                       bool
	pipeline                    int
	until                       time.Time
	limit                       int64
	next                        *atomic.Int64
}

type result struct {
	Requests int64   `json:"requests"`
	Seconds  float64 `json:"seconds"`
	RPS      float64 `json:"rps"`
	P50Ms    float64 `json:"p50Ms"`
	P99Ms    float64 `json:"p99Ms"`
	// Answers that were not what was to be expected.
	Unexpected int64 `json:"unexpected"`
}

const powBits = 6

func main() {
	var r run
	var connections int
	var seconds float64
	var first int64
	flag.StringVar(&r.addr, "addr", "", "address of the edge")
	flag.StringVar(&r.host, "host", "", "host of the site")
	flag.StringVar(&r.site, "site", "", "id of the site")
	flag.StringVar(&r.kind, "kind", "js", "js or pow")
	flag.StringVar(&r.key, "key", "", "secret of key k1, hex")
	flag.BoolVar(&r.valid, "valid", true, "right answers")
	flag.IntVar(&r.pipeline, "pipeline", 1, "requests on their way on a connection")
	flag.IntVar(&connections, "connections", 64, "connections")
	flag.Float64Var(&seconds, "seconds", 1, "time at most")
	flag.Int64Var(&r.limit, "requests", 1<<40, "requests at most")
	flag.Int64Var(&first, "first", 0, "number of the first challenge")
	flag.Parse()
	if ip := net.ParseIP(strings.Split(r.addr, ":")[0]); !ip.IsLoopback() {
		fail(fmt.Errorf("only loopback addresses"))
	}
	secret, err := hex.DecodeString(r.key)
	fail(err)

	r.next = new(atomic.Int64)
	r.next.Store(first)
	r.limit += first
	began := time.Now()
	r.until = began.Add(time.Duration(seconds * float64(time.Second)))
	var out result
	var times []time.Duration
	var mu sync.Mutex
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			took, unexpected, err := r.connection(secret)
			fail(err)
			mu.Lock()
			defer mu.Unlock()
			times = append(times, took...)
			out.Unexpected += unexpected
		})
	}
	all.Wait()
	out.Seconds = time.Since(began).Seconds()
	out.Requests = int64(len(times) * r.pipeline)
	out.RPS = float64(out.Requests) / out.Seconds
	slices.Sort(times)
	out.P50Ms, out.P99Ms = times[len(times)/2].Seconds()*1000, times[len(times)*99/100].Seconds()*1000
	fail(json.NewEncoder(os.Stdout).Encode(out))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// connection sends rounds of requests until the time is over. It returns how long each took, and how many answers were
// not what they had to be: 303 with a pass for right answers, 403 for wrong ones.
func (r *run) connection(secret []byte) (took []time.Duration, unexpected int64, err error) {
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 64<<10)
	maker := newMaker(r, secret)
	var batch []byte
	for time.Now().Before(r.until) && r.next.Load() < r.limit {
		batch = batch[:0]
		for range r.pipeline {
			batch = maker.request(batch, uint64(r.next.Add(1)))
		}
		began := time.Now()
		if _, err := conn.Write(batch); err != nil {
			return nil, 0, err
		}
		for range r.pipeline {
			ok, err := readAnswer(reader, r.valid)
			if err != nil {
				return nil, 0, err
			}
			if !ok {
				unexpected++
			}
		}
		took = append(took, time.Since(began))
	}
	return took, unexpected, nil
}

// maker makes challenges with their answers.
type maker struct {
	*run
	secret []byte
	agent  string
	nonce  [12]byte
}

func newMaker(r *run, secret []byte) *maker {
	// The requests have no User-Agent.
	sum := sha256.Sum256(nil)
	m := &maker{run: r, secret: secret, agent: hex.EncodeToString(sum[:8])}
	copy(m.nonce[:4], "load")
	return m
}

func (m *maker) request(dst []byte, number uint64) []byte {
	binary.BigEndian.PutUint64(m.nonce[4:], number)
	level, difficulty := "2", "0"
	if m.kind == "pow" {
		level, difficulty = "3", strconv.Itoa(powBits)
	}
	now := time.Now().Unix()
	b64 := base64.RawURLEncoding
	payload := fmt.Sprintf("%s|%s|%s|4:127.0.0|%s|%d|%d|%s|%s|", m.site, m.kind, level, m.agent, now, now+300, b64.EncodeToString(m.nonce[:]), difficulty)
	signed := "k1." + b64.EncodeToString([]byte(payload))
	mac := hmac.New(sha256.New, m.secret)
	mac.Write([]byte("c1." + signed))
	token := signed + "." + b64.EncodeToString(mac.Sum(nil))
	body := "t=" + token + "&a=" + m.answer(token) + "&r=%2F"
	return fmt.Appendf(dst, "POST /.svc/challenge/verify HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: gzip\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", m.host, len(body), body)
}

func (m *maker) answer(token string) string {
	if !m.valid {
		return "x"
	}
	if m.kind == "js" {
		sum := sha256.Sum256([]byte(token))
		return hex.EncodeToString(sum[:])
	}
	message := append([]byte(token), ':')
	for n := 0; ; n++ {
		sum := sha256.Sum256(strconv.AppendInt(message, int64(n), 10))
		if bits.LeadingZeros8(sum[0]) >= powBits {
			return strconv.Itoa(n)
		}
	}
}

func readAnswer(reader *bufio.Reader, valid bool) (ok bool, err error) {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return false, err
	}
	want := []byte("HTTP/1.1 403")
	if valid {
		want = []byte("HTTP/1.1 303")
	}
	ok = bytes.HasPrefix(line, want)
	length, pass := 0, false
	for {
		if line, err = reader.ReadSlice('\n'); err != nil {
			return false, err
		}
		if len(line) <= 2 {
			break
		}
		switch name, value, _ := bytes.Cut(line, []byte(": ")); string(name) {
		case "Content-Length":
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return false, err
			}
		case "Set-Cookie":
			pass = true
		}
	}
	_, err = reader.Discard(length)
	return ok && pass == valid, err
}
