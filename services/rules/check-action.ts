// What the schema cannot judge of an action. Answers it in canonical form; `at` is its JSON pointer.

import { badField, fail } from '../../contract/errors.ts';
import type { Phase } from '../../contract/expression/phases.ts';
import { isFixedTarget } from '../../contract/expression/results.ts';
import { normaliseHostHeader } from '../../contract/scalars/host-header.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import {
  ACTION_PHASES,
  type ActionOf,
  CACHE_PHASE_CONFIG,
  headerOfKey,
  type RuleAction,
} from '../../contract/scalars/rule-action.ts';
import { isProtectedHeader } from '../../contract/scalars/rule-headers.ts';

type HeaderAction = ActionOf<'request_header'> | ActionOf<'response_header'>;
type TargetAction = ActionOf<'redirect'> | ActionOf<'rewrite'>;

/** Throws BAD_REQUEST, ORIGIN_HOST_HEADER_INVALID. */
export function checkAction(action: RuleAction, phase: Phase, at: string): RuleAction {
  const phases = ACTION_PHASES[action.kind];
  if (!phases.includes(phase)) badField(`${at}/kind`, 'phase', { allowed: phases });
  switch (action.kind) {
    case 'redirect':
    case 'rewrite':
      checkTarget(action, at);
      return action;
    case 'request_header':
    case 'response_header':
      return checkHeader(action, at);
    case 'config':
      checkConfig(action, phase, at);
      return action;
    case 'rate_limit': {
      const header = headerOfKey(action.key);
      return header === null ? action : { ...action, key: action.key.slice(0, -header.length) + header };
    }
    case 'origin':
      return checkOrigin(action, at);
    default:
      return action;
  }
}

function checkTarget({ kind, value, target, setQuery, removeQuery }: TargetAction, at: string): void {
  if (value !== '' && target !== '') badField(`${at}/target`, 'forbidden');
  if (value === '' && target === '') badField(`${at}/value`, 'valueOrTarget');
  if (value !== '' && !isFixedTarget(kind, value)) {
    if (kind === 'redirect') badField(`${at}/value`, 'redirectTarget');
    badField(`${at}/value`, 'rewriteTarget');
  }
  const names = new Set<string>();
  for (const [index, { name, value: text, expression }] of setQuery.entries()) {
    if (names.has(name)) badField(`${at}/setQuery/${index}/name`, 'repeated');
    names.add(name);
    if (expression !== '' && text !== '') badField(`${at}/setQuery/${index}/value`, 'forbidden');
  }
  const twice = removeQuery.findIndex((name) => names.has(name));
  if (twice >= 0) badField(`${at}/removeQuery/${twice}`, 'repeated');
}

function checkHeader<A extends HeaderAction>(action: A, at: string): A {
  const header = action.header.toLowerCase();
  if (isProtectedHeader(header)) badField(`${at}/header`, 'forbiddenName');
  if (action.remove) {
    if (action.value !== '') badField(`${at}/value`, 'forbidden');
    if (action.expression !== '') badField(`${at}/expression`, 'forbidden');
    if (action.kind === 'response_header' && action.append) badField(`${at}/append`, 'forbidden');
  }
  if (action.expression !== '' && action.value !== '') badField(`${at}/value`, 'forbidden');
  return { ...action, header };
}

function checkConfig({ kind: _, ...fields }: ActionOf<'config'>, phase: Phase, at: string): void {
  const given = Object.keys(fields);
  if (given.length === 0) badField(at, 'noChange');
  const wrong = phase === 'cache' ? given.find((field) => !CACHE_PHASE_CONFIG.includes(field)) : undefined;
  if (wrong !== undefined) badField(`${at}/${wrong}`, 'phase', { allowed: ['config'] });
}

function checkOrigin(action: ActionOf<'origin'>, at: string): RuleAction {
  const hostHeader =
    normaliseHostHeader(action.hostHeader) ??
    fail('ORIGIN_HOST_HEADER_INVALID', { hostHeader: action.hostHeader, path: `${at}/hostHeader` });
  const sni = action.sni === '' ? '' : (normaliseHostName(action.sni) ?? badField(`${at}/sni`, 'hostName'));
  if (action.originGroup === '' && hostHeader === '' && sni === '' && action.port === 0) badField(at, 'noChange');
  return { ...action, hostHeader, sni };
}
