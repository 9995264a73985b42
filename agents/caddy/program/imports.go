package program

import (
	// Caddy's own modules: HTTP server, TLS, storage on disk, log encoders.
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddytls"
	_ "github.com/caddyserver/caddy/v2/modules/caddytls/standardstek"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	_ "github.com/caddyserver/caddy/v2/modules/logging"

	// The edge, and its features: what is registered by being here.
	_ "edge.svc/caddy/api"
	_ "edge.svc/caddy/core"
	_ "edge.svc/caddy/edge"
	_ "edge.svc/caddy/features/bans"
	_ "edge.svc/caddy/features/buffer"
	_ "edge.svc/caddy/features/cc"
	_ "edge.svc/caddy/features/challenge"
	_ "edge.svc/caddy/features/count"
	_ "edge.svc/caddy/features/geo"
	_ "edge.svc/caddy/features/handshake"
	_ "edge.svc/caddy/features/lists"
	_ "edge.svc/caddy/features/origin"
	_ "edge.svc/caddy/features/prefetch"
	_ "edge.svc/caddy/features/rate"
	_ "edge.svc/caddy/features/requestlog"
	_ "edge.svc/caddy/features/sites"
	_ "edge.svc/caddy/features/waf"
	_ "edge.svc/caddy/listen"
)
