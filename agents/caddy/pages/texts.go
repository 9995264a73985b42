package pages

const (
	chinese, english   = 0, 1
	languages          = 2
	hopNone            = ""
	hopVisitor         = "visitor"
	hopEdge, hopOrigin = "edge", "origin"
)

// text is what a page says: its title, what happened, and what the visitor can do, Chinese and English.
type text struct {
	titles, sentences, advice [languages]string
	// Where it happened; "" leaves the picture of the way out, for pages that must stay small.
	hop string
}

var (
	tryLater = [languages]string{
		"这不是您的问题。请几分钟后重试。如果问题仍然存在，请联系网站，并提供下面的请求编号。",
		"This is not your fault. Try again in a few minutes. If the problem stays, contact the website and quote the request ID below.",
	}
	tryAgain = [languages]string{
		"这不是您的问题。请稍候片刻，然后重新加载页面。",
		"This is not your fault. Wait a moment, then reload the page.",
	}
	blockedByMistake = [languages]string{
		"如果您认为这是误判，请联系网站，并提供下面的请求编号。",
		"If you think that this is a mistake, contact the website and quote the request ID below.",
	}
	checkAddress = [languages]string{
		"请检查地址是否正确，或从网站首页开始浏览。",
		"Check the address, or start at the home page of the website.",
	}
)

var texts = map[string]text{
	BadRequest: {
		[languages]string{"请求无效", "Bad request"},
		[languages]string{"服务器无法理解此请求。", "The server could not understand this request."},
		[languages]string{
			"请重新加载页面。如果没有帮助，请清除此网站的 Cookie 后重试。",
			"Reload the page. If that does not help, delete the cookies of this website and try again.",
		},
		hopVisitor,
	},
	BodyTooLarge: {
		[languages]string{"内容过大", "Content too large"},
		[languages]string{"上传的内容超过了此网站允许的大小。", "What you sent is larger than this website accepts."},
		[languages]string{"请上传较小的文件，或分成几次上传。", "Send a smaller file, or send it in several parts."},
		hopVisitor,
	},
	ChallengeUnavailable: {
		[languages]string{"暂时无法验证", "Check unavailable"},
		[languages]string{"此网站需要先验证访客，但该节点暂时无法进行验证。", "This website checks its visitors, which this node cannot do at the moment."},
		tryLater,
		hopEdge,
	},
	ClientCertRequired: {
		[languages]string{"需要客户端证书", "Client certificate required"},
		[languages]string{"此网站只接受出示有效证书的客户端。", "This website only responds to clients that present a certificate it trusts."},
		[languages]string{
			"请在浏览器或设备中安装网站提供的证书，重启浏览器后重试。",
			"Install the certificate that you received from the website, restart the browser and try again.",
		},
		hopVisitor,
	},
	EdgeBusy: {
		[languages]string{"请求过多", "Too many requests in progress"},
		[languages]string{"该节点正在处理的请求过多。", "This node is handling too many requests at the moment."},
		tryAgain,
		hopEdge,
	},
	HTTPSRequired: {
		[languages]string{"需要 HTTPS", "HTTPS required"},
		[languages]string{"此端口只提供 HTTPS。", "This port speaks HTTPS only."},
		[languages]string{"请在地址开头使用 https 后重试。", "Begin the address with https and try again."},
		hopVisitor,
	},
	HeaderTooLarge: {
		[languages]string{"标头过大", "Request header too large"},
		[languages]string{"请求的标头（例如 Cookie）超过了允许的大小。", "The headers of this request, such as its cookies, are larger than allowed."},
		[languages]string{"请清除此网站的 Cookie 后重试。", "Delete the cookies of this website and try again."},
		hopVisitor,
	},
	IPBanned: {
		[languages]string{"访问被拒绝", "Access denied"},
		[languages]string{"您的 IP 地址已被封禁。", "Your IP address is banned."},
		[languages]string{"如有疑问，请联系网站并提供编号。", "Contact the website if this is a mistake."},
		hopNone,
	},
	InternalError: {
		[languages]string{"内部错误", "Internal error"},
		[languages]string{"边缘节点处理请求时出错。", "The edge failed while handling this request."},
		tryLater,
		hopEdge,
	},
	Maintenance: {
		[languages]string{"网站正在维护", "Down for maintenance"},
		[languages]string{"此网站正在维护，很快恢复。", "This website is being maintained and will be back soon."},
		[languages]string{"您无需做任何事情。请稍后再来。", "There is nothing you need to do. Come back later."},
		hopNone,
	},
	MethodNotAllowed: {
		[languages]string{"不支持的方法", "Method not allowed"},
		[languages]string{"此处不支持该请求方法。", "This request method is not available here."},
		checkAddress,
		hopVisitor,
	},
	NoOrigin: {
		[languages]string{"没有可用的源站", "No origin available"},
		[languages]string{"此网站目前没有可用的源站。", "No origin of this website can be used at the moment."},
		tryLater,
		hopOrigin,
	},
	NotFound: {
		[languages]string{"未找到", "Not found"},
		[languages]string{"此地址上没有内容。", "There is nothing at this address."},
		checkAddress,
		hopEdge,
	},
	OriginBusy: {
		[languages]string{"源站繁忙", "Origin busy"},
		[languages]string{"发往此网站源站的请求过多。", "The origin of this website is handling too many requests at the moment."},
		tryAgain,
		hopOrigin,
	},
	OriginError: {
		[languages]string{"源站错误", "Origin error"},
		[languages]string{"源站返回了错误的响应。", "The origin responded with an error."},
		tryLater,
		hopOrigin,
	},
	OriginTimeout: {
		[languages]string{"源站超时", "Origin timed out"},
		[languages]string{"源站没有及时响应。", "The origin did not respond in time."},
		tryLater,
		hopOrigin,
	},
	OriginUnreachable: {
		[languages]string{"无法连接源站", "Origin unreachable"},
		[languages]string{"边缘节点无法连接源站。", "The edge could not reach the origin."},
		tryLater,
		hopOrigin,
	},
	PathAmbiguous: {
		[languages]string{"路径有歧义", "Ambiguous path"},
		[languages]string{"此地址的路径可能有多种解读，服务器不接受。", "The path of this address can be read in different ways, so this website does not accept it."},
		checkAddress,
		hopVisitor,
	},
	PolicyDenied: {
		[languages]string{"访问被拒绝", "Access denied"},
		[languages]string{"安全策略不允许此请求。", "A security policy does not allow this request."},
		blockedByMistake,
		hopEdge,
	},
	PolicyUnavailable: {
		[languages]string{"暂时无法检查请求", "Request cannot be checked"},
		[languages]string{"此网站的安全策略暂时无法执行。", "The security policy of this website cannot be applied at the moment."},
		tryLater,
		hopEdge,
	},
	SiteDisabled: {
		[languages]string{"网站已停用", "Website disabled"},
		[languages]string{"此网站目前已停用。", "This website is disabled at the moment."},
		[languages]string{"这不是您的问题。如果这是您的网站，请联系服务商。", "This is not your fault. If this is your website, contact your provider."},
		hopEdge,
	},
	TooLarge: {
		[languages]string{"内容过大", "Content too large"},
		[languages]string{"提交的验证内容过大。", "What was sent is too large for an answer to a check."},
		[languages]string{"请返回上一页，重新加载后重试。", "Go back, reload the page and try again."},
		hopVisitor,
	},
	URITooLong: {
		[languages]string{"地址过长", "Address too long"},
		[languages]string{"请求的地址超过了允许的长度。", "The address of this request is longer than allowed."},
		checkAddress,
		hopVisitor,
	},
	UnknownHost: {
		[languages]string{"未知的网站", "Unknown website"},
		[languages]string{"此节点上没有该域名的网站。", "No website with this name is served here."},
		[languages]string{
			"请检查地址。如果这是您的网站，请确认域名已添加到站点并已启用。",
			"Check the address. If this is your website, make sure that the domain is added to a site and the site is enabled.",
		},
		hopEdge,
	},
	WAFBlocked: {
		[languages]string{"请求被拦截", "Request blocked"},
		[languages]string{"此请求看起来像攻击，已被网站防火墙拦截。", "This request looks like an attack, and the firewall of this website blocked it."},
		blockedByMistake,
		hopEdge,
	},
	WAFBusy: {
		[languages]string{"暂时无法检查请求", "Request cannot be checked"},
		[languages]string{"网站防火墙暂时无法检查此请求。", "The firewall of this website cannot check this request at the moment."},
		tryAgain,
		hopEdge,
	},
	WebSocketDisabled: {
		[languages]string{"WebSocket 已关闭", "WebSocket is off"},
		[languages]string{"此网站不接受 WebSocket 连接。", "This website does not accept WebSocket connections."},
		blockedByMistake,
		hopEdge,
	},
}

// statusTexts are texts of a code that depend on its status.
var statusTexts = map[string]map[int]text{
	BadRequest: {408: {
		[languages]string{"请求超时", "Request timed out"},
		[languages]string{"请求没有及时发送完毕。", "The request did not arrive in time."},
		[languages]string{"请检查网络连接，然后重试。", "Check your connection to the internet, then try again."},
		hopVisitor,
	}},
	PolicyDenied: {
		429: {
			[languages]string{"请求过于频繁", "Too many requests"},
			[languages]string{"来自您的请求超过了此网站允许的频率。", "You sent more requests than this website allows."},
			[languages]string{"请等待一分钟，然后重试。", "Wait a minute, then try again."},
			hopVisitor,
		},
		451: {
			[languages]string{"因法律原因不可用", "Unavailable for legal reasons"},
			[languages]string{"此内容因法律原因无法提供。", "This content cannot be shown for legal reasons."},
			blockedByMistake,
			hopEdge,
		},
		503: {
			[languages]string{"暂时无法安全访问", "Secure access unavailable"},
			[languages]string{"此网站要求使用 HTTPS，但目前没有可用的证书。", "This website requires HTTPS, but has no certificate for it at the moment."},
			tryLater,
			hopEdge,
		},
	},
}

// What happened at the edge; what is not named here failed there. At the visitor the request was not accepted.
var outcomes = map[string][languages]string{
	EdgeBusy:          notAccepted,
	NotFound:          notServed,
	PolicyDenied:      blocked,
	SiteDisabled:      notServed,
	UnknownHost:       notServed,
	WAFBlocked:        blocked,
	WebSocketDisabled: blocked,
}

var (
	blocked     = [languages]string{"已拦截请求", "request blocked"}
	failed      = [languages]string{"出错", "failed"}
	notAccepted = [languages]string{"请求未被接受", "request not accepted"}
	notServed   = [languages]string{"无内容可提供", "nothing to serve"}
)
