package confine

import "testing"

// A variable that makes no sense is refused: what it was to keep the process from is not known.
func TestMistakesInTheVariableAreRefused(t *testing.T) {
	for _, text := range []string{"/var/lib", `{"read":["relative"]}`, `{"write":"/run"}`, `{"read":[""]}`} {
		if _, err := read(text); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}
