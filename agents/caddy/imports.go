package main

import (
	// Caddy's own modules: HTTP server, TLS, storage on disk, log encoders.
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddytls"
	_ "github.com/caddyserver/caddy/v2/modules/caddytls/standardstek"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	_ "github.com/caddyserver/caddy/v2/modules/logging"

	// The edge.
	_ "edge.svc/caddy/svcapi"
	_ "edge.svc/caddy/svccore"
	_ "edge.svc/caddy/svcedge"
	_ "edge.svc/caddy/svclisten"
)
