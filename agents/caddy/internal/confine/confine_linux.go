package confine

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// apply goes as far as it can and returns everything that did not work. Files come first: opening folders may take the
// capabilities that go afterwards.
func apply(folders *Folders) error {
	var problems []error
	if err := everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil {
		problems = append(problems, fmt.Errorf("new privileges: %w", err))
	}
	if folders != nil {
		if err := limitFiles(*folders); err != nil {
			problems = append(problems, fmt.Errorf("files: %w", err))
		}
	}
	if err := dropCapabilities(); err != nil {
		problems = append(problems, fmt.Errorf("capabilities: %w", err))
	}
	return errors.Join(problems...)
}

// everyThread makes a system call in all threads; those that come later are cloned from one of them. It does not work in
// a program with C code, which only a build for the race detector is.
//
//go:uintptrescapes
func everyThread(number, a, b, c uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall6(number, a, b, c, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
