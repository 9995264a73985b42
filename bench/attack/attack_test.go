package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOnlyThisMachineIsATarget(t *testing.T) {
	for _, text := range []string{"127.0.0.1:80", "localhost:8080", "[::1]:80", "http://127.9.9.9:1/", "[::ffff:127.0.0.1]:80"} {
		if target, err := parseTarget(text); err != nil || !target.Addr().IsLoopback() {
			t.Errorf("%s: %v %v", text, target, err)
		}
	}
	for _, text := range []string{
		"example.com:80", "192.0.2.1:80", "10.0.0.1:80", "0.0.0.0:80", "[::]:80", "[2001:db8::1]:80", "127.0.0.1", "127.0.0.1:0",
		"localhost.example.com:80", "127.0.0.1.example.com:80", "127.0.0.1:80@example.com:80", "", ":80", "127.0.0.1:x", "https://127.0.0.1:443",
	} {
		if target, err := parseTarget(text); err == nil {
			t.Errorf("%s became %v", text, target)
		}
	}
}

func TestBounds(t *testing.T) {
	for _, args := range [][]string{
		{"--rate", "20001"}, {"--rate", "-1"}, {"--seconds", "0"}, {"--seconds", "901"}, {"--addresses", "65537"}, {"--connections", "513"},
		{"--visitors", "251"}, {"--every", "99ms"}, {"--shape", "other"}, {"--target", "192.0.2.1:80"}, {"--host", "a\r\nb"}, {"--path", ""}, {"--nothing"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	for _, s := range shapes {
		o, err := parse([]string{"--shape", s.name}, io.Discard)
		if err != nil || o.rate != s.rate {
			t.Errorf("%s: %v", s.name, err)
		}
		for range 1000 {
			if addr, path := s.request(o); !addr.Is4() || !strings.HasPrefix(path, "/") {
				t.Fatalf("%s: %v %s", s.name, addr, path)
			}
		}
	}
	if a := attacker(maxAddresses - 1).String(); a != "198.18.255.255" {
		t.Errorf("the last attacker is %s", a)
	}
}

func TestWork(t *testing.T) {
	for _, token := range []string{"short", strings.Repeat("x", 63), strings.Repeat("y", 64), strings.Repeat("z", 300)} {
		sum := sha256.Sum256([]byte(token + ":" + work(t.Context(), token, 10)))
		if leadingZeros(sum[:]) < 10 {
			t.Errorf("%d bytes: %x", len(token), sum)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if work(ctx, "never", 256) != "" {
		t.Error("worked on after the end")
	}
}

// A short flood of every shape, against a server that counts what arrives.
func TestShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			clients, paths := make(chan string, 10_000), make(chan string, 10_000)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.UserAgent() == floodAgent {
					clients <- r.Header.Get("X-Demo-Client-Ip")
					paths <- r.URL.Path
				}
				fmt.Fprint(w, r.Host)
			}))
			defer server.Close()
			o, err := parse([]string{"--target", server.URL, "--shape", s.name, "--seconds", "1", "--rate", "100", "--visitors", "1", "--every", "100ms", "--json"}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			run(t.Context(), o, &out)
			close(clients)
			close(paths)
			distinct, asked := map[string]bool{}, map[string]bool{}
			for c := range clients {
				distinct[c] = true
			}
			for p := range paths {
				asked[p] = true
			}
			if many := len(distinct) > 1; many != (s.name != "one-address") || len(asked) != 1 || asked["/status/503"] != (s.name == "failing-origin") {
				t.Errorf("%d clients, paths %v", len(distinct), asked)
			}
			sent, visits := 0, 0
			for line := range strings.Lines(out.String()) {
				var got second
				if err := json.Unmarshal([]byte(line), &got); err != nil {
					t.Fatal(err)
				}
				sent, visits = sent+got.Flood.Sent, visits+got.Visitors.Visits-got.Visitors.Failed
			}
			if sent == 0 || sent > 101 || visits == 0 {
				t.Errorf("%d requests, %d visits:\n%s", sent, visits, out.String())
			}
		})
	}
}

func TestHelpNamesEveryShape(t *testing.T) {
	var out strings.Builder
	if _, err := parse([]string{"--help"}, &out); err == nil {
		t.Fatal("help is not the end")
	}
	for _, s := range shapes {
		if !strings.Contains(out.String(), s.name) {
			t.Errorf("%s is missing", s.name)
		}
	}
}
