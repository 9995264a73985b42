import { WarnTriangleFilled } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Error pages', 'zh-CN': '错误页' };

export default {
  routes: [
    {
      path: '/error-pages',
      name: 'error-pages',
      title,
      docs: 'error-pages#pages-of-all-clusters',
      component: () => import('./PlatformPages.vue'),
    },
  ],
  navigation: [{ group: 'delivery', order: 40, title, icon: WarnTriangleFilled, to: '/error-pages' }],
  parts: [
    {
      of: 'site',
      name: 'error-pages',
      group: 'delivery',
      order: 50,
      title,
      docs: 'error-pages',
      component: () => import('./ErrorPagesTab.vue'),
    },
    {
      of: 'site',
      name: 'maintenance',
      group: 'delivery',
      order: 60,
      title: { en: 'Maintenance', 'zh-CN': '维护' },
      docs: 'error-pages#close-a-site-for-maintenance',
      component: () => import('./MaintenanceTab.vue'),
    },
  ],
} satisfies Feature;
