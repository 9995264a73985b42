package challenge

import (
	"bytes"
	crand "crypto/rand"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
)

const (
	captchaWidth  = 160
	captchaHeight = 60
	speckles      = 160
	inkDots       = 90
)

// Colours of an image: the ground, four inks that glyphs and lines share so that no colour tells them apart, and two
// that are only there to be in the way.
var captchaPalette = color.Palette{
	color.NRGBA{0xf4, 0xf5, 0xf7, 0xff},
	color.NRGBA{0x1d, 0x3a, 0x6b, 0xff}, color.NRGBA{0x5b, 0x21, 0x6e, 0xff},
	color.NRGBA{0x1f, 0x55, 0x3c, 0xff}, color.NRGBA{0x7a, 0x2e, 0x1d, 0xff},
	color.NRGBA{0xb9, 0xc3, 0xd3, 0xff}, color.NRGBA{0xd3, 0xc2, 0xb4, 0xff},
}

const (
	firstInk, inks     = 1, 4
	firstNoise, noises = 5, 2
)

// captchaImage is a drawn answer.
type captchaImage struct {
	answer string
	png    []byte
}

// artist draws images, one at a time, with the same memory for each.
type artist struct {
	canvas  *image.Paletted
	encoder png.Encoder
	buffers encoderBuffer
	out     bytes.Buffer
	random  *rand.Rand
}

// encoderBuffer lends the one encoder its one buffer.
type encoderBuffer struct{ buffer *png.EncoderBuffer }

func (b *encoderBuffer) Get() *png.EncoderBuffer       { return b.buffer }
func (b *encoderBuffer) Put(buffer *png.EncoderBuffer) { b.buffer = buffer }

func newArtist() *artist {
	var seed [32]byte
	// Never fails.
	_, _ = crand.Read(seed[:])
	a := &artist{
		canvas: image.NewPaletted(image.Rect(0, 0, captchaWidth, captchaHeight), captchaPalette),
		random: rand.New(rand.NewChaCha8(seed)),
	}
	a.encoder = png.Encoder{CompressionLevel: png.DefaultCompression, BufferPool: &a.buffers}
	return a
}

// draw makes a new answer and its image.
func (a *artist) draw() *captchaImage {
	answer := newAnswer()
	clear(a.canvas.Pix)
	for range speckles {
		a.dot(a.between(0, captchaWidth), a.between(0, captchaHeight), a.between(0.4, 1.1), a.noise())
	}
	a.write(answer)
	for range 3 + a.random.IntN(3) {
		a.line()
	}
	for range inkDots {
		a.dot(a.between(0, captchaWidth), a.between(0, captchaHeight), a.between(0.3, 0.8), a.ink())
	}
	a.out.Reset()
	// Writing to memory cannot fail, and the image is one that can be encoded.
	_ = a.encoder.Encode(&a.out, a.canvas)
	return &captchaImage{answer: answer, png: bytes.Clone(a.out.Bytes())}
}

// newAnswer draws characters that nobody can foretell, each as likely as any other.
func newAnswer() string {
	const fair = 256 / len(captchaAlphabet) * len(captchaAlphabet)
	var answer [captchaLength]byte
	for i := 0; i < captchaLength; {
		var raw [16]byte
		// Never fails.
		_, _ = crand.Read(raw[:])
		for _, c := range raw {
			if int(c) < fair && i < captchaLength {
				answer[i] = captchaAlphabet[int(c)%len(captchaAlphabet)]
				i++
			}
		}
	}
	return string(answer[:])
}

// write draws the characters on a common wave, each bent in its own way.
func (a *artist) write(answer string) {
	amplitude, period, phase := a.between(2, 4.5), a.between(30, 60), a.between(0, 2*math.Pi)
	const margin, step = 21.0, 29.5
	for i := range len(answer) {
		x := margin + step*float64(i) + a.between(-3, 3)
		y := captchaHeight/2 + a.between(-4, 4) + amplitude*math.Sin(2*math.Pi*x/period+phase)
		a.glyph(answer[i], x, y)
	}
}

func (a *artist) glyph(character byte, x, y float64) {
	angle, shear := a.between(-0.35, 0.35), a.between(-0.3, 0.3)
	wide, high := a.between(4, 5), a.between(4.8, 6)
	pen, ink := a.between(1.2, 1.75), a.ink()
	sin, cos := math.Sincos(angle)
	place := func(p point) point {
		// A pen in a hand: no two of the same shape are the same.
		px := (p.x+a.between(-0.2, 0.2))*wide + shear*p.y*wide
		py := (p.y + a.between(-0.2, 0.2)) * high
		return point{x + px*cos - py*sin, y + px*sin + py*cos}
	}
	for _, stroke := range glyphs[bytes.IndexByte([]byte(captchaAlphabet), character)] {
		from := place(stroke[0])
		for _, p := range stroke[1:] {
			to := place(p)
			a.stroke(from, to, pen, ink)
			from = to
		}
	}
}

// line draws a wave from side to side in the ink of the glyphs.
func (a *artist) line() {
	ink, pen := a.ink(), a.between(0.45, 0.85)
	y, slope := a.between(10, captchaHeight-10), a.between(-0.15, 0.15)
	amplitude, period, phase := a.between(2, 8), a.between(40, 110), a.between(0, 2*math.Pi)
	at := func(x float64) point {
		return point{x, y + slope*(x-captchaWidth/2) + amplitude*math.Sin(2*math.Pi*x/period+phase)}
	}
	from := at(0)
	for x := 4.0; x <= captchaWidth; x += 4 {
		to := at(x)
		a.stroke(from, to, pen, ink)
		from = to
	}
}

func (a *artist) stroke(from, to point, pen float64, colour uint8) {
	steps := math.Ceil(math.Hypot(to.x-from.x, to.y-from.y) * 1.5)
	for i := 0.0; i <= steps; i++ {
		t := i / max(steps, 1)
		a.dot(from.x+(to.x-from.x)*t, from.y+(to.y-from.y)*t, pen, colour)
	}
}

// dot fills a disc.
func (a *artist) dot(x, y, radius float64, colour uint8) {
	for py := int(math.Floor(y - radius)); py <= int(math.Ceil(y+radius)); py++ {
		for px := int(math.Floor(x - radius)); px <= int(math.Ceil(x+radius)); px++ {
			dx, dy := float64(px)-x, float64(py)-y
			if dx*dx+dy*dy <= radius*radius && 0 <= px && px < captchaWidth && 0 <= py && py < captchaHeight {
				a.canvas.Pix[py*captchaWidth+px] = colour
			}
		}
	}
}

func (a *artist) between(least, most float64) float64 { return least + a.random.Float64()*(most-least) }
func (a *artist) ink() uint8                          { return firstInk + uint8(a.random.IntN(inks)) }
func (a *artist) noise() uint8                        { return firstNoise + uint8(a.random.IntN(noises)) }
