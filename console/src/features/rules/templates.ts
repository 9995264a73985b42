// Rules that many sites want, to begin with. Pure: their words are messages.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: replacements name their captures so
import type { Phase } from '../../../../contract/expression/phases.ts';
import type { ActionKind, RuleAction } from './rule.ts';

/** What an action begins with in place of the contract's defaults. */
type Given = { [K in ActionKind]: { kind: K } & Partial<Extract<RuleAction, { kind: K }>> }[ActionKind];

export interface Template {
  /** Names its words: `rules.template.<name>`. */
  name: string;
  phase: Phase;
  expression: string;
  action: Given;
  /** Makes sense for one site alone. */
  siteOnly?: true;
}

const template = (name: string, phase: Phase, expression: string, action: Given, rest: Partial<Template> = {}) => ({
  name,
  phase,
  expression,
  action,
  ...rest,
});

/** `host` is one of the site's, for those that name it. */
export function templatesFor(host: string): Template[] {
  const www = `www.${host}`;
  return [
    template('country', 'waf-custom', 'ip.geoip.country in {"XX"}', { kind: 'block', statusCode: 403 }),
    template('loginLimit', 'ratelimit', 'http.request.method eq "POST" and http.request.uri.path eq "/login"', {
      kind: 'rate_limit',
      limit: 10,
      windowSeconds: 60,
      key: 'ip.src',
      statusCode: 429,
    }),
    template(
      'https',
      'redirect',
      'ssl eq false and not starts_with(http.request.uri.path, "/.well-known/acme-challenge/")',
      { kind: 'redirect', target: 'concat("https://", http.host, http.request.uri)', statusCode: 301 },
    ),
    template(
      'www',
      'redirect',
      `http.host eq "${host}"`,
      { kind: 'redirect', target: `concat(http.request.scheme, "://${www}", http.request.uri)`, statusCode: 301 },
      { siteOnly: true },
    ),
    template('maintenance', 'waf-custom', 'not ip.src in {192.0.2.0/24}', { kind: 'block', statusCode: 403 }),
    template(
      'hotlink',
      'waf-custom',
      `http.request.uri.path.extension in {"gif" "jpeg" "jpg" "png" "webp"} and http.referer ne "" and not http.referer contains "${host}"`,
      { kind: 'block', statusCode: 403 },
      { siteOnly: true },
    ),
    template('bots', 'waf-custom', 'lower(http.user_agent) matches "(curl|python|scrapy|wget)"', {
      kind: 'challenge',
      type: 'js',
    }),
    template('admin', 'waf-custom', 'starts_with(http.request.uri.path, "/admin/") and not ip.src in {192.0.2.0/24}', {
      kind: 'block',
      statusCode: 403,
    }),
    template('trusted', 'waf-custom', 'ip.src in {192.0.2.0/24}', { kind: 'allow' }),
    template('noCache', 'cache', 'starts_with(http.request.uri.path, "/api/")', { kind: 'config', cacheBypass: true }),
    template('rewrite', 'request-transform', 'starts_with(http.request.uri.path, "/old/")', {
      kind: 'rewrite',
      target: 'regex_replace(http.request.uri.path, "^/old/(.*)$", "/new/${1}")',
    }),
    template('securityHeader', 'response-transform', 'true', {
      kind: 'response_header',
      header: 'x-content-type-options',
      value: 'nosniff',
    }),
  ];
}
