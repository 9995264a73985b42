import { Umbrella } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';
import { INCIDENTS, SETTINGS } from './titles.ts';

export default {
  routes: [
    {
      path: '/protection/incidents',
      name: 'incidents',
      title: INCIDENTS,
      component: () => import('./IncidentsPage.vue'),
      redirect: '/protection/incidents/now',
      children: [
        { path: 'now', name: 'incidents-now', title: INCIDENTS, component: () => import('./IncidentsNow.vue') },
        {
          path: 'settings',
          name: 'protection-settings',
          title: SETTINGS,
          component: () => import('./GlobalSettings.vue'),
        },
      ],
    },
  ],
  navigation: [{ group: 'protection', order: 10, title: INCIDENTS, icon: Umbrella, to: '/protection/incidents' }],
  siteTabs: [
    {
      name: 'protection',
      order: 30,
      title: { en: 'Protection', 'zh-CN': '防护' },
      component: () => import('./ProtectionTab.vue'),
    },
    {
      name: 'security',
      order: 40,
      title: { en: 'Security', 'zh-CN': '安全' },
      component: () => import('./SecurityTab.vue'),
    },
  ],
  actions: [
    {
      title: { en: 'Switch Under Attack of all sites', 'zh-CN': '切换全部站点的 Under Attack' },
      to: '/protection/incidents',
    },
  ],
  uses: ['bans', 'network'],
} satisfies Feature;
