import { Finished } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const global = { en: 'Global rules', 'zh-CN': '全局规则' };

export default {
  routes: [
    {
      path: '/platform-rules',
      name: 'platform-rules',
      title: global,
      docs: 'rules',
      component: () => import('./GlobalRulesPage.vue'),
    },
  ],
  navigation: [{ group: 'protection', order: 40, title: global, icon: Finished, to: '/platform-rules' }],
  parts: [
    {
      of: 'site',
      name: 'rules',
      group: 'delivery',
      order: 40,
      title: { en: 'Rules', 'zh-CN': '规则' },
      docs: 'rules',
      component: () => import('./SiteRules.vue'),
    },
    {
      of: 'site',
      name: 'redirects',
      group: 'delivery',
      order: 45,
      title: { en: 'Redirects', 'zh-CN': '重定向' },
      docs: 'rules#bulk-redirects',
      component: () => import('./SiteRedirects.vue'),
    },
  ],
  places: { platform_rule: () => '/platform-rules' },
  actions: [{ title: { en: 'Rules for all sites', 'zh-CN': '所有站点的规则' }, to: '/platform-rules' }],
  uses: ['sites'],
} satisfies Feature;
