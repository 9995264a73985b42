// Checks an action and answers it in canonical form; `at` is its JSON pointer.

import { badField, fail } from '../../contract/errors.ts';
import type { Phase } from '../../contract/expression/phases.ts';
import { actionIssues } from '../../contract/scalars/action-issues.ts';
import { normaliseHostHeader } from '../../contract/scalars/host-header.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import {
  ACTION_PHASES,
  type ActionOf,
  CACHE_PHASE_CONFIG,
  headerOfKey,
  type RuleAction,
} from '../../contract/scalars/rule-action.ts';

/** Throws BAD_REQUEST, ORIGIN_HOST_HEADER_INVALID. */
export function checkAction(action: RuleAction, phase: Phase, at: string): RuleAction {
  const issues = actionIssues({ ACTION_PHASES, CACHE_PHASE_CONFIG }, phase, action);
  if (issues.length > 0) fail('BAD_REQUEST', { issues: issues.map((issue) => ({ ...issue, path: at + issue.path })) });
  switch (action.kind) {
    case 'request_header':
    case 'response_header':
      return { ...action, header: action.header.toLowerCase() };
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

function checkOrigin(action: ActionOf<'origin'>, at: string): RuleAction {
  const hostHeader =
    normaliseHostHeader(action.hostHeader) ??
    fail('ORIGIN_HOST_HEADER_INVALID', { hostHeader: action.hostHeader, path: `${at}/hostHeader` });
  const sni = action.sni === '' ? '' : (normaliseHostName(action.sni) ?? badField(`${at}/sni`, 'hostName'));
  return { ...action, hostHeader, sni };
}
