// Keys of entries that came before the node served their site, and that it could not follow then. While one of them is
// lacking, its site answers nothing of its own; a site without such a mark goes on without its lacking entries.
import { create } from '@bufbuild/protobuf';
import { type EntryKey, EntryKeySchema } from '../../../proto/gen/svc/config/v1/entry_pb.js';

export class UnservedKeys {
  /** Kinds by id. */
  private marked = new Map<string, Set<string>>();

  has(kind: string, id: string): boolean {
    return this.marked.get(id)?.has(kind) ?? false;
  }

  kindsOf(id: string): string[] {
    return [...(this.marked.get(id) ?? [])];
  }

  add(kind: string, id: string): void {
    const kinds = this.marked.get(id);
    if (kinds) kinds.add(kind);
    else this.marked.set(id, new Set([kind]));
  }

  delete(kind: string, id: string): void {
    const kinds = this.marked.get(id);
    if (kinds?.delete(kind) && kinds.size === 0) this.marked.delete(id);
  }

  replace(keys: readonly EntryKey[]): void {
    this.marked.clear();
    for (const { kind, id } of keys) this.add(kind, id);
  }

  /** As messages carry them. */
  keys(): EntryKey[] {
    return [...this.marked].flatMap(([id, kinds]) => [...kinds].map((kind) => create(EntryKeySchema, { kind, id })));
  }
}
