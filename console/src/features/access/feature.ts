import { Key } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Access', 'zh-CN': '访问凭据' };

export default {
  routes: [
    {
      path: '/access',
      name: 'access',
      title,
      component: () => import('./AccessPage.vue'),
      children: [
        { path: '', name: 'access-start', title, component: () => import('./KeysTab.vue'), redirect: '/access/keys' },
        {
          path: 'keys',
          name: 'access-keys',
          title: { en: 'Access keys', 'zh-CN': '访问密钥' },
          component: () => import('./KeysTab.vue'),
        },
        {
          path: 'service-accounts',
          name: 'service-accounts',
          title: { en: 'Service accounts', 'zh-CN': '服务账户' },
          component: () => import('./ServiceAccountsTab.vue'),
        },
      ],
    },
  ],
  navigation: [{ group: 'system', order: 30, title, icon: Key, to: '/access' }],
} satisfies Feature;
