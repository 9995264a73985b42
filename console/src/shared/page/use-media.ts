import { onScopeDispose, type Ref, ref } from 'vue';

/** Widths at which pages change their shape; the style sheets name the same ones. */
export const NARROW = '(max-width: 860px)';
export const PHONE = '(max-width: 700px)';

/** Whether a media query holds now. */
export function useMedia(query: string): Readonly<Ref<boolean>> {
  const media = window.matchMedia(query);
  const holds = ref(media.matches);
  const follow = () => {
    holds.value = media.matches;
  };
  media.addEventListener('change', follow);
  onScopeDispose(() => media.removeEventListener('change', follow));
  return holds;
}
