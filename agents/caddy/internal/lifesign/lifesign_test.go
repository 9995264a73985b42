package lifesign

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The test program itself is the process that is looked at.
func TestMain(m *testing.M) {
	switch os.Getenv("LIFESIGN_TEST") {
	case "":
		os.Exit(m.Run())
	case "panic":
		if err := Open(); err != nil {
			panic(err)
		}
		Tell(ReadingConfig)
		_, _ = os.Stderr.WriteString("a line of the log\n")
		panic("the end")
	case "wait":
		if err := Open(); err != nil {
			panic(err)
		}
		Tell(Ready)
		time.Sleep(time.Hour)
	}
}

// start runs this program; the returned reader is the parent's end of its line.
func start(t *testing.T, mode string) (*exec.Cmd, io.Reader, *bytes.Buffer) {
	t.Helper()
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LIFESIGN_TEST="+mode, variable+"=3")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() { _ = cmd.Process.Kill(); ours.Close() })
	return cmd, ours, &stderr
}

func TestWhatAProcessDiesOfIsToldToItsParentAndItsLogIsNot(t *testing.T) {
	cmd, line, stderr := start(t, "panic")
	told, err := io.ReadAll(line)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !bytes.Contains(told, []byte{byte(ReadingConfig)}) || !strings.Contains(string(told), "panic: the end") {
		t.Errorf("told: %q", told)
	}
	if strings.Contains(string(told), "a line of the log") || stderr.String() != "a line of the log\n" {
		t.Errorf("logged: %q", stderr.String())
	}
}

func TestProcessBeatsAndTellsItsSteps(t *testing.T) {
	_, line, _ := start(t, "wait")
	var told []byte
	for bytes.Count(told, []byte{byte(alive)}) < 3 || !bytes.Contains(told, []byte{byte(Ready)}) {
		buf := make([]byte, 16)
		n, err := line.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, told)
		}
		told = append(told, buf[:n]...)
	}
}

func TestNobodyAsked(t *testing.T) {
	if err := Open(); err != nil || line.Load() != nil {
		t.Errorf("%v", err)
	}
	Tell(Ready)
}
