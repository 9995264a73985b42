// For a typed address: the page with everything about it.
import type { SearchProvider } from '@/app/feature.ts';
import { addressPath } from '@/shared/address/address-path.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

export const searchAddresses: SearchProvider = async (text) => {
  const to = addressPath(text);
  if (to === null) return [];
  const address = to.slice('/addresses/'.length);
  const title = i18n.global.t('addresses.search', { address });
  return [{ key: `address:${address}`, title, to }];
};
