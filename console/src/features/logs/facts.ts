// Everything about a logged request in words: what became of it as sentences, and what it was as names and values.
import type { Rule } from '@contract/scalars/rule.ts';
import { countryText } from '@/shared/controls/countries.ts';
import { formatBytes, formatDuration, formatNumber } from '@/shared/i18n/format.ts';
import { i18n, locale } from '@/shared/i18n/i18n.ts';
import { type FilterName, takesFilter } from './filters.ts';
import { codeText } from './log-text.ts';
import type { LogRow } from './use-log-rows.ts';

const ALL = 10_000;
/** Filters of texts take no more. */
const LONGEST = 256;

/** Names of rules by the ids that rows have. */
export function ruleNames(
  own: readonly Pick<Rule, 'id' | 'name'>[],
  global: readonly Pick<Rule, 'id' | 'name'>[],
): Map<string, string> {
  const { t } = i18n.global;
  const named = (name: string) => t('logs.rule.site', { name });
  const ofAll = (name: string) => t('logs.rule.global', { name });
  return new Map([
    ...own.map(({ id, name }) => [id, named(name)] as const),
    ...global.flatMap(({ id, name }) => [[id, ofAll(name)] as const, [`platform:${id}`, ofAll(name)] as const]),
  ]);
}

/** What became of the request, one sentence a fact. */
export function storyOf(row: LogRow, rules: ReadonlyMap<string, string>): string[] {
  return [
    responseText(row),
    refusalText(row, rules),
    codeSentence(row),
    originText(row),
    cacheText(row),
    shareText(row),
  ].filter((line) => line !== '');
}

function responseText({ status, durationMs, bytesSent }: LogRow): string {
  const { t } = i18n.global;
  const duration = formatDuration(durationMs);
  if (status === 0) return t('logs.story.noResponse', { duration });
  return t('logs.story.response', { status: String(status), duration, bytes: formatBytes(bytesSent) });
}

function refusalText({ blockReason, blockRuleId, wafBlocked }: LogRow, rules: ReadonlyMap<string, string>): string {
  const { t } = i18n.global;
  if (blockReason === null) return wafBlocked ? t('logs.story.refused.crs') : '';
  const what = t(`logs.story.refused.${blockReason}`);
  if (blockRuleId === null) return what;
  return t('logs.story.byRule', { what, rule: rules.get(blockRuleId) ?? blockRuleId });
}

/** A refusal says it already. */
function codeSentence({ errorCode, blockReason }: LogRow): string {
  return errorCode === null || blockReason !== null
    ? ''
    : i18n.global.t('logs.story.edge', { why: codeText(errorCode) });
}

function originText({ upstreamAddr, upstreamStatus, upstreamMs, blockReason, cacheStatus, status }: LogRow): string {
  const { t } = i18n.global;
  if (upstreamAddr === null) {
    const explained = blockReason !== null || cacheStatus === 'HIT' || cacheStatus === 'STALE' || status === 0;
    return explained ? '' : t('logs.story.noOrigin');
  }
  if (upstreamStatus === null) return t('logs.story.originSilent', { origin: upstreamAddr });
  const words = { origin: upstreamAddr, status: String(upstreamStatus) };
  if (upstreamMs === null) return t('logs.story.originSaid', words);
  return t('logs.story.origin', { ...words, duration: formatDuration(upstreamMs) });
}

function cacheText({ cacheStatus }: LogRow): string {
  return cacheStatus === null ? '' : i18n.global.t(`logs.story.cache.${cacheStatus}`);
}

function shareText({ sampleRate }: LogRow): string {
  if (sampleRate >= ALL) return '';
  const count = Math.round(ALL / sampleRate);
  return i18n.global.t('logs.story.sampled', { count: formatNumber(count) }, count);
}

export interface Fact {
  key: string;
  label: string;
  text: string;
  mono: boolean;
  filter: { name: FilterName; value: string } | null;
}

/** What is known of the request; what it did not have is left out. */
export function factsOf(row: LogRow): Fact[] {
  const { t } = i18n.global;
  const country = row.country === null ? null : countryText(row.country, locale());
  const network = row.asn === null ? null : `AS${row.asn} ${row.asName ?? ''}`.trim();
  const facts: [key: string, text: string | null, filter?: FilterName, value?: string][] = [
    ['country', country, 'country', row.country ?? ''],
    ['asn', network, 'asn', String(row.asn)],
    ['peerIp', row.peerIp],
    ['method', row.method, 'method', row.method],
    ['host', row.host, 'host', row.host],
    ['path', row.path, 'path', row.path],
    ['status', row.status === 0 ? null : String(row.status), 'status', String(row.status)],
    ['duration', formatDuration(row.durationMs), 'minDuration', String(row.durationMs)],
    ['userAgent', row.userAgent, 'ua', row.userAgent?.slice(0, LONGEST) ?? ''],
    ['referer', row.referer, 'referer', row.referer?.slice(0, LONGEST) ?? ''],
    ['contentType', row.contentType],
    ['requestBytes', formatBytes(row.requestBytes)],
    ['httpVersion', row.httpVersion === null ? null : `HTTP/${row.httpVersion}`],
    ['tlsVersion', row.tlsVersion === null ? null : `TLS ${row.tlsVersion}`],
    ['ja4', row.ja4, 'ja4', row.ja4 ?? ''],
    ['requestId', row.requestId, 'requestId', row.requestId ?? ''],
    ['id', row.id],
  ];
  return facts.flatMap(([key, text, name, value]) => {
    if (text === null) return [];
    const filter = name !== undefined && value !== undefined && takesFilter(name, value) ? { name, value } : null;
    return [{ key, label: t(`logs.field.${key}`), text, mono: MONO.includes(key), filter }];
  });
}

const MONO: readonly string[] = ['path', 'userAgent', 'referer', 'ja4', 'requestId', 'id', 'peerIp'];
