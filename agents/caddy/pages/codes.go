package pages

import (
	"maps"
	"slices"
)

// Codes of the header X-Svc-Error.
const (
	BadRequest           = "bad-request"
	BodyTooLarge         = "body-too-large"
	ChallengeUnavailable = "challenge-unavailable"
	ClientCertRequired   = "client-cert-required"
	EdgeBusy             = "edge-busy"
	HTTPSRequired        = "https-required"
	HeaderTooLarge       = "header-too-large"
	IPBanned             = "ip-banned"
	InternalError        = "internal-error"
	LoopDetected         = "loop-detected"
	MethodNotAllowed     = "method-not-allowed"
	NoOrigin             = "no-origin"
	NotFound             = "not-found"
	OriginBusy           = "origin-busy"
	OriginError          = "origin-error"
	OriginTimeout        = "origin-timeout"
	OriginUnreachable    = "origin-unreachable"
	PathAmbiguous        = "path-ambiguous"
	PolicyDenied         = "policy-denied"
	PolicyUnavailable    = "policy-unavailable"
	SiteDisabled         = "site-disabled"
	SNIHostMismatch      = "sni-host-mismatch"
	TooLarge             = "too-large"
	UnknownHost          = "unknown-host"
	URITooLong           = "uri-too-long"
	WAFBlocked           = "waf-blocked"
	WAFBusy              = "waf-busy"
	WebSocketDisabled    = "websocket-disabled"
	headerError          = "X-Svc-Error"
	maxRequestIDBytes    = 128
	chinese, english     = 0, 1
	languages            = 2
	hopNone              = ""
	hopVisitor           = "visitor"
	hopEdge, hopOrigin   = "edge", "origin"
)

// text is what a page says: title and one sentence, Chinese and English.
type text struct {
	titles, sentences [languages]string
	// Where it happened; "" leaves the picture of the way out, for pages that must stay small.
	hop string
}

var texts = map[string]text{
	BadRequest: {
		[languages]string{"请求无效", "Bad request"},
		[languages]string{"服务器无法理解此请求。", "The server could not understand this request."},
		hopVisitor,
	},
	BodyTooLarge: {
		[languages]string{"内容过大", "Content too large"},
		[languages]string{"上传的内容超过了此网站允许的大小。", "What you sent is larger than this website accepts."},
		hopVisitor,
	},
	ChallengeUnavailable: {
		[languages]string{"暂时无法验证", "Check unavailable"},
		[languages]string{"此网站需要先验证访客，但该节点暂时无法进行验证，请稍后重试。", "This website checks its visitors, which this node cannot do at the moment. Please try again later."},
		hopEdge,
	},
	ClientCertRequired: {
		[languages]string{"需要客户端证书", "Client certificate required"},
		[languages]string{"此网站只接受出示有效证书的客户端。", "This website answers only those who show a certificate that it trusts."},
		hopVisitor,
	},
	EdgeBusy: {
		[languages]string{"请求过多", "Too many requests in progress"},
		[languages]string{"该节点正在处理的请求过多，请稍后重试。", "This node is handling too many requests at the moment. Please try again later."},
		hopEdge,
	},
	HeaderTooLarge: {
		[languages]string{"请求头过大", "Request header too large"},
		[languages]string{"请求头（例如 Cookie）超过了允许的大小。", "The header of this request, such as its cookies, is larger than allowed."},
		hopVisitor,
	},
	HTTPSRequired: {
		[languages]string{"需要 HTTPS", "HTTPS required"},
		[languages]string{"此端口只提供 HTTPS，请使用 HTTPS 地址访问。", "This port speaks HTTPS only. Please use an HTTPS address."},
		hopVisitor,
	},
	IPBanned: {
		[languages]string{"访问被拒绝", "Access denied"},
		[languages]string{"您的 IP 地址已被封禁。", "Your IP address is banned."},
		hopNone,
	},
	InternalError: {
		[languages]string{"内部错误", "Internal error"},
		[languages]string{"边缘节点处理请求时出错，请稍后重试。", "The edge failed while handling this request. Please try again later."},
		hopEdge,
	},
	MethodNotAllowed: {
		[languages]string{"不支持的方法", "Method not allowed"},
		[languages]string{"此处不支持该请求方法。", "This request method is not available here."},
		hopVisitor,
	},
	NoOrigin: {
		[languages]string{"没有可用的源站", "No origin available"},
		[languages]string{"此网站目前没有可用的源站，请稍后重试。", "No origin of this website can be used at the moment. Please try again later."},
		hopOrigin,
	},
	NotFound: {
		[languages]string{"未找到", "Not found"},
		[languages]string{"此地址上没有内容。", "There is nothing at this address."},
		hopEdge,
	},
	OriginBusy: {
		[languages]string{"源站繁忙", "Origin busy"},
		[languages]string{"发往此网站源站的请求过多，请稍后重试。", "The origin of this website is handling too many requests at the moment. Please try again later."},
		hopOrigin,
	},
	OriginError: {
		[languages]string{"源站错误", "Origin error"},
		[languages]string{"源站返回了错误的响应，请稍后重试。", "The origin answered with an error. Please try again later."},
		hopOrigin,
	},
	OriginTimeout: {
		[languages]string{"源站超时", "Origin timed out"},
		[languages]string{"源站没有及时响应，请稍后重试。", "The origin did not answer in time. Please try again later."},
		hopOrigin,
	},
	OriginUnreachable: {
		[languages]string{"无法连接源站", "Origin unreachable"},
		[languages]string{"边缘节点无法连接源站，请稍后重试。", "The edge could not reach the origin. Please try again later."},
		hopOrigin,
	},
	PathAmbiguous: {
		[languages]string{"路径有歧义", "Ambiguous path"},
		[languages]string{"此地址的路径可能有多种解读，服务器不接受。", "The path of this address can be read in different ways, so this website does not accept it."},
		hopVisitor,
	},
	PolicyDenied: {
		[languages]string{"访问被拒绝", "Access denied"},
		[languages]string{"安全策略不允许此请求。", "A security policy does not allow this request."},
		hopEdge,
	},
	PolicyUnavailable: {
		[languages]string{"暂时无法检查请求", "Request cannot be checked"},
		[languages]string{"此网站的安全策略暂时无法执行，请稍后重试。", "The security policy of this website cannot be applied at the moment. Please try again later."},
		hopEdge,
	},
	SiteDisabled: {
		[languages]string{"网站已停用", "Website disabled"},
		[languages]string{"此网站目前已停用。", "This website is disabled at the moment."},
		hopEdge,
	},
	TooLarge: {
		[languages]string{"内容过大", "Content too large"},
		[languages]string{"提交的验证内容过大。", "What was sent is too large for an answer to a check."},
		hopVisitor,
	},
	UnknownHost: {
		[languages]string{"未知的网站", "Unknown website"},
		[languages]string{"此节点上没有该域名的网站。", "No website with this name is served here."},
		hopEdge,
	},
	URITooLong: {
		[languages]string{"地址过长", "Address too long"},
		[languages]string{"请求的地址超过了允许的长度。", "The address of this request is longer than allowed."},
		hopVisitor,
	},
	WAFBlocked: {
		[languages]string{"请求被拦截", "Request blocked"},
		[languages]string{"此请求看起来像攻击，已被网站防火墙拦截。", "This request looks like an attack, and the firewall of this website blocked it."},
		hopEdge,
	},
	WAFBusy: {
		[languages]string{"暂时无法检查请求", "Request cannot be checked"},
		[languages]string{"网站防火墙暂时无法检查此请求，请稍后重试。", "The firewall of this website cannot check this request at the moment. Please try again later."},
		hopEdge,
	},
	WebSocketDisabled: {
		[languages]string{"WebSocket 已关闭", "WebSocket is off"},
		[languages]string{"此网站不接受 WebSocket 连接。", "This website does not accept WebSocket connections."},
		hopEdge,
	},
}

// What happened at the place of a page's text; what is not named here failed.
var outcomes = map[string][languages]string{
	BadRequest:         notAccepted,
	BodyTooLarge:       notAccepted,
	EdgeBusy:           notAccepted,
	ClientCertRequired: notAccepted,
	HeaderTooLarge:     notAccepted,
	HTTPSRequired:      notAccepted,
	MethodNotAllowed:   notAccepted,
	NotFound:           notServed,
	PathAmbiguous:      notAccepted,
	PolicyDenied:       blocked,
	SiteDisabled:       notServed,
	TooLarge:           notAccepted,
	UnknownHost:        notServed,
	URITooLong:         notAccepted,
	WAFBlocked:         blocked,
	WebSocketDisabled:  blocked,
}

var (
	blocked     = [languages]string{"已拦截请求", "request blocked"}
	failed      = [languages]string{"出错", "failed"}
	notAccepted = [languages]string{"请求未被接受", "request not accepted"}
	notServed   = [languages]string{"无内容可提供", "nothing to serve"}
)

// Answers to programs rather than people.
var plain = map[string]string{
	LoopDetected:    "loop detected\n",
	SNIHostMismatch: "the host does not belong to this connection\n",
}

// Codes returns all codes, in no order.
func Codes() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(texts)), maps.Keys(plain))
}
