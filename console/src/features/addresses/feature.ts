import type { Feature } from '@/app/feature.ts';

const title = { en: 'Address', 'zh-CN': '地址' };

export default {
  routes: [
    {
      path: '/addresses/:address/:prefix(\\d+)?',
      name: 'address',
      title,
      docs: 'bans',
      component: () => import('./AddressPage.vue'),
    },
  ],
  searchTitle: title,
  search: () => import('./search-addresses.ts').then(({ searchAddresses }) => searchAddresses),
  uses: ['bans', 'ip-lists', 'protection', 'sites'],
} satisfies Feature;
