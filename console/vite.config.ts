import { resolve } from 'node:path';
import vueI18n from '@intlify/unplugin-vue-i18n/vite';
import vue from '@vitejs/plugin-vue';
import elementPlus from 'unplugin-element-plus/vite';
import { defineConfig } from 'vite';
import { bootPlugin } from './build/boot-plugin.ts';
import { commonChunks } from './build/chunks.ts';
import { compressPlugin } from './build/compress-plugin.ts';
import { contractPlugin } from './build/contract-plugin.ts';

const root = import.meta.dirname;

export default defineConfig({
  root,
  plugins: [
    contractPlugin(),
    bootPlugin(root),
    vue(),
    elementPlus({ format: 'esm' }),
    vueI18n({
      include: ['messages', 'words'].map((folder) => resolve(root, `src/**/${folder}/*.json`)),
      runtimeOnly: true,
      dropMessageCompiler: true,
      strictMessage: true,
    }),
    compressPlugin(),
  ],
  resolve: { alias: { '@contract': resolve(root, '../contract'), '@': resolve(root, 'src') } },
  define: { __VUE_OPTIONS_API__: 'false', __VUE_PROD_DEVTOOLS__: 'false' },
  build: {
    target: 'es2023',
    // Inlined data: addresses of scripts and styles would break the policy; images are few.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 500,
    rolldownOptions: { output: { codeSplitting: { groups: commonChunks(root) } } },
  },
  server: {
    proxy: Object.fromEntries(
      ['/rpc', '/api', '/healthz', '/install.sh', '/downloads', '/page-preview'].map((path) => [
        path,
        process.env.CONSOLE_URL ?? 'http://localhost:3000',
      ]),
    ),
  },
});
