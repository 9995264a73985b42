package h2

import "golang.org/x/net/http2/hpack"

// Header blocks refer to the static table and to nothing else. They are some bytes longer than others, and cost neither
// side a table, nor the connection a lock while they are made. The first block of a connection says that the table is empty.

// Representations (RFC 7541 §6).
const (
	indexed      = 0x80
	literal      = 0x00
	neverIndexed = 0x10
	tableOfNone  = 0x20
)

// Indices of the static table (RFC 7541 appendix A).
const (
	nameAuthority = 1
	nameMethod    = 2
	methodGet     = 2
	methodPost    = 3
	namePath      = 4
	pathRoot      = 4
	schemeHTTP    = 6
	schemeHTTPS   = 7
	lastStatic    = 61
	firstField    = 15
)

// staticNames has the indices of names of fields.
var staticNames = func() map[string]uint8 {
	names := map[string]uint8{}
	d := hpack.NewDecoder(0, nil)
	for i := lastStatic; i >= firstField; i-- {
		fields, err := d.DecodeFull([]byte{indexed | byte(i)})
		if err != nil {
			panic(err)
		}
		names[fields[0].Name] = uint8(i)
	}
	return names
}()

// AppendRequest appends what begins the header block of every request.
func AppendRequest(b []byte, method, scheme, authority, path []byte) []byte {
	switch string(method) {
	case "GET":
		b = append(b, indexed|methodGet)
	case "POST":
		b = append(b, indexed|methodPost)
	default:
		b = appendText(appendInt(b, literal, 4, nameMethod), method)
	}
	if string(scheme) == "https" {
		b = append(b, indexed|schemeHTTPS)
	} else {
		b = append(b, indexed|schemeHTTP)
	}
	if len(authority) > 0 {
		b = appendText(appendInt(b, literal, 4, nameAuthority), authority)
	}
	if string(path) == "/" {
		return append(b, indexed|pathRoot)
	}
	return appendText(appendInt(b, literal, 4, namePath), path)
}

// AppendField appends a field. Its name may have any case.
func AppendField(b []byte, name, value []byte) []byte {
	var room [64]byte
	lower := room[:0]
	for _, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower = append(lower, c)
	}
	kind := byte(literal)
	switch string(lower) {
	case "authorization", "cookie":
		kind = neverIndexed
	}
	if index := staticNames[string(lower)]; index > 0 {
		b = appendInt(b, kind, 4, uint64(index))
	} else {
		b = appendText(append(b, kind), lower)
	}
	return appendText(b, value)
}

func appendText(b, text []byte) []byte {
	return append(appendInt(b, 0, 7, uint64(len(text))), text...)
}

// appendInt appends an integer whose first bits lie in the byte of the representation (RFC 7541 §5.1).
func appendInt(b []byte, first byte, bits uint, n uint64) []byte {
	limit := uint64(1)<<bits - 1
	if n < limit {
		return append(b, first|byte(n))
	}
	b = append(b, first|byte(limit))
	for n -= limit; n >= 0x80; n >>= 7 {
		b = append(b, 0x80|byte(n))
	}
	return append(b, byte(n))
}
