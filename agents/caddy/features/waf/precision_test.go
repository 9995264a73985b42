//go:build !race

package waf

import (
	stdjson "encoding/json"
	"fmt"
	"hash/fnv"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// Folders of texts, and a file for those of half A that are taken for attacks.
const textFolders, refusedFile = "WAF_TEXTS", "WAF_REFUSED"

// shortened is of how many of them, at most, the file also has what they are refused for.
const shortened = 40

// How many texts that others wrote are taken for attacks. Half A is for tuning, half B for the figure.
func BenchmarkTextsOfOthers(b *testing.B) {
	roots := strings.Split(os.Getenv(textFolders), string(os.PathListSeparator))
	if roots[0] == "" {
		b.Fatalf("%s names no folder of texts", textFolders)
	}
	s := settingsOf(b, asIs)
	var told *os.File
	if name := os.Getenv(refusedFile); name != "" {
		var err error
		if told, err = os.Create(name); err != nil {
			b.Fatal(err)
		}
		defer told.Close()
	}
	for i := range textSources {
		source := &textSources[i]
		kinds := source.read(roots)
		for _, kind := range []string{prose, mixed, code} {
			for _, half := range []string{"A", "B"} {
				texts := slices.DeleteFunc(slices.Clone(kinds[kind]), func(text string) bool { return halfOf(text) != half })
				if len(texts) == 0 {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/%s", source.name, kind, half), func(b *testing.B) {
					for range b.N {
						refused := refusedTexts(b, s, texts)
						b.ReportMetric(float64(len(texts)), "texts")
						b.ReportMetric(float64(len(refused)), "refused")
						if half == "A" && told != nil {
							for i, text := range refused {
								line := map[string]any{"source": source.name, "kind": kind, "place": placeOfText(text), "rules": judgeText(b, s, text).rules, "text": text}
								if kind == prose && i < shortened {
									line["shortest"] = shortest(b, s, text)
								}
								_ = stdjson.NewEncoder(told).Encode(line)
							}
						}
					}
				})
			}
		}
	}
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

func halfOf(text string) string { return "AB"[hashOf(text)&1:][:1] }

// byHash is an order that says nothing of texts.
func byHash(texts []string) []string {
	return slices.SortedFunc(slices.Values(texts), func(a, b string) int {
		if x, y := hashOf(a), hashOf(b); x != y {
			return map[bool]int{true: -1, false: 1}[x < y]
		}
		return strings.Compare(a, b)
	})
}

// refusedTexts sends each text in one of the places where people write.
func refusedTexts(t testing.TB, s *settings, texts []string) (refused []string) {
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
	)
	next := make(chan string)
	for range 2 {
		workers.Go(func() {
			for text := range next {
				if judgeText(t, s, text).score >= s.threshold {
					mu.Lock()
					refused = append(refused, text)
					mu.Unlock()
				}
			}
		})
	}
	for _, text := range texts {
		next <- text
	}
	close(next)
	workers.Wait()
	slices.Sort(refused)
	return refused
}

// noFileName is what a file system does not take in a name: programs that save a document under its title replace it.
var noFileName = regexp.MustCompile(`[\x00-\x1f"*/:<>?\\|]`)

// textPlaces are the places of a request where people write.
var textPlaces = []func(t testing.TB, s *settings, text string) verdict{
	func(t testing.TB, s *settings, text string) verdict {
		body := "author=Anna&text=" + url.QueryEscape(text)
		return judge(t, s, asked("POST", "/comment", body, form), body)
	},
	func(t testing.TB, s *settings, text string) verdict {
		encoded, _ := stdjson.Marshal(map[string]any{"title": "Notes", "blocks": []map[string]string{{"text": text}}})
		return judge(t, s, asked("POST", "/api/posts", string(encoded), json), string(encoded))
	},
	func(t testing.TB, s *settings, text string) verdict {
		body := "--b\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\n" + strings.ReplaceAll(text, "\n", "\r\n") + "\r\n--b--\r\n"
		return judge(t, s, asked("POST", "/contact", body, multipartB), body)
	},
	func(t testing.TB, s *settings, text string) verdict {
		return judge(t, s, asked("GET", "/search?q="+url.QueryEscape(first(text, 1500)), ""), "")
	},
	func(t testing.TB, s *settings, text string) verdict {
		name, _, _ := strings.Cut(strings.TrimSpace(anyTag.ReplaceAllString(text, "")), "\n")
		name = strings.TrimSpace(first(noFileName.ReplaceAllString(name, "_"), 80))
		body := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + ".pdf\"\r\nContent-Type: application/pdf\r\n\r\n%PDF-1.7\r\n--b--\r\n"
		return judge(t, s, asked("POST", "/files", body, multipartB), body)
	},
}

// first is the beginning of a text.
func first(text string, bytes int) string {
	for len(text) > bytes || !utf8.ValidString(text) {
		text = text[:min(bytes, len(text)-1)]
		bytes = len(text)
	}
	return text
}

func placeOfText(text string) int { return int(hashOf(text) >> 1 % uint64(len(textPlaces))) }

func judgeText(t testing.TB, s *settings, text string) verdict {
	return textPlaces[placeOfText(text)](t, s, text)
}

// shortest is what is left of a text without lines and words that it is refused without, in the same place.
func shortest(t testing.TB, s *settings, text string) string {
	place := textPlaces[placeOfText(text)]
	for _, cut := range []*regexp.Regexp{regexp.MustCompile("[^\n]*\n|[^\n]+$"), regexp.MustCompile(`\S+\s*|\s+`)} {
		pieces := cut.FindAllString(text, -1)
		for i := 0; i < len(pieces); {
			without := slices.Delete(slices.Clone(pieces), i, i+1)
			if place(t, s, strings.Join(without, "")).score >= s.threshold {
				pieces = without
			} else {
				i++
			}
		}
		text = strings.Join(pieces, "")
	}
	return text
}
