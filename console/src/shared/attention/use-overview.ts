// The overview as the console answers it, read once for all who show it: the health dot of the frame and the page.
import type { Output } from '@contract/procedure.ts';
import { overview } from '@contract/resources/overview.ts';
import { type EffectScope, effectScope, onScopeDispose } from 'vue';
import { call } from '@/shared/api/call.ts';
import { type Loaded, useLoad } from '@/shared/api/use-load.ts';
import type { LiveFilter } from '@/shared/live/topics.ts';
import { useLive } from '@/shared/live/use-live.ts';

export type Overview = Output<typeof overview.get>;
export type AttentionItem = Overview['attention'][number];

const TOPICS: readonly LiveFilter[] = ['nodes', 'revisions', 'bans', 'incidents', 'sites', 'settings'];
/** The console's answer is up to this old: asked later, it knows of the event. */
const ANSWER_MS = 2_000;
const GAP_MS = 5_000;

let shared: { loaded: Loaded<Overview>; scope: EffectScope; users: number } | null = null;

function load(): Loaded<Overview> {
  const loaded = useLoad((signal) => call(overview.get, {}, { signal }), { live: [] });
  // By itself it asks as seldom as a page that follows; when, is said below.
  let timer = 0;
  const soon = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void loaded.reload(), ANSWER_MS);
  };
  useLive(TOPICS, soon, { gapMs: GAP_MS });
  onScopeDispose(() => window.clearTimeout(timer));
  return loaded;
}

/** The shared answer, kept up to date while somebody uses it. */
export function useOverview(): Loaded<Overview> {
  if (!shared) {
    const scope = effectScope(true);
    const loaded = scope.run(load)!;
    shared = { loaded, scope, users: 0 };
  }
  const mine = shared;
  mine.users++;
  onScopeDispose(() => {
    mine.users--;
    if (mine.users > 0) return;
    mine.scope.stop();
    if (shared === mine) shared = null;
  });
  return mine.loaded;
}
