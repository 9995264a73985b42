// What needs somebody, gathered from the feature folders. Null until the first answer.
import { computed } from 'vue';
import { useLoad } from '@/shared/api/use-load.ts';
import type { AttentionItem } from '../feature.ts';
import { features } from '../features.ts';

const EVERY_MS = 15_000;

export function useAttention() {
  const { data } = useLoad(
    async (): Promise<AttentionItem[]> => {
      const checks = await Promise.all(features.flatMap((feature) => (feature.attention ? [feature.attention()] : [])));
      const found = await Promise.all(checks.map((check) => check()));
      return found.flat().sort((a, b) => Number(b.level === 'act') - Number(a.level === 'act'));
    },
    { everyMs: EVERY_MS },
  );
  return { items: computed(() => data.value ?? null) };
}
