package ruleseval

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkRules evaluates all rules of a class once an operation.
func BenchmarkRules(b *testing.B) {
	w, err := readWork()
	if err != nil {
		b.Fatal(err)
	}
	for _, language := range []struct {
		name string
		make func(*request) (func(string) (condition, error), error)
	}{{"expr", exprLanguage}, {"cel", celLanguage}} {
		compile, err := language.make(&w.Request)
		if err != nil {
			b.Fatal(err)
		}
		for _, class := range w.Classes {
			var conditions []condition
			for _, rule := range class.Rules {
				source := rule.Expr
				if language.name == "cel" {
					source = rule.Cel
				}
				c, err := compile(source)
				if err != nil {
					b.Fatal(source, err)
				}
				if holds, err := c(); err != nil || holds != rule.Holds {
					b.Fatal(source, holds, err)
				}
				conditions = append(conditions, c)
			}
			b.Run(language.name+"/"+class.Name, func(b *testing.B) { measure(b, conditions) })
		}
	}
}

func measure(b *testing.B, conditions []condition) {
	b.ReportAllocs()
	used := processorTime()
	for b.Loop() {
		for _, c := range conditions {
			_, _ = c()
		}
	}
	// On a busy machine the time by the clock says little.
	b.ReportMetric(float64((processorTime()-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
