// Putting an earlier revision back: what of it differs from what nodes run now, what of that stays as it is all the same,
// and what it needs that is gone. The specification's rules for the kinds stand with them (models/config/entry-kind.ts).
import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import { fail } from '../../contract/errors.ts';
import { bodyHash } from '../../proto/entry-hash.ts';
import { DISABLED_REF, siteKind } from '../sites/site.entry.ts';
import type { Beside, CompiledEntry, EntryKind, Missing, Provision, Reference, RollbackOwners } from './entry-kind.ts';
import { ENTRY_KINDS, kindNamed } from './entry-kinds.ts';
import { siteOfOwner } from './entry-owner.ts';
import { type ChangedFilter, changedEntries, type EntryVersions, type StoredEntry } from './entry-versions.ts';
import { liveSettings } from './live-settings.ts';
import { type Difference, type EntryName, keyOf, type WrittenEntry } from './write-revision.ts';

/** Entries that one rollback changes at most: it is one publication, under the lock of the cluster's head. */
export const MAX_ROLLBACK_ENTRIES = 5000;
/** Things named in ROLLBACK_RESOURCE_UNAVAILABLE. */
const MAX_MISSING = 20;

export interface RollbackPlan {
  differences: Difference[];
  /** Ids of sites that nodes serve after it and not before, that change, and that they serve before it only. */
  sites: { added: string[]; changed: string[]; removed: string[] };
  /** Ids of sites that the revision serves and that are disabled now. */
  keptDisabled: string[];
}

export interface RollbackScope {
  /** Owners whose saved settings are put back, too. */
  restoring?: ReadonlySet<string>;
  /** The entries that are put back; all, unless given. */
  only?: readonly EntryName[];
}

/**
 * What a rollback from `head` to `revision` publishes. Throws ROLLBACK_RESOURCE_UNAVAILABLE, naming what is missing, and
 * ROLLBACK_TOO_LARGE.
 */
export async function planRollback(
  sql: Knex,
  clusterId: string,
  { revision, head }: { revision: string; head: string },
  { restoring = new Set(), only }: RollbackScope = {},
): Promise<RollbackPlan> {
  const kinds = ENTRY_KINDS.filter(({ onRollback }) => onRollback !== 'current').map(({ kind }) => kind);
  const differing = (filter?: ChangedFilter) =>
    changedEntries(sql, clusterId, { from: head, to: revision }, kinds, MAX_ROLLBACK_ENTRIES + 1, filter);
  const found = await differing(only && { names: only });
  if (found.length > MAX_ROLLBACK_ENTRIES) fail('ROLLBACK_TOO_LARGE', { limit: MAX_ROLLBACK_ENTRIES });
  const kept = found.filter(staysDisabled);
  const restored = found.filter((entry) => !staysDisabled(entry));
  const staying = new Set(only ? await stayingOwners(found, differing) : []);
  const missing = await missingOf(sql, clusterId, restored, { restoring, staying });
  const gone = leftOut(restored, missing);
  refuseMissing(missing.filter(({ owner }) => owner === null || !gone.has(owner)));
  const renewed = await renewedOf(sql, clusterId, restored);
  const changes = restored.flatMap((entry): Change[] => {
    const difference = entry.to?.owner && gone.has(entry.to.owner) ? undefined : differenceOf(entry, renewed);
    return difference ? [{ entry, difference }] : [];
  });
  const keptDisabled = kept.filter(({ to }) => isServed(to)).flatMap(({ to }) => siteOfOwner(to!.owner) ?? []);
  return { differences: changes.map(({ difference }) => difference), sites: sitesOf(changes), keptDisabled };
}

interface Change {
  entry: EntryVersions;
  difference: Difference;
}

function sitesOf(changes: readonly Change[]): RollbackPlan['sites'] {
  const [added, removed, changed] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const { entry, difference } of changes) {
    const site = siteOfOwner(difference.after?.owner ?? entry.from?.owner ?? null);
    if (site === null) continue;
    const [before, after] = [isServed(entry.from), isServed(difference.after)];
    if (entry.kind !== siteKind.kind || before === after) changed.add(site);
    else (after ? added : removed).add(site);
  }
  const others = changed.difference(added).difference(removed);
  return { added: [...added], changed: [...others], removed: [...removed] };
}

/** What is disabled now stays so. */
function staysDisabled({ kind, from }: EntryVersions): boolean {
  return kindNamed(kind).onRollback === 'dropIfDisabled' && from !== null && !isServed(from);
}

function isServed(entry: Pick<StoredEntry, 'refs'> | null | undefined): boolean {
  return !!entry && !entry.refs.includes(DISABLED_REF);
}

/** What the entries refer to, and what they belong to, that is not there any more. */
async function missingOf(
  sql: Knex,
  clusterId: string,
  entries: readonly EntryVersions[],
  owners: RollbackOwners,
): Promise<Missing[]> {
  const wanted = entries.flatMap(({ to }) =>
    to ? [...to.refs, ...(to.owner ? [to.owner] : [])].map((text) => referenceOf(text, to.owner)) : [],
  );
  return unprovided(sql, clusterId, wanted, owners);
}

async function unprovided(
  sql: Knex,
  clusterId: string,
  wanted: readonly (Reference & { type: string })[],
  owners: RollbackOwners,
): Promise<Missing[]> {
  const provisions = new Map<string, Provision>(ENTRY_KINDS.flatMap(({ provides = {} }) => Object.entries(provides)));
  const missing: Missing[] = [];
  for (const [type, references] of Map.groupBy(wanted, ({ type }) => type)) {
    const provision = provisions.get(type);
    if (provision) missing.push(...(await provision(sql, clusterId, references, owners)));
  }
  return missing;
}

/** Throws ROLLBACK_RESOURCE_UNAVAILABLE for those of the references, of these types if given, that lead nowhere. */
export async function refuseUnprovided(
  sql: Knex,
  clusterId: string,
  references: readonly { ref: string; owner: string | null }[],
  owners: RollbackOwners,
  types?: readonly string[],
): Promise<void> {
  const wanted = references
    .map(({ ref, owner }) => referenceOf(ref, owner))
    .filter(({ type }) => types?.includes(type) ?? true);
  refuseMissing(await unprovided(sql, clusterId, wanted, owners));
}

/** Owners of the entries that are put back of which others differ, too, and stay as they are. */
async function stayingOwners(
  found: readonly EntryVersions[],
  differing: (filter: ChangedFilter) => Promise<EntryVersions[]>,
): Promise<string[]> {
  const owners = [...new Set(found.flatMap(ownersOf))];
  const known = new Set(found.map(keyOf));
  const all = await differing({ owners });
  return all.filter((entry) => !known.has(keyOf(entry))).flatMap(ownersOf);
}

function ownersOf({ from, to }: EntryVersions): string[] {
  const owner = (to ?? from)?.owner ?? null;
  return owner === null ? [] : [owner];
}

function referenceOf(text: string, owner: string | null): Reference & { type: string } {
  const at = text.indexOf(':');
  return { type: text.slice(0, at), name: text.slice(at + 1), owner };
}

/** Owners that are gone and that the revision did not serve either: their entries stay away. */
function leftOut(entries: readonly EntryVersions[], missing: readonly Missing[]): Set<string> {
  const gone = new Set(missing.flatMap(({ type, name, owner }) => (owner === `${type}:${name}` ? [owner] : [])));
  const served = entries.flatMap(({ kind, to }) =>
    kindNamed(kind).onRollback === 'dropIfDisabled' && isServed(to) ? [to!.owner!] : [],
  );
  return gone.difference(new Set(served));
}

/** Throws ROLLBACK_RESOURCE_UNAVAILABLE, naming what is missing, where anything is. */
export function refuseMissing(missing: readonly Missing[]): void {
  if (missing.length === 0) return;
  const distinct = new Map(missing.map((one) => [`${one.type}:${one.name}`, one]));
  const gone = new Set(missing.map(({ type, name }) => `${type}:${name}`));
  // Of a site that is gone its domains are, too: the site says it.
  const named = [...distinct.values()].filter(
    ({ type, name, owner }) => owner === null || !gone.has(owner) || owner === `${type}:${name}`,
  );
  fail('ROLLBACK_RESOURCE_UNAVAILABLE', {
    resources: named.slice(0, MAX_MISSING).map(({ type, name, label }) => ({ type, id: name, name: label })),
    count: named.length,
  });
}

/** By key of the entry; of those whose kind renews them. */
type Renewed = ReadonlyMap<string, CompiledEntry | null>;

/** Entries of the revision with what they refer to as it is now. */
async function renewedOf(sql: Knex, clusterId: string, entries: readonly EntryVersions[]): Promise<Renewed> {
  const found = new Map<string, CompiledEntry | null>();
  // What is not put back stays as it is.
  const beside: Beside = async (kind, ids) => {
    const { stable } = await liveSettings(sql, clusterId, kind, ids);
    const back = entries.flatMap(({ kind: of, id, to }): [string, object][] =>
      of === kind && to?.settings ? [[id, to.settings]] : [],
    );
    return new Map([...stable, ...back]);
  };
  for (const [name, group] of Map.groupBy(entries, ({ kind }) => kind)) {
    const settings = group.flatMap(({ id, to }): [string, object][] => (to?.settings ? [[id, to.settings]] : []));
    const renewed = settings.length > 0 ? await kindNamed(name).renewed?.(sql, new Map(settings), beside) : undefined;
    for (const [id, compiled] of renewed ?? []) found.set(keyOf({ kind: name, id }), compiled);
  }
  return found;
}

function differenceOf(entry: EntryVersions, renewed: Renewed): Difference | undefined {
  const { kind: name, id, bucket, from } = entry;
  const kind = kindNamed(name);
  if (from && from.compilerVersion > kind.compilerVersion) {
    fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 5, reason: 'newer_compiler' });
  }
  const after = writtenOf(kind, entry, renewed);
  if (from && after && from.hash === after.hash.toString('hex') && isDeepStrictEqual(from.features, after.features)) {
    return undefined;
  }
  if (!from && !after) return undefined;
  const before = from ? { ...from, kind: name, id, bucket, ended: false } : undefined;
  return { kind: name, id, bucket, before, after: after ?? undefined };
}

/** The entry of the revision, with the fields of now that a rollback leaves alone. */
function writtenOf(kind: EntryKind, { id, from, to }: EntryVersions, renewed: Renewed): WrittenEntry | null {
  const key = keyOf({ kind: kind.kind, id });
  const compiled = renewed.has(key) ? renewed.get(key) : withKept(kind, from, to);
  if (compiled !== undefined) {
    return (
      compiled && {
        ...compiled,
        hash: bodyHash(compiled.body),
        compilerVersion: kind.compilerVersion,
        owner: kind.ownerOf(id),
      }
    );
  }
  if (!to) return null;
  const { hash, features, refs, settingsHash, compilerVersion, owner } = to;
  return {
    hash: Buffer.from(hash, 'hex'),
    body: null,
    features,
    refs,
    compilerVersion,
    owner,
    ...(settingsHash === null ? {} : { settingsHash }),
  };
}

/** What comes of the settings with the fields that are kept; undefined: the entry of the revision as it is. */
function withKept(kind: EntryKind, from: StoredEntry | null, to: StoredEntry | null): CompiledEntry | null | undefined {
  const { keptOnRollback = [], compileSettings, defaults } = kind;
  if (keptOnRollback.length === 0 || !compileSettings) return undefined;
  const settingsOf = (entry: StoredEntry | null) =>
    entry ? entry.settings && { ...defaults, ...entry.settings } : defaults;
  const [now, then] = [settingsOf(from), settingsOf(to)] as (Record<string, unknown> | null)[];
  if (!now || !then) return undefined;
  const differing = keptOnRollback.filter((field) => !isDeepStrictEqual(now[field], then[field]));
  if (differing.length === 0) return undefined;
  return compileSettings({ ...then, ...Object.fromEntries(differing.map((field) => [field, now[field]])) });
}
