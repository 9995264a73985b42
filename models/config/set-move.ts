// What a publication adds to the sums of a set of entries, and takes from them: its hash, the sums of buckets, and how
// many entries there are and need each capability.
import { addSums, entryHash, fromSum, moveSum, toSum } from '../../proto/entry-hash.ts';
import type { EntryName, Identity } from './write-revision.ts';

export class SetMove {
  /** Modulo 2^256. */
  total = 0n;
  count = 0;
  readonly #buckets = new Map<number, bigint>();
  readonly #features = new Map<string, number>();

  /** Takes versions of an entry out and puts others in; undefined is none. */
  move(
    { kind, id, bucket }: EntryName & { bucket: number },
    removed: readonly (Identity | undefined)[],
    added: readonly (Identity | undefined)[],
  ): void {
    const [out, into] = [removed, added].map((versions) => versions.filter((version) => version !== undefined)) as [
      Identity[],
      Identity[],
    ];
    const hashes = (versions: readonly Identity[]) =>
      versions.map(({ hash, features }) =>
        entryHash(kind, id, typeof hash === 'string' ? Buffer.from(hash, 'hex') : hash, features),
      );
    const moved = moveSum(0n, hashes(out), hashes(into));
    this.total = addSums(this.total, moved);
    this.#buckets.set(bucket, addSums(this.#buckets.get(bucket) ?? 0n, moved));
    this.count += into.length - out.length;
    for (const [versions, by] of [
      [out, -1],
      [into, 1],
    ] as const) {
      for (const feature of versions.flatMap(({ features }) => features)) {
        this.#features.set(feature, (this.#features.get(feature) ?? 0) + by);
      }
    }
  }

  /** The sums of the buckets it touched, as the function config_write takes them; `before`: those they had, hexadecimal. */
  sumsAfter(track: 'S' | 'C', before: Readonly<Record<string, string>>): object[] {
    return [...this.#buckets].map(([bucket, moved]) => {
      const sum = addSums(toSum(Buffer.from(before[bucket] ?? '', 'hex')), moved);
      return { track, bucket, sum: fromSum(sum).toString('hex') };
    });
  }

  /** The capabilities it touched, as config_write takes them. */
  featureMoves(track: 'S' | 'C'): object[] {
    return [...this.#features]
      .filter(([, count]) => count !== 0)
      .map(([feature, count]) => ({ track, feature, count }));
  }
}
