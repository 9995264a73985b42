package exchange

import "time"

// Overrides is what rules put in the place of settings, for one exchange. Its zero value overrides nothing; of several
// rules the later one wins, field by field.
type Overrides struct {
	CacheBypass, ForceHTTPS, Gzip, Brotli, Zstd, WebSocket, UnderAttack, CC Switch
	// CCMaxLevel is the highest level that CC mitigation may ask for; Normal overrides nothing.
	CCMaxLevel Level
	// BodyLimit is the size of the largest request body in bytes, 0 for none, where HasBodyLimit says so.
	BodyLimit    uint64
	HasBodyLimit bool
	// Of connections to origins; 0 overrides nothing.
	ConnectTimeout, SendTimeout, ReadTimeout time.Duration
	// LogSampleRate is in parts per 10,000, where HasLogSampleRate says so.
	LogSampleRate    uint32
	HasLogSampleRate bool
	// Codings are those that an answer may be compressed with, in the order of preference, none for an answer that stays
	// as it is; where HasCodings says so.
	Codings    []Coding
	HasCodings bool
}

// Coding is a way to compress answers.
type Coding uint8

// The codings, in the order in which they are preferred where nothing else is said.
const (
	Zstd Coding = iota + 1
	Brotli
	Gzip
)

// Switch is a setting that is overridden to on or off, or is not.
type Switch uint8

// The states of a switch.
const (
	Unset Switch = iota
	Off
	On
)

// SwitchOf is the switch that overrides with a value.
func SwitchOf(on bool) Switch {
	if on {
		return On
	}
	return Off
}

// Or is what the switch says, or the setting where it says nothing.
func (s Switch) Or(setting bool) bool {
	if s == Unset {
		return setting
	}
	return s == On
}
