import { CircleClose } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Bans', 'zh-CN': '封禁' };

export default {
  routes: [
    { path: '/bans', name: 'bans', title, component: () => import('./BansPage.vue') },
    {
      path: '/bans/settings',
      name: 'ban-settings',
      title: { en: 'Ban settings', 'zh-CN': '封禁设置' },
      component: () => import('./BanSettingsPage.vue'),
    },
  ],
  navigation: [{ group: 'protection', order: 20, title, icon: CircleClose, to: '/bans' }],
  siteTabs: [{ name: 'bans', order: 60, title, component: () => import('./SiteBans.vue') }],
  searchTitle: title,
  search: () => import('./search-bans.ts').then(({ searchBans }) => searchBans),
  actions: [
    {
      title: { en: 'Ban an address', 'zh-CN': '封禁地址' },
      words: { en: 'block ip', 'zh-CN': '拉黑 IP' },
      to: '/bans?new=1',
    },
    { title: { en: 'Ban many addresses', 'zh-CN': '批量封禁' }, to: '/bans?bulk=1' },
  ],
  uses: ['sites'],
} satisfies Feature;
