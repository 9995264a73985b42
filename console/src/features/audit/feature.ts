import { Notebook } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Audit', 'zh-CN': '审计' };

export default {
  routes: [{ path: '/audit', name: 'audit', title, docs: 'api#audit-log', component: () => import('./AuditPage.vue') }],
  navigation: [{ group: 'system', order: 10, title, icon: Notebook, to: '/audit' }],
  parts: [
    {
      of: 'site',
      name: 'history',
      group: 'last',
      order: 10,
      title: { en: 'History', 'zh-CN': '历史' },
      docs: 'api#audit-log',
      component: () => import('./SiteHistory.vue'),
    },
  ],
  uses: ['changes', 'contract'],
} satisfies Feature;
