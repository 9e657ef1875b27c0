export { default } from '../adapter.mjs';
