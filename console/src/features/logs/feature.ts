import type { Feature } from '@/app/feature.ts';

export default {
  parts: [
    {
      of: 'site',
      name: 'logs',
      order: 30,
      title: { en: 'Logs', 'zh-CN': '日志' },
      docs: 'logs',
      component: () => import('./SiteLogs.vue'),
    },
  ],
  uses: ['waf'],
} satisfies Feature;
