import type { DnsCatalogEntry } from '../../contract/resources/dns.ts';
import type { AdapterKind } from './adapters/adapter.ts';
import { adapterKinds } from './adapters/catalog.ts';

/** Only providers that there is an adapter for. */
export function dnsCatalog(): DnsCatalogEntry[] {
  return adapterKinds().map(entryOf);
}

function entryOf({ key, title, fields, capabilities, permissions }: AdapterKind): DnsCatalogEntry {
  const { recordTypes, listZones, lines, apex, endpoint, minTtl } = capabilities;
  return {
    id: key,
    name: title,
    fields: fields.map((field) => ({ ...field, options: [...field.options] })),
    capabilities: { recordTypes: [...recordTypes], listZones, lines: [...lines], apex, endpoint, minTtl },
    permissions: [...permissions],
  };
}
