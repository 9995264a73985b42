// Package crstest reads the rule set's own regression tests, for tests.
package crstest

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	regression "github.com/corazawaf/coraza-coreruleset/v4/tests"
	"go.yaml.in/yaml/v3"
)

// Test is one request of the rule set's own tests.
type Test struct {
	Name  string
	Input struct {
		Method  string
		URI     string
		Version string
		Headers map[string]string
		Data    string
		Encoded string `yaml:"encoded_request"`
		Auto    *bool  `yaml:"autocomplete_headers"`
	}
	Output struct {
		Status int
		Log    struct {
			Expect   []int `yaml:"expect_ids"`
			NoExpect []int `yaml:"no_expect_ids"`
		}
		ExpectError bool `yaml:"expect_error"`
	}
}

// All reads the tests of rules for requests, in the order of their names.
func All(t testing.TB) (all []Test) {
	t.Helper()
	err := fs.WalkDir(regression.FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(path, "REQUEST-") {
			return err
		}
		content, err := regression.FS.ReadFile(path)
		if err != nil {
			return err
		}
		var file struct {
			Rule  int `yaml:"rule_id"`
			Tests []struct {
				ID     int `yaml:"test_id"`
				Stages []struct{ Input, Output yaml.Node }
			}
		}
		if err := yaml.Unmarshal(content, &file); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, test := range file.Tests {
			for i, stage := range test.Stages {
				one := Test{Name: fmt.Sprintf("%d-%d-%d", file.Rule, test.ID, i+1)}
				if err := stage.Input.Decode(&one.Input); err != nil {
					return fmt.Errorf("%s: %w", one.Name, err)
				}
				if err := stage.Output.Decode(&one.Output); err != nil {
					return fmt.Errorf("%s: %w", one.Name, err)
				}
				all = append(all, one)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Raw is the request as it goes over the wire.
func (r *Test) Raw() string {
	if r.Input.Encoded != "" {
		decoded, _ := base64.StdEncoding.DecodeString(r.Input.Encoded)
		return string(decoded)
	}
	method, target, version := r.Input.Method, r.Input.URI, r.Input.Version
	if method == "" {
		method = "GET"
	}
	if target == "" {
		target = "/"
	}
	if version == "" {
		version = "HTTP/1.1"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\n", method, target, version)
	has := func(name string) bool {
		for known := range r.Input.Headers {
			if strings.EqualFold(known, name) {
				return true
			}
		}
		return false
	}
	for name, value := range r.Input.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	if r.Input.Auto == nil || *r.Input.Auto {
		if r.Input.Data != "" && !has("Content-Type") {
			b.WriteString("Content-Type: application/x-www-form-urlencoded\r\n")
		}
		if r.Input.Data != "" && !has("Content-Length") && !has("Transfer-Encoding") {
			fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Input.Data))
		}
		if !has("Connection") {
			b.WriteString("Connection: close\r\n")
		}
	}
	b.WriteString("\r\n")
	b.WriteString(r.Input.Data)
	return b.String()
}
