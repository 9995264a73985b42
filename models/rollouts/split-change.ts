// What a change does while it is tried: nodes of the canary get the entry as it is now, the others what must not wait.
// Nothing else of what is being tried is in what they get: that is compiled from the settings they run.

import type { CompiledEntry, EntryKind } from '../config/entry-kind.ts';
import type {
  Difference,
  LiveEntry,
  OverlaidEntry,
  OverlayDifference,
  WrittenEntry,
} from '../config/write-revision.ts';

/** An entry as it is published and as it is now. */
export interface TriedEntry {
  id: string;
  bucket: number;
  stable: LiveEntry | undefined;
  overlay: OverlaidEntry | undefined;
  /** As it is now; undefined: there is none any more. */
  now: WrittenEntry | undefined;
  compiled: CompiledEntry | null;
  /** Everybody gets it as it is now. */
  straight: boolean;
}

/** `write`: makes an entry of the kind of what was compiled. */
export function splitChange(
  kind: EntryKind,
  { id, bucket, stable, overlay, now, compiled, straight }: TriedEntry,
  write: (compiled: CompiledEntry) => WrittenEntry,
): { difference?: Difference; overlay?: OverlayDifference } {
  const name = { kind: kind.kind, id, bucket };
  const passed = straight ? now : passedOf(kind, stable, compiled, now, write);
  const becomes = passed === STAYS ? stable : passed;
  const difference =
    passed === STAYS || sameEntry(stable, passed) ? undefined : { ...name, before: stable, after: passed };
  const after = sameEntry(becomes, now) ? undefined : (now ?? null);
  const rewritten = difference ? overlay !== undefined || after !== undefined : !sameOverlay(overlay, after);
  return {
    ...(difference ? { difference } : {}),
    ...(rewritten
      ? { overlay: { ...name, owner: kind.ownerOf(id), stable: [stable, becomes], before: overlay, after } }
      : {}),
  };
}

const STAYS = Symbol('as it is');

function passedOf(
  { bypass, defaults }: EntryKind,
  stable: LiveEntry | undefined,
  compiled: CompiledEntry | null,
  now: WrittenEntry | undefined,
  write: (compiled: CompiledEntry) => WrittenEntry,
): WrittenEntry | undefined | typeof STAYS {
  if (typeof bypass === 'boolean') return bypass ? now : STAYS;
  // Of an entry that is older than what is kept of its settings nothing can be told apart: what must not wait may be in it.
  if (stable && !stable.settings) return now;
  const settings = stable ? { ...defaults, ...stable.settings } : defaults;
  const passed = settings ? bypass(settings, compiled) : undefined;
  if (passed === undefined) return STAYS;
  return passed === null ? undefined : write(passed);
}

interface Comparable {
  hash: string | Buffer | null;
  features: readonly string[];
}

/** Whether two versions of an entry are one; undefined is none. */
export function sameEntry(one: Comparable | undefined, other: Comparable | undefined): boolean {
  if (!one || !other) return one === other;
  const [a, b] = [one, other].map(({ hash }) => (typeof hash === 'string' ? hash : (hash?.toString('hex') ?? null)));
  return (
    a === b && one.features.length === other.features.length && one.features.every((f, at) => f === other.features[at])
  );
}

function sameOverlay(before: OverlaidEntry | undefined, after: WrittenEntry | null | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  if (before.hash === null || after === null) return before.hash === null && after === null;
  return sameEntry(before, after);
}
