/** The page: one document with its style and its script inside, for a nonce that is made for every answer. */
import { script } from './script.js';
import { style } from './style.js';

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

const figure = (id: string, label: string): string => `<div class="figure"><dt>${label}</dt><dd id="${id}">–</dd></div>`;

export function pageHtml(nonce: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>headgate inspector</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${style}</style>
</head>
<body>
<a class="skip" href="#bands">Skip to the bands</a>
<header>
  <h1><svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><path d="M5 3v18M19 3v18M5 8h14M5 13h14"/></svg>headgate <span class="light">inspector</span></h1>
  <p class="status"><span id="dot" class="dot" aria-hidden="true"></span><span id="connection">connecting</span></p>
  <button id="pause" type="button" aria-pressed="false">Pause</button>
</header>
<p id="news" class="unseen" role="status"></p>
<noscript><p class="notice">This page needs JavaScript. The same figures are at <a href="?view=json">?view=json</a>.</p></noscript>
<main>
  <section class="top" aria-labelledby="gate-title">
    <div class="panel gate" id="gate">
      <h2 id="gate-title">Gate</h2>
      <p class="verdict"><strong id="verdict">–</strong> <span id="held"></span></p>
      <div class="gauge" id="gauge" role="meter" aria-label="Saturation" aria-valuemin="0" aria-valuemax="1.5" aria-valuenow="0"><div class="level"></div><div class="full" aria-hidden="true"></div></div>
      <p class="scale"><span>saturation <b id="saturation">–</b></span><span>full at 1.00</span></p>
    </div>
    <dl class="panel figures">
      ${figure('waiting', 'waiting')}${figure('in-flight', 'in flight')}${figure('drain', 'drains in')}
      ${figure('arriving', 'arriving, per s')}${figure('dispatching', 'dispatched, per s')}${figure('bytes', 'waiting bytes')}
    </dl>
  </section>
  <section id="bands" tabindex="-1" aria-labelledby="bands-title">
    <h2 id="bands-title">Bands <span class="aside">highest priority first; each flow stands in line before its gate</span></h2>
    <ol id="lanes" class="lanes"></ol>
    <p id="other-bands" class="more" hidden></p>
  </section>
  <div class="columns">
    <section class="panel" aria-labelledby="waits-title">
      <h2 id="waits-title">Longest waits <span class="aside">and why</span></h2>
      <ol id="waits" class="waits"></ol>
      <p id="no-waits" class="empty">Nothing waits.</p>
    </section>
    <section class="panel" aria-labelledby="outcomes-title">
      <h2 id="outcomes-title">Outcomes <span class="aside">over the last five minutes</span></h2>
      <svg id="chart" class="chart" role="img" aria-label="Outcomes over time" viewBox="0 0 300 90" preserveAspectRatio="none"></svg>
      <p class="axis" aria-hidden="true"><span>5 min ago</span><span id="peak"></span><span>now</span></p>
      <dl id="totals" class="totals"></dl>
    </section>
  </div>
  <section aria-labelledby="endpoints-title" id="endpoints-section">
    <h2 id="endpoints-title">Endpoints <span class="aside">seats taken from here, KV cache, the server’s own queue</span></h2>
    <ul id="endpoints" class="endpoints"></ul>
    <p id="other-endpoints" class="more" hidden></p>
  </section>
</main>
<footer><p>Read-only. Nothing runs in the gateway while no such page is open. <a href="?view=json">JSON</a></p></footer>
<script nonce="${nonce}">${script}</script>
</body>
</html>
`;
}
