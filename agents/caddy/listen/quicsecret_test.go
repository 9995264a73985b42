package listen

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func writeSecret(t *testing.T, folder string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, quicSecretFile), bytes.Repeat([]byte{7}, 32), 0o600); err != nil {
		t.Fatal(err)
	}
}
