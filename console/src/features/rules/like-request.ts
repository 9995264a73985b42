// The rule and the trial that a logged request begins. Pure.
import type { RuleAction } from './rule.ts';

export interface LikeRequest {
  method: string;
  host: string;
  path: string;
}

/** Requests with the same method, host and path. */
export function likeExpression({ method, host, path }: LikeRequest): string {
  const parts = [
    ...(method === '' ? [] : [`http.request.method eq ${JSON.stringify(method)}`]),
    ...(host === '' ? [] : [`http.host eq ${JSON.stringify(host)}`]),
    ...(path === '' ? [] : [`http.request.uri.path eq ${JSON.stringify(path)}`]),
  ];
  return parts.length === 0 ? 'true' : parts.join(' and ');
}

/** A rule of it, which does nothing until somebody enables it. */
export function likeRule(request: LikeRequest, name: string, action: RuleAction) {
  const [phase, expression] = ['waf-custom', likeExpression(request)] as const;
  return { name: [...name].slice(0, 100).join(''), phase, expression, enabled: false, action };
}

/** What a trial begins with; texts that are empty are not known. */
export interface TriedStart {
  method: string;
  url: string;
  address: string;
  headers: string[];
  country: string;
  asn: string;
  ja4: string;
}

export function triedStart(query: Readonly<Record<string, unknown>>): TriedStart {
  const text = (name: string) => (typeof query[name] === 'string' ? query[name] : '');
  const header = (name: string, value: string) => (value === '' ? [] : [`${name}: ${value}`]);
  return {
    ...{ method: text('method'), url: text('url'), address: text('address'), country: text('country') },
    ...{ asn: text('asn'), ja4: text('ja4') },
    headers: [...header('User-Agent', text('ua')), ...header('Referer', text('referer'))],
  };
}
