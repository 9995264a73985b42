package challenge

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"math/bits"
	"strconv"
	"strings"
)

const (
	maxTokenBytes  = 2048
	tokenSeconds   = 300
	tokenPrefix    = "c1."
	answerPrefix   = "a|"
	nonceBytes     = 12
	nonceText      = 16
	answerHashText = 32
)

const (
	// Never in a token: a cookie is all that is asked for.
	typeCookie  = "cookie302"
	typeJS      = "js"
	typePow     = "pow"
	typeCaptcha = "captcha"
)

// token is a challenge in flight: everything that decides what a right answer is and what it is worth, signed, so that a
// later change of a setting changes nothing for a page already shown.
type token struct {
	kind            string
	level           Level
	issued, expires int64
	nonce           [nonceText]byte
	// Leading zero bits, for pow.
	bits uint8
	// Hash of the answer, for captcha.
	answer [answerHashText]byte
}

// appendToken appends "<key id>.<payload>.<mac>" with the payload site|type|level|network|agent|issued|expires|nonce|
// difficulty|answer.
func appendToken(dst []byte, key *signer, b *binding, t *token) []byte {
	var scratch [320]byte
	payload := append(scratch[:0], b.site...)
	payload = append(payload, '|')
	payload = append(payload, t.kind...)
	payload = append(payload, '|', '0'+byte(t.level), '|')
	payload = append(payload, b.networkText()...)
	payload = append(payload, '|')
	payload = append(payload, b.agent[:]...)
	payload = strconv.AppendInt(append(payload, '|'), t.issued, 10)
	payload = strconv.AppendInt(append(payload, '|'), t.expires, 10)
	payload = append(payload, '|')
	payload = append(payload, t.nonce[:]...)
	payload = strconv.AppendUint(append(payload, '|'), uint64(t.bits), 10)
	payload = append(payload, '|')
	if t.kind == typeCaptcha {
		payload = append(payload, t.answer[:]...)
	}
	start := len(dst)
	dst = append(dst, key.id...)
	dst = encoding.AppendEncode(append(dst, '.'), payload)
	sum := key.sign(tokenPrefix, textOf(dst[start:]))
	return encoding.AppendEncode(append(dst, '.'), sum[:])
}

// checkToken returns the challenge of a token and the key that signed it; nil for one that is forged, altered, over, or
// of another site, network or browser.
func checkToken(keys *keySet, b *binding, value string, now int64) (t token, key *signer) {
	if len(value) > maxTokenBytes {
		return token{}, nil
	}
	dot := strings.LastIndexByte(value, '.')
	id, encoded, found := strings.Cut(value[:max(dot, 0)], ".")
	if !found {
		return token{}, nil
	}
	if key = keys.find(id); key == nil {
		return token{}, nil
	}
	var decoded [maxTokenBytes]byte
	n, err := encoding.Decode(decoded[:], bytesOf(encoded))
	if err != nil {
		return token{}, nil
	}
	f := fields{rest: decoded[:n]}
	mine := f.is(b.site)
	switch string(f.next()) {
	case typeJS:
		t.kind = typeJS
	case typePow:
		t.kind = typePow
	case typeCaptcha:
		t.kind = typeCaptcha
	default:
		return token{}, nil
	}
	level := f.number()
	mine = string(f.next()) == string(b.networkText()) && mine
	mine = string(f.next()) == string(b.agent[:]) && mine
	t.issued, t.expires = f.number(), f.number()
	nonce := f.next()
	difficulty := f.number()
	answer := f.next()
	if !mine || !f.end() || len(nonce) != nonceText || level < int64(JS) || level > int64(Captcha) || difficulty > sha256.Size*8 {
		return token{}, nil
	}
	t.level, t.bits = Level(level), uint8(min(difficulty, 255))
	copy(t.nonce[:], nonce)
	if t.kind == typeCaptcha {
		if len(answer) != answerHashText {
			return token{}, nil
		}
		copy(t.answer[:], answer)
	}
	if t.expires <= now || t.expires-t.issued > tokenSeconds || t.issued > now+maxAheadSeconds {
		return token{}, nil
	}
	if !key.verify(tokenPrefix, value[:dot], value[dot+1:]) {
		return token{}, nil
	}
	return t, key
}

// solves reports whether answer solves the challenge of the token with that text.
func (t *token) solves(key *signer, text, answer string) bool {
	switch t.kind {
	case typeJS:
		sum := sha256.Sum256(bytesOf(text))
		var want [2 * sha256.Size]byte
		hex.Encode(want[:], sum[:])
		return subtle.ConstantTimeCompare(want[:], bytesOf(answer)) == 1
	case typePow:
		return isWork(text, answer, int(t.bits))
	default:
		want := captchaHash(key, t.nonce[:], normalizeAnswer(answer))
		return subtle.ConstantTimeCompare(want[:], t.answer[:]) == 1
	}
}

const maxWorkDigits = 16

// isWork reports whether the digest of "text:n" starts with so many zero bits.
func isWork(text, n string, zeroBits int) bool {
	if n == "" || len(n) > maxWorkDigits {
		return false
	}
	for i := 0; i < len(n); i++ {
		if n[i] < '0' || n[i] > '9' {
			return false
		}
	}
	var scratch [512]byte
	message := append(scratch[:0], text...)
	message = append(append(message, ':'), n...)
	sum := sha256.Sum256(message)
	zeros := 0
	for _, c := range sum {
		zeros += bits.LeadingZeros8(c)
		if c != 0 {
			break
		}
	}
	return zeros >= zeroBits
}

// captchaHash is the answer as a token carries it: nobody without the key can find the answer from it.
func captchaHash(key *signer, nonce []byte, answer string) (text [answerHashText]byte) {
	var scratch [64]byte
	message := append(scratch[:0], nonce...)
	message = append(append(message, '|'), answer...)
	sum := key.sign(answerPrefix, string(message))
	hex.Encode(text[:], sum[:answerHashText/2])
	return text
}

// normalizeAnswer is what was typed without blanks and in capitals; "" when it cannot be an answer.
func normalizeAnswer(typed string) string {
	var out [captchaLength]byte
	n := 0
	for i := 0; i < len(typed); i++ {
		c := typed[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case 'a' <= c && c <= 'z':
			c -= 'a' - 'A'
		}
		if n == captchaLength {
			return ""
		}
		out[n] = c
		n++
	}
	return string(out[:n])
}

// captchaLength is the number of characters of an image.
const captchaLength = 5
