// What the forms of rules know of the world around them.
import { ipLists } from '@contract/resources/ip-lists.ts';
import { ACTION_PHASES, CACHE_PHASE_CONFIG, RULE_ACTIONS } from '@contract/resources/rules.ts';
import type { InjectionKey, Ref } from 'vue';
import { call } from '@/shared/api/call.ts';
import type { ActionContract } from './action.ts';

/** The contract's tables of actions, as data. */
export const ACTIONS = { RULE_ACTIONS, ACTION_PHASES, CACHE_PHASE_CONFIG } as unknown as ActionContract;

export interface RuleContext {
  /** Names of the IP lists that there are; undefined until they are known. */
  lists: readonly string[] | undefined;
  /** Groups of origins of the site; null: the rules are those of all sites. */
  groups: readonly string[] | null;
}

export const RULE_CONTEXT: InjectionKey<Readonly<Ref<RuleContext>>> = Symbol('rules');

/** Names of all IP lists: at most 128, which are two pages. */
export async function listNames(signal: AbortSignal): Promise<string[]> {
  const pages = await Promise.all([1, 2].map((page) => call(ipLists.list, { page, pageSize: 100 }, { signal })));
  return [...new Set(pages.flatMap(({ items }) => items.map(({ name }) => name)))].sort();
}
