package program_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
	"edge.svc/caddy/internal/confine"
	"edge.svc/caddy/internal/edgetest"
	"edge.svc/caddy/program/live"
)

func folders(t *testing.T, f confine.Folders) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(confine.Variable, string(text))
}

// An edge that is kept to its folders serves as ever, names of origins that must be looked up included; one that
// cannot be kept to them serves, too, and says so.
func TestAConfinedEdgeServes(t *testing.T) {
	for name, f := range map[string]confine.Folders{
		"to its folders":      {Write: []string{os.TempDir()}},
		"to a missing folder": {Read: []string{filepath.Join(t.TempDir(), "missing")}, Write: []string{os.TempDir()}},
	} {
		t.Run(name, func(t *testing.T) {
			folders(t, f)
			port := live.StartOrigin(t)
			named := edgetest.Site(port, "b.test")
			named.Origins[0].Address = "localhost"
			e := live.Start(t, nil, []*edgev1.JournalRecord{
				edgetest.Header("node-1"),
				edgetest.Config(1, []*configv1.Entry{
					live.OriginPolicy(), live.HeaderMode(),
					edgetest.Entry("site", "site-a", edgetest.Site(port, "a.test")), edgetest.Entry("site", "site-b", named),
				}),
			}, nil)
			e.Expect("GET", "a.test", "/", 200, "")
			e.Expect("GET", "b.test", "/", 200, "")
			problem := e.Status().GetConfinementProblem()
			// Neither a build with C code nor an old kernel can do it.
			cannot := strings.Contains(problem, "capabilities: ") || strings.Contains(problem, "Landlock")
			if (problem != "") != (len(f.Read) > 0) && !cannot {
				t.Errorf("%q", problem)
			}
		})
	}
}

// What the process was to be kept from is not known when the variable makes no sense.
func TestAMistakeInTheVariableEndsTheProcess(t *testing.T) {
	cmd := exec.Command(os.Args[0], "run")
	cmd.Env = append(os.Environ(), live.Variable+"=1", confine.Variable+"=/var/lib")
	output, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(output), confine.Variable) {
		t.Errorf("%v %s", err, output)
	}
}
