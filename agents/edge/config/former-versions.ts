// Former versions of entries that may be what Caddy serves, because a newer one is not known to have compiled. Oldest first.
import type { Row } from './snapshot.ts';

/** Of more, the oldest and the newest are kept: the oldest is the one that is known to have served. */
const MAX_VERSIONS = 16;

export class FormerVersions {
  private readonly versions = new Map<string, Row[]>();

  /** Keys with former versions. */
  get size(): number {
    return this.versions.size;
  }

  /** Bytes of all encoded versions. */
  get bytes(): number {
    let bytes = 0;
    for (const row of this.rows()) bytes += row.length;
    return bytes;
  }

  entries(): Iterable<[string, readonly Row[]]> {
    return this.versions.entries();
  }

  *rows(): Generator<Row> {
    for (const rows of this.versions.values()) yield* rows;
  }

  of(key: string): readonly Row[] {
    return this.versions.get(key) ?? [];
  }

  /** `row` was the newest version of the key until now. */
  add(key: string, row: Row): void {
    const rows = this.versions.get(key);
    if (!rows) this.versions.set(key, [row]);
    else if (rows.push(row) > MAX_VERSIONS) rows.splice(1, 1);
  }

  keepOnly(key: string, rows: Row[]): void {
    if (rows.length > 0) this.versions.set(key, rows);
    else this.versions.delete(key);
  }

  drop(key: string): void {
    this.versions.delete(key);
  }

  replace(versions: ReadonlyMap<string, Row[]>): void {
    this.versions.clear();
    for (const [key, rows] of versions) this.versions.set(key, rows);
  }
}
