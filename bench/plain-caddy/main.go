// plaincaddy is Caddy of the same version as the edge with nothing but its own reverse_proxy: what the edge-proxy
// benchmark measures beside ours.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func main() { caddycmd.Main() }
