// Command svc-caddy is the data plane of an edge node: Caddy with the modules that an edge needs, and no others.
package main

import "edge.svc/caddy/program"

func main() { program.Main() }
