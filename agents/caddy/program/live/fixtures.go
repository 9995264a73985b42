package live

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
	"edge.svc/caddy/internal/edgetest"
)

// StartOrigin starts an origin that echoes what it gets, in the form "header: value" a line, or streams without end under /stream.
func StartOrigin(t *testing.T) (port uint32) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "origin")
		w.Header().Set("X-Svc-Error", "forged")
		if r.URL.Path == "/stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: first\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "Host: %s\nTarget: %s\nBody: %d\n", r.Host, r.RequestURI, len(body))
		_ = r.Header.Write(w)
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// OriginPolicy allows origins on this machine.
func OriginPolicy() *configv1.Entry {
	return edgetest.Entry("origin-policy", "", &configv1.OriginPolicy{AllowedCidrs: []string{"127.0.0.0/8"}})
}

// HeaderMode takes the address of a client from the header X-Demo-Client-Ip.
func HeaderMode() *configv1.Entry {
	return edgetest.Entry("client-ip", "", &configv1.ClientIp{
		Mode: configv1.ClientIpMode_CLIENT_IP_MODE_HEADER, Header: "x-demo-client-ip", TrustedCidrs: []string{"127.0.0.0/8"},
	})
}

// Ban is a manual ban for an hour; without a site it is global.
func Ban(id, siteID, cidr string) *nodev1.Ban {
	return &nodev1.Ban{
		Id: id, SiteId: siteID, Cidr: cidr, Source: nodev1.BanSource_BAN_SOURCE_MANUAL,
		ExpiresAtMs: time.Now().Add(time.Hour).UnixMilli(), CreatedAtMs: time.Now().UnixMilli(), Reason: "abuse",
	}
}
