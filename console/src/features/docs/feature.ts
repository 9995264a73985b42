import type { Feature } from '@/app/feature.ts';

export default {
  routes: [
    {
      path: '/docs/:page*',
      name: 'docs',
      title: { en: 'Docs', 'zh-CN': '文档' },
      component: () => import('./DocsPage.vue'),
    },
  ],
} satisfies Feature;
