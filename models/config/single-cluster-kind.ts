// Kinds of which a cluster has one entry, id "", compiled from one of its settings.
import { readClusterSetting, type SettingColumn } from '../clusters/cluster-settings.ts';
import type { CompiledEntry, EntryKind } from './entry-kind.ts';

interface SingleKind<T> {
  kind: string;
  setting: SettingColumn<T>;
  compilerVersion: number;
  /** Null for settings that equal the default: the cluster needs no entry then. */
  compile(settings: T): CompiledEntry | null;
  /** The settings that nodes outside of a canary run, with what of a change must not wait; undefined: nothing of it. */
  bypass?(stable: T, now: T): T | undefined;
  /** `restore` unless given. */
  onRollback?: 'restore' | 'current';
  provides?: EntryKind['provides'];
}

export function singleClusterKind<T extends object>({
  kind,
  setting,
  compilerVersion,
  compile,
  bypass,
  onRollback = 'restore',
  provides,
}: SingleKind<T>): EntryKind {
  const entryOf = (settings: T): CompiledEntry | null => {
    const entry = compile(settings);
    return entry && (onRollback === 'restore' ? { ...entry, settings } : entry);
  };
  return {
    kind,
    compilerVersion,
    bypass:
      bypass === undefined
        ? false
        : (stable, now) => {
            const settings = bypass(stable as T, (now?.settings as T | undefined) ?? setting.read(null));
            return settings && entryOf(settings);
          },
    onRollback,
    ...(onRollback === 'restore' ? { defaults: setting.read(null) } : {}),
    ...(provides ? { provides } : {}),
    scope: 'cluster',
    ownerOf: () => null,
    async compile(sql, clusterId, ids) {
      if (!ids.includes('')) return new Map();
      const found = await readClusterSetting(sql, clusterId, setting);
      const entry = found ? entryOf(found.settings) : null;
      return new Map(entry ? [['', entry]] : []);
    },
    async *list() {
      yield [''];
    },
  };
}
