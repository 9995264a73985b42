package purge

import (
	"edge.svc/caddy/exchange"
	"edge.svc/caddy/features/cache/store"
	nodev1 "edge.svc/caddy/gen/svc/node/v1"
)

// marksOf are the marks of purges. A target that this node does not understand is read as a larger one.
func marksOf(batch *nodev1.PurgeBatch) (marks []Mark) {
	for _, p := range batch.GetPurges() {
		at := store.Position{Epoch: p.GetEpoch(), Sequence: p.GetSequence()}
		for _, id := range p.GetSiteIds() {
			if len(p.GetTags()) == 0 {
				marks = append(marks, Mark{Position: at, Kind: Site, Site: id})
			}
			for _, tag := range p.GetTags() {
				marks = append(marks, Mark{Position: at, Kind: Tag, Site: id, Tag: tag})
			}
		}
		for _, target := range p.GetTargets() {
			marks = append(marks, markOf(at, target))
		}
	}
	return marks
}

func markOf(at store.Position, t *nodev1.PurgeTarget) Mark {
	m := Mark{Position: at, Site: t.GetSiteId(), Host: t.GetHost()}
	path := t.GetPath()
	normal, ok := "", false
	if path != "" && path[0] == '/' {
		// Only paths in this form are stored.
		normal, ok = exchange.NormalPath(path)
	}
	switch scope := t.GetScope(); {
	case scope == nodev1.PurgeScope_PURGE_SCOPE_HOST, ok && scope == nodev1.PurgeScope_PURGE_SCOPE_PREFIX && normal == "/":
		m.Kind = Host
	case ok && scope == nodev1.PurgeScope_PURGE_SCOPE_PREFIX:
		m.Kind, m.Path = Prefix, normal
	case ok && scope == nodev1.PurgeScope_PURGE_SCOPE_URL:
		m.Kind, m.Path, m.Query, m.HasQuery = URL, normal, t.GetQuery(), true
	default:
		m.Kind, m.Host = Site, ""
	}
	return m
}

// batchOf are purges with the effect of marks.
func batchOf(marks []Mark) *nodev1.PurgeBatch {
	batch := &nodev1.PurgeBatch{}
	for i := range marks {
		m := &marks[i]
		p := &nodev1.Purge{Epoch: m.Epoch, Sequence: m.Sequence}
		target := &nodev1.PurgeTarget{SiteId: m.Site, Host: m.Host, Path: m.Path, Query: m.Query}
		switch {
		case m.Kind == Site:
			p.SiteIds = []string{m.Site}
		case m.Kind == Tag:
			p.SiteIds, p.Tags = []string{m.Site}, []string{m.Tag}
		case m.Kind == URL:
			target.Scope = nodev1.PurgeScope_PURGE_SCOPE_URL
		case m.Path == "":
			target.Scope = nodev1.PurgeScope_PURGE_SCOPE_HOST
		default:
			target.Scope = nodev1.PurgeScope_PURGE_SCOPE_PREFIX
		}
		if m.Kind != Site && m.Kind != Tag {
			p.Targets = []*nodev1.PurgeTarget{target}
		}
		batch.Purges = append(batch.Purges, p)
	}
	return batch
}
