import { Lock } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Certificates', 'zh-CN': '证书' };

export default {
  routes: [
    {
      path: '/certificates',
      name: 'certificates',
      title,
      docs: 'https',
      component: () => import('./CertificatesPage.vue'),
    },
    {
      path: '/certificates/dns-credentials',
      name: 'dns-credentials',
      title: { en: 'DNS credentials', 'zh-CN': 'DNS 凭据' },
      docs: 'https#wildcards-dns-01',
      component: () => import('./DnsCredentialsPage.vue'),
    },
    {
      path: '/certificates/:id',
      name: 'certificate',
      title,
      docs: 'https',
      component: () => import('./CertificatePage.vue'),
    },
  ],
  navigation: [{ group: 'delivery', order: 10, title, icon: Lock, to: '/certificates' }],
  parts: [
    {
      of: 'site',
      name: 'https',
      group: 'delivery',
      order: 15,
      title: { en: 'HTTPS', 'zh-CN': 'HTTPS' },
      docs: 'https',
      component: () => import('./SiteHttps.vue'),
    },
  ],
  places: { certificate: (id) => `/certificates/${id}` },
  actions: [{ title: { en: 'Upload a certificate', 'zh-CN': '上传证书' }, to: '/certificates?new=1' }],
} satisfies Feature;
