package expr

// Field is a property of a request or response.
type Field uint8

// The fields, in the order of contract/expression/fields.ts.
const (
	noField Field = iota
	Host
	Method
	Path
	PathExtension
	RawPath
	Query
	URI
	FullURI
	RequestHeader
	Cookie
	Argument
	Referer
	UserAgent
	Version
	Scheme
	RequestID
	TimestampSec
	ServerPort
	Source
	Peer
	SSL
	JA4
	Country
	Subdivision
	ASNumber
	ASName
	ResponseCode
	ResponseHeader
	MediaType
	CacheStatus
)

// kind is the type of a value.
type kind uint8

const (
	textKind kind = iota + 1
	numberKind
	truthKind
	addressKind
)

// naming is what stands in the brackets of a field.
type naming uint8

const (
	unnamed naming = iota
	headerName
	cookieName
	argumentName
)

type fieldSpec struct {
	name string
	kind kind
	// Only responses have it.
	response bool
	naming   naming
}

var fields = [...]fieldSpec{
	Host:           {name: "http.host", kind: textKind},
	Method:         {name: "http.request.method", kind: textKind},
	Path:           {name: "http.request.uri.path", kind: textKind},
	PathExtension:  {name: "http.request.uri.path.extension", kind: textKind},
	RawPath:        {name: "raw.http.request.uri.path", kind: textKind},
	Query:          {name: "http.request.uri.query", kind: textKind},
	URI:            {name: "http.request.uri", kind: textKind},
	FullURI:        {name: "http.request.full_uri", kind: textKind},
	RequestHeader:  {name: "http.request.headers", kind: textKind, naming: headerName},
	Cookie:         {name: "http.request.cookies", kind: textKind, naming: cookieName},
	Argument:       {name: "http.request.uri.args", kind: textKind, naming: argumentName},
	Referer:        {name: "http.referer", kind: textKind},
	UserAgent:      {name: "http.user_agent", kind: textKind},
	Version:        {name: "http.request.version", kind: textKind},
	Scheme:         {name: "http.request.scheme", kind: textKind},
	RequestID:      {name: "http.request.id", kind: textKind},
	TimestampSec:   {name: "http.request.timestamp.sec", kind: numberKind},
	ServerPort:     {name: "edge.server_port", kind: numberKind},
	Source:         {name: "ip.src", kind: addressKind},
	Peer:           {name: "ip.peer", kind: addressKind},
	SSL:            {name: "ssl", kind: truthKind},
	JA4:            {name: "tls.ja4", kind: textKind},
	Country:        {name: "ip.geoip.country", kind: textKind},
	Subdivision:    {name: "ip.geoip.subdivision", kind: textKind},
	ASNumber:       {name: "ip.geoip.asnum", kind: numberKind},
	ASName:         {name: "ip.geoip.as_name", kind: textKind},
	ResponseCode:   {name: "http.response.code", kind: numberKind, response: true},
	ResponseHeader: {name: "http.response.headers", kind: textKind, response: true, naming: headerName},
	MediaType:      {name: "http.response.content_type.media_type", kind: textKind, response: true},
	CacheStatus:    {name: "http.response.cache_status", kind: textKind, response: true},
}

// String is the name of the field in the language.
func (f Field) String() string { return fields[f].name }

var fieldByName = func() map[string]Field {
	byName := make(map[string]Field, len(fields))
	for field, spec := range fields {
		if Field(field) != noField {
			byName[spec.name] = Field(field)
		}
	}
	return byName
}()

// accepts reports whether a name can stand in the brackets; headers are in lower case.
func (n naming) accepts(name string) bool {
	if n == unnamed {
		return name == ""
	}
	if name == "" || len(name) > maxName {
		return false
	}
	for i := range len(name) {
		if !n.has(name[i]) {
			return false
		}
	}
	return true
}

func (n naming) has(c byte) bool {
	switch {
	case n == argumentName:
		return c >= ' ' && c <= '~' && c != '"' && c != '#' && c != '&' && c != '='
	case c >= 'A' && c <= 'Z':
		return n != headerName
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		return true
	}
	for _, each := range []byte("!#$%&'*+-.^_`|~") {
		if c == each {
			return true
		}
	}
	return false
}
