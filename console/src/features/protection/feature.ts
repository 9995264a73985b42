import type { Feature } from '@/app/feature.ts';

export default {
  siteTabs: [
    {
      name: 'protection',
      order: 30,
      title: { en: 'Protection', 'zh-CN': '防护' },
      component: () => import('./ProtectionTab.vue'),
    },
  ],
} satisfies Feature;
