import { Notebook } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Audit', 'zh-CN': '审计' };

export default {
  routes: [{ path: '/audit', name: 'audit', title, component: () => import('./AuditPage.vue') }],
  navigation: [{ group: 'system', order: 10, title, icon: Notebook, to: '/audit' }],
  uses: ['contract'],
} satisfies Feature;
