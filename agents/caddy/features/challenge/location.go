package challenge

import "strings"

const maxReturnBytes = 2048

// returnPath is the path and query to go back to after a challenge: path itself when it can only lead to this site, else
// the root. A second slash or a backslash would make browsers read the rest as a host.
func returnPath(path string) string {
	if len(path) > maxReturnBytes || !isSitePath(path) || strings.HasPrefix(path, "/.svc/") {
		return "/"
	}
	return path
}

func isSitePath(path string) bool {
	if path == "" || path[0] != '/' || len(path) > 1 && path[1] == '/' {
		return false
	}
	for i := 0; i < len(path); i++ {
		if c := path[i]; c <= ' ' || c == '\\' || c == 0x7f {
			return false
		}
	}
	return true
}

// selfLocation is a Location that leads back to the same target. A target that a browser would read as a host gets "/."
// in front, which it takes away again.
func selfLocation(target string) string {
	if strings.HasPrefix(target, "//") || strings.HasPrefix(target, `/\`) {
		return "/." + target
	}
	return target
}
