// Command client asks an edge over one version of HTTP and TLS, for tests of other languages: orders come as lines of JSON
// on standard input, what happens leaves as lines on standard output. All requests for one host share connections.
//
//	client 1|2|3 ADDRESS CA.pem
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// order is a request that begins, or the wish to end one that is under way.
type order struct {
	ID      int                 `json:"id"`
	Method  string              `json:"method"`
	Host    string              `json:"host"`
	Path    string              `json:"path"`
	Headers map[string][]string `json:"headers"`
	// nil for none.
	Body   *string `json:"body"`
	Cancel bool    `json:"cancel"`
}

// event is what happened to a request: its head, a piece of its body, its end.
type event struct {
	ID      int         `json:"id"`
	Status  int         `json:"status,omitempty"`
	Proto   string      `json:"proto,omitempty"`
	Headers http.Header `json:"headers,omitempty"`
	Text    string      `json:"text,omitempty"`
	End     bool        `json:"end,omitempty"`
	Error   string      `json:"error,omitempty"`
}

const maxOrderBytes = 16 << 20

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: client 1|2|3 ADDRESS CA.pem")
	}
	authority, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return errors.New("no certificate in " + args[2])
	}
	transport, err := over(args[0], args[1], &tls.Config{RootCAs: roots})
	if err != nil {
		return err
	}
	c := &client{
		asks:     http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		out:      json.NewEncoder(os.Stdout),
		underWay: map[int]context.CancelFunc{},
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxOrderBytes)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		c.take(&o)
	}
	return lines.Err()
}

// over makes connections of a version of HTTP, all of them to one address.
func over(version, address string, config *tls.Config) (http.RoundTripper, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	switch version {
	case "1":
		return &http.Transport{DialContext: dial, TLSClientConfig: config, DisableCompression: true}, nil
	case "2":
		return &http.Transport{DialContext: dial, TLSClientConfig: config, DisableCompression: true, ForceAttemptHTTP2: true}, nil
	case "3":
		return &http3.Transport{
			TLSClientConfig: config, DisableCompression: true,
			Dial: func(ctx context.Context, _ string, t *tls.Config, q *quic.Config) (*quic.Conn, error) {
				return quic.DialAddrEarly(ctx, address, t, q)
			},
		}, nil
	}
	return nil, errors.New("there is no HTTP " + version)
}

type client struct {
	asks http.Client

	mu       sync.Mutex
	out      *json.Encoder
	underWay map[int]context.CancelFunc
}

func (c *client) tell(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Nobody reads any more when the test is over.
	_ = c.out.Encode(e)
}

func (c *client) take(o *order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Cancel {
		if cancel := c.underWay[o.ID]; cancel != nil {
			cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.underWay[o.ID] = cancel
	go func() {
		end := event{ID: o.ID, End: true}
		if err := c.ask(ctx, o); err != nil {
			end.Error = err.Error()
		}
		cancel()
		c.mu.Lock()
		delete(c.underWay, o.ID)
		c.mu.Unlock()
		c.tell(end)
	}()
}

// ask sends a request and tells its answer as it comes.
func (c *client) ask(ctx context.Context, o *order) error {
	var body io.Reader
	if o.Body != nil {
		body = strings.NewReader(*o.Body)
	}
	request, err := http.NewRequestWithContext(ctx, o.Method, "https://"+o.Host+o.Path, body)
	if err != nil {
		return err
	}
	for name, values := range o.Headers {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	response, err := c.asks.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	c.tell(event{ID: o.ID, Status: response.StatusCode, Proto: response.Proto, Headers: response.Header})
	for buffer := make([]byte, 32<<10); ; {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			c.tell(event{ID: o.ID, Text: string(buffer[:n])})
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
