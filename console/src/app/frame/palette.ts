import { reactive } from 'vue';

/** Search and commands; any page may open them. */
export const palette = reactive({
  open: false,
  /** What was typed before its field could take it. */
  typed: '',
});

/**
 * Opens it. Its code may have to be fetched first and its field takes the focus a moment later: until `fieldReady`, keys
 * are collected here and reach nothing of the page.
 */
export function openPalette(): void {
  if (palette.open) return;
  palette.typed = '';
  palette.open = true;
  document.addEventListener('keydown', collect, true);
}

export function closePalette(): void {
  fieldReady();
  palette.open = false;
}

/** The field has the focus: what was typed until then, which it takes over. */
export function fieldReady(): string {
  document.removeEventListener('keydown', collect, true);
  const { typed } = palette;
  palette.typed = '';
  return typed;
}

function collect(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape') closePalette();
  else if (event.key === 'Backspace') palette.typed = [...palette.typed].slice(0, -1).join('');
  else if ([...event.key].length === 1) palette.typed += event.key;
  else if (event.key !== 'Enter') return;
  event.preventDefault();
  event.stopPropagation();
}
