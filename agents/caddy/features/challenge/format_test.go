package challenge

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// Values that every implementation of these formats must make and accept.
const (
	vectorAgent = "UA-test/1.0"
	vectorTime  = 1_700_000_000
	vectorPass  = "v1.k1.c2l0ZS0xfDJ8NDoxOTIuMC4yfDEzY2MyZjY2MDgyMTJkOTh8MTcwMDAwMDAwMHwxNzAwMDAxODAw.5se1T_6GxbECKVO0JsdOyKBCdIA5MKx2YM4GerG2TdY"
	vectorJS    = "k1.c2l0ZS0xfGpzfDJ8NDoxOTIuMC4yfDEzY2MyZjY2MDgyMTJkOTh8MTcwMDAwMDAwMHwxNzAwMDAwMzAwfEFBRUNBd1FGQmdjSUNRb0x8MHw.KVYXL-Ncr7aTuaU95FWDqV8hc4fbokJ-OF9eGCLcVDA"
	vectorSum   = "90cb321df96357d35d3e0da889caebd17c81c865a53bae43a8ecced947f38393"
	vectorPow   = "k1.c2l0ZS0xfHBvd3wzfDQ6MTkyLjAuMnwxM2NjMmY2NjA4MjEyZDk4fDE3MDAwMDAwMDB8MTcwMDAwMDMwMHxBQUVDQXdRRkJnY0lDUW9MfDE2fA.sMcNTJ-7d0B-d38NfGM-M9N3OnncawV3c7a87A9k2po"
	vectorNonce = "AAECAwQFBgcICQoL"
)

var vectorClient = netip.MustParseAddr("192.0.2.7")

// secretFrom is 32 bytes that count up from first.
func secretFrom(first byte) []byte {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = first + byte(i)
	}
	return secret
}

func vectorKeys(t testing.TB) *keySet {
	t.Helper()
	set, err := newKeySet(Keys{Version: 1, Current: &Key{ID: "k1", Secret: secretFrom(0)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func vectorToken(kind string, level Level, bits uint8) *token {
	t := &token{kind: kind, level: level, issued: vectorTime, expires: vectorTime + 300, bits: bits}
	copy(t.nonce[:], vectorNonce)
	return t
}

func TestVectors(t *testing.T) {
	keys := vectorKeys(t)
	b := bind("site-1", vectorClient, vectorAgent)
	if string(b.agent[:]) != "13cc2f6608212d98" || string(b.networkText()) != "4:192.0.2" {
		t.Errorf("bound to %s %s", b.agent, b.networkText())
	}
	for address, want := range map[string]string{
		"2001:db8:1:2:3:4:5:6": "6:20010db800010002", "::ffff:192.0.2.7": "4:192.0.2", "255.255.255.255": "4:255.255.255", "::": "6:0000000000000000",
	} {
		if got := string(appendNetwork(nil, netip.MustParseAddr(address))); got != want {
			t.Errorf("network of %s: %s", address, got)
		}
	}
	if got := string(appendPass(nil, keys.current, &b, JS, vectorTime, vectorTime+1800)); got != vectorPass {
		t.Errorf("pass %s", got)
	}
	if got := string(appendToken(nil, keys.current, &b, vectorToken(typeJS, JS, 0))); got != vectorJS {
		t.Errorf("js %s", got)
	}
	if got := string(appendToken(nil, keys.current, &b, vectorToken(typePow, Pow, 16))); got != vectorPow {
		t.Errorf("pow %s", got)
	}
	if got := captchaHash(keys.current, []byte(vectorNonce), "ABCDE"); string(got[:]) != "e4388c8e390ca76ada1e69646ddf4cba" {
		t.Errorf("captcha %s", got)
	}

	if held, ok := checkPass(keys, &b, vectorPass, vectorTime); !ok || held.level != JS || held.issued != vectorTime {
		t.Errorf("pass: %v %v %v", held.level, held.issued, ok)
	}
	js, key := checkToken(keys, &b, vectorJS, vectorTime)
	if key == nil || !js.solves(key, vectorJS, vectorSum) || js.solves(key, vectorJS, strings.ToUpper(vectorSum)) {
		t.Errorf("js %+v", js)
	}
	pow, key := checkToken(keys, &b, vectorPow, vectorTime)
	if key == nil || pow.bits != 16 || !pow.solves(key, vectorPow, "85885") {
		t.Errorf("pow %+v", pow)
	}
	for n := range 85885 {
		if isWork(vectorPow, strconv.Itoa(n), 16) {
			t.Fatalf("%d is smaller than the smallest answer", n)
		}
	}
}
