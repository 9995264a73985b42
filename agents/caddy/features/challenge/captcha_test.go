package challenge

import (
	"bytes"
	"image/png"
	"strings"
	"testing"
	"time"
)

func TestCaptchaImages(t *testing.T) {
	a := newArtist()
	seen := map[string]bool{}
	used := map[rune]bool{}
	for range 200 {
		answer := newAnswer()
		seen[answer] = true
		for _, c := range answer {
			used[c] = true
		}
		if len(answer) != 5 || strings.Trim(answer, captchaAlphabet) != "" {
			t.Fatalf("answer %q", answer)
		}
	}
	if len(seen) < 199 || len(used) != 31 {
		t.Errorf("%d answers of %d characters in 200", len(seen), len(used))
	}
	for range 5 {
		c := a.draw()
		decoded, err := png.Decode(bytes.NewReader(c.png))
		if err != nil || decoded.Bounds().Dx() != 160 || decoded.Bounds().Dy() != 60 || len(c.png) > 2000 {
			t.Fatalf("%v, %d bytes", err, len(c.png))
		}
	}
}

// Each image is shown eight times at most, none once it is old, and a pool that has no fresh one says so.
func TestCaptchaPoolBoundsTheUseOfAnImage(t *testing.T) {
	now := time.Unix(vectorTime, 0)
	p := &captchaPool{now: func() time.Time { return now }}
	p.running.Store(true)
	if p.take() != nil {
		t.Error("an image out of an empty pool")
	}
	a := newArtist()
	p.put(0, a, now)
	p.put(1, a, now)
	p.filled.Store(2)
	uses := map[*captchaImage]int{}
	for range 40 {
		if image := p.take(); image != nil {
			uses[image]++
		}
	}
	if len(uses) != 2 {
		t.Errorf("%d images", len(uses))
	}
	for _, n := range uses {
		if n != captchaUses {
			t.Errorf("an image was shown %d times", n)
		}
	}
	p.put(0, a, now)
	now = now.Add(captchaAge + time.Second)
	if p.take() != nil {
		t.Error("an image too old was shown")
	}
}

func TestFirstCaptchaIsThereAtOnce(t *testing.T) {
	p := &captchaPool{now: time.Now}
	if p.take() == nil {
		t.Error("the first visitor got none")
	}
}

func BenchmarkCaptchaDraw(b *testing.B) {
	a := newArtist()
	b.ReportAllocs()
	for b.Loop() {
		a.draw()
	}
}
