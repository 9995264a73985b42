import type { Feature } from '@/app/feature.ts';

export default {
  routes: [
    {
      path: '/login',
      name: 'login',
      title: { en: 'Sign in', 'zh-CN': '登录' },
      component: () => import('./SignInPage.vue'),
      bare: true,
      open: true,
    },
  ],
} satisfies Feature;
