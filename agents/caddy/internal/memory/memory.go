package memory

import (
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sharedBy is how many processes use the memory: the next version of the data plane may run beside this one while it takes
// over.
const sharedBy = 2

// fromEnvironment is GOMEMLIMIT, read before Keep sets a limit.
var fromEnvironment = uint64(debug.SetMemoryLimit(-1))

// Limit returns the bytes that the machine, the control group of this process or GOMEMLIMIT allow, whichever is least.
func Limit() uint64 {
	least := fromEnvironment
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		least = min(least, uint64(info.Totalram)*uint64(info.Unit))
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	return min(least, groupLimit("/sys/fs/cgroup", string(groups)))
}

// Keep sets the soft limit of the Go runtime to this process's share. Near the limit the runtime collects more often
// instead of growing.
func Keep() {
	if os.Getenv("GOMEMLIMIT") == "" {
		// Caddy would take nine tenths of the memory for this process.
		_ = os.Setenv("AUTOMEMLIMIT", "off")
		debug.SetMemoryLimit(share(Limit()))
	}
}

func share(limit uint64) int64 { return int64(min(limit/sharedBy, math.MaxInt64)) }

// Release returns unused memory to the system. Without it the memory of a peak stays until the next collection, which comes
// after two minutes on an idle node. Pools keep their contents for one collection, so two run.
func Release() {
	runtime.GC()
	debug.FreeOSMemory()
}

// groupLimit returns the least limit of the control group of this process and of the groups above it. groups is the text of
// /proc/self/cgroup.
func groupLimit(root, groups string) uint64 {
	least := uint64(math.MaxUint64)
	note := func(file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			return
		}
		if bytes, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			least = min(least, bytes)
		}
	}
	note(path.Join(root, "memory/memory.limit_in_bytes"))
	for line := range strings.Lines(groups) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for ; ; group = path.Dir(group) {
			note(path.Join(root, group, "memory.max"))
			if group == "/" || group == "." {
				break
			}
		}
	}
	return least
}
