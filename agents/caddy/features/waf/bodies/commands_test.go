package bodies

import "testing"

func TestTheRuleSetHasPatternsOfCommands(t *testing.T) {
	if len(commandPatterns()) != 2 {
		t.Errorf("%d patterns of commands", len(commandPatterns()))
	}
}
