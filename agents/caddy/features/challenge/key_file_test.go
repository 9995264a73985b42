package challenge

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysAreReadFromTheAgentsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "challenge-keys.json")
	if keys, cluster, err := ReadKeys(path); keys.Current != nil || cluster != "" || err != nil {
		t.Errorf("without a file: %v %q %v", keys, cluster, err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := strings.Repeat("A", 22) + "=="
	write(`{"clusterId":"c","version":"18446744073709551615","keys":{"next":{"id":"n","secret":"` + secret + `"},"current":{"id":"k","secret":"` + secret + `"}}}` + "\n")
	keys, cluster, err := ReadKeys(path)
	if err != nil || cluster != "c" || keys.Version != 1<<64-1 || keys.Previous != nil ||
		keys.Next.ID != "n" || keys.Current.ID != "k" || !bytes.Equal(keys.Current.Secret, make([]byte, 16)) {
		t.Errorf("%+v %q %v", keys, cluster, err)
	}
	for _, text := range []string{"", "{", `{"version":"1","keys":{"current":{"id":"k","secret":"§secret"}}}`, `{"version":"x","keys":{}}`, `{"version":1,"keys":{}}`, `[]`} {
		write(text)
		// Nothing of the content may reach a log.
		if keys, _, err := ReadKeys(path); !errors.Is(err, ErrKeyFile) || keys.Current != nil || err.Error() != ErrKeyFile.Error() {
			t.Errorf("%s: %v %v", text, keys, err)
		}
	}
}
