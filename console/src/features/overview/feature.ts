import { Odometer } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Overview', 'zh-CN': '概览' };

export default {
  routes: [
    { path: '/overview', name: 'overview', title, docs: 'runbooks', component: () => import('./OverviewPage.vue') },
  ],
  navigation: [{ group: 'top', order: 10, title, icon: Odometer, to: '/overview' }],
  uses: ['attention', 'contract', 'network'],
} satisfies Feature;
