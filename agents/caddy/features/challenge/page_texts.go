package challenge

import (
	"fmt"
	"math"
)

const (
	chinese, english = 0, 1
	languages        = 2
)

// pageTexts is what the pages say in one language. No text needs escaping.
type pageTexts struct {
	lang          string
	titles, leads map[string]string
	notices       [3]string

	requestID, again, progress, noScript                         string
	working, sending, done, refused, offline, cookiesOff, often  string
	image, label, proceed, compute, computeTakes, another, takes string

	durations [27]string
}

// duration says how long a proof of work of so many bits takes, by the speed of a common computer.
func (t *pageTexts) duration(bits uint8) string {
	return t.durations[min(int(bits), len(t.durations)-1)]
}

func durations(short, seconds, minute string) (all [27]string) {
	const triesPerSecond = 1.5e6
	for bits := range all {
		switch s := math.Exp2(float64(bits)) / triesPerSecond; {
		case s <= 1:
			all[bits] = short
		case s <= 30:
			all[bits] = fmt.Sprintf(seconds, int(math.Ceil(s)))
		default:
			all[bits] = minute
		}
	}
	return all
}

var texts = [languages]pageTexts{
	chinese: {
		lang: "zh-CN",
		titles: map[string]string{
			typeCookie: "需要启用 Cookie", typeJS: "正在检查您的浏览器", typePow: "正在检查您的浏览器", typeCaptcha: "请确认您不是机器人",
		},
		leads: map[string]string{
			typeCookie:  "此网站通过 Cookie 识别正常访客，但您的浏览器没有把它发回来。请允许此网站使用 Cookie，然后重试。",
			typeJS:      "此网站正在防御自动化流量。检查会自动完成，无需任何操作。",
			typePow:     "此网站正在防御自动化流量。您的浏览器会先解一道小题，无需任何操作。",
			typeCaptcha: "此网站正在防御自动化流量。请输入图片中的字符后继续访问。",
		},
		notices: [3]string{
			wrongAnswer: "答案不正确，请再试一次。",
			cookieLost:  "您刚刚通过了检查，但浏览器没有保存 Cookie。请允许此网站使用 Cookie，然后继续。",
		},
		requestID: "请求编号", again: "重试", progress: "检查进度",
		noScript: "此检查需要 JavaScript。请启用 JavaScript 后重新加载页面。",
		working:  "正在计算…", sending: "正在提交…", done: "检查通过，正在打开网站…",
		refused: "检查未通过。", offline: "无法连接网站，请检查网络后重试。",
		cookiesOff: "您的浏览器已禁用 Cookie。请允许此网站使用 Cookie，然后重试。",
		often:      "多次检查后仍未能进入网站。请允许 Cookie，或更换网络后重试。",
		image:      "含有 5 个字符的图片。如无法辨认，可改为由浏览器计算。",
		label:      "请输入 5 个字符", proceed: "继续", compute: "改为由浏览器计算", computeTakes: "浏览器计算（需要 JavaScript）",
		another: "换一张图片", takes: "通常",
		durations: durations("不到 1 秒。", "约需 %d 秒，手机上会更久。", "约需一分钟，手机上会更久。"),
	},
	english: {
		lang: "en",
		titles: map[string]string{
			typeCookie: "Cookies are needed", typeJS: "Checking your browser", typePow: "Checking your browser", typeCaptcha: "Please show that you are human",
		},
		leads: map[string]string{
			typeCookie:  "This website knows its visitors by a cookie, and your browser did not send it back. Please allow cookies for this website and try again.",
			typeJS:      "This website is defending itself against automated traffic. The check runs by itself, you need not do anything.",
			typePow:     "This website is defending itself against automated traffic. Your browser solves a small puzzle first, you need not do anything.",
			typeCaptcha: "This website is defending itself against automated traffic. Type the characters of the image to go on.",
		},
		notices: [3]string{
			wrongAnswer: "That answer was not right. Please try once more.",
			cookieLost:  "You passed the check a moment ago, but your browser did not keep the cookie. Please allow cookies for this website, then go on.",
		},
		requestID: "Request ID", again: "Try again", progress: "Progress of the check",
		noScript: "This check needs JavaScript. Please switch it on and reload the page.",
		working:  "Working…", sending: "Sending the answer…", done: "Passed. Opening the website…",
		refused: "The check did not succeed.", offline: "The website could not be reached. Please check your connection and try again.",
		cookiesOff: "Your browser refuses cookies. Please allow them for this website and try again.",
		often:      "The check keeps coming back. Please allow cookies for this website, or try another network.",
		image:      "Image of 5 characters. If you cannot read it, let your browser compute instead.",
		label:      "The 5 characters", proceed: "Continue", compute: "Let my browser compute instead",
		computeTakes: "Computing needs JavaScript and takes ", another: "Show another image", takes: "This takes ",
		durations: durations("less than a second.", "about %d seconds, longer on a phone.", "about a minute, longer on a phone."),
	},
}
