// Leaving a page with unsaved changes asks first: by route, and by closing the tab.
import { onBeforeUnmount, onMounted } from 'vue';
import { useI18n } from 'vue-i18n';
import { onBeforeRouteLeave, onBeforeRouteUpdate } from 'vue-router';

export function useLeaveGuard(isDirty: () => boolean): void {
  const { t } = useI18n();
  const ask = () => !isDirty() || window.confirm(t('shared.form.leave'));
  onBeforeRouteLeave(ask);
  onBeforeRouteUpdate((to, from) => to.path === from.path || ask());
  const onUnload = (event: BeforeUnloadEvent) => {
    if (isDirty()) event.preventDefault();
  };
  onMounted(() => window.addEventListener('beforeunload', onUnload));
  onBeforeUnmount(() => window.removeEventListener('beforeunload', onUnload));
}
