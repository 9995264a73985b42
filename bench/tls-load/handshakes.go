package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"
)

const dialTime = 10 * time.Second

// visitor makes one handshake after the other.
type visitor struct {
	address string
	config  *tls.Config
	// Whether handshakes have to resume a session.
	resumed bool
}

// handshakes makes so many handshakes one after the other, each with a connection that both sides then
// close in order, so that what closing costs is that of every server.
func handshakes(arguments []string) error {
	flags := flag.NewFlagSet("handshakes", flag.ExitOnError)
	address := flags.String("address", "", "host:port")
	host := flags.String("host", "localhost", "name that is asked for; %d is a number")
	numbers := flags.Int("numbers", 0, "the %d is one of so many, none twice; 0: the host is asked for as it is")
	seed := flags.Uint64("seed", 1, "which numbers those are")
	count := flags.Int("count", 1, "how many")
	curve := flags.String("curve", "X25519", "X25519 or X25519MLKEM768")
	resumed := flags.Bool("resumed", false, "sessions are resumed")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	curves := map[string]tls.CurveID{"X25519": tls.X25519, "X25519MLKEM768": tls.X25519MLKEM768}
	if curves[*curve] == 0 {
		return fmt.Errorf("%s is no key exchange of these benchmarks", *curve)
	}
	v := &visitor{*address, &tls.Config{
		// Nobody has the authority of a benchmark in his store.
		InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{curves[*curve]},
		NextProtos: []string{"http/1.1"},
	}, *resumed}
	if *resumed {
		v.config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		if err := v.prime(*host); err != nil {
			return err
		}
	}
	hosts := func(int) string { return *host }
	if *numbers > 0 {
		order := rand.New(rand.NewPCG(*seed, 1)).Perm(*numbers)
		hosts = func(i int) string { return strings.ReplaceAll(*host, "%d", fmt.Sprint(order[i%len(order)])) }
	}
	micros := make([]float64, *count)
	for i := range micros {
		took, err := v.shake(hosts(i))
		if err != nil {
			return fmt.Errorf("%s: %w", hosts(i), err)
		}
		micros[i] = float64(took.Nanoseconds()) / 1000
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"micros": micros})
}

// shake makes a handshake and returns what it took, the connection of TCP left out.
func (v *visitor) shake(host string) (time.Duration, error) {
	conn, err := v.connect(host)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	begun := time.Now()
	if err := conn.Handshake(); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	if did := conn.ConnectionState().DidResume; did != v.resumed {
		return 0, fmt.Errorf("whether it resumed a session: %v", did)
	}
	return took, finish(conn)
}

func (v *visitor) connect(host string) (*tls.Conn, error) {
	raw, err := net.DialTimeout("tcp", v.address, dialTime)
	if err != nil {
		return nil, err
	}
	_ = raw.SetDeadline(time.Now().Add(dialTime))
	config := v.config.Clone()
	config.ServerName = host
	return tls.Client(raw, config), nil
}

// finish says that nothing more comes, and waits until the server has closed.
func finish(conn *tls.Conn) error {
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	return err
}

// prime gets a session to resume: servers send tickets after the handshake, so it is read to its end.
func (v *visitor) prime(host string) error {
	conn, err := v.connect(host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Handshake(); err != nil {
		return err
	}
	return finish(conn)
}
