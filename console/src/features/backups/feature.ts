import { Files } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Backups', 'zh-CN': '备份' };

export default {
  routes: [{ path: '/backups', name: 'backups', title, docs: 'disaster-recovery' }],
  parts: [
    {
      of: 'backups',
      name: '',
      order: 10,
      title: { en: 'History', 'zh-CN': '历史' },
      component: () => import('./BackupHistory.vue'),
    },
    {
      of: 'backups',
      name: 'schedule',
      order: 20,
      title: { en: 'Schedule', 'zh-CN': '计划' },
      component: () => import('./BackupSchedule.vue'),
    },
  ],
  navigation: [{ group: 'system', order: 25, title, icon: Files, to: '/backups' }],
} satisfies Feature;
