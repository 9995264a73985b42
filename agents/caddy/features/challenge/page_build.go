package challenge

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
)

// pageForm is a page and the policy that names what it consists of.
type pageForm struct {
	*stitched
	policy []string
}

var pageForms = func() (all [languages]map[string]func() *pageForm) {
	for language := range all {
		t := &texts[language]
		all[language] = map[string]func() *pageForm{
			typeCookie:  sync.OnceValue(func() *pageForm { return cookiePage(t) }),
			typeJS:      sync.OnceValue(func() *pageForm { return scriptPage(t, typeJS, jsScript) }),
			typePow:     sync.OnceValue(func() *pageForm { return scriptPage(t, typePow, powScript) }),
			typeCaptcha: sync.OnceValue(func() *pageForm { return captchaPage(t) }),
		}
	}
	return all
}()

// preparePages makes the pages ahead of need: a flood would wait for the first of each.
var preparePages = sync.OnceFunc(func() {
	for _, ofLanguage := range pageForms {
		for _, page := range ofLanguage {
			page()
		}
	}
})

// pageWriter collects the fixed parts of a page and the slots between them.
type pageWriter struct {
	parts []string
	slots []slot
	text  strings.Builder
	style string
}

func (w *pageWriter) write(texts ...string) {
	for _, text := range texts {
		w.text.WriteString(text)
	}
}

func (w *pageWriter) slot(at slot) {
	w.parts = append(w.parts, w.text.String())
	w.text.Reset()
	w.slots = append(w.slots, at)
}

// finish ends the page. Nothing but what the policy names may be part of it.
func (w *pageWriter) finish(policy string) *pageForm {
	w.parts = append(w.parts, w.text.String())
	policy = `default-src 'none'; style-src ` + sourceHash(w.style) + `; base-uri 'none'; frame-ancestors 'self'; ` + policy
	return &pageForm{newStitched(w.parts, w.slots), []string{policy}}
}

func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return `'sha256-` + base64.StdEncoding.EncodeToString(sum[:]) + `'`
}

const shield = `<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">` +
	`<path d="M12 2.5l8 3v6c0 4.8-3.3 8.3-8 10-4.7-1.7-8-5.2-8-10v-6zM8.5 12l2.5 2.5 4.5-5"/></svg>`

func (w *pageWriter) head(t *pageTexts, kind string) {
	w.write(`<!doctype html><html lang="`, t.lang, `"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`,
		`<meta name="robots" content="noindex,nofollow"><title>`, t.titles[kind], `</title><style>`, w.style, `</style></head><body><main>`,
		shield, `<h1>`, t.titles[kind], `</h1><p>`, t.leads[kind], `</p>`)
}

func (w *pageWriter) foot(t *pageTexts) {
	w.write(`</main><footer>`, t.requestID, ` <code>`)
	w.slot(slotRequestID)
	w.write(`</code></footer>`)
}

func cookiePage(t *pageTexts) *pageForm {
	w := pageWriter{style: cookieStyle}
	w.head(t, typeCookie)
	w.write(`<a class="l" href="`)
	w.slot(slotLink)
	w.write(`">`, t.again, `</a>`)
	w.foot(t)
	w.write(`</body></html>`)
	return w.finish(`form-action 'none'`)
}

func scriptPage(t *pageTexts, kind, script string) *pageForm {
	w := pageWriter{style: scriptStyle}
	w.head(t, kind)
	w.write(`<p class="s">`, t.takes)
	if kind == typePow {
		w.slot(slotTakes)
	} else {
		w.write(t.duration(0))
	}
	w.write(`</p><div class="p" id="p" role="progressbar" aria-label="`, t.progress, `" aria-valuemin="0" aria-valuemax="100" aria-valuenow="0"><i id="i"></i></div>`,
		`<p class="s" id="s" role="status"></p><p class="e" id="e" role="alert" hidden></p><button id="b" type="button" hidden>`, t.again, `</button>`,
		`<noscript><p class="e">`, t.noScript, `</p></noscript></main><footer>`, t.requestID, ` <code>`)
	w.slot(slotData)
	w.write(` data-v="`, VerifyPath, `"`)
	worker := ""
	if kind == typePow {
		w.write(` data-w="`, WorkerPath, `?v=`, workerHash, `"`)
		worker = `worker-src 'self'; `
	}
	for _, said := range [...][2]string{
		{"working", t.working}, {"sending", t.sending}, {"done", t.done}, {"refused", t.refused}, {"offline", t.offline},
		{"cookies", t.cookiesOff}, {"often", t.often},
	} {
		w.write(` data-`, said[0], `="`, said[1], `"`)
	}
	w.write(`></p><script>`, script, `</script></body></html>`)
	return w.finish(`script-src ` + sourceHash(script) + `; connect-src 'self'; ` + worker + `form-action 'none'`)
}

// captchaPage needs no script at all.
func captchaPage(t *pageTexts) *pageForm {
	w := pageWriter{style: captchaStyle}
	w.head(t, typeCaptcha)
	w.slot(slotNotice)
	w.write(`<form method="post" action="`, VerifyPath, `">`)
	w.slot(slotFields)
	w.write(`<img width="160" height="60" alt="`, t.image, `" src="data:image/png;base64,`)
	w.slot(slotImage)
	w.write(`"><label for="a">`, t.label, `</label><input id="a" name="a" maxlength="8" required autofocus autocomplete="off" `,
		`autocapitalize="characters" spellcheck="false"><button>`, t.proceed, `</button>`,
		`<button class="q" name="alt" value="pow" formnovalidate>`, t.compute, `</button></form><p class="s">`, t.computeTakes)
	w.slot(slotEffort)
	w.write(` <a href="`)
	w.slot(slotLink)
	w.write(`">`, t.another, `</a></p>`)
	w.foot(t)
	w.write(`</body></html>`)
	// Browsers hold form-action against the redirects after a form too, and the site may send its visitors elsewhere.
	return w.finish(`img-src data:; form-action 'self' https: http:`)
}
