import { Umbrella } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';
import { DEFAULTS, INCIDENTS, NOW } from './titles.ts';

export default {
  routes: [{ path: '/protection/incidents', name: 'incidents', title: INCIDENTS, docs: 'protection' }],
  navigation: [{ group: 'protection', order: 10, title: INCIDENTS, icon: Umbrella, to: '/protection/incidents' }],
  parts: [
    { of: 'incidents', name: 'now', order: 10, title: NOW, component: () => import('./IncidentsNow.vue') },
    { of: 'incidents', name: 'defaults', order: 20, title: DEFAULTS, component: () => import('./GlobalSettings.vue') },
    {
      of: 'site',
      name: 'protection',
      group: 'protection',
      order: 10,
      title: { en: 'Challenges', 'zh-CN': '质询' },
      docs: 'protection',
      component: () => import('./ProtectionTab.vue'),
    },
    {
      of: 'site',
      name: 'security',
      group: 'protection',
      order: 40,
      title: { en: 'Events', 'zh-CN': '事件' },
      docs: 'protection',
      component: () => import('./SecurityTab.vue'),
    },
  ],
  actions: [
    {
      title: { en: 'Switch global Under Attack', 'zh-CN': '切换全局 Under Attack' },
      to: '/protection/incidents',
    },
  ],
  uses: ['bans', 'network'],
} satisfies Feature;
