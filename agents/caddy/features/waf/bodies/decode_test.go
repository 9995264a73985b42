package bodies

import "testing"

// A Chinese character is no apostrophe; what looks like one in ASCII is.
func TestCharactersAreWhatTheyLookLike(t *testing.T) {
	for in, want := range map[string]string{
		"%u5a27": "娧", "%u5A27x": "娧x", "%u0027": "'", "%uff07": "'", "%u2019": "'", "%uff1cscript%uff1e": "<script>", "%u02b9": "'",
		"%27%2B+": "'+ ", "%u12": "%u12", "%zz%": "%zz%", "%u00e9": "e", "%u017f": "s", "%u0430": "а", "a": "a",
	} {
		if got, changed, _ := URLDecodeUni(in); got != want || changed != (in != got) {
			t.Errorf("%s: %q %v", in, got, changed)
		}
	}
}

func TestEscapesOfJavaScript(t *testing.T) {
	for in, want := range map[string]string{
		`\u5a27`: "娧", `\u0027`: "'", `\uff07`: "'", `\u{27}`: "'", `\u{00027}`: "'", `\u{5A27}x`: "娧x", `\ud83d\ude00`: "😀",
		`\x27`: "'", `\47`: "'", `\0470`: "'0", `\777`: "?7", `\n\q`: "\nq", `\u12`: "u12", `\u{`: "u{", `a\`: `a\`, "a": "a",
	} {
		if got, changed, _ := JSDecode(in); got != want || changed != (in != got) {
			t.Errorf("%s: %q %v", in, got, changed)
		}
	}
}
