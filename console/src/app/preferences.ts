// Theme and density: kept in the browser, applied to the root element (boot.js does the same before the first paint).
import { ref, watch } from 'vue';
import { STORED } from '@/shared/i18n/locale.ts';

export type Theme = 'system' | 'light' | 'dark';
export type Density = 'comfortable' | 'compact';

const stored = localStorage.getItem(STORED.theme);
export const theme = ref<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system');
export const density = ref<Density>(localStorage.getItem(STORED.density) === 'compact' ? 'compact' : 'comfortable');

const systemDark = matchMedia('(prefers-color-scheme: dark)');

function apply(): void {
  const dark = theme.value === 'dark' || (theme.value === 'system' && systemDark.matches);
  document.documentElement.classList.toggle('dark', dark);
  document.documentElement.dataset.density = density.value;
}

systemDark.addEventListener('change', apply);
watch([theme, density], () => {
  localStorage.setItem(STORED.theme, theme.value);
  localStorage.setItem(STORED.density, density.value);
  apply();
});
