package count

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

type (
	browser uint8
	system  uint8
	device  uint8
)

const (
	chrome browser = iota
	edge
	safari
	firefox
	opera
	samsung
	yandex
	ucBrowser
	qqBrowser
	weChat
	internetExplorer
	webView
	crawlerBrowser
	otherBrowser
	browsers
)

const (
	windows system = iota
	macOS
	iOS
	android
	linux
	chromeOS
	harmonyOS
	otherSystem
	systems
)

const (
	desktop device = iota
	mobile
	tablet
	crawler
	otherDevice
	devices
)

var (
	browserNames = [browsers]string{
		"chrome", "edge", "safari", "firefox", "opera", "samsung", "yandex", "uc", "qq", "wechat", "ie", "webview", "crawler",
		"other",
	}
	systemNames = [systems]string{"windows", "macos", "ios", "android", "linux", "chromeos", "harmonyos", "other"}
	deviceNames = [devices]string{"desktop", "mobile", "tablet", "crawler", "other"}
)

// agent is what a User-Agent field says of its client, which may say anything.
type agent struct {
	browser browser
	system  system
	device  device
}

const (
	// maxAgent is how much of a field is looked at.
	maxAgent = 512
	// agentSlots is how many fields are remembered.
	agentSlots = 1024
	// replaceOneIn keeps clients that send a new field with each request from being remembered each time.
	replaceOneIn = 64
)

type knownAgent struct {
	text  string
	agent agent
}

var knownAgents struct {
	seed  maphash.Seed
	slots [agentSlots]atomic.Pointer[knownAgent]
	// Fields that were in no slot.
	missed atomic.Uint32
}

func init() { knownAgents.seed = maphash.MakeSeed() }

// agentOf classifies a field. Those that come often are remembered.
func agentOf(text string) agent {
	text = text[:min(len(text), maxAgent)]
	slot := &knownAgents.slots[maphash.String(knownAgents.seed, text)%agentSlots]
	known := slot.Load()
	if known != nil && known.text == text {
		return known.agent
	}
	found := classify(text)
	if missed := knownAgents.missed.Add(1); known == nil || missed%replaceOneIn == 0 {
		slot.Store(&knownAgent{strings.Clone(text), found})
	}
	return found
}

// marks are looked for in this order: many browsers name others, too.
var (
	crawlerMarks = []string{"bot", "Bot", "spider", "Spider", "crawl", "Crawl", "Slurp", "facebookexternalhit"}
	browserMarks = []struct {
		mark    string
		browser browser
	}{
		{"MicroMessenger", weChat}, {"Edg", edge}, {"OPR/", opera}, {"Opera", opera}, {"SamsungBrowser", samsung},
		{"YaBrowser", yandex}, {"UCBrowser", ucBrowser}, {"UBrowser", ucBrowser}, {"MQQBrowser", qqBrowser},
		{"QQBrowser", qqBrowser}, {"MSIE ", internetExplorer}, {"Trident/", internetExplorer}, {"; wv)", webView},
		{"FxiOS", firefox}, {"Firefox/", firefox}, {"CriOS", chrome}, {"Chrome/", chrome}, {"Safari/", safari},
	}
	systemMarks = []struct {
		mark   string
		system system
	}{
		{"HarmonyOS", harmonyOS}, {"OpenHarmony", harmonyOS}, {"Windows", windows}, {"iPhone", iOS}, {"iPad", iOS}, {"iPod", iOS},
		{"Android", android}, {"CrOS", chromeOS}, {"Macintosh", macOS}, {"Mac OS X", macOS}, {"Linux", linux},
	}
)

func classify(text string) agent {
	for _, mark := range crawlerMarks {
		if strings.Contains(text, mark) {
			return agent{crawlerBrowser, systemOf(text), crawler}
		}
	}
	found := agent{otherBrowser, systemOf(text), otherDevice}
	for _, m := range browserMarks {
		if strings.Contains(text, m.mark) {
			found.browser = m.browser
			break
		}
	}
	if found.browser != otherBrowser {
		found.device = deviceOf(text, found.system)
	}
	return found
}

func systemOf(text string) system {
	for _, m := range systemMarks {
		if strings.Contains(text, m.mark) {
			return m.system
		}
	}
	return otherSystem
}

func deviceOf(text string, s system) device {
	switch s {
	case windows, macOS, linux, chromeOS:
		return desktop
	case iOS:
		if strings.Contains(text, "iPad") {
			return tablet
		}
		return mobile
	case android, harmonyOS:
		if strings.Contains(text, "Mobile") {
			return mobile
		}
		return tablet
	}
	return otherDevice
}
