import { fail } from '../../contract/errors.ts';
import type { Condition } from '../../contract/expression/tree.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { CacheExplanation, siteCacheExplanation } from '../../contract/resources/cache-explain.ts';
import type { CacheRule } from '../../contract/resources/site-cache.ts';
import { MAX_SHOWN_BYTES, type RuleTrace, type ShownValue } from '../../contract/scalars/rule-trace.ts';
import { type CheckedCacheCondition, checkCacheRule } from '../../models/cache/cache-rule.ts';
import { givenCache } from '../../models/cache/given-cache.ts';
import { siteById } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { decideCache } from './cache-decision/decide.ts';
import type { KeyPart } from './cache-decision/key.ts';
import { type Bytes, bytesOf } from './evaluate/bytes.ts';
import { runResponse } from './tried-request.ts';
import { assertNamed, runTried } from './try-rules.ts';

type Asked = Input<typeof siteCacheExplanation.explain>;
interface RuleOfCache {
  readonly rule: CacheRule;
  readonly condition: CheckedCacheCondition | null;
}

/** Runs the rules of a site, and then its cache rules, over a made-up request. Throws the contract's errors. */
export async function explainCache(
  runtime: Runtime,
  { id, request: tried, response, cacheRules, cacheSettings }: Asked,
): Promise<Output<typeof siteCacheExplanation.explain>> {
  const site = (await siteById(runtime.pools.api, id)) ?? fail('SITE_NOT_FOUND');
  const given = givenCache(
    { cacheRules: [], cacheSettings: site.cacheSettings },
    { cacheRules: cacheRules ?? [], ...(cacheSettings ? { cacheSettings } : {}) },
  );
  const rules = cacheRules
    ? given.cacheRules.map((rule, index): RuleOfCache => ({ rule, condition: given.conditions[index]! }))
    : site.cacheRules.map(savedRule);
  await assertNamed(runtime.pools.api, new Set(rules.flatMap(({ condition }) => condition?.facts.lists ?? [])));
  const { request, trace, inList } = await runTried(runtime, { id, request: tried });
  const explanation = decideCache({
    request,
    response: response ? runResponse(response) : null,
    rules: rules.map(({ rule, condition }) => ({
      rule,
      condition: (condition?.tree as Condition | undefined) ?? null,
    })),
    key: given.cacheSettings.cacheKey,
    bypassedBy: bypassedBy(trace),
    changed: changesOf(trace, request.uri),
    inList,
    now: request.arrivedSeconds,
  });
  const unknown = [...new Set([...trace.unknown, ...explanation.unknown])].sort();
  return { ...readable(answeredBefore(trace, explanation)), unknown };
}

/** A saved rule; without condition where that does not compile any more. */
function savedRule(rule: CacheRule): RuleOfCache {
  const condition = checkCacheRule(rule.expression);
  return { rule, condition: 'error' in condition ? null : condition };
}

/** The name of the rule that said last that the cache is skipped; null where none did. */
function bypassedBy({ phases }: RuleTrace): string | null {
  const runs = phases.flatMap(({ rules }) => rules);
  const said = runs.flatMap(({ name, effects }) =>
    effects
      .filter(({ kind, name: setting }) => kind === 'override' && setting === 'cacheBypass')
      .map(({ value }) => ({ name, bypasses: value?.text === 'true' })),
  );
  const last = said.at(-1);
  return last?.bypasses ? bytesOf(last.name) : null;
}

/** What rules changed of the request to the origin: it is in the key. */
function changesOf({ phases }: RuleTrace, uri: Bytes): KeyPart[] {
  const { target, requestHeaders, originGroup, hostHeader, sni, port } = phases.at(-1)!.after;
  const change = (name: string, value: Bytes | null): KeyPart => ({ part: 'origin_request', name, value });
  return [
    ...(bytesShown(target) === uri.slice(0, MAX_SHOWN_BYTES) ? [] : [change('target', bytesShown(target))]),
    ...requestHeaders.map(({ name, lines }) =>
      change(name, lines.length === 0 ? null : lines.map(bytesShown).join(', ')),
    ),
    ...Object.entries({ originGroup, hostHeader, sni, port })
      .filter(([, value]) => value !== '' && value !== 0)
      .map(([name, value]) => change(name, bytesOf(String(value)))),
  ];
}

function bytesShown({ text, base64 }: ShownValue): Bytes {
  return text === null ? Buffer.from(base64!, 'base64').toString('latin1') : bytesOf(text);
}

/** The explanation, or that rules of the site end the request before the cache. */
function answeredBefore({ outcome }: RuleTrace, explanation: CacheExplanation): CacheExplanation {
  if (outcome.kind === 'origin') return explanation;
  const name = outcome.rule?.name ?? outcome.list ?? outcome.bulkRedirect ?? '';
  return {
    ...explanation,
    decision: 'ended',
    why: 'ended',
    decidedBy: { part: 'site_rule', name: bytesOf(name), value: outcome.kind },
    rule: null,
    xCache: null,
    key: null,
    freshness: null,
    browserTtlSeconds: null,
    rules: explanation.rules.map((rule) => ({ ...rule, response: null })),
  };
}

/** With texts in place of bytes. */
function readable(explanation: CacheExplanation): CacheExplanation {
  const { decidedBy, key } = explanation;
  return {
    ...explanation,
    decidedBy: decidedBy && { ...decidedBy, name: textOf(decidedBy.name), value: shortText(decidedBy.value) },
    key: key?.map(({ part, name, value }) => ({ part, name: name && textOf(name), value: shortText(value) })) ?? null,
  };
}

const shortText = (bytes: Bytes | null) => bytes && textOf(bytes.slice(0, MAX_SHOWN_BYTES));

/** Bytes that are no UTF-8 become replacement characters. */
function textOf(bytes: Bytes): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
