// Express 4 is installed under an alias. The tests use only what versions 4 and 5 share.
declare module 'express4' {
  export { default } from 'express';
}
