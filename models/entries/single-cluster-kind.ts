// Kinds of which a cluster has one entry, id "", compiled from one of its settings.
import { readClusterSetting, type SettingColumn } from '../cluster-settings.ts';
import type { CompiledEntry, EntryKind } from './kind.ts';

interface SingleKind<T> {
  kind: string;
  setting: SettingColumn<T>;
  compilerVersion: number;
  /** Null for settings that equal the default: the cluster needs no entry then. */
  compile(settings: T): CompiledEntry | null;
}

export function singleClusterKind<T extends object>({
  kind,
  setting,
  compilerVersion,
  compile,
}: SingleKind<T>): EntryKind {
  return {
    kind,
    compilerVersion,
    bypass: false,
    onRollback: 'restore',
    defaults: setting.read(null),
    scope: 'cluster',
    ownerOf: () => null,
    async compile(sql, clusterId, ids) {
      if (!ids.includes('')) return new Map();
      const found = await readClusterSetting(sql, clusterId, setting);
      const entry = found ? compile(found.settings) : null;
      return new Map(entry && found ? [['', { ...entry, settings: found.settings }]] : []);
    },
    async *list() {
      yield [''];
    },
  };
}
