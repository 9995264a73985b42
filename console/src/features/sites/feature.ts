import { Connection } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

export default {
  routes: [
    {
      path: '/sites',
      name: 'sites',
      title: { en: 'Sites', 'zh-CN': '站点' },
      component: () => import('./SitesPage.vue'),
    },
  ],
  navigation: [{ group: 'top', order: 20, title: { en: 'Sites', 'zh-CN': '站点' }, icon: Connection, to: '/sites' }],
} satisfies Feature;
