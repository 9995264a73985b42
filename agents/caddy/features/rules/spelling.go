package rules

import "edge.svc/caddy/expr"

// spelling says which targets the condition of a rule reads. An exemption by path holds for the spelling of the path alone
// that every origin reads alike: a client could otherwise be spared for one path and be served another.
type spelling struct {
	// asked is the target of the client, current the one that rules before left.
	asked, current bool
}

func spellingOf(when *expr.Condition) spelling {
	return spelling{
		asked:   when.Field(expr.URI) || when.Field(expr.FullURI),
		current: when.Field(expr.Path) || when.Field(expr.PathExtension) || when.Field(expr.RawPath),
	}
}

// plain reports whether what the condition read has one reading.
func (s spelling) plain(q *request) bool {
	return (!s.asked || q.x.In.Target.Plain()) && (!s.current || q.x.Target().Plain())
}
