package main

import (
	"context"
	"crypto/sha256"
	"encoding"
	"math/bits"
	"runtime"
	"strconv"
)

// One visitor computes at a time, and lets everything else run in between: real visitors have machines of their own, and
// these must not take the flood's away.
var desk = make(chan struct{}, 1)

const triesBetween = 256

// work finds the number that makes the digest of "token:number" begin with so many zero bits; "" when the context ends.
func work(ctx context.Context, token string, zeros int) string {
	select {
	case desk <- struct{}{}:
		defer func() { <-desk }()
	case <-ctx.Done():
		return ""
	}
	text := token + ":"
	// What is the same for all numbers is digested once.
	whole := len(text) / sha256.BlockSize * sha256.BlockSize
	digest := sha256.New()
	digest.Write([]byte(text[:whole]))
	state, err := digest.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return ""
	}
	rest, sum := []byte(text[whole:]), make([]byte, 0, sha256.Size)
	for n := uint64(0); ; n++ {
		if n%triesBetween == 0 {
			if ctx.Err() != nil {
				return ""
			}
			runtime.Gosched()
		}
		if err := digest.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
			return ""
		}
		digest.Write(strconv.AppendUint(rest, n, 10))
		if leadingZeros(digest.Sum(sum)) >= zeros {
			return strconv.FormatUint(n, 10)
		}
	}
}

func leadingZeros(sum []byte) (zeros int) {
	for _, c := range sum {
		zeros += bits.LeadingZeros8(c)
		if c != 0 {
			break
		}
	}
	return zeros
}
