// Whether the machine of the console builds the edge just now: who waits for the first node sees what for.
import type { Output } from '@contract/procedure.ts';
import { system } from '@contract/resources/system.ts';
import { onScopeDispose, type Ref, ref, watch } from 'vue';
import { call } from '@/shared/api/call.ts';

export type EdgeBuild = NonNullable<Output<typeof system.status>['edgeBuild']>;

const EVERY_MS = 3000;

/** The build under way or failed, asked for while `wanted`; null without one. */
export function useEdgeBuild(wanted: () => boolean): Ref<EdgeBuild | null> {
  const build = ref<EdgeBuild | null>(null);
  const ask = async () => {
    const status = await call(system.status, {}).catch(() => null);
    build.value = status?.edgeBuild ?? null;
  };
  let timer = 0;
  const follow = (follows: boolean) => {
    window.clearInterval(timer);
    build.value = null;
    if (!follows) return;
    void ask();
    timer = window.setInterval(() => void ask(), EVERY_MS);
  };
  watch(wanted, follow, { immediate: true });
  onScopeDispose(() => window.clearInterval(timer));
  return build;
}
