// Kinds of which a cluster has one entry, id "", compiled from one settings column of its row.
import type { CompiledEntry, EntryKind } from './kind.ts';

interface SingleKind<T> {
  kind: string;
  column: 'client_ip' | 'unknown_hosts';
  compilerVersion: number;
  /** Null for settings that equal the default: the cluster needs no entry then. */
  compile(settings: T): CompiledEntry | null;
}

export function singleClusterKind<T extends object>({
  kind,
  column,
  compilerVersion,
  compile,
}: SingleKind<T>): EntryKind {
  return {
    kind,
    compilerVersion,
    bypass: false,
    onRollback: 'restore',
    scope: 'cluster',
    ownerOf: () => null,
    async compile(sql, clusterId, ids) {
      if (!ids.includes('')) return new Map();
      const row = await sql('cluster').where({ id: clusterId }).first(column);
      const settings = row?.[column] as T | null | undefined;
      const entry = settings ? compile(settings) : null;
      return new Map(entry ? [['', { ...entry, settings }]] : []);
    },
    async *list() {
      yield [''];
    },
  };
}
