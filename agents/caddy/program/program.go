// Package program is svc-caddy as a whole: its modules and its commands.
package program

import (
	"fmt"
	"os"
	"runtime"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"edge.svc/caddy/core"
	"edge.svc/caddy/internal/confine"
	"edge.svc/caddy/internal/heaproom"
	"edge.svc/caddy/internal/hold"
	"edge.svc/caddy/internal/lifesign"
	"edge.svc/caddy/internal/memory"
)

// Main runs the command that the arguments of the process name.
func Main() {
	server, _ := caddy.Version()
	caddy.CustomBinaryName = "svc-caddy"
	caddy.CustomVersion = core.Version
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "version", "-version", "--version", "-v":
			fmt.Printf("svc-caddy %s (caddy %s, %s %s/%s)\n", core.Version, server, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return
		}
	}
	if err := confine.Self(); err != nil {
		fmt.Fprintln(os.Stderr, "svc-caddy:", err)
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "hold" {
		os.Exit(hold.Run(os.Args[2:], os.Stdout, os.Stderr))
	}
	if err := lifesign.Open(); err != nil {
		fmt.Fprintln(os.Stderr, "svc-caddy:", err)
		os.Exit(1)
	}
	memory.Keep()
	heaproom.Keep()
	caddycmd.Main()
}
