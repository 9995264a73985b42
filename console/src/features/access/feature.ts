import { Key } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Access', 'zh-CN': '访问凭据' };

export default {
  routes: [{ path: '/access', name: 'access', title, docs: 'api' }],
  parts: [
    {
      of: 'access',
      name: 'keys',
      order: 10,
      title: { en: 'Access keys', 'zh-CN': '访问密钥' },
      component: () => import('./KeysTab.vue'),
    },
    {
      of: 'access',
      name: 'service-accounts',
      order: 20,
      title: { en: 'Service accounts', 'zh-CN': '服务账户' },
      component: () => import('./ServiceAccountsTab.vue'),
    },
  ],
  navigation: [{ group: 'system', order: 30, title, icon: Key, to: '/access' }],
} satisfies Feature;
