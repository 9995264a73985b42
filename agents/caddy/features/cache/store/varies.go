package store

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// maxVaries is how many lists of varying fields a zone knows. Responses with others are not stored.
const maxVaries = 4096

// varies gives lists of fields numbers, which stay the same in the zone. The number 0 is the empty list.
type varies struct {
	mu     sync.RWMutex
	file   string
	lists  [][]string
	number map[string]uint16
	// No list can be added.
	full bool
}

func (v *varies) load(dir string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.file, v.full = filepath.Join(dir, "vary"), false
	v.lists, v.number = [][]string{nil}, map[string]uint16{"": 0}
	file, err := os.Open(v.file)
	if err != nil {
		return
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			// A line that was written in part makes all that follow wrong: responses with other lists are not stored.
			if line != "" {
				v.full = true
			}
			return
		}
		v.add(strings.TrimSuffix(line, "\n"))
	}
}

func (v *varies) add(line string) (uint16, bool) {
	if n, ok := v.number[line]; ok {
		return n, true
	}
	if v.full || len(v.lists) == maxVaries {
		return 0, false
	}
	n := uint16(len(v.lists))
	v.lists, v.number[line] = append(v.lists, strings.Split(line, ",")), n
	return n, true
}

// of returns the number of a list, which it may have to write down first.
func (v *varies) of(names []string) (uint16, bool) {
	line := strings.Join(names, ",")
	v.mu.RLock()
	n, ok := v.number[line]
	v.mu.RUnlock()
	if ok {
		return n, true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if n, ok = v.number[line]; ok {
		return n, true
	}
	if n, ok = v.add(line); !ok {
		return 0, false
	}
	file, err := os.OpenFile(v.file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = file.WriteString(line + "\n")
		_ = file.Close()
	}
	if err != nil {
		// Line and number must agree after a restart.
		delete(v.number, line)
		v.lists = slices.Clip(v.lists[:len(v.lists)-1])
		return 0, false
	}
	return n, true
}

// names returns the list of a number.
func (v *varies) names(n uint16) []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if int(n) >= len(v.lists) {
		return nil
	}
	return v.lists[n]
}

func (v *varies) known(n uint16) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return int(n) < len(v.lists)
}
