import type { Feature } from '@/app/feature.ts';

export default {
  parts: [
    {
      of: 'site',
      name: 'cache',
      group: 'delivery',
      order: 40,
      title: { en: 'Cache', 'zh-CN': '缓存' },
      docs: 'cache',
      component: () => import('./CacheTab.vue'),
    },
  ],
} satisfies Feature;
