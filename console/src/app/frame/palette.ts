import { reactive } from 'vue';

/** Whether search and commands are open; any page may open them. */
export const palette = reactive({ open: false });
