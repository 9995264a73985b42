// Command attack plays floods against an edge node on this machine, and visitors who want to get through meanwhile. It
// refuses every target that is not a loopback address, and has limits of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	target       netip.AddrPort
	host         string
	clientHeader string
	shape        shape
	rate         int
	seconds      int
	before       int
	after        int
	addresses    int
	connections  int
	path         string
	visitors     int
	visitorPath  string
	every        time.Duration
	json         bool
}

func main() {
	o, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run(ctx, o, os.Stdout)
}

const usage = `Usage: npm run bench -- attack [OPTIONS]

Plays a flood against an edge node on this machine, each second one line. The cluster must take the client address from a
header, as the demo's does, so that one machine can play many clients.

`

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	target := flags.String("target", env("EDGE", "127.0.0.1:8080"), "host:port of the edge, a loopback address (default: $EDGE)")
	flags.StringVar(&o.host, "host", env("SITE_HOST", "demo.localhost"), "host of the site (default: $SITE_HOST)")
	flags.StringVar(&o.clientHeader, "client-header", env("CLIENT_IP_HEADER", "x-demo-client-ip"), "header with the client address (default: $CLIENT_IP_HEADER)")
	name := flags.String("shape", "many-addresses", "what to play, see below; none plays visitors only")
	flags.IntVar(&o.rate, "rate", 0, "requests a second, 1-20000 (default: the shape's)")
	flags.IntVar(&o.seconds, "seconds", 60, "length of the flood, 1-900")
	flags.IntVar(&o.before, "before", 0, "seconds of visitors alone before it, 0-900")
	flags.IntVar(&o.after, "after", 0, "seconds of visitors alone after it, 0-900")
	flags.IntVar(&o.addresses, "addresses", 5000, "number of flooding clients, 1-65536")
	flags.IntVar(&o.connections, "connections", 32, "connections of the flood, 1-512")
	flags.StringVar(&o.path, "path", "/", "path the flood asks for")
	flags.IntVar(&o.visitors, "visitors", 3, "visitors who solve challenges, 0-250")
	flags.StringVar(&o.visitorPath, "visitor-path", "/", "path the visitors ask for")
	flags.DurationVar(&o.every, "every", time.Second, "time between two visits of a visitor, at least 100ms")
	flags.BoolVar(&o.json, "json", false, "one JSON object a second")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			help(flags, out)
		}
		return nil, err
	}
	var err error
	if o.target, err = parseTarget(*target); err != nil {
		return nil, err
	}
	for _, s := range append(shapes, shape{name: "none", rate: 1, share: func(time.Duration, time.Duration) float64 { return 0 }}) {
		if s.name == *name {
			o.shape = s
		}
	}
	if o.shape.name == "" {
		return nil, fmt.Errorf("there is no shape %q; see --help", *name)
	}
	if o.rate == 0 {
		o.rate = o.shape.rate
	}
	for _, r := range []struct {
		name               string
		value, least, most int
	}{
		{"rate", o.rate, 1, 20_000}, {"seconds", o.seconds, 1, 900}, {"before", o.before, 0, 900}, {"after", o.after, 0, 900},
		{"addresses", o.addresses, 1, maxAddresses}, {"connections", o.connections, 1, 512}, {"visitors", o.visitors, 0, 250},
		{"every", int(o.every / time.Millisecond), 100, 3_600_000},
	} {
		if r.value < r.least || r.value > r.most {
			return nil, fmt.Errorf("--%s is %d, not between %d and %d", r.name, r.value, r.least, r.most)
		}
	}
	for _, text := range []string{o.host, o.clientHeader, o.path, o.visitorPath} {
		if text == "" || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
			return nil, fmt.Errorf("%q cannot be part of a request", text)
		}
	}
	return o, nil
}

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func help(flags *flag.FlagSet, out io.Writer) {
	fmt.Fprint(out, usage)
	flags.VisitAll(func(f *flag.Flag) {
		fmt.Fprintf(out, "  --%-14s %s", f.Name, f.Usage)
		if !strings.Contains(f.Usage, "default") && f.DefValue != "false" {
			fmt.Fprintf(out, " (default: %s)", f.DefValue)
		}
		fmt.Fprintln(out)
	})
	fmt.Fprint(out, "\nShapes:\n\n")
	for _, s := range shapes {
		fmt.Fprintf(out, "  %-16s %s; %d a second\n", s.name, s.what, s.rate)
	}
}

// run plays visitors for the whole time and the flood in its middle.
func run(ctx context.Context, o *options, out io.Writer) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	t := &tally{}
	var visitors, reporter sync.WaitGroup
	for i := range o.visitors {
		v := &visitor{line: line{o: o}, index: i}
		visitors.Go(func() {
			defer v.line.close()
			v.run(ctx, o, t)
		})
	}
	phase := make(chan string, 3)
	finished := make(chan struct{})
	reporter.Go(func() { report(t, phase, finished, out, o.json) })

	phase <- "before"
	pause(ctx, time.Duration(o.before)*time.Second)
	if ctx.Err() == nil {
		phase <- "flood"
		flood(ctx, o, t)
		phase <- "after"
		pause(ctx, time.Duration(o.after)*time.Second)
	}
	end()
	visitors.Wait()
	close(finished)
	reporter.Wait()
}

func report(t *tally, phases <-chan string, finished <-chan struct{}, out io.Writer, asJSON bool) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	phase := ""
	for n := 1; ; n++ {
		last := false
		select {
		case <-ticker.C:
		case <-finished:
			last = true
		}
		s := t.take()
		s.Second, s.Phase = n, phase
		for more := true; more; {
			select {
			case phase = <-phases:
				s.Phase = phase
			default:
				more = false
			}
		}
		if last && s.Flood.Sent == 0 && s.Visitors.Visits == 0 {
			return
		}
		s.write(out, asJSON)
		if last {
			return
		}
	}
}
