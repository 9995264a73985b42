package origin

import (
	"testing"
	"time"
)

func TestContentTypesOfGRPC(t *testing.T) {
	for contentType, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc;charset=x": true, "Application/GRPC+json": true,
		"application/grpc-web": false, "application/grpc-web+proto": false, "application/grpcx": false, "application/json": false, "": false,
	} {
		if isGRPC([]string{contentType}) != want {
			t.Errorf("%q is not %v", contentType, want)
		}
	}
	if isGRPC(nil) || isGRPC([]string{"application/grpc", "application/grpc"}) {
		t.Error("no type, or two of them")
	}
}

func TestDeadlinesOfGRPC(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"1H": time.Hour, "2M": 2 * time.Minute, "3S": 3 * time.Second, "100m": 100 * time.Millisecond, "5u": 5 * time.Microsecond, "99999999n": 99_999_999,
		"": 0, "S": 0, "5": 0, "5x": 0, "-5S": 0, "123456789S": 0, "1.5S": 0,
	} {
		if got := grpcTimeout(value); got != want {
			t.Errorf("%q: %s, not %s", value, got, want)
		}
	}
	if got := grpcTimeout("99999999H"); got < 24*365*time.Hour {
		t.Errorf("a deadline beyond all times: %s", got)
	}
	usual := times{10 * time.Second, time.Minute, time.Minute}
	if got := usual.within([]string{"2S"}); got != (times{2 * time.Second, time.Minute, 2 * time.Second}) {
		t.Errorf("%v", got)
	}
	if got := usual.within(nil); got != usual {
		t.Errorf("%v", got)
	}
}
