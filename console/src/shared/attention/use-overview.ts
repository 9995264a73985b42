// The overview as the console answers it, of all clusters or of one, read once for all who show it: the health dot of the
// frame and the page.
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

interface Shared {
  loaded: Loaded<Overview>;
  scope: EffectScope;
  users: number;
}

/** By cluster; '' for all of them. */
const shared = new Map<string, Shared>();

function load(clusterId: string): Loaded<Overview> {
  const input = clusterId === '' ? {} : { clusterId };
  const loaded = useLoad((signal) => call(overview.get, input, { signal }), { live: [] });
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

/** The shared answer about a cluster, or about all of them, kept up to date while somebody uses it. */
export function useOverview(clusterId = ''): Loaded<Overview> {
  let mine = shared.get(clusterId);
  if (!mine) {
    const scope = effectScope(true);
    mine = { loaded: scope.run(() => load(clusterId))!, scope, users: 0 };
    shared.set(clusterId, mine);
  }
  const used = mine;
  used.users++;
  onScopeDispose(() => {
    used.users--;
    if (used.users > 0) return;
    used.scope.stop();
    if (shared.get(clusterId) === used) shared.delete(clusterId);
  });
  return used.loaded;
}
