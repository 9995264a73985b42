package expr

import (
	"encoding/json"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"
)

// asked is a request whose values are at hand without work.
type asked struct {
	Host, Method, Path, Query, Agent, Referer, Country string
	ASN, Port                                          int64
	SSL                                                bool
	Headers, Cookies                                   map[string]string
	Client                                             netip.Addr
}

func (a *asked) Text(field Field, name string) string {
	switch field {
	case Host:
		return a.Host
	case Method:
		return a.Method
	case Path:
		return a.Path
	case Query:
		return a.Query
	case UserAgent:
		return a.Agent
	case Referer:
		return a.Referer
	case Country:
		return a.Country
	case RequestHeader:
		return a.Headers[name]
	case Cookie:
		return a.Cookies[name]
	}
	return ""
}

func (a *asked) Number(field Field) int64 {
	if field == ASNumber {
		return a.ASN
	}
	return a.Port
}

func (a *asked) Truth(Field) bool { return a.SSL }

func (a *asked) Address(Field) netip.Addr { return a.Client }

func (a *asked) Contains(string, netip.Addr) bool { return false }

// BenchmarkRules evaluates all rules of a class once an operation. bench/rules-eval.bench.ts writes the work and has other
// languages do the same.
func BenchmarkRules(b *testing.B) {
	const variable = "RULES_EVAL_WORK"
	content, err := os.ReadFile(os.Getenv(variable))
	if err != nil {
		b.Skipf("%s names no work: npm run bench -- rules-eval", variable)
	}
	var work struct {
		Request *asked
		Classes []struct {
			Name  string
			Rules []struct {
				Tree  []byte
				Holds bool
			}
		}
	}
	if err := json.Unmarshal(content, &work); err != nil {
		b.Fatal(err)
	}
	var values Values = work.Request
	for _, class := range work.Classes {
		var conditions []*Condition
		for i, rule := range class.Rules {
			tree, err := Decode(rule.Tree)
			if err != nil {
				b.Fatal(class.Name, i, err)
			}
			c, err := CompileCondition(tree)
			if err != nil {
				b.Fatal(class.Name, i, err)
			}
			if holds, failure := c.Holds(values); holds != rule.Holds || failure != 0 {
				b.Fatal(class.Name, i, holds, failure)
			}
			conditions = append(conditions, c)
		}
		b.Run("edge/"+class.Name, func(b *testing.B) {
			b.ReportAllocs()
			used := processorTime()
			for b.Loop() {
				for _, c := range conditions {
					c.Holds(values)
				}
			}
			// On a busy machine the time by the clock says little.
			b.ReportMetric(float64((processorTime()-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
