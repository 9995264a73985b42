// What the names of a cluster are, in one word.
import type { DnsMode } from '@contract/resources/dns.ts';
import type { Tone } from '@/shared/state/tone.ts';

interface State {
  mode: DnsMode;
  revision: string | null;
  applied: string | null;
  blocked: unknown;
  failing: boolean;
}

export type StateWord = 'off' | 'manual' | 'failed' | 'blocked' | 'writing' | 'applied';

export function bindingState({ mode, revision, applied, blocked, failing }: State): { word: StateWord; tone: Tone } {
  if (failing) return { word: 'failed', tone: 'red' };
  if (blocked) return { word: 'blocked', tone: 'amber' };
  if (mode !== 'auto') return { word: mode, tone: 'grey' };
  return revision === applied ? { word: 'applied', tone: 'green' } : { word: 'writing', tone: 'blue' };
}
