package exchange

import "net/http"

// webSocketNames are the fields that net/http spells differently from RFC 6455. Names have no case, but some WebSocket
// servers and clients compare them with case.
var webSocketNames = [...]struct{ canonical, spelled string }{
	{"Sec-Websocket-Accept", "Sec-WebSocket-Accept"},
	{"Sec-Websocket-Extensions", "Sec-WebSocket-Extensions"},
	{"Sec-Websocket-Key", "Sec-WebSocket-Key"},
	{"Sec-Websocket-Protocol", "Sec-WebSocket-Protocol"},
	{"Sec-Websocket-Version", "Sec-WebSocket-Version"},
}

// Spelled returns the name of a field as HTTP/1 sends it.
//
//	Spelled("Sec-Websocket-Key") // "Sec-WebSocket-Key"
func Spelled(canonical string) string {
	if len(canonical) < len("Sec-Websocket-Key") || canonical[:4] != "Sec-" {
		return canonical
	}
	for _, name := range webSocketNames {
		if name.canonical == canonical {
			return name.spelled
		}
	}
	return canonical
}

// spell renames the fields of a response to their spelling. Nothing may look them up by their canonical name any more.
func spell(h http.Header) {
	for _, name := range webSocketNames {
		if values, ok := h[name.canonical]; ok {
			delete(h, name.canonical)
			h[name.spelled] = values
		}
	}
}
