/**
 * The generator's own theme with the system's fonts, so that a page brings none; and the playground, loaded where it is
 * used.
 */

import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { defineAsyncComponent } from 'vue';
import './style.css';

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component(
      'Playground',
      defineAsyncComponent(() => import('../../playground/Playground.vue')),
    );
  },
} satisfies Theme;
