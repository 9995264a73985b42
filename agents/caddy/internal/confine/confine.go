package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Variable names the environment variable with the folders of this process, as JSON of Folders. Without it files are not
// limited: whoever starts the program by hand has no folders to name.
const Variable = "SVC_CONFINE"

// Folders are what a process may reach beside the files of the system it needs. All are absolute.
type Folders struct {
	// Read holds what the process reads and never changes.
	Read []string `json:"read"`
	// Write holds what it makes and changes: sockets, certificates.
	Write []string `json:"write"`
}

// problem is written before anything else runs and only read from then on.
var problem string

// Problem says why the process can reach more than it needs; "" when it cannot, or was not asked to keep from it.
func Problem() string { return problem }

// Self confines this process. Call it once, before anything else happens: what is open stays open. What a kernel cannot do
// is no error but a Problem; an error is a mistake in the variable, with which nothing should be served.
func Self() error {
	folders, err := read(os.Getenv(Variable))
	if err != nil {
		return fmt.Errorf("%s: %w", Variable, err)
	}
	if err := apply(folders); err != nil {
		problem = "the data plane is not kept from what it does not need: " + err.Error()
	}
	return nil
}

func read(text string) (*Folders, error) {
	if text == "" {
		return nil, nil
	}
	folders := &Folders{}
	if err := json.Unmarshal([]byte(text), folders); err != nil {
		return nil, err
	}
	for _, list := range [][]string{folders.Read, folders.Write} {
		for _, path := range list {
			if !filepath.IsAbs(path) {
				return nil, errors.New("the folders must have absolute paths")
			}
		}
	}
	return folders, nil
}
