package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
)

func init() { caddy.RegisterModule(App{}) }

// App is the Caddy app `svc`: the core of the edge, and the socket over which the agent drives it. It reads the
// journals while it is provisioned, that is before any listener opens. Beside these fields its JSON has the options that
// features registered.
type App struct {
	// Folder with the journals and keys that the agent writes. Required, absolute.
	StateDir string `json:"state_dir"`
	// Unix socket on which the agent drives the edge. Required, absolute; its folder is made private.
	Socket string `json:"socket"`
	// What the agent does by itself: entries may ask for these capabilities, too.
	AgentCapabilities []string `json:"agent_capabilities,omitempty"`

	options map[string]any
	core    *Core
}

// API serves the socket of the agent. It is set by the package that implements it, because that package needs this one.
var API func(core *Core, socket string) error

// CaddyModule returns the Caddy module information.
func (App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "svc", New: func() caddy.Module { return new(App) }}
}

// UnmarshalJSON reads the fields of the app and the options of the features; it fails for any other field.
func (a *App) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	own := map[string]any{"state_dir": &a.StateDir, "socket": &a.Socket, "agent_capabilities": &a.AgentCapabilities}
	a.options = map[string]any{}
	for name, raw := range fields {
		if into, ok := own[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		read, ok := options[name]
		if !ok {
			return fmt.Errorf("the app has no field %q", name)
		}
		value, err := read(raw)
		if err != nil {
			return err
		}
		a.options[name] = value
	}
	return nil
}

// Provision makes the core from the journals, or takes the one that already runs.
func (a *App) Provision(ctx caddy.Context) error {
	if !filepath.IsAbs(a.StateDir) || !filepath.IsAbs(a.Socket) {
		return errors.New("state_dir and socket must be absolute paths")
	}
	core, err := process(Options{
		StateDir: a.StateDir, Values: a.options, AgentCapabilities: a.AgentCapabilities, Log: ctx.Logger(),
	})
	a.core = core
	return err
}

// Core returns the core of the process.
func (a *App) Core() *Core { return a.core }

// Start opens the agent's socket.
func (a *App) Start() error {
	if API == nil {
		return errors.New("this program has no module that serves the socket")
	}
	return API(a.core, a.Socket)
}

// Stop leaves everything as it is: the core and its socket live as long as the process.
func (a *App) Stop() error { return nil }

// FromContext returns the core for a module that is being provisioned.
func FromContext(ctx caddy.Context) (*Core, error) {
	app, err := ctx.App("svc")
	if err != nil {
		return nil, err
	}
	return app.(*App).core, nil
}

var (
	_ caddy.App         = (*App)(nil)
	_ caddy.Provisioner = (*App)(nil)
)
