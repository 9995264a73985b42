package challenge

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// Where the node answers for challenges on every site.
const (
	// VerifyPath takes answers, by POST.
	VerifyPath = "/.svc/challenge/verify"
	// WorkerPath has the script that proofs of work run in.
	WorkerPath = "/.svc/challenge/worker.js"
)

//go:embed assets/page.css
var styleSource string

//go:embed assets/bar.css
var barStyleSource string

//go:embed assets/form.css
var formStyleSource string

//go:embed assets/sha256.js
var hashSource string

//go:embed assets/search.js
var searchSource string

//go:embed assets/lanes.js
var lanesSource string

//go:embed assets/page.js
var pageSource string

//go:embed assets/work.js
var workSource string

//go:embed assets/worker.js
var workerSource string

var (
	cookieStyle  = oneLine(styleSource)
	scriptStyle  = oneLine(styleSource + barStyleSource)
	captchaStyle = oneLine(styleSource + formStyleSource)
	jsScript     = compact(hashSource + pageThat("function begin() { found(digest(o.t)); }\nfunction dismiss() {}\n"))
	powScript    = compact(hashSource + searchSource + pageThat(workSource))
	worker       = compact(hashSource + searchSource + lanesSource + workerSource)
	workerHash   = shortHash(worker)
)

// pageThat is the script of a page with what it does to find an answer.
func pageThat(begins string) string {
	return strings.Replace(pageSource, "  // HERE: begin() finds the answer, dismiss() ends what still looks for it.\n", begins, 1)
}

func oneLine(css string) string { return strings.ReplaceAll(css, "\n", "") }

// compact takes comments and indentation out of a script.
func compact(source string) string {
	var out strings.Builder
	for line := range strings.Lines(source) {
		if line = strings.TrimLeft(line, " "); !strings.HasPrefix(line, "//") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// slot is a place in a page for what differs between responses.
type slot uint8

const (
	noSlot slot = iota
	// slotData is the request id and, behind the footer, the attributes of which a script reads what to do: all that
	// differs in one place, because each place costs a page its bytes.
	slotData
	// slotTakes says how long it takes.
	slotTakes
	// slotNotice says what went wrong before.
	slotNotice
	slotFields
	slotImage
	slotEffort
	slotLink
	slotRequestID
)

// filling is what goes into the slots of one response.
type filling struct {
	language  int
	token     []byte
	bits      uint8
	highBits  uint8
	back      string
	ownPage   bool
	notice    notice
	image     []byte
	requestID string
}

// notice is what went wrong before a page was shown.
type notice uint8

const (
	noNotice notice = iota
	wrongAnswer
	cookieLost
)

func (f *filling) append(dst []byte, at slot) []byte {
	t := &texts[f.language]
	switch at {
	case slotData:
		dst = appendEscaped(dst, f.requestID)
		dst = append(append(append(dst, `</code></footer><p hidden id="o" data-t="`...), f.token...), '"')
		if f.bits > 0 {
			dst = append(strconv.AppendUint(append(dst, ` data-d="`...), uint64(f.bits), 10), '"')
		}
		if !f.ownPage {
			dst = append(appendEscaped(append(dst, ` data-r="`...), f.back), '"')
		}
		if f.notice != noNotice {
			dst = append(append(append(dst, ` data-n="`...), t.notices[f.notice]...), '"')
		}
	case slotTakes:
		dst = append(dst, t.duration(f.bits)...)
	case slotNotice:
		if f.notice != noNotice {
			dst = append(append(append(dst, `<p class="e" role="alert">`...), t.notices[f.notice]...), `</p>`...)
		}
	case slotFields:
		dst = append(append(append(dst, `<input type="hidden" name="t" value="`...), f.token...), `"><input type="hidden" name="r" value="`...)
		dst = append(appendEscaped(dst, f.back), `">`...)
	case slotImage:
		dst = base64.StdEncoding.AppendEncode(dst, f.image)
	case slotEffort:
		dst = append(dst, t.duration(f.highBits)...)
	case slotLink:
		dst = appendEscaped(dst, f.back)
	case slotRequestID:
		dst = appendEscaped(dst, f.requestID)
	}
	return dst
}

func appendEscaped(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '&':
			dst = append(dst, "&amp;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '"':
			dst = append(dst, "&#34;"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
