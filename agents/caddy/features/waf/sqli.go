package waf

import (
	"strings"

	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
	"github.com/corazawaf/libinjection-go"
)

const (
	// What a look at one value may cost: quotes that end nothing, times bytes. For each of them the library searches all
	// of the value.
	maxQuoteWork = 1 << 17
	// Beyond that, pieces of a value are looked at, and each begins in the middle of the one before.
	quotePiece = 256
	// What is left of a row of quotes: where it ends a string, less of them with the same rest do so, too.
	quoteRow = 8
)

// detectSQLi is the operator of this name by the same library. Its time grows with the square of a value that has many
// quotes, doubled or escaped, and neither ends by itself: 32 KiB of them take seconds.
type detectSQLi struct{}

func newDetectSQLi(plugintypes.OperatorOptions) (plugintypes.Operator, error) {
	return detectSQLi{}, nil
}

// Evaluate reports whether a value is SQL where it begins, within quotes or not. In values that cost too much it is enough
// that one of their pieces is.
func (detectSQLi) Evaluate(tx plugintypes.TransactionState, value string) bool {
	if quoteWork(value) > maxQuoteWork {
		value = shortRows(value)
	}
	if quoteWork(value) <= maxQuoteWork {
		return isSQL(tx, value)
	}
	b := budgetOf(tx.ID())
	for at := 0; at < len(value); at += quotePiece / 2 {
		if b != nil && b.exceeded() {
			return false
		}
		// A row of quotes, or of what escapes them, is not divided.
		from := at
		for from > 0 && from > at-2*quoteRow && isQuoting(value[from-1]) {
			from--
		}
		if isSQL(tx, value[from:min(at+quotePiece, len(value))]) {
			return true
		}
	}
	return false
}

func isSQL(tx plugintypes.TransactionState, value string) bool {
	found, fingerprint := libinjection.IsSQLi(value)
	if found {
		tx.CaptureField(0, fingerprint)
	}
	return found
}

func isQuoting(c byte) bool { return c == '\'' || c == '"' || c == '`' || c == '\\' }

// quoteWork is how much the library may do for a value.
func quoteWork(value string) int {
	quotes := 0
	for i := 1; i < len(value); i++ {
		if c := value[i]; c != '\\' && isQuoting(c) && (value[i-1] == c || value[i-1] == '\\') {
			quotes++
		}
	}
	return quotes * len(value)
}

// shortRows takes quotes out of long rows of them, by twos.
func shortRows(value string) string {
	var out strings.Builder
	for i := 0; i < len(value); {
		row := 1
		if isQuoting(value[i]) {
			for i+row < len(value) && value[i+row] == value[i] {
				row++
			}
		}
		kept := row
		if row > quoteRow {
			kept = quoteRow - 2 + row%2
		}
		out.WriteString(value[i : i+kept])
		i += row
	}
	return out.String()
}
