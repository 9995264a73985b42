import { badField } from '../../contract/errors.ts';
import type { AdapterKind } from './adapters/adapter.ts';
import { adapterKind } from './adapters/catalog.ts';

/** Throws BAD_REQUEST. */
export function kindOf(provider: string): AdapterKind {
  return adapterKind(provider) ?? badField('/provider', 'unknownProvider');
}
