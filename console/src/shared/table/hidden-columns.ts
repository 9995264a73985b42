// Which columns a person left out of a table. Wide and narrow screens are chosen for apart, and the browser keeps both.
import { type ComputedRef, computed, ref, type WritableComputedRef } from 'vue';
import { STORED } from '@/shared/i18n/locale.ts';
import { NARROW, useMedia } from '@/shared/page/use-media.ts';
import { type Column, hiddenAtFirst, readHidden, shownOf } from './column.ts';

/** Without a name nothing can be chosen, and what does not fit is left out. */
export function useHiddenColumns(
  name: string,
  columns: () => readonly Column[],
): { hidden: WritableComputedRef<readonly string[]>; shown: ComputedRef<readonly Column[]> } {
  const narrow = useMedia(NARROW);
  const keyOf = (small: boolean) => `${STORED.columns}${name}${small ? '.narrow' : ''}`;
  const read = (small: boolean) => (name ? readHidden(localStorage.getItem(keyOf(small))) : null);
  const kept = ref({ wide: read(false), narrow: read(true) });
  const hidden = computed({
    get: () => (narrow.value ? kept.value.narrow : kept.value.wide) ?? hiddenAtFirst(columns(), narrow.value),
    set: (keys) => {
      const first = hiddenAtFirst(columns(), narrow.value);
      const usual = keys.length === first.length && keys.every((key) => first.includes(key));
      if (usual) localStorage.removeItem(keyOf(narrow.value));
      else localStorage.setItem(keyOf(narrow.value), JSON.stringify(keys));
      kept.value = { ...kept.value, [narrow.value ? 'narrow' : 'wide']: usual ? null : [...keys] };
    },
  });
  return { hidden, shown: computed(() => shownOf(columns(), hidden.value)) };
}
