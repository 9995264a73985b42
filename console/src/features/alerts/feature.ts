import { Bell } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Alerts', 'zh-CN': '告警' };

export default {
  routes: [{ path: '/alerts', name: 'alerts', title, docs: 'alerts' }],
  parts: [
    {
      of: 'alerts',
      name: '',
      order: 10,
      title: { en: 'Events', 'zh-CN': '事件' },
      component: () => import('./AlertEvents.vue'),
    },
    {
      of: 'alerts',
      name: 'channels',
      order: 20,
      title: { en: 'Channels', 'zh-CN': '渠道' },
      component: () => import('./AlertChannels.vue'),
    },
    {
      of: 'alerts',
      name: 'silences',
      order: 25,
      title: { en: 'Silences', 'zh-CN': '静默' },
      docs: 'alerts',
      component: () => import('./SilenceList.vue'),
    },
    {
      of: 'alerts',
      name: 'rules',
      order: 30,
      title: { en: 'Limits', 'zh-CN': '阈值' },
      component: () => import('./AlertLimits.vue'),
    },
    {
      of: 'alerts',
      name: 'mail',
      order: 40,
      title: { en: 'Mail server', 'zh-CN': '邮件服务器' },
      component: () => import('./MailServer.vue'),
    },
  ],
  navigation: [{ group: 'system', order: 20, title, icon: Bell, to: '/alerts' }],
  actions: [
    {
      title: { en: 'Add an alert channel', 'zh-CN': '添加告警渠道' },
      words: { en: 'notification webhook mail', 'zh-CN': '通知 邮件' },
      to: '/alerts/channels?new=1',
    },
    {
      title: { en: 'Silence alerts', 'zh-CN': '静默告警' },
      words: { en: 'mute maintenance snooze', 'zh-CN': '维护 免打扰' },
      to: '/alerts/silences?new=1',
    },
  ],
  uses: ['sites'],
} satisfies Feature;
