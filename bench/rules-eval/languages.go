// Package ruleseval evaluates the conditions of bench/rules-eval.bench.ts with two other languages, for the benchmark.
package ruleseval

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

// variable names the environment variable with the file of the work.
const variable = "RULES_EVAL_WORK"

// work is what is evaluated: for one request, classes of conditions, each in every language.
type work struct {
	Request request `json:"request"`
	Classes []struct {
		Name  string `json:"name"`
		Rules []struct {
			Expr  string `json:"expr"`
			Cel   string `json:"cel"`
			Holds bool   `json:"holds"`
		} `json:"rules"`
	} `json:"classes"`
}

// request is what conditions ask for, at hand without work. The tags are the names in both languages.
type request struct {
	Host    string            `json:"host" expr:"host"`
	Method  string            `json:"method" expr:"method"`
	Path    string            `json:"path" expr:"path"`
	Query   string            `json:"query" expr:"query"`
	Agent   string            `json:"agent" expr:"agent"`
	Referer string            `json:"referer" expr:"referer"`
	Country string            `json:"country" expr:"country"`
	ASN     int               `json:"asn" expr:"asn"`
	Port    int               `json:"port" expr:"port"`
	SSL     bool              `json:"ssl" expr:"ssl"`
	Headers map[string]string `json:"headers" expr:"headers"`
	Cookies map[string]string `json:"cookies" expr:"cookies"`
	Client  netip.Addr        `json:"client" expr:"client"`
}

func readWork() (*work, error) {
	content, err := os.ReadFile(os.Getenv(variable))
	if err != nil {
		return nil, fmt.Errorf("%s names the work: %w", variable, err)
	}
	w := &work{}
	return w, json.Unmarshal(content, w)
}

// condition is true or false for the request that it was made for.
type condition func() (bool, error)

// networks are parsed once: neither language has addresses of its own that are as fast.
func inNetwork(cidr string) (func(netip.Addr) bool, error) {
	prefix, err := netip.ParsePrefix(cidr)
	return prefix.Contains, err
}

const office = "198.51.100.0/24"

// exprLanguage compiles with the types of the request known.
func exprLanguage(r *request) (func(source string) (condition, error), error) {
	inOffice, err := inNetwork(office)
	if err != nil {
		return nil, err
	}
	options := []expr.Option{
		expr.Env(request{}), expr.AsBool(),
		expr.Function("inOffice", func(params ...any) (any, error) { return inOffice(params[0].(netip.Addr)), nil }, new(func(netip.Addr) bool)),
	}
	return func(source string) (condition, error) {
		program, err := expr.Compile(source, options...)
		if err != nil {
			return nil, err
		}
		machine := vm.VM{}
		return func() (bool, error) {
			result, err := machine.Run(program, r)
			if err != nil {
				return false, err
			}
			return result.(bool), nil
		}, nil
	}, nil
}

// address is one as a value of CEL.
type address struct{ netip.Addr }

var addressType = cel.ObjectType("address", traits.ReceiverType)

func (a address) ConvertToNative(reflect.Type) (any, error) { return a.Addr, nil }
func (a address) ConvertToType(ref.Type) ref.Val            { return a }
func (a address) Equal(other ref.Val) ref.Val               { return types.Bool(a == other) }
func (a address) Type() ref.Type                            { return addressType }
func (a address) Value() any                                { return a.Addr }

// celLanguage compiles with the types of the request known, and with constants folded.
func celLanguage(r *request) (func(source string) (condition, error), error) {
	inOffice, err := inNetwork(office)
	if err != nil {
		return nil, err
	}
	texts := cel.MapType(cel.StringType, cel.StringType)
	env, err := cel.NewEnv(
		cel.Variable("host", cel.StringType), cel.Variable("method", cel.StringType), cel.Variable("path", cel.StringType),
		cel.Variable("query", cel.StringType), cel.Variable("agent", cel.StringType), cel.Variable("referer", cel.StringType),
		cel.Variable("country", cel.StringType), cel.Variable("asn", cel.IntType), cel.Variable("port", cel.IntType),
		cel.Variable("ssl", cel.BoolType), cel.Variable("headers", texts), cel.Variable("cookies", texts),
		cel.Variable("client", addressType),
		cel.Function("inOffice", cel.Overload("in_office", []*cel.Type{addressType}, cel.BoolType,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return types.Bool(inOffice(v.(address).Addr)) }))),
		cel.Function("lower", cel.Overload("lower_string", []*cel.Type{cel.StringType}, cel.StringType,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return types.String(strings.ToLower(string(v.(types.String)))) }))),
	)
	if err != nil {
		return nil, err
	}
	values, err := cel.NewActivation(map[string]any{
		"host": r.Host, "method": r.Method, "path": r.Path, "query": r.Query, "agent": r.Agent, "referer": r.Referer,
		"country": r.Country, "asn": r.ASN, "port": r.Port, "ssl": r.SSL, "headers": r.Headers, "cookies": r.Cookies,
		"client": address{r.Client},
	})
	if err != nil {
		return nil, err
	}
	return func(source string) (condition, error) {
		tree, issues := env.Compile(source)
		if issues.Err() != nil {
			return nil, issues.Err()
		}
		program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			return nil, err
		}
		return func() (bool, error) {
			result, _, err := program.Eval(values)
			if err != nil {
				return false, err
			}
			return result == types.True, nil
		}, nil
	}, nil
}
