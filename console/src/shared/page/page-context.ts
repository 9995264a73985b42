// What a page tells the frame, without either knowing the other.
import { ref } from 'vue';

/** The object a page shows, in front of the page's title: the name of a site. Cleared when another page is opened. */
export const pageSubject = ref('');
