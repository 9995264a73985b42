package lifesign

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// variable names the descriptor.
const variable = "SVC_LIFE_FD"

const interval = time.Second

// Step is what the process does now; deaths while a journal is read speak against it.
type Step byte

// The sign of life itself, and the steps.
const (
	alive         Step = 1
	ReadingConfig Step = 2
	ReadingBans   Step = 3
	Ready         Step = 4
	// Restoring takes in what is in neither journal.
	Restoring Step = 5
)

var line atomic.Pointer[os.File]

// Open begins to give signs of life when the parent asked for them, for the rest of the process. What the runtime prints
// goes to the parent from now on, which bounds it: the stacks of a hundred thousand goroutines are no log. Logs are
// written to where standard error was.
func Open() error {
	text := os.Getenv(variable)
	if text == "" {
		return nil
	}
	_ = os.Unsetenv(variable)
	fd, err := strconv.Atoi(text)
	if err != nil || fd <= 2 {
		return fmt.Errorf("%s must be a file descriptor, not %q", variable, text)
	}
	syscall.CloseOnExec(fd)
	logs, err := syscall.Dup(syscall.Stderr)
	if err != nil {
		return fmt.Errorf("cannot keep standard error: %w", err)
	}
	syscall.CloseOnExec(logs)
	if err := syscall.Dup3(fd, syscall.Stderr, 0); err != nil {
		return fmt.Errorf("%s cannot be used: %w", variable, err)
	}
	os.Stderr = os.NewFile(uintptr(logs), "/dev/stderr")
	log.SetOutput(os.Stderr)
	file := os.NewFile(uintptr(fd), variable)
	line.Store(file)
	go beat(file)
	return nil
}

// Tell says which step begins; it does nothing when nobody asked.
func Tell(step Step) {
	if file := line.Load(); file != nil {
		// A parent that is gone needs no sign.
		_, _ = file.Write([]byte{byte(step)})
	}
}

func beat(file *os.File) {
	for {
		if _, err := file.Write([]byte{byte(alive)}); err != nil {
			return
		}
		time.Sleep(interval)
	}
}
