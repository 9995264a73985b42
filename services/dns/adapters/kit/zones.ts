// Names of the zones of an account whose provider lists them in pages.
import { recordName } from '../names.ts';
import { type PageOf, readPages } from './pages.ts';
import { budgetOf, reading } from './pause.ts';

/** Sorted names that the console can use. `page` and `before` are those of {@link readPages}. Throws AdapterError. */
export async function readZones(
  given: AbortSignal | undefined,
  read: (signal: AbortSignal, page: number, before: number) => Promise<PageOf<string>>,
): Promise<string[]> {
  const budget = budgetOf(given);
  const zones = await reading(budget, () =>
    readPages<string>(
      (name) => name,
      (page, before) => read(budget.signal, page, before),
    ),
  );
  return zones.flatMap((name) => recordName(name) ?? []).sort();
}
