package cc

import (
	"testing"

	edgev1 "edge.svc/caddy/gen/svc/edge/v1"
)

func levels(sites ...*edgev1.SiteLevelState) *edgev1.JournalRecord {
	return &edgev1.JournalRecord{Record: &edgev1.JournalRecord_Security{Security: &edgev1.SecurityBatch{Sites: sites}}}
}

// The newest levels of the journal go on from where they were; a site back to normal has none.
func TestLevelsOfTheJournalGoOnCoolingDown(t *testing.T) {
	r := newRig(t)
	r.policy["a"], r.policy["calm"] = strict(nil), strict(nil)
	var former Former
	for _, record := range []*edgev1.JournalRecord{
		levels(&edgev1.SiteLevelState{SiteId: "a", Site: &edgev1.LevelState{Level: 1}}, &edgev1.SiteLevelState{SiteId: "calm", Site: &edgev1.LevelState{Level: 2}}),
		{Record: &edgev1.JournalRecord_SecurityMark{SecurityMark: &edgev1.SecurityMark{}}},
		levels(
			&edgev1.SiteLevelState{SiteId: "a", Site: &edgev1.LevelState{Level: 3, CalmMs: 55_000}, Paths: []*edgev1.PathLevelState{{Path: "/hot", State: &edgev1.LevelState{Level: 4}}}},
			&edgev1.SiteLevelState{SiteId: "calm", Site: &edgev1.LevelState{}},
			&edgev1.SiteLevelState{SiteId: "off", Site: &edgev1.LevelState{Level: 2}},
		),
	} {
		former.Take(record)
	}
	r.Load(&former)
	if r.level("/") != 3 || r.level("/hot") != 4 || len(r.Security()) != 1 {
		t.Fatalf("%d %d %v", r.level("/"), r.level("/hot"), r.Security())
	}
	r.seconds(5, 0, 0, 0, "/")
	if r.level("/") != 2 {
		t.Errorf("level %d", r.level("/"))
	}
	r.seconds(300, 0, 0, 0, "/")
	if r.level("/") != 0 || r.level("/hot") != 0 {
		t.Fatalf("%d %d do not end", r.level("/"), r.level("/hot"))
	}
	r.drain()
	// The agent repeats what it heard last. A level that ended since does not come back, and the agent learns what
	// nobody holds any more.
	r.RestoreLevels([]*edgev1.SiteLevelState{
		{SiteId: "a", Site: &edgev1.LevelState{Level: 3, CalmMs: 55_000}}, {SiteId: "off", Site: &edgev1.LevelState{Level: 2}},
	})
	if r.level("/") != 0 {
		t.Errorf("level %d came back", r.level("/"))
	}
	if _, _, sites := r.drain(); len(sites) != 1 || sites[0].GetSiteId() != "off" || sites[0].GetSite().GetLevel() != 0 {
		t.Errorf("%v", sites)
	}
}
