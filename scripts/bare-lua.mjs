/** Without comments and needless spaces, which every bundle would carry. Texts stay as they are. */
export function bare(lua) {
  const parts = lua.replace(/^ *--(?!\[).*\n/gm, '').split(/('[^'\n]*')/);
  const code = parts.map((part, i) => (i % 2 === 1 ? part : part.replace(/^ +| *([-+*/=~<>,{}()]) */gm, '$1')));
  const whole = code.join('');
  if (whole.includes('--')) throw new Error('two signs that stand together are a comment in Lua');
  return whole;
}
