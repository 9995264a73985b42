import { Setting } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Settings', 'zh-CN': '系统设置' };

export default {
  routes: [
    { path: '/settings', name: 'settings', title, docs: 'running', component: () => import('./SettingsPage.vue') },
  ],
  navigation: [{ group: 'system', order: 40, title, icon: Setting, to: '/settings' }],
} satisfies Feature;
