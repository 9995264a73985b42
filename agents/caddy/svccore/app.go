package svccore

import (
	"errors"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
)

func init() { caddy.RegisterModule(App{}) }

// App is the Caddy app `svc`: the core of the edge, and the socket over which the agent drives it. It reads the
// journals while it is provisioned, that is before any listener opens.
type App struct {
	// Folder with the journals that the agent writes. Required, absolute.
	StateDir string `json:"state_dir"`
	// Unix socket on which the agent drives the edge. Required, absolute; its folder is made private.
	Socket string `json:"socket"`
	// Number of bans held at most. Default: 100000.
	BanCapacity int `json:"ban_capacity,omitempty"`
	// Memory for bans in MiB. Default: 32.
	BanMaxMiB int `json:"ban_max_mib,omitempty"`
	// Memory at most for answered challenges, in MiB. Default: 40, enough for 8,000 answers a second.
	ChallengeReplayMiB int `json:"challenge_replay_mib,omitempty"`

	core *Core
}

// API serves the socket of the agent. It is set by the package that implements it, because that package needs this one.
var API func(core *Core, socket string) error

// CaddyModule returns the Caddy module information.
func (App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "svc", New: func() caddy.Module { return new(App) }}
}

// Provision makes the core from the journals, or takes the one that already runs.
func (a *App) Provision(ctx caddy.Context) error {
	if !filepath.IsAbs(a.StateDir) || !filepath.IsAbs(a.Socket) {
		return errors.New("state_dir and socket must be absolute paths")
	}
	if a.BanCapacity == 0 {
		a.BanCapacity = 100_000
	}
	if a.BanMaxMiB == 0 {
		a.BanMaxMiB = 32
	}
	if a.BanCapacity < 1 || a.BanMaxMiB < 1 || a.ChallengeReplayMiB < 0 {
		return errors.New("ban_capacity, ban_max_mib and challenge_replay_mib must be positive")
	}
	core, err := process(Options{
		StateDir: a.StateDir, BanCapacity: a.BanCapacity, BanMaxBytes: int64(a.BanMaxMiB) << 20,
		ChallengeReplayBytes: a.ChallengeReplayMiB << 20, Log: ctx.Logger(),
	})
	a.core = core
	return err
}

// Core returns the core of the process.
func (a *App) Core() *Core { return a.core }

// Start opens the agent's socket.
func (a *App) Start() error {
	if API == nil {
		return errors.New("the module that serves the socket is not compiled in")
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
