package core

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func scrape(server http.Handler, method, path string) (int, string) {
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code, w.Body.String()
}

func TestTheMetricsPortShowsMetricsAndNothingElse(t *testing.T) {
	c := New(Options{StateDir: t.TempDir()})
	server := metricsServers.Of(c)
	for _, call := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/metrics", 200}, {"HEAD", "/metrics", 200}, {"POST", "/metrics", 405}, {"GET", "/", 404},
		{"POST", "/svc.edge.v1.EdgeService/GetStatus", 404}, {"GET", "/metrics/", 404},
	} {
		if got, _ := scrape(server, call.method, call.path); got != call.want {
			t.Errorf("%s %s: %d, not %d", call.method, call.path, got, call.want)
		}
	}
	for range maxScrapes {
		server.scrapes <- struct{}{}
	}
	if got, _ := scrape(server, "GET", "/metrics"); got != http.StatusServiceUnavailable {
		t.Errorf("one too many scrapes: %d", got)
	}
}

func TestTheMetricsPortIsTakenWhenItIsFree(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	c := New(Options{StateDir: t.TempDir(), Values: map[string]any{"metrics_listen": address}})
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		metricsServers.Of(c).Run(stop)
		close(ended)
	}()
	taken.Close()
	body := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && body == ""; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(fmt.Sprintf("http://%s/metrics", address))
		if err != nil {
			continue
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil && response.StatusCode == 200 && strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") {
			body = "answered " + string(text)
		}
	}
	if body == "" {
		t.Error("nobody serves metrics")
	}
	close(stop)
	<-ended
	if _, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		t.Error("the port is still open")
	}
}
