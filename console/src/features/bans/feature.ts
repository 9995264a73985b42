import { CircleClose } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Bans', 'zh-CN': '封禁' };

export default {
  routes: [{ path: '/bans', name: 'bans', title, docs: 'bans' }],
  parts: [
    {
      of: 'bans',
      name: '',
      order: 10,
      title: { en: 'Active', 'zh-CN': '生效中' },
      component: () => import('./BansPage.vue'),
    },
    {
      of: 'bans',
      name: 'lost',
      order: 15,
      title: { en: 'Lost in a restore', 'zh-CN': '恢复时丢失' },
      docs: 'disaster-recovery',
      component: () => import('./LostBans.vue'),
    },
    {
      of: 'bans',
      name: 'settings',
      order: 20,
      title: { en: 'Settings', 'zh-CN': '设置' },
      component: () => import('./BanSettingsPage.vue'),
    },
    {
      of: 'site',
      name: 'bans',
      group: 'protection',
      order: 30,
      title,
      docs: 'bans',
      component: () => import('./SiteBans.vue'),
    },
  ],
  navigation: [{ group: 'protection', order: 20, title, icon: CircleClose, to: '/bans' }],
  searchTitle: title,
  search: () => import('./search-bans.ts').then(({ searchBans }) => searchBans),
  actions: [
    {
      title: { en: 'Ban an address', 'zh-CN': '封禁地址' },
      words: { en: 'block ip', 'zh-CN': '拉黑 IP' },
      to: '/bans?new=1',
    },
    { title: { en: 'Bulk ban', 'zh-CN': '批量封禁' }, to: '/bans?bulk=1' },
  ],
  uses: ['protection', 'sites'],
} satisfies Feature;
