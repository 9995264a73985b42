import type { Feature } from '@/app/feature.ts';

const title = { en: 'Account', 'zh-CN': '账户' };

export default {
  routes: [{ path: '/account', name: 'account', title, docs: 'sign-in', component: () => import('./AccountPage.vue') }],
  actions: [{ title: { en: 'Password, two-factor, passkeys', 'zh-CN': '密码、双重验证、通行密钥' }, to: '/account' }],
} satisfies Feature;
