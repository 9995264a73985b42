// Takes one change out of settings: fields that it changed return to their values of before, all others stay.
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../models/config/settings-snapshot.ts';

export interface Undone {
  /** The saved settings without the change. */
  settings: unknown;
  /** Dotted paths of the fields that a later change gave another value. */
  conflicts: string[];
}

/**
 * Saved settings without the change that made `after` of `before`. Lists whose elements have an `id` are compared element
 * by element, as are lists of one length; any other list is one field.
 */
export function undoFields(saved: unknown, before: unknown, after: unknown): Undone {
  const conflicts: string[] = [];
  return { settings: undo('', saved, before, after, conflicts), conflicts };
}

function undo(path: string, saved: unknown, before: unknown, after: unknown, conflicts: string[]): unknown {
  if (isDeepStrictEqual(before, after) || isDeepStrictEqual(saved, before)) return saved;
  if (isRecord(saved) && isRecord(before) && isRecord(after)) {
    const result = { ...saved };
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const value = undo(path === '' ? key : `${path}.${key}`, saved[key], before[key], after[key], conflicts);
      if (value === undefined) delete result[key];
      else result[key] = value;
    }
    return result;
  }
  const lists = asRecordLists(saved, before, after);
  if (lists?.every(haveIds)) return undoById(path, lists, conflicts);
  if (lists?.every(({ length }) => length === lists[0].length)) {
    const [now, then, changed] = lists;
    return now.map((element, index) => undo(`${path}.${index}`, element, then[index], changed[index], conflicts));
  }
  if (isDeepStrictEqual(saved, after)) return before;
  conflicts.push(path);
  return saved;
}

type Records = Record<string, unknown>[];

function asRecordLists(...lists: unknown[]): [Records, Records, Records] | null {
  return lists.every((list) => Array.isArray(list) && list.every(isRecord))
    ? (lists as [Records, Records, Records])
    : null;
}

function haveIds(list: Records): boolean {
  const ids = list.map(({ id }) => id);
  return ids.every((id) => typeof id === 'string') && new Set(ids).size === ids.length;
}

function undoById(path: string, [saved, before, after]: [Records, Records, Records], conflicts: string[]): Records {
  const [now, then, changed] = [saved, before, after].map((list) => new Map(list.map((one) => [one.id, one]))) as [
    Map<unknown, Record<string, unknown>>,
    Map<unknown, Record<string, unknown>>,
    Map<unknown, Record<string, unknown>>,
  ];
  const common = (list: Records) => list.map(({ id }) => id).filter((id) => then.has(id) && changed.has(id));
  const moved = !isDeepStrictEqual(common(before), common(after));
  const result = saved.flatMap((element) => {
    const { id } = element;
    if (then.has(id))
      return [undo(`${path}.${id}`, element, then.get(id), changed.get(id), conflicts) as Records[number]];
    if (!changed.has(id)) return [element];
    // The change added it.
    if (!isDeepStrictEqual(element, changed.get(id))) conflicts.push(`${path}.${id}`);
    return [];
  });
  for (const [index, element] of before.entries()) {
    if (now.has(element.id)) continue;
    // The change removed it, or a later one did.
    if (!changed.has(element.id)) result.splice(Math.min(index, result.length), 0, element);
    else if (!isDeepStrictEqual(element, changed.get(element.id))) conflicts.push(`${path}.${element.id}`);
  }
  if (!moved) return result;
  if (!isDeepStrictEqual(common(saved), common(after))) {
    if (!isDeepStrictEqual(common(saved), common(before))) conflicts.push(path);
    return result;
  }
  const order = new Map(before.map(({ id }, index) => [id, index]));
  const sorted = result.filter(({ id }) => order.has(id)).sort((a, b) => order.get(a.id)! - order.get(b.id)!);
  return result.map((element) => (order.has(element.id) ? sorted.shift()! : element));
}
