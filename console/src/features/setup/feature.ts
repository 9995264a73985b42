import type { Feature } from '@/app/feature.ts';

export default {
  routes: [
    {
      path: '/setup',
      name: 'setup',
      title: { en: 'Set up', 'zh-CN': '初始化' },
      component: () => import('./SetupPage.vue'),
      bare: true,
      open: true,
    },
  ],
  actions: [{ title: { en: 'First steps', 'zh-CN': '入门步骤' }, to: '/setup?step=channel' }],
  uses: ['network', 'sites', 'system'],
} satisfies Feature;
