/** The page: one document with its style and its script inside, for a nonce that is made for every answer. */
import { builtPage } from './built-page.js';

/** Nothing but what has the nonce runs or styles; nothing is loaded but the page's own stream. */
export function pagePolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

export function pageHtml(nonce: string): string {
  return builtPage.replaceAll('%nonce%', nonce);
}
