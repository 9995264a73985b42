//go:build !cgo

package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const runChild = "CONFINE_TEST_FOLDER"

// What a thread of a confined process can do.
type thread struct {
	Status map[string]string
	Errors map[string]string
}

func TestMain(m *testing.M) {
	if folder := os.Getenv(runChild); folder != "" {
		child(folder)
		return
	}
	os.Exit(m.Run())
}

// child confines itself between threads that were there before and some that come afterwards, and prints what each can do.
func child(folder string) {
	const each = 8
	results := make(chan thread)
	confined := make(chan struct{})
	run := func(after bool) {
		runtime.LockOSThread()
		if !after {
			results <- thread{}
		}
		<-confined
		results <- look(folder)
	}
	for range each {
		go run(false)
	}
	for range each {
		<-results
	}
	if err := Self(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	close(confined)
	for range each {
		go run(true)
	}
	threads := []thread{look(folder)}
	for range 2 * each {
		threads = append(threads, <-results)
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"threads": threads, "problem": Problem()})
}

func look(folder string) thread {
	t := thread{Status: map[string]string{}, Errors: map[string]string{}}
	status, _ := os.ReadFile("/proc/thread-self/status")
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		t.Status[name] = strings.TrimSpace(value)
	}
	name := fmt.Sprint(unix.Gettid())
	note := func(what string, err error) {
		if t.Errors[what] = "none"; err != nil {
			t.Errors[what] = "other: " + err.Error()
		}
		if errors.Is(err, fs.ErrPermission) {
			t.Errors[what] = "refused"
		}
	}
	open := func(what, path string, flags int) {
		f, err := os.OpenFile(path, flags, 0o600)
		if err == nil {
			f.Close()
		}
		note(what, err)
	}
	open("read key", filepath.Join(folder, "node.key"), os.O_RDONLY)
	open("read journal", filepath.Join(folder, "edge", "config.journal"), os.O_RDONLY)
	open("write journal", filepath.Join(folder, "edge", "config.journal"), os.O_WRONLY)
	open("make beside", filepath.Join(folder, name), os.O_CREATE|os.O_WRONLY)
	open("make in run", filepath.Join(folder, "run", name), os.O_CREATE|os.O_WRONLY)
	open("read resolver", "/etc/resolv.conf", os.O_RDONLY)
	open("read limits", "/proc/sys/net/core/somaxconn", os.O_RDONLY)
	open("read parent", fmt.Sprintf("/proc/%d/environ", os.Getppid()), os.O_RDONLY)
	note("move key", os.Rename(filepath.Join(folder, "node.key"), filepath.Join(folder, "run", name+".key")))
	ln, err := net.Listen("unix", filepath.Join(folder, "run", name+".sock"))
	if err == nil {
		ln.Close()
	}
	note("listen in run", err)
	_, err = os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	note("run a program", err)
	return t
}

// confined runs child in a folder like a node's; variable "" leaves files alone.
func confined(t *testing.T, limit bool) (threads []thread, problem string) {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"edge", "run"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"node.key", "edge/config.journal"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), runChild+"="+folder)
	if limit {
		folders, _ := json.Marshal(Folders{Read: []string{filepath.Join(folder, "edge")}, Write: []string{filepath.Join(folder, "run")}})
		cmd.Env = append(cmd.Env, Variable+"="+string(folders))
	}
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err, string(err.(*exec.ExitError).Stderr))
	}
	var answer struct {
		Threads []thread
		Problem string
	}
	if err := json.Unmarshal(output, &answer); err != nil {
		t.Fatal(err, string(output))
	}
	return answer.Threads, answer.Problem
}

// No thread keeps a capability but the one for ports, and that only where it was held; none can get one back.
func TestEveryThreadGivesUpItsCapabilities(t *testing.T) {
	threads, _ := confined(t, false)
	var header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var own [2]unix.CapUserData
	if err := unix.Capget(&header, &own[0]); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%016x", own[0].Permitted&(1<<unix.CAP_NET_BIND_SERVICE))
	for _, each := range threads {
		s := each.Status
		if s["CapEff"] != want || s["CapPrm"] != want || s["CapInh"] != strings.Repeat("0", 16) || s["CapAmb"] != strings.Repeat("0", 16) {
			t.Errorf("thread %s has %s of %s, inherits %s and %s", s["Pid"], s["CapEff"], s["CapPrm"], s["CapInh"], s["CapAmb"])
		}
		if own[0].Effective&(1<<unix.CAP_SETPCAP) != 0 && s["CapBnd"] != fmt.Sprintf("%016x", 1<<unix.CAP_NET_BIND_SERVICE) {
			t.Errorf("thread %s is bounded by %s", s["Pid"], s["CapBnd"])
		}
		if s["NoNewPrivs"] != "1" {
			t.Errorf("thread %s may gain privileges", s["Pid"])
		}
	}
}

// Every thread reads and writes in its folders, reads what it needs of the system, and reaches nothing else, whoever
// it runs as. A kernel that cannot see to it is reported.
func TestEveryThreadIsKeptToItsFolders(t *testing.T) {
	threads, problem := confined(t, true)
	if problem != "" {
		if !strings.Contains(problem, "this kernel offers no Landlock") {
			t.Error(problem)
		}
		return
	}
	for _, each := range threads {
		for what, want := range map[string]string{
			"read key": "refused", "read journal": "none", "write journal": "refused", "make beside": "refused", "move key": "refused",
			"make in run": "none", "listen in run": "none", "read resolver": "none", "read limits": "none", "run a program": "refused",
			"read parent": "refused",
		} {
			if _, err := os.Stat("/etc/resolv.conf"); err != nil && what == "read resolver" {
				continue
			}
			if each.Errors[what] != want {
				t.Errorf("thread %s: %s: %s", each.Status["Pid"], what, each.Errors[what])
			}
		}
	}
}

// Without folders files are not limited, so that the program can be started by hand.
func TestFilesAreFreeWithoutFolders(t *testing.T) {
	threads, problem := confined(t, false)
	for _, each := range threads {
		if each.Errors["read key"] == "refused" || each.Errors["run a program"] != "none" || problem != "" {
			t.Errorf("%v %s", each, problem)
		}
	}
}
