// Rows of a search, the latest first: one page, and further ones below it as they are asked for.
import type { Output } from '@contract/procedure.ts';
import { logs } from '@contract/resources/logs.ts';
import { computed, shallowRef, watch } from 'vue';
import { call } from '@/shared/api/call.ts';
import { useAction } from '@/shared/api/use-action.ts';
import { useLoad } from '@/shared/api/use-load.ts';
import type { TableList } from '@/shared/table/table-list.ts';
import type { LogInput, LogSearch } from './use-log-search.ts';

export type LogRow = Output<typeof logs.query>['entries'][number];
type Answer = Output<typeof logs.query>;

const PAGE = 100;

export function useLogRows(search: LogSearch) {
  const ask = (input: LogInput, cursor?: string, signal?: AbortSignal) =>
    call(logs.query, { ...input, limit: PAGE, ...(cursor !== undefined && { cursor }) }, signal ? { signal } : {});
  const loaded = useLoad(
    async (signal) => {
      const input = search.input.value;
      return input && { input, answer: await ask(input, undefined, signal) };
    },
    { watch: search.input },
  );
  const further = shallowRef<readonly Answer[]>([]);
  watch(loaded.data, () => {
    further.value = [];
  });
  const first = computed(() => loaded.data.value?.answer);
  const rows = computed(() => first.value && [first.value, ...further.value].flatMap(({ entries }) => entries));
  const cursor = computed(() => (further.value.at(-1) ?? first.value)?.nextCursor ?? null);
  const more = useAction(async () => {
    const page = loaded.data.value;
    if (!page || cursor.value === null) return;
    const next = await ask(page.input, cursor.value);
    // Another search may have begun meanwhile.
    if (loaded.data.value === page) further.value = [...further.value, next];
  });
  const list: TableList<LogRow> = {
    get items() {
      return rows.value;
    },
    get loading() {
      return loaded.loading.value;
    },
    get slow() {
      return loaded.slow.value;
    },
    get error() {
      return loaded.error.value;
    },
    get filtered() {
      return rows.value?.length === 0 ? search.chips.value.length : 0;
    },
    reload: loaded.reload,
    clear: search.clear,
  };
  return { list, rows, cursor, more, missing: computed(() => first.value?.missingRows ?? 0), loaded };
}
