package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const (
	exchangeTimeout = 10 * time.Second
	maxBodyBytes    = 1 << 20
)

// line is a keep-alive connection to the target. It reconnects when it has to.
type line struct {
	o    *options
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

// answer is what came back; its body only where it was asked for.
type answer struct {
	status    int
	challenge string
	failure   string
	location  string
	cookie    string
	body      string
}

// outcome names an answer for the report.
func (a answer) outcome() string {
	name := strconv.Itoa(a.status)
	switch {
	case a.challenge != "":
		return name + " " + a.challenge
	case a.failure != "":
		return name + " " + a.failure
	}
	return name
}

type message struct {
	method, path, agent, cookie, form string
	client                            netip.Addr
	wantBody                          bool
}

// send makes one request and reads its answer.
func (l *line) send(ctx context.Context, m message) (answer, error) {
	if l.conn == nil {
		conn, err := dial(ctx, l.o.target)
		if err != nil {
			return answer{}, err
		}
		l.conn, l.in = conn, bufio.NewReaderSize(conn, 8<<10)
	}
	a, keep, err := l.exchange(m)
	if err != nil || !keep {
		l.close()
	}
	return a, err
}

func (l *line) close() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

func (l *line) exchange(m message) (a answer, keep bool, err error) {
	b := append(l.out[:0], m.method...)
	b = append(append(b, ' '), m.path...)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), l.o.host...)
	b = append(append(append(b, "\r\n"...), l.o.clientHeader...), ": "...)
	b = m.client.AppendTo(b)
	b = append(append(b, "\r\nAccept: */*\r\nUser-Agent: "...), m.agent...)
	if m.cookie != "" {
		b = append(append(b, "\r\nCookie: "...), m.cookie...)
	}
	if m.method == http.MethodPost {
		b = append(b, "\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(m.form)), 10)
	}
	b = append(append(b, "\r\n\r\n"...), m.form...)
	l.out = b
	_ = l.conn.SetDeadline(time.Now().Add(exchangeTimeout))
	if _, err := l.conn.Write(b); err != nil {
		return answer{}, false, err
	}
	r, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return answer{}, false, err
	}
	defer r.Body.Close()
	a = answer{
		status: r.StatusCode, challenge: r.Header.Get("X-Svc-Challenge"), failure: r.Header.Get("X-Svc-Error"),
		location: r.Header.Get("Location"),
	}
	for _, c := range r.Header["Set-Cookie"] {
		if pair, _, _ := strings.Cut(c, ";"); strings.HasPrefix(pair, "__ew_pass=") {
			a.cookie = pair
		}
	}
	if m.wantBody {
		text, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes))
		if err != nil {
			return answer{}, false, err
		}
		a.body = string(text)
	}
	_, err = io.Copy(io.Discard, r.Body)
	return a, !r.Close, err
}
